//! Texts of all kinds, made up: none panics, and none changes what the language says.

use super::*;
use proptest::prelude::*;

/// Pieces that programs and messages are made of.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "```js\n",
        "```\n",
        "~~~\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        ";",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "`",
        "${",
        "'",
        "\"",
        "\\",
        "/*",
        "*/",
        "//",
        "<think>",
        "</think>",
        "return ",
        "await ",
        "async ",
        "function f",
        "() => ",
        "=> ",
        "const a = ",
        "let b",
        "class A ",
        "enum E ",
        "export ",
        "default ",
        "import ",
        "from 'x'",
        "a",
        "b",
        "1",
        "é",
        "\u{2028}",
        "\0",
        "\u{feff}",
        "<T>",
        ": number",
        " as T",
        "!",
        "if (a) ",
        "else ",
        "for (;;) ",
        "try ",
        "catch ",
        "finally ",
        "#!",
        "<!--",
        "-->",
        ",",
        ".",
        "=",
        "+",
        "++",
        "{ a: 1 }",
        "constructor(public x) {}",
        "switch (a) ",
        "case 1:",
        "label: ",
        "...",
        "?",
        "'use strict'",
        "interface I {}",
        "type T = 1",
        "declare ",
        "$$",
        "static ",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Programs that are valid, one statement after the other.
fn statements() -> impl Strategy<Value = String> {
    let statement = prop::sample::select(vec![
        "1",
        "'s'",
        "x = 3",
        "x++",
        "(x, 2)",
        "x, 4",
        "[5].length",
        "`t${x}`",
        "/r/.test('r')",
        "+x",
        "-x",
        "{ x; 6 }",
        "{ }",
        ";",
        "if (x) 7",
        "if (x) 8; else 9",
        "if (!x) { 10 } else { x }",
        "for (const i of [1, 2]) i + x",
        "for (let i = 0; i < 3; i++) { i; if (i == 1) continue; i * 2 }",
        "for (const k in { a: 1 }) k",
        "while (x > 90) x--",
        "do { x--; 11 } while (x > 0)",
        "switch (x) { case 1: 12; default: 13 }",
        "try { 14 } finally { 15 }",
        "try { null.x } catch { 16 }",
        "try { null.x } catch (e) { e.name } finally { }",
        "l: { 17; break l }",
        "l: for (;;) { 18; break l }",
        "await 19",
        "var v = 20",
        "var v",
        "class K$ {}",
        "function f() { return 21 }",
        "f$ = () => 22",
        "(() => 23)()",
        "async function g() { return 24 }",
        "new Map([[1, 2]]).size",
        "!function () {}()",
        "x ? 25 : 26",
        "typeof f",
        "void 0",
        "(function () { return 27 })()",
        "x\n++x",
        "let $$\n$$ = 28",
        "const c = 29, { d } = { d: 1 }",
        "'use strict'",
        "async () => 30\n31",
        "x ||= 32",
        "delete globalThis.nothing",
        "x /* c */",
        "x // c",
    ]);
    let end = prop::sample::select(vec!["\n", ";\n", "\n;", "\n// c\n", ";\n/* c */ ", "\r\n"]);
    prop::collection::vec((statement, end), 1..7)
        .prop_map(|list| {
            let mut seen = std::collections::HashSet::new();
            let once = list.into_iter().filter(|(statement, _)| {
                !statement.contains("let ") && !statement.contains("const c") && !statement.contains("class") || seen.insert(*statement)
            });
            once.fold("var x = 1\n".to_owned(), |text, (statement, end)| text + statement + end)
        })
        .prop_filter("it parses, and no function is its value", |text| auto(text).is_ok() && !text.trim_end().ends_with("=> 30"))
}

/// Whether an expression that is a function compiles.
fn compiles(function: &str) -> bool {
    Engine::new().run(function, false).is_ok()
}

fn never_panics(text: &str) -> Result<(), TestCaseError> {
    for (form, kept) in [(Form::Auto, false), (Form::Auto, true), (Form::Body, true), (Form::Module, false)] {
        if let Ok(program) = prepare(text, form, Language::Auto, kept) {
            prop_assert!(!program.code.contains('\0'));
            let lines = text.lines().count() + 2;
            for line in [0, 1, 2, 9, u32::MAX] {
                let (l, c) = program.map.original(line, 3);
                prop_assert!(l >= 1 && c >= 1 && usize::try_from(l).unwrap() <= lines.max(text.len() + 1));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_never_panics(text in any::<String>()) {
        never_panics(&text)?;
    }

    #[test]
    fn pieces_of_programs_never_panic(text in pieces()) {
        never_panics(&text)?;
    }

    #[test]
    fn an_expression_of_names_and_numbers_is_unchanged(parts in prop::collection::vec("[a-z]{1,6}|[0-9]{1,4}", 1..20)) {
        let text = parts.join(" + ");
        if let Ok(program) = auto(&text) {
            prop_assert_eq!(&program.code, &text);
            prop_assert_eq!(program.map.original(1, 1), (1, 1));
        }
    }

    /// What compiles as it is still does after the changes.
    #[test]
    fn changes_break_nothing(text in pieces()) {
        let plain = format!("(async function(){{{text}\n}})");
        if text.contains('\0') || !compiles(&plain) {
            return Ok(());
        }
        if let Ok(program) = auto(&text) && program.mode == Mode::Body {
            let function = program.code.strip_suffix("()").unwrap_or_default();
            prop_assert!(compiles(function), "{}", program.code);
        }
    }

    /// The value is the one that the language gives the program as a script.
    #[test]
    fn the_value_is_the_completion_value(text in statements()) {
        let program = auto(&text).unwrap();
        let wanted = Engine::new().run(&text, true);
        let got = Engine::new().run(&program.code, program.mode == Mode::Script);
        match (wanted, got) {
            (Ok(wanted), Ok(got)) => prop_assert_eq!(got, wanted, "{}", program.code),
            (Err(_), Err(_)) => {}
            (wanted, got) => prop_assert!(false, "{wanted:?} {got:?} {}", program.code),
        }
    }

    /// A vm takes what a program may be, and nothing else.
    #[test]
    fn a_kept_vm_refuses_what_is_refused_anywhere(text in pieces()) {
        let read = |kept| prepare(&text, Form::Auto, Language::Auto, kept);
        if let (Ok(alone), Ok(_), Ok(kept)) = (uncalled(&text, Form::Auto, Language::Auto), read(false), read(true)) {
            let function = match kept.mode {
                Mode::Body => kept.code.strip_suffix("()").unwrap().to_owned(),
                Mode::Script => format!("(async function(){{{}\n}})", kept.code),
            };
            let takes = kept.as_written.is_none_or(|written| compiles(&written.code)) && compiles(&function);
            prop_assert_eq!(takes, compiles(&alone.code), "{}", function);
        }
    }

    /// A vm that is kept gives the same value, and can run the program again.
    #[test]
    fn a_kept_vm_gives_the_same_value_twice(text in statements()) {
        let program = prepare(&text, Form::Auto, Language::Auto, true).unwrap();
        let once = auto(&text).unwrap();
        let engine = Engine::new();
        let wanted = Engine::new().run(&once.code, once.mode == Mode::Script);
        if wanted.is_ok() {
            let first = engine.run(&program.code, program.mode == Mode::Script);
            prop_assert_eq!(&first, &wanted, "{}", program.code);
            let again = engine.run(&program.code, program.mode == Mode::Script);
            prop_assert!(again.is_ok(), "{:?} {}", again, program.code);
        }
    }
}
