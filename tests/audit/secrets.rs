//! No secret is in anything that brigd wrote.

use super::*;

fn base64(bytes: &[u8], url: bool) -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(if url { ['-', '_'] } else { ['+', '/'] }).collect();
    let digit = |bits: u32| alphabet.get(usize::try_from(bits & 63).unwrap_or(0)).copied().unwrap_or('?');
    let group = |chunk: &[u8]| {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).map(|place| digit(bits >> (18 - 6 * place))).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// What the secret looks like, in every form in which it could leave.
fn forms() -> Vec<(String, Vec<u8>)> {
    let bytes = SECRET.as_bytes();
    let percent: String =
        bytes.iter().map(|b| if b.is_ascii_alphanumeric() { char::from(*b).to_string() } else { format!("%{b:02X}") }).collect();
    let mut forms = vec![
        ("plain".to_owned(), SECRET.to_owned()),
        ("its first half".to_owned(), "pLANTED/7".to_owned()),
        ("its last half".to_owned(), "Q-secret".to_owned()),
        ("JSON".to_owned(), json!(SECRET).to_string().trim_matches('"').to_owned()),
        ("JSON, ASCII only".to_owned(), SECRET.replace('"', "\\\"").replace('ž', "\\u017e")),
        ("JSON twice".to_owned(), json!(json!(SECRET).to_string()).to_string().trim_matches(['"', '\\']).to_owned()),
        ("URL, lower case".to_owned(), percent.to_lowercase()),
        ("URL".to_owned(), percent),
        ("hexadecimal".to_owned(), bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        ("HEXADECIMAL".to_owned(), bytes.iter().map(|byte| format!("{byte:02X}")).collect()),
    ];
    for url in [false, true] {
        for shift in 0..3usize {
            // What of it does not depend on its neighbours.
            let text = base64(bytes.get((3 - shift) % 3..).unwrap_or_default(), url);
            forms.push((format!("base64, shifted by {shift}"), text.get(..text.len() - 4).unwrap_or_default().to_owned()));
        }
    }
    forms.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = vec![folder.to_owned()];
    while let Some(path) = queue.pop() {
        if path.is_dir() {
            queue.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

/// Files below the folders that hold the secret in one form or another.
fn leaks(folders: &[&Path]) -> Vec<String> {
    let mut found = Vec::new();
    for path in folders.iter().flat_map(|folder| files_below(folder)) {
        let bytes = std::fs::read(&path).expect("a file");
        for (name, form) in forms() {
            if bytes.windows(form.len()).any(|window| window == form) {
                found.push(format!("{} has the secret as {name}", path.display()));
            }
        }
    }
    found
}

#[test]
fn the_search_for_the_secret_finds_it_in_every_form() {
    for (name, form) in forms() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("x"), [b"before ".as_slice(), &form, b" after"].concat()).expect("a file");
        assert!(!leaks(&[folder.path()]).is_empty(), "{name}");
    }
    for (start, url) in [("", false), ("a", false), ("ab", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("x"), base64(format!("{start}{SECRET}xyz").as_bytes(), url)).expect("a file");
        assert!(!leaks(&[folder.path()]).is_empty(), "base64 after {start:?}");
    }
}

#[test]
fn a_secret_is_in_nothing_that_brigd_wrote_in_no_encoding() {
    let audit = Audit::new();
    let brigd = audit.options("log = true\n[server]\nlog = \"trace\"").start();
    let mut client = brigd.connect();
    let secret = json!(SECRET).to_string();
    let functions = json!({"svc": {
        "f": {"outputSchema": {"type": "object"}},
        "g": {"inputSchema": {"properties": {"token": {"type": "string", "maxLength": 3}}}}}});
    let answers = || {
        Handlers::none()
            .on("svc.f", json!({"kind": "static", "result": {"token": SECRET}}))
            .on("svc.g", json!({"kind": "throws", "error": {"message": SECRET, "name": "E", "code": "c"}}))
    };
    let sources = [
        format!("console.log({secret}); console.error({secret}); return await svc.f({{token: {secret}}})"),
        format!("return [inputs.token, btoa(unescape(encodeURIComponent({secret}))), encodeURIComponent({secret})]"),
        format!("throw new TypeError({secret})"),
        format!("{secret} syntax error here ((("),
        format!("return await svc.g({{token: {secret}}})"),
        "return await svc.g({token: 'x'})".to_owned(),
        format!("return await svc.f([{secret}])"),
        format!("return await svc[{secret}]({{}})"),
    ];
    for source in &sources {
        let params = json!({"source": source, "inputs": {"token": SECRET}, "hostFunctions": functions, "output": {"stream": true}});
        client.evaluate_with(&params, &mut answers());
    }
    // Requests that are refused, a call that is cut off, and a name that nobody has.
    client.call("evaluate", &json!({"source": 7, "inputs": SECRET}));
    client.call("evaluate", &json!({"source": "1", SECRET: 1}));
    client.call("cancel", &json!({"evaluation": SECRET}));
    client.request("evaluate", &json!({"source": format!("await svc.f({{token: {secret}}})"), "hostFunctions": functions}));
    while client.next_message().get("method") != Some(&json!("host.call")) {}
    drop(client);
    let folder = brigd.folder().to_owned();
    let kept = std::fs::read_to_string(folder.join("brig.toml")).expect("the configuration");
    brigd.signal(Signal::SIGTERM);
    let mut brigd = brigd;
    brigd.wait();
    assert!(kept.contains("trace") && brigd.log().lines().count() > 20, "{}", brigd.log());
    assert_eq!(leaks(&[&folder, &audit.dir()]), Vec::<String>::new(), "{}", brigd.log());
    audit.verifies();
    assert!(audit.events("evaluation_ended").len() >= sources.len());
}
