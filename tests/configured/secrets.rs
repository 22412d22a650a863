//! What of a credential anybody gets to see.

use super::*;

/// Whether six letters of the secret in a row stand in a text, as they are or in one of
/// the forms that the probe writes.
fn gives_away(text: &str) -> Option<String> {
    let forms = |part: &str| {
        let hex: String = part.bytes().map(|byte| format!("{byte:02x}")).collect();
        let url: String = part.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let spelt: String = part.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        [part.to_owned(), json!(part).to_string().trim_matches('"').to_owned(), hex, url, spelt]
    };
    let lower = text.to_lowercase();
    let letters: Vec<char> = SECRET.chars().collect();
    let parts = letters.windows(6).map(|part| part.iter().collect::<String>());
    parts
        .flat_map(|part| forms(&part))
        .chain(BASE64.iter().map(|core| (*core).to_owned()))
        .find(|form| lower.contains(&form.to_lowercase()))
}

#[test]
fn a_credential_reaches_nobody_in_any_form_it_is_looked_for() {
    let place = Place::new();
    let token = place.path("token").display().to_string();
    let mut text = format!("[credentials.token]\nfile = {token:?}\n");
    for how in ["output", "failure", "complaint", "broken", "text"] {
        let output = if how == "text" { "output = \"text\"\n" } else { "" };
        let command = format!("{output}args = [\"leak\", {how:?}]\ncredentials = {{ token = {{ variable = \"TOKEN\" }} }}");
        text += &place.function(how, "audit = \"full\"", &command);
    }
    place.collection("shop", &text);
    let audit = place.path("audit").display().to_string();
    let brigd = place.options(&format!("[audit]\ndir = {audit:?}\n[server]\nlog = \"trace\"")).start();
    let mut client = brigd.connect();
    for how in ["output", "failure", "complaint", "broken", "text"] {
        let line = call(&mut client, &format!("shop.{how}"), &json!({"note": SECRET})).to_string();
        assert!(matches!(how, "complaint" | "broken") || line.contains("[redacted:token]"), "{how}: {line}");
        assert_eq!(gives_away(&line), None, "{how}: {line}");
        let source = format!("try {{ await shop.{how}({{}}) }} catch (e) {{ [e.name, e.message, e.code, e.data, e.stack] }}");
        let line = client.evaluate(&source).to_string();
        assert_eq!(gives_away(&line), None, "{how}: {line}");
    }
    let log = brigd.log();
    assert!(log.contains("held a credential") && log.contains("it is [redacted:token]"), "{log}");
    assert_eq!(gives_away(&log), None, "{log}");
    let segments = fs::read_dir(place.path("audit")).expect("the audit folder").flatten();
    let audit: String = segments.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    assert!(audit.contains("\"call_permitted\"") && audit.contains("[redacted:token]"), "{audit}");
    assert_eq!(gives_away(&audit), None, "{audit}");
    let environment = fs::read(format!("/proc/{}/environ", brigd.pid())).unwrap_or_default();
    assert_eq!(gives_away(&String::from_utf8_lossy(&environment)), None);
    // The net of this test holds: it finds what it looks for.
    for leak in [SECRET.to_owned(), "746f6b2d34373131".to_owned(), "dG9rLTQ3MTEvYWIiYytkP2U=".to_owned()] {
        assert!(gives_away(&leak).is_some(), "{leak}");
    }
}
