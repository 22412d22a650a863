//! The command's dialogue over a vm.

use super::*;

/// A dialogue over pipes.
fn repl(brigd: &Brigd, state: &std::path::Path, options: &[&str]) -> std::process::Child {
    std::process::Command::new(binary("brig"))
        .arg("repl")
        .args(options)
        .arg("--socket")
        .arg(brigd.socket())
        .env("XDG_STATE_HOME", state)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("brig repl")
}

#[test]
fn the_repl_keeps_its_names_reads_standard_input_and_makes_a_new_vm_on_clear() {
    use std::io::Write as _;
    let brigd = Brigd::start();
    let folder = tempfile::tempdir().expect("a folder");
    let mut repl = repl(&brigd, folder.path(), &[]);
    let program = "let a = 20\nfunction twice(n) {\n  return n * 2\n}\ntwice(a) + 2\nconsole.log('printed')\nthrow new Error('no')\n`two\nlines`\n({ name: 'x', list: [1, 2] })\n.clear\ntypeof a\n";
    repl.stdin.take().expect("its input").write_all(program.as_bytes()).expect("it reads");
    let output = repl.wait_with_output().expect("its end");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "42\n'two\\nlines'\n{ name: 'x', list: [ 1, 2 ] }\n'undefined'\n", "{err}");
    assert!(err.contains("printed") && err.contains("Error: no"), "{err}");
    assert_eq!(output.status.code(), Some(0), "{err}");
}

#[test]
fn ctrl_c_in_the_repl_cancels_the_program_and_a_lost_vm_is_replaced_and_told() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let brigd = Brigd::start();
    let folder = tempfile::tempdir().expect("a folder");
    let mut repl = repl(&brigd, folder.path(), &["--timeout", "30s", "--inputs", "who=you"]);
    let mut input = repl.stdin.take().expect("its input");
    let mut errors = BufReader::new(repl.stderr.take().expect("its errors"));
    let waits =
        "inputs.who\n.inputs count:=3\ninputs.count\nconsole.log('running'); await new Promise(() => setTimeout(() => {}, 60000))\n";
    input.write_all(waits.as_bytes()).expect("it reads");
    let mut line = String::new();
    while line != "running\n" {
        line.clear();
        assert!(errors.read_line(&mut line).expect("a line") > 0, "it ended");
    }
    let pid = Pid::from_raw(i32::try_from(repl.id()).expect("a pid"));
    kill(pid, Signal::SIGINT).expect("a signal");
    let rest = b".clear\nconst all = []; for (;;) all.push('x'.repeat(100000) + all.length)\n'after'\n.nonsense\n";
    input.write_all(rest).expect("it reads");
    drop(input);
    let (mut out, mut err) = (String::new(), String::new());
    repl.stdout.take().expect("its output").read_to_string(&mut out).expect("text");
    errors.read_to_string(&mut err).expect("text");
    assert!(repl.wait().expect("its end").success(), "{err}");
    assert_eq!(out, "'you'\n3\n'after'\n", "{err}");
    for part in ["cancelled", "memory_limit", "this is a new one", "there is no command .nonsense"] {
        assert!(err.contains(part), "{part}: {err}");
    }
}
