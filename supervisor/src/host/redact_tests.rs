//! Credentials in every form that is looked for.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use data_encoding::{BASE64, BASE64URL, HEXUPPER};
use proptest::prelude::*;
use serde_json::Value;

const SECRET: &str = "hunter2/pa\"ss+wörd?=&x";

fn redactor(secret: &str) -> Redactor {
    Redactor::new(&[Planted { name: "token", text: secret.as_bytes() }]).unwrap()
}

/// Texts that hold the secret in one form, each with something before and after.
fn leaks(secret: &str) -> Vec<String> {
    let mut texts = vec![secret.to_owned()];
    let json = Value::from(secret).to_string();
    texts.push(json.replace('/', "\\/"));
    texts.push(ascii_json(&json));
    texts.push(json);
    for before in ["", "a", "ab", "user:"] {
        for after in ["", "z", "zz"] {
            let whole = format!("{before}{secret}{after}");
            for encoding in [&BASE64, &BASE64URL, &BASE64_NOPAD, &BASE64URL_NOPAD] {
                texts.push(encoding.encode(whole.as_bytes()));
            }
        }
    }
    texts.push(HEXLOWER.encode(secret.as_bytes()));
    texts.push(HEXUPPER.encode(secret.as_bytes()));
    texts.extend(folded_forms(secret.as_bytes()).into_iter().map(|form| String::from_utf8(form).unwrap()));
    let upper: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    texts.push(upper);
    texts
}

/// Whether three bytes of the secret in a row can still be read out of a text.
fn gives_away(text: &str, secret: &str) -> bool {
    let bytes = secret.as_bytes();
    bytes.windows(6).any(|part| {
        let hidden = redactor(std::str::from_utf8(part).unwrap_or("\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}"));
        hidden.clean(text) != text
    })
}

#[test]
fn a_credential_is_found_in_every_form_wherever_it_stands() {
    let redactor = redactor(SECRET);
    for leak in leaks(SECRET) {
        for text in [leak.clone(), format!("before {leak} after"), format!("{{\"a\":[{leak}]}}")] {
            let clean = redactor.clean(&text);
            assert!(clean.contains("[redacted:token]"), "{text}");
            assert!(!gives_away(&clean, SECRET), "{text} became {clean}");
        }
    }
}

#[test]
fn a_text_without_one_is_the_same_text() {
    let redactor = redactor(SECRET);
    for text in ["", "hunter2", "{\"a\":\"hunter2/pa\"}", "żółć"] {
        assert!(matches!(redactor.clean(text), Cow::Borrowed(same) if same == text));
        assert!(redactor.clean_json(text).is_none());
    }
    assert_eq!(Redactor::default().clean("anything"), "anything");
}

#[test]
fn json_stays_json_however_its_strings_are_escaped() {
    let redactor = redactor("s3cretvalue");
    let spelt: String = "s3cretvalue".chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect();
    for text in [
        format!("{{\"a\":\"{spelt}\",\"b\":12345678901234567890123}}"),
        "{\"s3cretvalue\":1,\"b\":12345678901234567890123}".to_owned(),
        "[\"x\\\\\\\"s3cretvalue\", 12345678901234567890123]".to_owned(),
        format!("[\"{}\",12345678901234567890123]", BASE64.encode(b"ab:s3cretvalue")),
    ] {
        let clean = redactor.clean_json(&text).unwrap();
        assert!(serde_json::from_str::<Value>(&clean).is_ok(), "{clean}");
        assert!(clean.contains("[redacted:token]") && clean.contains("12345678901234567890123"), "{clean}");
        assert!(!serde_json::from_str::<Value>(&clean).unwrap().to_string().contains("s3cret"));
    }
}

#[test]
fn a_number_that_is_a_credential_becomes_a_marked_string() {
    let clean = redactor("73219845").clean_json("{\"pin\": 73219845, \"other\":[1.5,-73219845e2,true]}").unwrap();
    let value: Value = serde_json::from_str(&clean).unwrap();
    assert_eq!(value.pointer("/pin"), Some(&Value::from("[redacted:token]")));
    assert!(!clean.contains("73219845"), "{clean}");
}

#[test]
fn each_long_line_of_a_key_is_looked_for() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nshort\n-----END KEY-----\n";
    let clean = redactor(key).clean("log: MIIEvQIBADANBgkqhkiG9w0BAQ").into_owned();
    assert_eq!(clean, "log: [redacted:token]");
}

#[test]
fn what_is_shown_of_a_redactor_holds_no_credential() {
    assert!(!format!("{:?}", redactor(SECRET)).contains("hunter2"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_json_stays_json(text in ".{0,40}", before in ".{0,10}", secret in "[!-~]{6,20}") {
        let redactor = redactor(&secret);
        redactor.clean(&text);
        redactor.clean_json(&text);
        let value = serde_json::json!({"k": format!("{before}{secret}{text}"), "n": [1, null]});
        let clean = redactor.clean_json(&value.to_string()).unwrap();
        let read: Value = serde_json::from_str(&clean).unwrap();
        prop_assert!(!read["k"].as_str().unwrap().contains(&secret) || "[redacted:token]".contains(&secret));
    }
}
