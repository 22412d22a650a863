//! The program of configured functions in the tests: it does one thing, by its first
//! argument, and says what it saw.
#![expect(clippy::expect_used, clippy::panic, clippy::zombie_processes, reason = "a test program")]

use serde_json::{Map, Value, json};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["args", rest @ ..] => println!("{}", json!(rest)),
        ["world", ..] => println!("{}", world()),
        ["echo"] => print!("{}", input()),
        ["print", text] => print!("{text}"),
        ["exit", code, text] => {
            print!("{text}");
            std::process::exit(code.parse().expect("an exit code"));
        }
        ["kill", signal] => {
            let signal = nix::sys::signal::Signal::try_from(signal.parse::<i32>().expect("a number")).expect("a signal");
            nix::sys::signal::raise(signal).expect("it ends here");
        }
        ["flood", bytes] => std::io::stdout().write_all(&vec![b'7'; bytes.parse().expect("a number")]).expect("all of it"),
        ["complain", lines] => {
            for line in 0..lines.parse::<u64>().expect("a number") {
                eprintln!("complaint {line} \u{1b}[31m\u{202e}{}", "x".repeat(300));
            }
            println!("null");
        }
        ["hang", pids] => {
            orphan(pids);
            forever();
        }
        ["leave", pids] => {
            orphan(pids);
            println!("\"left\"");
        }
        ["orphan", pids] => {
            nix::unistd::setsid().expect("a session");
            Command::new("/proc/self/exe").args(["live", pids]).spawn().expect("one more");
        }
        ["live", pids] => {
            nix::unistd::setsid().expect("a session");
            let own = Path::new(pids).join("coming");
            std::fs::write(&own, std::process::id().to_string()).expect("its number");
            std::fs::rename(own, Path::new(pids).join("pid")).expect("its number");
            forever();
        }
        ["gate", folder] => {
            std::fs::write(Path::new(folder).join(format!("in-{}", std::process::id())), "").expect("a mark");
            // Until somebody opens the other end.
            std::fs::read(Path::new(folder).join("fifo")).expect("the gate");
            println!("true");
        }
        ["leak", how] => leak(how),
        other => {
            eprintln!("the probe does not know {other:?}");
            std::process::exit(64);
        }
    }
}

fn forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// Leaves a process behind that no process group reaches, and waits until it is there.
fn orphan(pids: &str) {
    let status = Command::new("/proc/self/exe").args(["orphan", pids]).status().expect("a child");
    assert!(status.success());
    while !Path::new(pids).join("pid").exists() {
        std::thread::yield_now();
    }
}

fn input() -> String {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("standard input");
    text
}

/// Everything that a program can see of what it was given.
fn world() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").expect("its status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let mut descriptors: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .expect("its descriptors")
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            (!target.ends_with("fd")).then(|| entry.file_name().to_string_lossy().parse().expect("a number"))
        })
        .collect();
    descriptors.sort_unstable();
    let environment: Map<String, Value> = std::env::vars().map(|(name, value)| (name, Value::from(value))).collect();
    let files: Map<String, Value> = std::env::vars()
        .filter(|(name, _)| name.ends_with("_FILE"))
        .map(|(name, path)| (name, std::fs::read_to_string(path).map_or_else(|fault| fault.to_string().into(), Value::from)))
        .collect();
    let limit = |resource| nix::sys::resource::getrlimit(resource).expect("a limit").1;
    use nix::sys::resource::Resource;
    let umask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    json!({
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "environment": environment,
        "files": files,
        "input": input(),
        "folder": std::env::current_dir().expect("a folder"),
        "umask": umask.bits(),
        "uid": field("Uid:"), "gid": field("Gid:"), "groups": field("Groups:"),
        "noNewPrivs": field("NoNewPrivs:"), "blocked": field("SigBlk:"), "capabilities": field("CapEff:"),
        "leader": nix::unistd::getsid(None).expect("a session") == nix::unistd::getpid(),
        "descriptors": descriptors,
        "core": limit(Resource::RLIMIT_CORE), "files_open": limit(Resource::RLIMIT_NOFILE), "cpu": limit(Resource::RLIMIT_CPU),
    })
}

/// Gives its credential away in one form.
fn leak(how: &str) {
    let secret = std::env::var("TOKEN").expect("the credential");
    let hex: String = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
    let url: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let spelt: String = secret.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let all = [secret.clone(), hex, url, base64(&secret), base64(&format!("a{secret}b")), base64(&format!("ab{secret}c"))];
    match how {
        "output" => println!("{{\"all\":{},\"spelt\":\"{spelt}\"}}", json!(all)),
        "text" => println!("{}", all.join(" ")),
        "failure" => {
            println!("{}", json!({"error": {"name": secret, "message": all.join(" "), "code": secret, "data": {"all": all}}}));
            std::process::exit(1);
        }
        "complaint" => {
            all.iter().for_each(|form| eprintln!("it is {form}"));
            eprintln!("{spelt}");
            println!("null");
        }
        "broken" => println!("{{\"all\": {} nonsense", secret),
        other => panic!("no way to leak {other}"),
    }
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in text.as_bytes().chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 63) as usize).copied().unwrap_or(b'?');
            out.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    out
}
