use super::*;
use proptest::prelude::*;

fn fault(line: &str) -> RpcFault {
    match read(line.as_bytes()) {
        Err(fault) => fault,
        Ok(message) => RpcFault { id: None, code: RequestCode::InternalError, message: format!("{message:?}") },
    }
}

#[test]
fn the_three_kinds_of_message_are_told_apart() {
    assert!(matches!(read(br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{}}"#), Ok(Message::Request { .. })));
    assert!(matches!(read(br#"{"jsonrpc":"2.0","method":"a"}"#), Ok(Message::Notification { .. })));
    assert!(matches!(read(br#"{"jsonrpc":"2.0","id":"c1","result":[1]}"#), Ok(Message::Response { outcome: Ok(_), .. })));
    let failed = read(br#"{"jsonrpc":"2.0","id":"c1","error":{"code":-32000,"message":"no","data":{"x":1}}}"#);
    assert!(matches!(failed, Ok(Message::Response { outcome: Err(ErrorObject { data: Some(_), .. }), .. })));
}

#[test]
fn a_result_of_null_is_an_answer() {
    let message = read(br#"{"jsonrpc":"2.0","id":"c1","result":null}"#);
    assert!(matches!(message, Ok(Message::Response { outcome: Ok(raw), .. }) if raw.get() == "null"), "{message:?}");
}

#[test]
fn what_is_not_json_is_a_parse_error_and_what_is_not_a_request_an_invalid_one() {
    for line in ["", "{", "nonsense", "{\"jsonrpc\":\"2.0\",}", "\u{feff}{}"] {
        assert_eq!(fault(line).code, RequestCode::ParseError, "{line:?}");
    }
    assert_eq!(read(b"{\"a\":\"\xff\"}").err().map(|f| f.code), Some(RequestCode::ParseError));
    for line in ["[]", "1", "{}", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", "{\"jsonrpc\":\"2.0\",\"id\":1}"] {
        assert_eq!(fault(line).code, RequestCode::InvalidRequest, "{line:?}");
    }
}

#[test]
fn a_wrong_request_is_answered_by_its_id_when_that_can_be_read() {
    let fault = fault(r#"{"jsonrpc":"2.0","id":7,"method":"a","surprise":1}"#);
    assert_eq!((fault.id, fault.code), (Some(Id::Number(7)), RequestCode::InvalidRequest));
    assert!(fault.message.contains("surprise"), "{}", fault.message);
}

#[test]
fn duplicate_members_and_odd_ids_are_refused() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"a"}"#,
    ] {
        assert_eq!(fault(line).code, RequestCode::InvalidRequest, "{line}");
    }
}

#[test]
fn nesting_beyond_the_limit_is_a_parse_error_even_where_nothing_looks() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{}{}}}}}"#, "[".repeat(600), "]".repeat(600));
    let fault = fault(&deep);
    assert_eq!(fault.code, RequestCode::ParseError);
    assert!(fault.message.contains("520 levels"), "{}", fault.message);
}

#[test]
fn a_raw_payload_with_line_breaks_stays_on_one_line() {
    let raw = serde_json::from_str::<Box<RawValue>>("{\n\"a\":\n[1,\r\n2]}").ok();
    let line = result(&Id::Number(1), &raw);
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    let payload = match read(line.strip_suffix(b"\n").unwrap_or(&line)) {
        Ok(Message::Response { outcome: Ok(raw), .. }) => serde_json::from_str::<serde_json::Value>(raw.get()).ok(),
        _ => None,
    };
    assert_eq!(payload, Some(serde_json::json!({"a": [1, 2]})));
}

#[test]
fn an_error_line_has_the_number_of_its_code() {
    let line = error(None, &ErrorData::new(RequestCode::ParseError, "x"));
    assert_eq!(
        String::from_utf8_lossy(&line),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\",\"data\":{\"code\":\"parse_error\",\"message\":\"x\",\"retryable\":false}}}\n"
    );
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(read(&line));
    }

    #[test]
    fn ids_come_back_as_they_came(number in any::<i64>(), text in "\\PC{0,40}") {
        for id in [Id::Number(number), Id::Text(text)] {
            let line = request(&id, "m", &serde_json::json!({}));
            let read_back = match read(line.strip_suffix(b"\n").unwrap_or(&line)) {
                Ok(Message::Request { id, .. }) => Some(id),
                _ => None,
            };
            prop_assert_eq!(read_back, Some(id));
        }
    }
}
