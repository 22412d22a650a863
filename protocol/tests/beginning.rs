//! What is read of a request of which there is only the beginning.

use brig_protocol::rpc::{Id, id_of_beginning};

#[test]
fn the_id_of_a_request_is_read_from_its_beginning_and_of_nothing_else() {
    let of = |text: &str| id_of_beginning(text.as_bytes());
    assert_eq!(of(r#"{"jsonrpc":"2.0","id":17,"method":"evaluate","params":{"source":"xxx"#), Some(Id::Number(17)));
    assert_eq!(of(r#" { "method" : "evaluate", "id" : "a\"b" , "params": ["#), Some(Id::Text("a\"b".to_owned())));
    assert_eq!(of(r#"{"method":"x","params":{"id":5},"id":6,"#), Some(Id::Number(6)));
    for none in [
        "",
        "{",
        "[",
        r#"{"id":17"#,
        r#"{"method":"x","id":1"#,
        r#"{"method":"x","params":{"id":5,"#,
        r#"{"id":17,"result":"xxx"#,
        r#"{"id":null,"method":"x","#,
        r#"{"id":1,"id":2,"method":"x","#,
        "{\"id\":\u{1},\"method\":\"x\",",
    ] {
        assert_eq!(of(none), None, "{none}");
    }
    let far = format!(r#"{{"method":"{}","id":1,"#, "x".repeat(20_000));
    assert_eq!(of(&far), None);
}
