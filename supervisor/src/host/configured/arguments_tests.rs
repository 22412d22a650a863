//! What an input can and can not make of the arguments of a program.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "id": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "dry": {"type": "boolean"},
        "note": {"type": ["string", "null"]}, "kind": {"enum": ["a", "b"]}, "tags": {"type": "array"}, "free": {},
        "who": {"type": "object", "properties": {"name": {"type": "string"}}}
    }})
}

fn facts() -> CallFacts {
    CallFacts { idempotency_key: "ev_1:1".to_owned(), uid: 1000 }
}

fn arguments(list: &[&[&str]]) -> Arguments {
    let parse = |text: &&str| Template::parse_argument(text, &schema()).unwrap();
    Arguments(
        list.iter()
            .map(|group| match group {
                [one] => Argument::One(parse(one)),
                many => Argument::Group(many.iter().map(parse).collect()),
            })
            .collect(),
    )
}

fn rendered(list: &[&[&str]], input: &Value) -> Result<Vec<String>, String> {
    arguments(list).rendered(input, &facts())
}

#[test]
fn a_value_is_one_argument_whatever_is_in_it() {
    for text in ["a b", "'; rm -rf / #", "$(reboot)", "`id`", "a\nb", "\"", "", "*", "a\\", "ü{}", "{input.count}"] {
        let all = rendered(&[&["show"], &["{input.id}"], &["--id={input.id}"]], &json!({"id": text})).unwrap();
        assert_eq!(all, ["show".to_owned(), text.to_owned(), format!("--id={text}")]);
    }
}

#[test]
fn a_value_never_becomes_an_option() {
    for text in ["-x", "--output=/etc/passwd", "-", "--", "-1"] {
        let fault = rendered(&[&["{input.id}"]], &json!({"id": text})).unwrap_err();
        assert!(fault.contains("could take for an option"), "{fault}");
        assert!(rendered(&[&["-f", "{input.id}"]], &json!({"id": text})).is_err());
        assert!(rendered(&[&["{input.note}{input.id}"]], &json!({"note": "", "id": text})).is_err());
        assert_eq!(rendered(&[&["--"], &["{input.id}"]], &json!({"id": text})).unwrap(), ["--", text]);
        assert_eq!(rendered(&[&["{input.id:dash}"]], &json!({"id": text})).unwrap(), [text]);
        assert_eq!(rendered(&[&["--id={input.id}"]], &json!({"id": text})).unwrap(), [format!("--id={text}")]);
    }
    assert!(rendered(&[&["{input.count}"]], &json!({"count": -5})).is_err());
    // A value that is `--` ends no options.
    assert!(rendered(&[&["{input.id:dash}"], &["{input.note}"]], &json!({"id": "--", "note": "-x"})).is_err());
    // Nor does one in a list that is dropped.
    assert!(rendered(&[&["--", "{input.note}"], &["{input.id}"]], &json!({"id": "-x"})).is_err());
}

#[test]
fn a_template_that_lets_the_input_choose_an_option_does_not_load() {
    for text in ["-{input.id}", "--{input.id}", "---{input.id}x"] {
        assert!(Template::parse_argument(text, &schema()).unwrap_err().contains("choose an option"), "{text}");
    }
}

#[test]
fn what_is_not_there_drops_its_argument_or_its_whole_list() {
    let list: &[&[&str]] = &[&["a"], &["{input.note}"], &["--note", "{input.note}"], &["--who={input.who.name}"], &["z"]];
    assert_eq!(rendered(list, &json!({})).unwrap(), ["a", "z"]);
    assert_eq!(rendered(list, &json!({"note": null, "who": {}})).unwrap(), ["a", "z"]);
    assert_eq!(rendered(list, &json!({"note": "n", "who": {"name": "w"}})).unwrap(), ["a", "n", "--note", "n", "--who=w", "z"]);
}

#[test]
fn numbers_and_booleans_are_written_in_one_way() {
    for (member, value, text) in [
        ("count", json!(5), "5"),
        ("count", json!(5.0), "5"),
        ("count", json!(1e3), "1000"),
        ("count", json!(-0.0), "0"),
        ("count", json!(u64::MAX), "18446744073709551615"),
        ("ratio", json!(0.1), "0.1"),
        ("ratio", json!(1e-7), "0.0000001"),
        ("dry", json!(true), "true"),
        ("dry", json!(false), "false"),
        ("kind", json!("a"), "a"),
    ] {
        let list = format!("{{input.{member}}}");
        assert_eq!(rendered(&[&[&list]], &json!({member: value})).unwrap(), [text]);
    }
    assert!(rendered(&[&["{input.ratio}"]], &json!({"ratio": 1e300})).unwrap_err().contains("digit by digit"));
}

#[test]
fn what_no_argument_can_hold_is_refused() {
    assert!(rendered(&[&["{input.id}"]], &json!({"id": "a\0b"})).unwrap_err().contains("NUL"));
    assert!(rendered(&[&["{input.id}"]], &json!({"id": "x".repeat(ARGUMENT_BYTES + 1)})).unwrap_err().contains("at most"));
    let all: Vec<&[&str]> = vec![&["{input.id}"]; 10];
    assert!(rendered(&all, &json!({"id": "x".repeat(ARGUMENT_BYTES)})).unwrap_err().contains("at most"));
    // The schema says string; a validator that missed it is not believed.
    assert!(rendered(&[&["{input.id}"]], &json!({"id": ["-x"]})).unwrap_err().contains("can not be an argument"));
}

#[test]
fn a_placeholder_must_be_one_that_the_schema_describes() {
    for (text, says) in [
        ("{input.idd}", "did you mean \"id\"?"),
        ("{input.tags}", "standard input"),
        ("{input.free}", "standard input"),
        ("{input.who}", "standard input"),
        ("{input.who.nam}", "did you mean \"name\"?"),
        ("{inputs.id}", "{input.NAME}"),
        ("{input.}", "{input.NAME}"),
        ("{}", "{input.NAME}"),
        ("{input.id:dsh}", "\":dash\""),
        ("{input.id", "brace"),
        ("a}", "brace"),
        ("a\0", "NUL"),
    ] {
        let fault = Template::parse_argument(text, &schema()).unwrap_err();
        assert!(fault.contains(says), "{text}: {fault}");
    }
    assert_eq!(rendered(&[&["{{input.id}}"]], &json!({"id": "x"})).unwrap(), ["{input.id}"]);
    assert_eq!(rendered(&[&["{call.idempotency_key}/{principal.uid}"]], &json!({})).unwrap(), ["ev_1:1/1000"]);
}

proptest! {
    #[test]
    fn as_many_arguments_come_out_as_there_are_templates_and_none_is_an_option_by_a_value(id in "(?s).{0,40}", note in "(?s)[-=a ]{0,5}") {
        let list: &[&[&str]] = &[&["cmd"], &["{input.id}"], &["--note={input.note}"], &["x{input.id}"]];
        match rendered(list, &json!({"id": id, "note": note})) {
            Err(_) => prop_assert!(id.starts_with('-') || id.contains('\0')),
            Ok(all) => {
                prop_assert_eq!(all.len(), 4);
                prop_assert!(!all.get(1).unwrap().starts_with('-'));
            }
        }
    }
}
