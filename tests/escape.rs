//! Attacks from inside: each file of `escape/` is a program with its idea, the layer
//! that must stop it, and the end it must come to. `docs/attacks.md` has a row for each,
//! checked both ways.
//!
//! The head of a file is comments: `// idea:`, `// stops:`, `// expect:` (`value JSON`,
//! or `code one|or another`), and where needed `// limits: JSON` or `// wall: ms`.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, Handlers};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

struct Attack {
    name: String,
    program: String,
}

impl Attack {
    fn head(&self, member: &str) -> Option<&str> {
        let prefix = format!("// {member}:");
        self.program.lines().take_while(|line| line.starts_with("//")).find_map(|line| line.strip_prefix(prefix.as_str())).map(str::trim)
    }

    fn must(&self, member: &str) -> &str {
        self.head(member).unwrap_or_else(|| panic!("{} has no line `// {member}:`", self.name))
    }
}

fn attacks() -> Vec<Attack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("escape");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).expect("the attacks").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let only = std::env::var("BRIG_ATTACK").unwrap_or_default();
    paths
        .iter()
        .map(|path| Attack {
            name: path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned(),
            program: std::fs::read_to_string(path).expect("an attack"),
        })
        .filter(|attack| attack.name.starts_with(&only))
        .collect()
}

/// What every attack has in reach: a function that echoes, one that fails, one that is
/// denied, and a secret that only the host knows.
fn params(attack: &Attack) -> Value {
    let mut params = json!({
        "source": attack.program,
        "inputs": {"n": 1, "list": [1, 2, 3], "nested": {"a": {"b": 1}}},
        "hostFunctions": {"host": {
            "echo": {"inputSchema": {"type": "object"}},
            "fail": {"inputSchema": {"type": "object"}},
            "list": {"inputSchema": {"type": "object"}},
            "secret": {"inputSchema": {"type": "object"}},
        }},
        "permissions": {"hostFunction": {"default": "allow", "rules": [{"mode": "deny", "patterns": ["host.secret"]}]}},
        "timeoutMs": attack.head("wall").map_or(10_000, |ms| ms.parse().expect("milliseconds")),
    });
    if let Some(limits) = attack.head("limits") {
        let limits: Value = serde_json::from_str(limits).expect("limits are JSON");
        params.as_object_mut().expect("an object").insert("limits".to_owned(), limits);
    }
    params
}

fn handlers() -> Handlers {
    Handlers::none()
        .on("host.echo", json!({"kind": "echo"}))
        .on(
            "host.fail",
            json!({"kind": "throws", "error": {"name": "Error", "message": "no", "code": "said_no", "hostStack": "at /srv/host.js:1"}}),
        )
        .on("host.list", json!({"kind": "static", "result": {"list": [1, 2, 3], "a": {"b": 1}}}))
        .on("host.secret", json!({"kind": "static", "result": "hunter2"}))
}

/// Why an attack did not come to its end, or nothing.
fn failure(attack: &Attack, result: &Value, handlers: &Handlers) -> Option<String> {
    if handlers.calls("host.secret") > 0 || result.to_string().contains("hunter2") {
        return Some("it reached a denied function".to_owned());
    }
    if result.to_string().contains("/srv/host.js") {
        return Some("it saw the host's stack".to_owned());
    }
    let expect = attack.must("expect");
    let holds = |end: &str| {
        let (kind, wanted) = end.split_once(' ').unwrap_or((end, ""));
        match kind {
            "value" => result.get("value") == Some(&serde_json::from_str::<Value>(wanted).expect("the value is JSON")),
            "code" => wanted.split('|').any(|code| result.pointer("/error/code").and_then(Value::as_str) == Some(code.trim())),
            other => panic!("{}: unknown expectation {other}", attack.name),
        }
    };
    (!expect.split(" or ").any(|end| holds(end.trim())))
        .then(|| format!("expected {expect}, got {}", result.to_string().chars().take(800).collect::<String>()))
}

#[test]
fn every_attack_comes_to_its_documented_end_and_leaves_nothing() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let mut failures = Vec::new();
    let attacks = attacks();
    assert!(!attacks.is_empty(), "there are no attacks");
    client.evaluate("1");
    let before = brigd.rss_kib();
    for attack in &attacks {
        let mut handlers = handlers();
        let result = client.evaluate_with(&params(attack), &mut handlers);
        failures.extend(failure(attack, &result, &handlers).map(|why| format!("{}: {why}", attack.name)));
        // The next evaluation is in a fresh realm: nothing that the attack changed is there.
        let after = client.evaluate_with(
            &json!({"source": PROBE, "hostFunctions": {"host": {"echo": {}}}}),
            &mut Handlers::none().on("host.echo", json!({"kind": "echo"})),
        );
        if after.get("value") != Some(&json!([3, "[1,{\"a\":\"b\"}]", {"n": 2}, "object", true])) {
            failures.push(format!("{}: the next evaluation gave {after}", attack.name));
        }
    }
    let grown = brigd.rss_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "brigd grew by {grown} KiB over all attacks");
    assert!(failures.is_empty(), "{} of {} attacks:\n{}", failures.len(), attacks.len(), failures.join("\n"));
}

/// Uses what attacks like to change.
const PROBE: &str = "const echoed = await host.echo({ n: 2 }); \
    return [1 + 2, JSON.stringify([1, { a: 'b' }]), echoed, typeof globalThis, Object.keys(Object.prototype).length === 0 && [3].map((x) => x)[0] === 3]";

#[test]
fn the_ledger_has_a_row_for_every_attack_and_an_attack_for_every_row() {
    let ledger = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/attacks.md")).expect("the ledger");
    let rows: Vec<&str> = ledger.split('`').filter(|part| part.ends_with(".js") && !part.contains(' ')).collect();
    let attacks = attacks();
    for attack in &attacks {
        assert!(rows.contains(&attack.name.as_str()), "{} has no row in docs/attacks.md", attack.name);
        for member in ["idea", "stops", "expect"] {
            attack.must(member);
        }
    }
    for row in rows {
        assert!(attacks.iter().any(|attack| attack.name == row), "docs/attacks.md has a row for {row}, which does not exist");
    }
}
