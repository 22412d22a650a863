//! What a file must be to be used.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::host::permission::ScopeSet;
use brig_protocol::client::Operation;
use std::os::unix::fs::PermissionsExt as _;

const SECRET: &str = "hunter2-hunter2";

/// A folder of functions with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (name, text) in files {
        write(&folder, name, text, 0o600);
    }
    folder
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str, mode: u32) {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn own() -> String {
    format!("user = {}\ngroup = 0\n", rustix::process::geteuid().as_raw())
}

/// A file with one function `f` whose tables hold these lines.
fn file(function: &str, command: &str) -> String {
    let user = if rustix::process::geteuid().is_root() { own() } else { String::new() };
    format!("[functions.f]\n{function}\n[functions.f.command]\nprogram = \"/usr/bin/true\"\n{user}{command}\n")
}

fn loaded(folder: &tempfile::TempDir) -> Catalogue {
    load(folder.path(), &Source::default(), Kept::OnDisk)
}

fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let folder = folder(files);
    loaded(&folder).disabled().iter().map(ToString::to_string).collect()
}

fn fault(text: &str) -> String {
    let all = faults(&[("c.toml", text)]);
    assert_eq!(all.len(), 1, "{all:?}");
    all.concat()
}

#[test]
fn a_whole_file_is_taken_and_what_it_says_is_there() {
    let text = file(
        "description = \"Looks\"\ntimeout_ms = 500\neffect = \"read\"\nretry = \"safe\"\nconcurrency = 2\ncalls_per_minute = 10\n\
         examples = [{ description = \"One\", input = { id = \"a\" }, output = [1] }]\n\
         input_schema = { type = \"object\", properties = { id = { type = \"string\" } }, required = [\"id\"] }\noutput_schema = '{\"type\":\"array\"}'",
        "args = [\"--id={input.id}\", [\"--\", \"{input.id}\"]]\nenv = { LANG = \"C\" }\nfailure_codes = [1]\nlimits = { cpu_seconds = 1 }",
    );
    let folder = folder(&[("shop.toml", &text)]);
    let catalogue = loaded(&folder);
    assert_eq!(catalogue.disabled(), []);
    let (granted, denied) = (ScopeSet::unconfigured(7, 7), ScopeSet::unconfigured(7, 8));
    let function = catalogue.find(&granted, "shop.f", Operation::List).unwrap().described();
    assert_eq!(
        (function.timeout_ms, function.effect, function.retry),
        (500, brig_protocol::client::Effect::Read, brig_protocol::client::Retry::Safe)
    );
    assert_eq!(function.examples.len(), 1);
    assert!(catalogue.find(&granted, "shop:f", Operation::Invoke).is_some());
    assert!(catalogue.find(&denied, "shop.f", Operation::List).is_none());
    assert_eq!(catalogue.visible(&denied).count(), 0);
    assert!(catalogue.offered(&denied, None).unwrap().is_empty());
    assert_eq!(catalogue.offered(&granted, Some(&["shp".to_owned()])).unwrap_err().near.as_deref(), Some("shop"));
    assert!(catalogue.offered(&denied, Some(&["shop".to_owned()])).is_err());
}

#[test]
fn one_bad_file_takes_only_its_own_collection_along() {
    let good = file("", "");
    let folder = folder(&[("a.toml", "[functions.f\n"), ("b.toml", &good), ("ignored.txt", "x"), (".hidden.toml", "x")]);
    let catalogue = loaded(&folder);
    assert_eq!(catalogue.count(), 1);
    assert_eq!(catalogue.disabled().len(), 1);
    assert!(catalogue.disabled().first().unwrap().to_string().contains("a.toml: line 1"), "{:?}", catalogue.disabled());
}

#[test]
fn a_misspelt_key_is_told_with_its_line_and_the_nearest() {
    let text = fault(&file("descripton = \"x\"", ""));
    assert!(text.contains("c.toml: line 2: unknown field `descripton`") && text.contains("did you mean `description`?"), "{text}");
    assert!(fault(&file("effect = \"reed\"", "")).contains("did you mean `read`?"));
    assert!(fault(&file("", "progam = \"/x\"")).contains("did you mean `program`?"));
}

#[test]
fn what_can_not_be_is_refused_by_its_place() {
    for (function, command, says) in [
        ("timeout_ms = 0", "", "functions.f.timeout_ms is 0"),
        ("concurrency = 0", "", "functions.f.concurrency is 0"),
        ("calls_per_minute = 0", "", "functions.f.calls_per_minute is 0"),
        ("input_schema = { type = \"objekt\" }", "", "functions.f.input_schema: the schema has the type \"objekt\""),
        ("input_schema = 5", "", "functions.f.input_schema is integer"),
        ("input_schema = { const = 1979-05-27 }", "", "put it in quotes"),
        ("input_schema = {}\ninput_schema_file = \"x\"", "", "give one"),
        ("input_schema_file = \"none.json\"", "", "functions.f.input_schema_file can not be read"),
        ("examples = [{ input = 5 }]", "", "functions.f.examples[0].input"),
        (
            "examples = [{ input = { a = 1 } }]\ninput_schema = { properties = { a = { type = \"string\" } } }",
            "",
            "functions.f.examples[0].input",
        ),
        ("examples = [{ input = {}, output = 5 }]\noutput_schema = { type = \"string\" }", "", "functions.f.examples[0].output"),
        ("", "args = [\"{input.id}\"]", "functions.f.command.args[0] has a placeholder for \"id\""),
        ("", "args = [[]]", "args[0] is empty"),
        ("", "args = [5]", "an argument in quotes"),
        ("", "folder = \"tmp\"", "absolute"),
        ("", "umask = \"9\"", "octal"),
        ("", "failure_codes = [0]", "all went well"),
        ("", "env = { \"A=B\" = \"1\" }", "name of a variable"),
        ("", "credentials = { token = { variable = \"T\" } }", "no [credentials.token]"),
        ("", "limits = { cpu_second = 1 }", "did you mean `cpu_seconds`?"),
    ] {
        let text = fault(&file(function, command));
        assert!(text.contains(says), "{function} {command}: {text}");
    }
    assert!(fault("[functions]\n").contains("no functions"));
    assert!(fault("[functions.f]\n").contains("[functions.NAME.command]"));
    assert!(fault("[functions.\"a b\"]\n").contains("not a name"));
    assert!(fault("name = \"1x\"\n[functions.f]\n").contains("can not be a name"));
}

#[test]
fn a_program_that_is_not_there_or_that_others_can_replace_is_refused() {
    let program = |path: &str| fault(&file("", "").replace("/usr/bin/true", path));
    assert!(program("true").contains("absolute"));
    assert!(program("/nonexistent/x").contains("/nonexistent/x"));
    assert!(program("/etc/passwd").contains("not executable"));
    let folder = folder(&[]);
    write(&folder, "tool", "#!/bin/true\n", 0o777);
    assert!(program(folder.path().join("tool").to_str().unwrap()).contains("chmod go-w"));
}

#[test]
fn files_that_others_may_change_are_not_believed() {
    let good = file("", "");
    for mode in [0o622, 0o620, 0o602] {
        let folder = folder(&[]);
        write(&folder, "c.toml", &good, mode);
        let catalogue = loaded(&folder);
        let text = catalogue.disabled().first().unwrap().to_string();
        assert!(text.contains("c.toml") && text.contains("chmod go-w"), "{text}");
    }
    let folder = folder(&[("c.toml", &good)]);
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let catalogue = loaded(&folder);
    assert!(catalogue.count() == 0 && catalogue.disabled().first().unwrap().fault.contains("chmod go-w"));
    if rustix::process::geteuid().is_root() {
        let folder = self::folder(&[("c.toml", &good)]);
        std::os::unix::fs::chown(folder.path().join("c.toml"), Some(12_345), None).unwrap();
        let catalogue = loaded(&folder);
        assert!(catalogue.disabled().first().unwrap().fault.contains("belongs to user 12345"));
    }
}

#[test]
fn two_collections_of_one_name_are_told_apart_or_refused() {
    let good = file("", "");
    let all = faults(&[("order_store.toml", &good), ("z.toml", &format!("name = \"orderStore\"\n{good}"))]);
    assert!(all.len() == 1 && all.concat().contains("z.toml") && all.concat().contains("order_store.toml"), "{all:?}");
    let two = format!("{good}{}", good.replace("functions.f", "functions.F"));
    assert!(fault(&two).contains("same as commands"));
}

#[test]
fn a_folder_that_is_not_there_holds_no_functions() {
    let catalogue = load(Path::new("/nonexistent/functions.d"), &Source::default(), Kept::OnDisk);
    assert!(catalogue.count() == 0 && catalogue.disabled().is_empty());
}

#[test]
fn a_collection_that_may_change_something_needs_a_place_to_write_that_down() {
    let (read, write) = (file("effect = \"read\"", ""), file("", ""));
    let both = format!("{read}{}", write.replace("functions.f", "functions.g"));
    let folder = folder(&[("look.toml", &read), ("act.toml", &write), ("mixed.toml", &both)]);
    let catalogue = load(folder.path(), &Source::default(), Kept::Nowhere);
    assert_eq!((catalogue.count(), catalogue.has("look.f")), (1, true));
    let faults: Vec<String> = catalogue.disabled().iter().map(ToString::to_string).collect();
    for (fault, place) in faults.iter().zip(["act.toml: line 1: functions.f.effect is", "functions.g.effect is"]) {
        assert!(
            fault.contains(place) && ["server.state_dir", "--state DIR", "effect = \"read\""].iter().all(|part| fault.contains(part)),
            "{fault}"
        );
    }
    let kept = loaded(&folder);
    assert_eq!((kept.count(), kept.writing().collect::<Vec<_>>()), (4, vec!["act.f", "mixed.g"]));
}

#[test]
fn credentials_are_read_given_and_never_shown() {
    let secrets = folder(&[("token", SECRET), ("short", "abc")]);
    let source = Source { folder: Some(secrets.path().to_owned()), own: None };
    let with = |credentials: &str, command: &str| {
        let folder = folder(&[("c.toml", &format!("{credentials}\n{}", file("", command)))]);
        load(folder.path(), &source, Kept::OnDisk)
    };
    let catalogue = with("[credentials.token]", "credentials = { token = { variable = \"TOKEN\" } }");
    assert_eq!(catalogue.disabled(), []);
    assert!(!format!("{catalogue:?}").contains("hunter2"));
    assert_eq!(catalogue.redactor().clean("x hunter2-hunter2"), "x [redacted:token]");
    for (credentials, command, says) in [
        ("[credentials.none]", "", "none can not be read"),
        ("[credentials.short]", "", "6 bytes"),
        ("[credentials.token]", "", "given to no function"),
        ("[credentials.token]", "credentials = { token = {} }", "one of `variable`"),
        ("[credentials.token]", "env = { T = \"1\" }\ncredentials = { token = { variable = \"T\" } }", "`env` as well"),
    ] {
        let catalogue = with(credentials, command);
        let text = catalogue.disabled().first().unwrap().to_string();
        assert!(text.contains(says) && !text.contains("hunter2"), "{credentials}: {text}");
    }
}
