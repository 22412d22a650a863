//! Console output while the program runs, through the real socket: what a client with
//! `output.stream` hears, when, in which order, and where it ends.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, Client, Handlers};
use serde_json::{Value, json};

/// Stream and text of every output notification, neighbours of one stream joined.
fn heard(client: &Client, evaluation: &Value) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for note in client.notifications.iter().filter(|note| note.get("method") == Some(&json!("evaluation.output"))) {
        assert_eq!(note.pointer("/params/evaluation"), Some(evaluation), "{note}");
        let part = |name: &str| note.pointer(&format!("/params/{name}")).and_then(Value::as_str).expect("a text").to_owned();
        match all.last_mut() {
            Some((stream, text)) if *stream == part("stream") => text.push_str(&part("text")),
            _ => all.push((part("stream"), part("text"))),
        }
    }
    all
}

/// All text of one stream.
fn of(heard: &[(String, String)], stream: &str) -> String {
    heard.iter().filter(|(of, _)| of == stream).map(|(_, text)| text.as_str()).collect()
}

fn run(client: &mut Client, params: &Value) -> Value {
    client.notifications.clear();
    let result = client.evaluate_with(params, &mut Handlers::none());
    assert_eq!(result.get("outcome"), Some(&json!("succeeded")), "{result}");
    result
}

#[test]
fn lines_come_while_the_program_runs() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({
        "source": "console.log('before'); await host.go({}); console.log('after'); return 1",
        "hostFunctions": {"host": {"go": {}}},
        "output": {"stream": true},
    });
    let id = client.request("evaluate", &params);
    // The call is answered only when the line printed before it is there.
    let first = client.next_message();
    assert_eq!(first.pointer("/params/text"), Some(&json!("before\n")), "{first}");
    let call = client.next_message();
    assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
    client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": null}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/stdout"), Some(&json!("before\nafter\n")), "{answer}");
}

#[test]
fn a_program_that_never_yields_is_heard_as_well() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({"source": "console.log('here'); for (;;) {}", "output": {"stream": true}});
    let id = client.request("evaluate", &params);
    let first = client.next_message();
    assert_eq!(first.pointer("/params/text"), Some(&json!("here\n")), "{first}");
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("cancelled")), "{answer}");
    assert_eq!(answer.pointer("/result/stdout"), Some(&json!("here\n")), "{answer}");
}

#[test]
fn both_streams_come_in_the_order_in_which_they_were_printed() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    // Few lines leave one by one, many in blocks; neither changes the order.
    let source = "for (let i = 0; i < 1000; i++) { console.log('out ' + i); console.error('err ' + i) }";
    let result = run(&mut client, &json!({"source": source, "output": {"stream": true}}));
    let heard = heard(&client, result.get("evaluation").expect("an id"));
    let expected: Vec<(String, String)> =
        (0..1000).flat_map(|i| [("stdout".to_owned(), format!("out {i}\n")), ("stderr".to_owned(), format!("err {i}\n"))]).collect();
    assert_eq!(heard, expected);
    assert_eq!(result.get("stdout"), Some(&json!(of(&heard, "stdout"))));
    assert_eq!(result.get("stderr"), Some(&json!(of(&heard, "stderr"))));
}

#[test]
fn a_line_that_is_long_comes_whole_in_its_parts() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let source = "console.log('é🦀'.repeat(20000)); console.log('x\\ny'); console.log('')";
    let result = run(&mut client, &json!({"source": source, "output": {"stream": true}}));
    let heard = of(&heard(&client, result.get("evaluation").expect("an id")), "stdout");
    assert_eq!(heard, format!("{}\nx\ny\n\n", "é🦀".repeat(20_000)));
    assert_eq!(result.get("stdout"), Some(&json!(heard)));
}

#[test]
fn what_is_streamed_and_what_is_kept_are_chosen_apart() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let source = "console.log('o'); console.error('e')";
    for (output, streamed, stdout, stderr) in [
        (json!({"stream": true, "capture": "none"}), true, "", ""),
        (json!({"stream": true, "capture": "stderr"}), true, "", "e\n"),
        (json!({"stream": true}), true, "o\n", "e\n"),
        (json!({"capture": "none"}), false, "", ""),
        (json!({"stream": false}), false, "o\n", "e\n"),
    ] {
        let result = run(&mut client, &json!({"source": source, "output": output}));
        let heard = heard(&client, result.get("evaluation").expect("an id"));
        let expected: &[(String, String)] = &[("stdout".to_owned(), "o\n".to_owned()), ("stderr".to_owned(), "e\n".to_owned())];
        assert_eq!(heard, if streamed { expected } else { &[] }, "{output}");
        assert_eq!((result.get("stdout"), result.get("stderr")), (Some(&json!(stdout)), Some(&json!(stderr))), "{output}");
    }
}

#[test]
fn after_the_limit_nothing_more_of_that_stream_comes_and_the_other_goes_on() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let source = "for (let i = 0; i < 5000; i++) console.log('line ' + i); console.error('still here'); return 1";
    let params = json!({"source": source, "output": {"stream": true}, "limits": {"consoleBytes": 400}});
    let result = run(&mut client, &params);
    let heard = heard(&client, result.get("evaluation").expect("an id"));
    let stdout = of(&heard, "stdout");
    assert!(stdout.len() <= 400 && stdout.starts_with("line 0\n"), "{stdout}");
    assert!(stdout.ends_with("[cut: limit consoleBytes is 400; limits.console_bytes raises it]\n"), "{stdout}");
    assert_eq!(of(&heard, "stderr"), "still here\n");
    assert_eq!((result.get("stdout"), result.get("stdoutTruncated")), (Some(&json!(stdout)), Some(&json!(true))), "{result}");
    assert_eq!(result.get("stderrTruncated"), Some(&json!(false)), "{result}");
}

#[test]
fn what_was_printed_before_a_failure_came_before_its_answer() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let id = client.request("evaluate", &json!({"source": "console.log('so far'); null.x", "output": {"stream": true}}));
    let answer = client.answer(id, &mut Handlers::none());
    let evaluation = answer.pointer("/result/evaluation").expect("an id");
    assert_eq!(of(&heard(&client, evaluation), "stdout"), "so far\n");
    assert_eq!(answer.pointer("/result/error/name"), Some(&json!("TypeError")), "{answer}");
}

#[test]
fn two_evaluations_of_one_connection_are_told_apart() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let program = |name: &str| {
        json!({
            "source": format!("for (let i = 0; i < 50; i++) {{ console.log('{name}' + i); await null }}"),
            "output": {"stream": true},
        })
    };
    let (first, second) = (client.request("evaluate", &program("a")), client.request("evaluate", &program("b")));
    let mut texts = std::collections::HashMap::<String, String>::new();
    let mut answers = std::collections::HashMap::new();
    while answers.len() < 2 {
        let message = client.next_message();
        match message.get("id").and_then(Value::as_u64) {
            Some(id) => drop(answers.insert(id, message)),
            None => {
                let part = |name: &str| message.pointer(&format!("/params/{name}")).and_then(Value::as_str).unwrap_or_default();
                texts.entry(part("evaluation").to_owned()).or_default().push_str(part("text"));
            }
        }
    }
    for id in [first, second] {
        let result = answers.get(&id).and_then(|answer| answer.get("result")).expect("a result");
        let evaluation = result.get("evaluation").and_then(Value::as_str).expect("an id");
        assert_eq!(result.get("stdout").and_then(Value::as_str), texts.get(evaluation).map(String::as_str), "{result}");
    }
}
