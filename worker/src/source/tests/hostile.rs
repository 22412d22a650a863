//! Texts that are made to hurt.

use super::*;

#[test]
fn hostile_texts_are_an_error_or_a_program_and_never_a_crash() {
    let mib = 1 << 20;
    let texts = [
        "(".repeat(mib),
        "[".repeat(mib),
        "{".repeat(mib),
        "`${".repeat(mib / 3),
        "a<".repeat(mib / 2),
        "a<b,".repeat(mib / 4),
        "f<T>(".repeat(mib / 5),
        "-".repeat(mib),
        format!("{}1", "-".repeat(100_000)),
        "({a:".repeat(mib / 4),
        "(a=>".repeat(mib / 4),
        "async(".repeat(mib / 6),
        "new ".repeat(mib / 4),
        "await ".repeat(mib / 6),
        format!("a{}", ".a".repeat(300_000)),
        format!("1{}", "+1".repeat(300_000)),
        format!("{}1", "a?b:".repeat(200_000)),
        format!("{};", "if(a){}else ".repeat(80_000)),
        "function f(){".repeat(80_000),
        "class A{a=".repeat(100_000),
        "```js\n".repeat(mib / 6),
        "<think>".repeat(mib / 7),
        "</think>".repeat(mib / 8),
        "/*".repeat(mib / 2),
        "<!--\n".repeat(mib / 5),
        "'\\\n".repeat(mib / 3),
        "\0".repeat(mib),
        "\\".repeat(mib),
        "enum E{A,}".repeat(50_000),
        "$".repeat(mib),
        "x".repeat(mib),
        "\u{2028}".repeat(mib / 3),
        "\r".repeat(mib),
        "export default 1;".repeat(50_000),
        "export {a as default};".repeat(40_000),
    ];
    for text in &texts {
        // What matters is that it comes back.
        match auto(text) {
            Ok(program) => assert!(program.code.len() <= 30 * text.len() + 100),
            Err(error) => assert!(error.message.len() <= 400, "{error:?}"),
        }
    }
}

#[test]
fn many_statements_are_read() {
    let lets: String = (0..15_000).map(|n| format!("let a{n}=1;")).collect();
    assert_eq!(auto(&lets).unwrap().mode, Mode::Body);
    let more: String = (0..60_000).map(|n| format!("let a{n}=1;")).collect();
    assert_eq!(auto(&more).unwrap_err().kind, SourceErrorKind::TooComplex);
    assert!(auto(&format!("let a;{}a", "a=1;".repeat(200_000))).is_ok());
}

#[test]
fn data_with_many_angle_brackets_in_strings_is_read() {
    let rows = "'<b>x</b>',\n".repeat(40_000);
    assert!(auto(&format!("const rows = [\n{rows}];\nreturn rows.length")).is_ok());
}
