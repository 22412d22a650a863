//! A vm belongs to its user.

use super::*;

/// One request of another user, by the `brig` command's own protocol: a line out, a line in.
fn ask_as(uid: u32, brigd: &Brigd, request: &Value) -> Value {
    use std::os::unix::fs::PermissionsExt as _;
    let socket = brigd.socket();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).expect("mode of the socket");
    std::fs::set_permissions(socket.parent().expect("a folder"), std::fs::Permissions::from_mode(0o755)).expect("mode of the folder");
    let output = as_user(uid, &std::env::current_exe().expect("this test"))
        .args(["--exact", "owners::says_one_line_as_another_user", "--ignored", "--nocapture"])
        .env("BRIG_TEST_SOCKET", &socket)
        .env("BRIG_TEST_LINE", request.to_string())
        .current_dir("/")
        .output()
        .expect("the helper");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("ANSWER ")).unwrap_or_else(|| unreachable_answer(&text, &output.stderr));
    serde_json::from_str(line.1).expect("JSON")
}

fn unreachable_answer<'a>(text: &str, errors: &[u8]) -> (&'a str, &'a str) {
    assert!(text.is_empty(), "no answer: {text}\n{}", String::from_utf8_lossy(errors));
    ("", "null")
}

/// Not a test by itself: the process of another user.
#[test]
#[ignore = "the helper of the tests with another user"]
fn says_one_line_as_another_user() {
    let (Ok(socket), Ok(line)) = (std::env::var("BRIG_TEST_SOCKET"), std::env::var("BRIG_TEST_LINE")) else { return };
    let mut client = Client::connect(std::path::Path::new(&socket));
    client.send_raw(format!("{line}\n").as_bytes());
    println!("ANSWER {}", client.next_message());
}

#[test]
fn another_user_can_not_use_see_or_end_a_vm() {
    if !nix::unistd::geteuid().is_root() {
        // The kernel lets only root be somebody else; the registry's own tests have the rule.
        return;
    }
    const OTHER: u32 = 54_321;
    for (config, permitted) in [("", false), ("[clients]\nuids = [54321]\n", true)] {
        let brigd = BrigdOptions::default().config(config).start();
        let mut client = brigd.connect();
        let vm = new_vm(&mut client);
        for (method, params) in [("evaluate", json!({"source": "1", "vm": vm})), ("vm.dispose", json!({"vm": vm})), ("vm.list", json!({}))]
        {
            let answer = ask_as(OTHER, &brigd, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
            let code = answer.pointer("/error/data/code").and_then(Value::as_str);
            match (permitted, method) {
                (false, _) => assert_eq!(code, Some("not_permitted"), "{method}: {answer}"),
                (true, "vm.list") => assert_eq!(answer.pointer("/result/vms"), Some(&json!([])), "{answer}"),
                (true, _) => assert_eq!(code, Some("vm_not_found"), "{method}: {answer}"),
            }
        }
        assert_eq!(value(&mut client, &vm, "1"), json!(1));
    }
}
