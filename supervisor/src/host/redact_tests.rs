//! Credentials in every form that is looked for.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::forms::ascii_json;
use super::*;
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
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

/// One character in a way that readers of that kind of escapes take.
fn written(kind: u8, how: u8, character: char) -> String {
    let each = |write: fn(&u8) -> String| character.to_string().as_bytes().iter().map(write).collect::<String>();
    let number = u32::from(character);
    match (kind, how) {
        (0, 0) => each(|byte| format!("%{byte:02x}")),
        (0, 1) => each(|byte| format!("%{byte:02X}")),
        (0, _) if character == '%' => "%25".to_owned(),
        (0, _) if character == ' ' => "+".to_owned(),
        (1, 0) => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        (1, 1) => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        (1, 2) => each(|byte| format!("\\x{byte:02x}")),
        (1, 3) => format!("\\u{{{number:x}}}"),
        (1, _) if "\\/\"".contains(character) => format!("\\{character}"),
        (2, 0) => format!("&#{number};"),
        (2, 1) => format!("&#x{number:x};"),
        (2, 2) => format!("&#X{number:05X};"),
        (2, _) => match character {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '"' if how == 3 => "&quot;".to_owned(),
            '"' => "&quot".to_owned(),
            '/' => "&sol;".to_owned(),
            other => other.to_string(),
        },
        _ => character.to_string(),
    }
}

fn mixed(secret: &str, kinds: &[u8], hows: &[(usize, u8)]) -> String {
    let one = |(place, character)| {
        let (kind, how) = hows[place % hows.len()];
        // What begins an escape can not stand for itself beside escapes of its kind.
        let own = kinds.iter().copied().find(|kind| "%\\&".chars().nth(usize::from(*kind)) == Some(character));
        written(own.unwrap_or(kinds[kind % kinds.len()]), how, character)
    };
    secret.chars().enumerate().map(one).fold(String::new(), |mut text, piece| {
        // A semicolon behind a name that has none of its own would be the end of that name.
        let open = text.rsplit_once('&').is_some_and(|(_, name)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic()));
        if open && piece.starts_with(';') {
            text.push(';');
        }
        text + &piece
    })
}

#[test]
fn what_common_writers_leave_as_it_is_does_not_hide_the_rest() {
    let secret = "p4ss/w&rd \"<'ö\\x";
    let json_in_json = Value::from(Value::from(secret).to_string()).to_string();
    for (text, rest) in [
        // urllib.parse.quote, which leaves the slash; the same as a form; encodeURI of a part.
        ("q=p4ss/w%26rd%20%22%3C%27%C3%B6%5Cx;", "q=[redacted:token];"),
        ("q=p4ss%2fw%26rd+%22%3c%27%c3%b6%5cx;", "q=[redacted:token];"),
        // html.escape, and in an attribute that is in a JSON string that is in a log.
        ("<p>p4ss/w&amp;rd &quot;&lt;&#x27;ö\\x</p>", "<p>[redacted:token]</p>"),
        ("a p4ss/w&amp;rd &#34;&#60;&#39;&#246;\\x z", "a [redacted:token] z"),
        ("msg=\"p4ss\\/w\\u0026rd \\\"<'\\u00f6\\\\x\"", "msg=\"[redacted:token]\""),
        // printf %q of a shell, and of a part of a URL in JSON in JSON.
        ("p4ss/w\\&rd\\ \\\"\\<\\\'ö\\\\x", "[redacted:token]"),
        (&json_in_json, "\"\\\"[redacted:token]\\\"\""),
        // As many zeros as a writer likes, and the longest names of characters that ASCII has.
        ("p4ss/w&#0000000000000038;rd &#x000000000000022;&lt;&apos;ö\\x", "[redacted:token]"),
        ("p4ss/w\\u{0000000026}rd \"<'ö\\x", "[redacted:token]"),
        ("p4ss%252Fw%2526rd%2520%2522%253C%2527%25C3%25B6%255Cx", "[redacted:token]"),
        // What browsers read without its semicolon; Perl's escapes.
        ("p4ss/w&amprd &quot&lt'ö\\x", "[redacted:token]"),
        ("p4ss/w&AMPrd &QUOT&LT&#39ö\\x", "[redacted:token]"),
        ("\\x{70}4ss/w\\x{0026}rd \\x{22}\\o{74}\\N{U+27}\\x{f6}\\x{5C}x", "[redacted:token]"),
        // A field of CSV, and what SQL and shells make of it within their quotes.
        ("1,\"p4ss/w&rd \"\"<'ö\\x\",2", "1,\"[redacted:token]\",2"),
        ("VALUES ('p4ss/w&rd \"<''ö\\x')", "VALUES ('[redacted:token]')"),
        ("curl -u 'p4ss/w&rd \"<'\\''ö\\x'", "curl -u '[redacted:token]'"),
        ("curl -u 'p4ss/w&rd \"<'\"'\"'ö\\x'", "curl -u '[redacted:token]'"),
        // The same in a URL, in HTML, and in JSON in JSON.
        ("q='p4ss%2Fw%26rd%20%22%3C%27%5C%27%27%C3%B6%5Cx'", "q='[redacted:token]'"),
        ("<b>\"p4ss/w&amp;rd &quot;&quot;&lt;&#39;ö\\x\"</b>", "<b>\"[redacted:token]\"</b>"),
        ("{\\\"a\\\":\\\"p4ss/w&rd \\\\\\\"\\\\\\\"<'ö\\\\\\\\x\\\"}", "{\\\"a\\\":\\\"[redacted:token]\\\"}"),
    ] {
        assert_eq!(redactor(secret).clean(text), rest, "{text}");
    }
}

#[test]
fn every_name_that_html_has_for_what_ascii_has_is_read() {
    let redactor = redactor("a|b`cfjd");
    for text in ["a&VerticalLine;b&DiacriticalGrave;c&fjlig;d", "a&verbar;b&grave;cfjd", "a&amp;vert;b`c&amp;fjlig;d"] {
        assert_eq!(redactor.clean(text), "[redacted:token]", "{text}");
    }
}

#[test]
fn base64_in_a_url_is_found_with_its_padding() {
    let secret = "???>>>~~~o";
    let encoded = BASE64.encode(secret.as_bytes()).replace('+', "%2B").replace('/', "%2f").replace('=', "%3D");
    assert!(encoded.contains('%'), "{encoded}");
    assert_eq!(redactor(secret).clean(&format!("t={encoded}&u")), "t=[redacted:token]&u");
}

#[test]
fn a_credential_that_looks_escaped_is_found_as_it_is_and_escaped_again() {
    for secret in ["ab\\ncd%41ef", "&amp;%26\\u0026!", "100%25 sure", "x+y z+%2b"] {
        for text in [
            secret.to_owned(),
            Value::from(secret).to_string(),
            secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            secret.replace('%', "%25").replace(' ', "+"),
            secret.replace('&', "&amp;"),
        ] {
            let clean = redactor(secret).clean(&text).into_owned();
            assert!(clean.contains("[redacted:token]") && !clean.contains(secret), "{secret}: {text}: {clean}");
        }
    }
}

#[test]
fn a_string_that_only_some_readers_take_hides_nothing() {
    let redactor = redactor("s3cretvalue");
    for (text, clean) in [
        ("[\"\\ud800 s3cretvalue\"]", "[\"\\ud800 [redacted:token]\"]"),
        ("[\"\\udc00\\u00733cret\\u0076alue\"]", "[\"\\udc00[redacted:token]\"]"),
    ] {
        assert_eq!(redactor.clean_json(text).as_deref(), Some(clean));
    }
    let odd = self::redactor("nsecret-value").clean_json("[\"\\ud800\\nsecret-value\"]").unwrap();
    assert_eq!(odd, "[\"[redacted:token]\"]");
}

#[test]
fn a_credential_of_quotes_is_found_in_every_way_to_quote_it() {
    for secret in ["''\"\"''", "a'\\'b\"c%27d", "\"quoted\"", "it's 'so' &quot"] {
        let redactor = redactor(secret);
        let ways = [("\"", "\"\""), ("'", "''"), ("'", "'\\''"), ("'", "'\"'\"'")];
        for quoted in ways.iter().filter(|(quote, _)| secret.contains(quote)).map(|(quote, way)| secret.replace(quote, way)) {
            let percent: String = quoted.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let html = quoted.replace('&', "&amp;").replace('"', "&quot;").replace('\'', "&#39;");
            for text in [quoted.clone(), percent, html, Value::from(Value::from(quoted.as_str()).to_string()).to_string()] {
                let clean = redactor.clean(&text).into_owned();
                assert!(clean.contains("[redacted:token]"), "{secret}: {text}: {clean}");
            }
        }
    }
}

/// What this thread has worked so far, however busy the machine is.
fn used() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Every kind of escapes at once, so that there is a copy for each choice of them.
fn of_every_kind(bytes: usize) -> String {
    "%41\\u0042&#67;".repeat(bytes / 14)
}

#[test]
fn of_the_copies_of_a_text_only_the_layers_of_one_are_held_at_a_time() {
    let text = of_every_kind(100_000);
    let copies = decoded::copies(text.as_bytes()).inspect(|copy| assert!(copy.bytes().len() <= text.len())).count();
    assert!(copies >= 7, "{copies}");
    // One way and its three layers, however many ways there are.
    assert_eq!(redactor("s3cretvalue").clean(&text), text);
    let most = decoded::held::MOST.get();
    assert!((1..=3).contains(&most), "{most}");
}

#[test]
fn a_text_that_nobody_awaits_any_more_is_looked_through_no_further() {
    let redactor = redactor("s3cretvalue");
    let text = format!("{}%733cretvalue", of_every_kind(10_000));
    let string = Value::from(text.as_str()).to_string();
    for patience in [0, 1, 3] {
        let asked = std::cell::Cell::new(0);
        let wanted = || asked.replace(asked.get() + 1) < patience;
        assert_eq!(redactor.clean_while(&text, &wanted), Err(GivenUp));
        assert_eq!(asked.replace(0), patience + 1);
        assert_eq!(redactor.clean_json_while(&string, &wanted), Err(GivenUp));
    }
    assert!(redactor.clean(&text).ends_with("[redacted:token]"));
}

#[test]
fn a_long_text_of_escapes_is_looked_through_in_time_that_grows_with_it() {
    let redactor = redactor("s3cretvalue");
    for unit in ["%", "%2", "\\", "&#", "&", "%25", "\\u005c", "&amp;", "%5cu005c", "&#0", "&#00000000", "\\u{00000000"] {
        let looked_through = |count: usize| {
            let text = format!("{}%73%33cretvalue.", unit.repeat(count));
            let begun = used();
            let clean = redactor.clean(&text);
            assert!(clean.ends_with("[redacted:token].") || unit.ends_with(['%', '2', '\\', '#']), "{unit}");
            used() - begun
        };
        // Sixteen times the text: about sixteen times as long, and not 256 times.
        let [short, long] = [500, 8_000].map(|count| (0..3).map(|_| looked_through(count)).min().unwrap());
        assert!(long < short * 64, "{unit}: {short:?} and {long:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_mixture_of_escapes_of_a_credential_is_found_and_nothing_of_it_stays(
        secret in "[ -~öł😀]{6,24}",
        kinds in proptest::sample::subsequence(vec![0u8, 1, 2], 1..=3),
        hows in proptest::collection::vec((0usize..3, 0u8..6), 1..24),
        (before, after) in ("[a-z =:\"<]{0,5}", "[ \"<.]{0,5}"),
    ) {
        // A quote beside one of its own is taken for one that is doubled, also where that one
        // may be an escaped one.
        let doubled = |left: &str, right: &str| left.ends_with('"') && right.trim_start_matches('\\').starts_with('"');
        prop_assume!(!doubled(&before, &secret) && !doubled(&secret, &after));
        // Digits behind a number without its end are part of it; here each has its end.
        let encoded = mixed(&secret, &kinds, &hows);
        let redactor = redactor(&secret);
        let text = format!("{before}{encoded}{after}");
        prop_assert_eq!(redactor.clean(&text), format!("{before}[redacted:token]{after}"), "{}", encoded);
        // The same as a string of JSON: it stays one.
        let value = serde_json::json!([text, 1]);
        let clean: Value = serde_json::from_str(&redactor.clean_json(&value.to_string()).unwrap()).unwrap();
        prop_assert_eq!(clean, serde_json::json!([format!("{before}[redacted:token]{after}"), 1]));
    }

    #[test]
    fn a_text_with_escapes_of_other_things_is_the_same_text(text in "([ -~]|%[0-9a-f]{2}|\\\\u00[0-9a-f]{2}|&#[0-9]{2};|&amp;|\\\\){0,60}") {
        let redactor = redactor("Zürich/§4 & more");
        prop_assert!(matches!(redactor.clean(&text), Cow::Borrowed(same) if same == text));
        prop_assert!(redactor.clean_json(&Value::from(text).to_string()).is_none());
    }

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
