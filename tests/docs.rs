//! The documents say what is true: tables come from the code, golden lines are those of
//! the protocol's tests, links lead somewhere, and examples are run.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, binary};
use brig_protocol::codes::{CallCode, EvaluationCode, RequestCode};
use brig_protocol::limits::LIMITS;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("the document")
}

fn limits_table() -> String {
    let mut table = "| member of `limits` | default | least | most | at the limit | setting |\n|---|---|---|---|---|---|\n".to_owned();
    for row in LIMITS {
        writeln!(
            table,
            "| `{}` | {} {} | {} | {} | {} | `{}` |",
            row.name, row.default, row.unit, row.minimum, row.maximum, row.effect, row.setting
        )
        .expect("a line");
    }
    table
}

fn codes_table(rows: &[(&str, bool, &str)]) -> String {
    let mut table = "| code | again? | meaning |\n|---|---|---|\n".to_owned();
    for (code, retryable, meaning) in rows {
        writeln!(table, "| `{code}` | {} | {meaning} |", if *retryable { "yes" } else { "no" }).expect("a line");
    }
    table
}

/// Every generated table: its name and its text.
fn tables() -> Vec<(&'static str, String)> {
    vec![
        ("limits", limits_table()),
        ("request codes", codes_table(&RequestCode::ALL.iter().map(|c| (c.as_str(), c.retryable(), c.meaning())).collect::<Vec<_>>())),
        (
            "evaluation codes",
            codes_table(&EvaluationCode::ALL.iter().map(|c| (c.as_str(), c.retryable(), c.meaning())).collect::<Vec<_>>()),
        ),
        ("call codes", codes_table(&CallCode::ALL.iter().map(|c| (c.as_str(), c.retryable(), c.meaning())).collect::<Vec<_>>())),
    ]
}

/// The document with its tables as the code has them.
fn with_tables(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, table) in tables() {
        let begin = format!("<!-- table: {name} -->\n");
        let start = text.find(&begin).unwrap_or_else(|| panic!("no table {name}")) + begin.len();
        let end = start + text.get(start..).and_then(|rest| rest.find("<!-- end -->")).expect("its end");
        text.replace_range(start..end, &table);
    }
    text
}

/// `BRIG_BLESS=1 cargo test -p acceptance --test docs` writes the tables anew.
#[test]
fn the_tables_of_the_protocol_reference_are_those_of_the_code() {
    let text = document("docs/protocol.md");
    let expected = with_tables(&text);
    if std::env::var_os("BRIG_BLESS").is_some() {
        std::fs::write(root().join("docs/protocol.md"), &expected).expect("the document is written");
    }
    assert!(document("docs/protocol.md") == expected, "run this test once with BRIG_BLESS=1 and commit docs/protocol.md");
}

#[test]
fn the_golden_lines_of_the_protocol_reference_are_those_of_its_tests() {
    let text = document("docs/protocol.md");
    for entry in [
        "01-evaluate",
        "02-host-call",
        "26-host-call-of-a-vm",
        "27-functions-wait",
        "28-functions-changed",
        "03-host-result",
        "04-host-failure",
        "05-result",
        "20-evaluate-detached",
        "21-running",
        "23-evaluations-wait",
        "25-unknown",
    ] {
        let line = document(&format!("protocol/tests/golden/{entry}.json"));
        assert!(text.contains(line.trim_end()), "{entry} is not in docs/protocol.md");
    }
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut documents: Vec<PathBuf> =
        ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "systemd/README.md"].iter().map(|name| root().join(name)).collect();
    for folder in ["docs", "docs/decisions"] {
        documents.extend(std::fs::read_dir(root().join(folder)).expect("a folder").flatten().map(|entry| entry.path()));
    }
    for path in documents.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(path).expect("a document");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let target = path.parent().expect("a folder").join(link.split('#').next().unwrap_or_default());
            assert!(target.exists(), "{} links to {link}", path.display());
        }
    }
}

/// Every source of the project, as one text.
fn all_sources() -> String {
    let mut text = String::new();
    let mut queue: Vec<PathBuf> =
        ["protocol", "supervisor", "worker", "client", "tests"].iter().map(|folder| root().join(folder)).collect();
    while let Some(path) = queue.pop() {
        if path.is_dir() {
            queue.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
    text
}

#[test]
fn every_test_that_a_document_names_exists() {
    let sources = all_sources();
    let mut named = 0;
    for name in ["docs/architecture.md", "docs/attacks.md"] {
        let text = document(name);
        for word in text.split('`').filter(|word| word.contains('_') && word.matches('_').count() >= 3) {
            if word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
                assert!(sources.contains(&format!("fn {word}(")), "{name} names the test {word}, which does not exist");
                named += 1;
            }
        }
    }
    assert!(named > 20, "only {named} tests were found in the documents");
}

/// Fenced blocks of a document in one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

/// Runs a shell example with the built commands on PATH and a brigd to talk to.
fn shell(brigd: &Brigd, script: &str) -> (bool, String) {
    let bin = binary("brig").parent().expect("a folder").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .env("PATH", path)
        .env("BRIG_SOCKET", brigd.socket())
        .current_dir(root())
        .output()
        .expect("bash");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_examples_of_the_protocol_reference_run() {
    let brigd = Brigd::start();
    let blocks = blocks(&document("docs/protocol.md"), "sh");
    assert!(!blocks.is_empty());
    for block in blocks {
        let (success, said) = shell(&brigd, &block);
        assert!(success && said.contains("\"value\":3"), "{block}\n{said}");
    }
    assert_eq!(brigd.connect().evaluate("1").get("value"), Some(&json!(1)));
}

/// They need root and systemd: cases run them, as the package brings them.
#[test]
fn the_recipes_of_the_operations_guide_are_run_by_a_case() {
    let guide = document("docs/operations.md");
    let cases = std::fs::read_dir(root().join("tests/systemd/cases")).expect("cases").flatten();
    let cases: String = cases.map(|case| std::fs::read_to_string(case.path()).expect("a case")).collect();
    let names: Vec<&str> = guide.split("<!-- recipe: ").skip(1).filter_map(|rest| rest.split(" -->\n```sh\n").next()).collect();
    assert_eq!(names.len(), blocks(&guide, "sh").len(), "an example of the guide has no name to be run by: {names:?}");
    for name in names {
        assert!(cases.lines().any(|line| line == format!("recipe {name}")), "no case runs the recipe {name:?}");
    }
}

#[test]
fn the_settings_that_the_operations_guide_shows_are_taken() {
    let blocks = blocks(&document("docs/operations.md"), "toml");
    assert!(!blocks.is_empty());
    for block in blocks {
        let brigd = acceptance::BrigdOptions::default().config(&block).start();
        assert_eq!(brigd.connect().evaluate("2").get("value"), Some(&json!(2)));
    }
}

/// README examples: a block marked `sh` is run; a comment `# → text` says what it prints.
#[test]
fn the_examples_of_the_readme_run_and_print_what_they_say() {
    let brigd = Brigd::start();
    let blocks = blocks(&document("README.md"), "sh");
    assert!(!blocks.is_empty(), "the README has no examples");
    for block in blocks {
        let (success, said) = shell(&brigd, &block);
        assert!(success, "{block}\n{said}");
        for expected in block.lines().filter_map(|line| line.split_once("# → ").map(|(_, text)| text.trim())) {
            assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
        }
    }
}
