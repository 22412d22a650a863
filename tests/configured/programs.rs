//! What a program is given, and how it ends.

use super::*;

#[test]
fn no_input_is_more_than_its_argument_and_none_becomes_an_option() {
    let place = Place::new();
    place.collection(
        "shop",
        &(place.function("whole", TEXT, "args = [\"args\", \"{input.text}\", \"end\"]")
            + &place.function("within", TEXT, "args = [\"args\", \"--text={input.text}\", [\"--\", \"{input.text}\"]]")),
    );
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for text in ["a b", "'; touch /tmp/x #", "$(id)", "`id`", "a\nb", "\"", "", "*", "a\\", "żółć", "{input.text}", "a\tb\u{1}"] {
        assert_eq!(value(&mut client, "shop.whole", &json!({"text": text})), json!([text, "end"]));
        assert_eq!(value(&mut client, "shop.within", &json!({"text": text})), json!([format!("--text={text}"), "--", text]));
    }
    for text in ["-x", "--output=/etc/passwd", "-"] {
        let result = call(&mut client, "shop.whole", &json!({"text": text}));
        assert_eq!(state_and_code(&result), ("refused".to_owned(), "invalid_input".to_owned()), "{result}");
        assert!(message(&result).contains("option"), "{result}");
        assert_eq!(value(&mut client, "shop.within", &json!({"text": text})), json!([format!("--text={text}"), "--", text]));
    }
    for (text, says) in [("a\0b".to_owned(), "NUL"), ("x".repeat(200_000), "at most")] {
        let result = call(&mut client, "shop.whole", &json!({"text": text}));
        assert_eq!(state_and_code(&result).0, "refused", "{says}");
        assert!(message(&result).contains(says), "{}", message(&result));
    }
    let long = "y".repeat(131_000);
    assert_eq!(value(&mut client, "shop.whole", &json!({"text": long})), json!([long, "end"]));
    assert_eq!(value(&mut client, "shop.within", &json!({})), json!([]));
}

#[test]
fn a_program_finds_what_it_was_given_and_nothing_else() {
    let place = Place::new();
    let token = place.path("token").display().to_string();
    let command = "args = [\"world\"]\nenv = { LANG = \"C.UTF-8\", KEY = \"{call.idempotency_key}\", WHO = \"{principal.uid}\" }\n\
        umask = \"0027\"\nfolder = \"/tmp\"\nlimits = { cpu_seconds = 7, open_files = 31 }\n\
        credentials = { token = { file_variable = \"TOKEN_FILE\" } }";
    place.collection("shop", &format!("[credentials.token]\nfile = {token:?}\n{}", place.function("world", "", command)));
    let brigd = place.brigd();
    // The redactor hides what the program saw of its credential; its length shows it.
    let world = value(&mut brigd.connect(), "shop.world", &json!({"a": [1, 2.50]}));
    let own = nix::unistd::geteuid().as_raw();
    let is = |member: &str, expected: Value| assert_eq!(world.get(member), Some(&expected), "{member}: {world}");
    is("arguments", json!(["world"]));
    is("input", json!("{\"a\":[1,2.5]}"));
    is("folder", json!("/tmp"));
    is("umask", json!(0o027));
    is("noNewPrivs", json!("1"));
    is("blocked", json!("0000000000000000"));
    is("leader", json!(true));
    is("descriptors", json!([0, 1, 2, 3]));
    is("core", json!(0));
    is("files_open", json!(31));
    is("cpu", json!(7));
    is("files", json!({"TOKEN_FILE": "[redacted:token]"}));
    let environment = world.get("environment").and_then(Value::as_object).expect("an environment");
    let mut names: Vec<&str> = environment.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["KEY", "LANG", "TOKEN_FILE", "WHO"]);
    assert_eq!(environment.get("WHO"), Some(&json!(own.to_string())));
    assert!(environment.get("KEY").and_then(Value::as_str).is_some_and(|key| key.starts_with("fc_") && key.ends_with(":1")));
    assert_eq!(environment.get("TOKEN_FILE"), Some(&json!("/proc/self/fd/3")));
    if is_root() {
        is("uid", json!(format!("{OTHER}\t{OTHER}\t{OTHER}\t{OTHER}")));
        is("gid", json!(format!("{OTHER}\t{OTHER}\t{OTHER}\t{OTHER}")));
        is("groups", json!(""));
        is("capabilities", json!("0000000000000000"));
    }
}

/// The process that a program left in `work`.
fn left_behind(place: &Place) -> PathBuf {
    until("a process is left", || place.path("work/pid").exists());
    let pid = fs::read_to_string(place.path("work/pid")).expect("its number");
    Path::new("/proc").join(pid)
}

#[test]
fn whatever_a_program_starts_ends_with_its_call() {
    let place = Place::new();
    let work = place.path("work").display().to_string();
    let hang = format!("args = [\"hang\", {work:?}]");
    place.collection(
        "shop",
        &(place.function("read", "effect = \"read\"\ntimeout_ms = 1500", &hang)
            + &place.function("write", "timeout_ms = 1500", &hang)
            + &place.function("hang", "", &hang)
            + &place.function("leave", "", &format!("args = [\"leave\", {work:?}]"))),
    );
    let mut brigd = place.brigd();
    let mut client = brigd.connect();
    for (function, state) in [("shop.read", "failed"), ("shop.write", "unknown")] {
        let result = call(&mut client, function, &json!({}));
        assert_eq!(state_and_code(&result), (state.to_owned(), "function_timed_out".to_owned()), "{result}");
        let process = left_behind(&place);
        until("the orphan of a timed-out call ends", || !process.exists());
        fs::remove_file(place.path("work/pid")).expect("its number");
    }
    assert_eq!(value(&mut client, "shop.leave", &json!({})), json!("left"));
    let process = left_behind(&place);
    until("the orphan of a call that is over ends", || !process.exists());
    fs::remove_file(place.path("work/pid")).expect("its number");

    // A cancel of the evaluation, then the death of brigd itself.
    let id = client.request("evaluate", &json!({"source": "await shop.hang({})"}));
    let process = left_behind(&place);
    assert!(process.exists());
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/calls/0/state"), Some(&json!("unknown")), "{answer}");
    until("the orphan of a cancelled call ends", || !process.exists());
    fs::remove_file(place.path("work/pid")).expect("its number");
    client.request("functions.call", &json!({"function": "shop.hang"}));
    let process = left_behind(&place);
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    until("the orphan of a dead brigd ends", || !process.exists());
}

#[test]
fn each_end_of_a_program_is_told_as_what_it_is() {
    let place = Place::new();
    let mut text = String::new();
    for (name, args) in [
        ("big", "[\"flood\", \"9000000\"]"),
        ("nonsense", "[\"print\", \"gibberish\"]"),
        ("wrong", "[\"print\", \"5\"]"),
        (
            "described",
            "[\"exit\", \"1\", '{{\"error\":{{\"name\":\"NoOrder\",\"message\":\"no such order\",\"code\":\"no_order\",\"data\":{{\"id\":7}}}}}}']",
        ),
        ("sysexit", "[\"exit\", \"69\", \"\"]"),
        ("odd", "[\"exit\", \"9\", \"\"]"),
        ("killed", "[\"kill\", \"9\"]"),
        ("exhausted", "[\"kill\", \"24\"]"),
    ] {
        text += &place.function(name, "output_schema = { type = \"string\" }", &format!("args = {args}"));
        write!(text, "{}", place.function(&format!("{name}Read"), "effect = \"read\"", &format!("args = {args}"))).expect("text");
    }
    text += &place.function("gone", "", "args = []\nfolder = \"/nonexistent-folder\"");
    place.collection("shop", &text);
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for (function, state, code) in [
        ("big", "completed", "output_too_large"),
        ("nonsense", "completed", "invalid_output"),
        ("wrong", "completed", "invalid_output"),
        ("described", "failed", "function_failed"),
        ("sysexit", "failed", "function_failed"),
        ("odd", "unknown", "function_crashed"),
        ("killed", "unknown", "function_crashed"),
        ("exhausted", "unknown", "function_crashed"),
        ("oddRead", "failed", "function_crashed"),
        ("killedRead", "failed", "function_crashed"),
        ("gone", "failed", "function_failed"),
    ] {
        let result = call(&mut client, &format!("shop.{function}"), &json!({}));
        assert_eq!(state_and_code(&result), (state.to_owned(), code.to_owned()), "{function}: {result}");
        assert!(result.get("value").is_none() && !message(&result).contains("gibberish"), "{function}: {result}");
    }
    let result = call(&mut client, "shop.described", &json!({}));
    let error =
        json!({"code": "function_failed", "message": "no such order", "name": "NoOrder", "functionCode": "no_order", "data": {"id": 7}});
    assert_eq!(result.get("error"), Some(&error));
    assert!(message(&call(&mut client, "shop.gone", &json!({}))).contains("could not be started"));
    assert!(brigd.log().contains("/nonexistent-folder"), "{}", brigd.log());
    // In a program the same is an error like any other.
    let caught = client.evaluate("try { await shop.described({}) } catch (e) { [e.code, e.message] }");
    assert_eq!(caught.get("value"), Some(&json!(["no_order", "no such order"])), "{caught}");
}

#[test]
fn a_program_that_ends_by_any_signal_has_started_and_is_told_so() {
    let place = Place::new();
    let ending: Vec<Signal> = Signal::iterator().filter(|signal| !NO_END.contains(&signal.as_str())).collect();
    let functions = ending.iter().map(|signal| {
        let name = signal.as_str().to_lowercase();
        place.function(&name, "", &format!("args = [\"kill\", \"{}\"]", *signal as i32))
    });
    place.collection("shop", &functions.collect::<String>());
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for signal in ending {
        let result = call(&mut client, &format!("shop.{}", signal.as_str().to_lowercase()), &json!({}));
        assert_eq!(state_and_code(&result), ("unknown".to_owned(), "function_crashed".to_owned()), "{signal}: {result}");
        assert!(message(&result).contains(signal.as_str()), "{signal}: {result}");
    }
    assert!(!brigd.log().contains("could not be started"), "{}", brigd.log());
}

#[test]
fn a_signal_that_the_keeper_can_not_end_by_is_told_as_what_it_is_and_at_once() {
    let place = Place::new();
    let user = if is_root() { format!("user = {OTHER}\ngroup = {OTHER}\n") } else { String::new() };
    // Real-time ones have no name; handlers of the keeper's runtime take the others.
    let signals = [(11, "SIGSEGV"), (7, "SIGBUS"), (13, "SIGPIPE"), (34, "signal 34"), (64, "signal 64")];
    let functions = signals.iter().fold(String::new(), |mut text, (number, _)| {
        let about = format!("[functions.by{number}]\ntimeout_ms = 300000\n[functions.by{number}.command]\n");
        let command = format!("program = \"/bin/sh\"\n{user}args = [\"-c\", \"kill -{number} $$\"]\n\n");
        text.push_str(&(about + &command));
        text
    });
    place.collection("shop", &functions);
    // The test's own deadline is far below the time-out: who waits for that has not seen the end.
    let brigd = place.options("[limits]\nfunction_timeout_ms = 300000").start();
    let mut client = brigd.connect();
    for (number, name) in signals {
        let result = call(&mut client, &format!("shop.by{number}"), &json!({}));
        assert_eq!(state_and_code(&result), ("unknown".to_owned(), "function_crashed".to_owned()), "{name}: {result}");
        assert!(message(&result).contains(&format!("ended by {name};")), "{name}: {result}");
    }
}

#[test]
fn what_a_program_complains_is_logged_bounded_and_escaped() {
    let place = Place::new();
    place.collection("shop", &place.function("complain", "", "args = [\"complain\", \"20000\"]"));
    let brigd = place.brigd();
    assert_eq!(value(&mut brigd.connect(), "shop.complain", &json!({})), Value::Null);
    let log = brigd.log();
    assert!(log.contains("complaint 0") && log.contains("shop.complain") && log.contains("more than is logged"), "{log}");
    assert!(log.len() < 64 * 1024, "{} bytes were logged", log.len());
    assert!(!log.contains('\u{1b}') && !log.contains('\u{202e}'));
}
