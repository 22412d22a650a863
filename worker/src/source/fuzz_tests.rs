//! Fuzz targets of the program normaliser: whatever text a client sends, and however a
//! real program is mutated.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../../../tests/fuzz/drive/mod.rs"]
mod drive;

use super::{Form, Language, Mode, Program, SourceError, edits, prepare};
use drive::{Target, behaviour, fuzz};
use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, Context, Runtime, Value};
use std::path::Path;

/// What is tried with each text: the forms, the languages, and a kept vm.
const READINGS: [(Form, Language, bool); 6] = [
    (Form::Auto, Language::Auto, false),
    (Form::Auto, Language::Auto, true),
    (Form::Expression, Language::Typescript, false),
    (Form::Body, Language::Javascript, false),
    (Form::Body, Language::Typescript, true),
    (Form::Module, Language::Auto, false),
];

const WORDS: &[&str] = &[
    "const ",
    "let ",
    "var ",
    "function ",
    "function* ",
    "async ",
    "await ",
    "return ",
    "if (a) ",
    "else ",
    "for (;;) ",
    "while (a) ",
    "do ",
    "try ",
    "catch (e) ",
    "finally ",
    "switch (a) ",
    "case 1: ",
    "default: ",
    "break;",
    "continue;",
    "throw ",
    "class ",
    "extends ",
    "new ",
    "typeof ",
    "import ",
    "import type ",
    "export ",
    "export default ",
    "enum E { A, B = 2 }",
    "namespace N {",
    "declare ",
    "interface I { a: string }",
    "type T = ",
    "abstract ",
    "private ",
    "readonly ",
    " as const",
    " as any",
    " satisfies T",
    ": string",
    "<T>",
    "<T,>",
    "?: number",
    "!",
    "?.",
    "??",
    "=>",
    "() => {}",
    "async () => {",
    "...",
    "`",
    "${",
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "\n",
    "\r",
    "\r\n",
    "\u{2028}",
    "\u{2029}",
    "\0",
    "\"use strict\";",
    "// x\n",
    "/* x */",
    "/*",
    "*/",
    "<!-- x\n",
    "#!x\n",
    "```js\n",
    "```\n",
    "```",
    "~~~ts\n",
    "~~~\n",
    "<think>",
    "</think>",
    "<code>",
    "</code>",
    "/re[/]g/",
    "@dec ",
    "label: ",
    "inputs",
    "main",
    "é",
    "🦀",
    "\u{feff}",
    "\\u{61}",
    "0x1F",
    "1n",
    "1_000",
    "import.meta",
    "this",
    "super.x",
];

/// Programs with what the cases have little of.
const MORE: &[&str] = &[
    "enum Color { Red, Green = 'g' }\nclass A { constructor(private x: number, public readonly y = 2) {} }\nexport default new A(Color.Red);",
    "export async function main(input?: { a: string }): Promise<number> { return input!.a.length as number }",
    "type T = { a: 1 } | `x${string}`; declare const q: T; abstract class B<U extends T = T> { abstract m(): U; #p = 1 }\nlet v = <const U,>(x: U): x is U => true",
    "label: for (const x of [1, 2]) { if (x) continue label; else break label }\nswitch (1) { case 1: 'one'; default: 'two' }",
    "let a = 1; const { b, ...c } = { b: 2 }, [d = 3] = []; class E {} function f() {} async function* g() { yield* f() } using h = null",
    "<think>let me\nsee</think>Here:\n~~~typescript\nconst first = 1;\n~~~\nand\n```js\nreturn first + 1\n```\nDone.",
    "{ \"code\": \"return 1\" }",
    "\"use strict\"; if (a) { 1 } else try { 2 } catch { 3 } finally { 4 }\n{ total: 1, count: 2 }",
];

fn tests_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// The programs of the real-world cases.
fn programs() -> Vec<Vec<u8>> {
    let mut files: Vec<_> = std::fs::read_dir(tests_folder().join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut texts: Vec<String> = MORE.iter().map(|text| (*text).to_owned()).collect();
    for file in files {
        // One case holds half a surrogate pair, which no tree can.
        let Ok(case) = serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(file).unwrap()) else { continue };
        let variants = case["variants"].as_array().into_iter().flatten();
        texts.extend(std::iter::once(&case["program"]).chain(variants).filter_map(|text| text.as_str().map(str::to_owned)));
    }
    assert!(texts.len() > 50, "{} programs", texts.len());
    texts.into_iter().map(String::into_bytes).collect()
}

fn target(name: &str) -> Target<'_> {
    Target { name, corpus: tests_folder().join("fuzz/corpus"), words: WORDS, text_share: 90, longest: 8 * 1024 }
}

/// Lines of `text`, and whether `line` and `column` are a place in it.
fn is_place(text: &str, line: u32, column: u32) -> bool {
    let (last, _) = edits::position(text, text.len());
    let longest = text.chars().count() + 1;
    (1..=last).contains(&line) && column >= 1 && usize::try_from(column).unwrap() <= longest
}

/// The engine's line and column of each byte of the code that begins a character.
fn engine_places(code: &str) -> Vec<(usize, u32, u32)> {
    let (mut line, mut start) = (1, 0);
    let mut places = Vec::new();
    for (at, character) in code.char_indices() {
        let column = at - start + 1;
        places.push((at, line, u32::try_from(column).unwrap()));
        if matches!(character, '\n' | '\u{2028}' | '\u{2029}') {
            line += 1;
            start = at + character.len_utf8();
        }
    }
    places
}

/// Words that the normaliser writes itself.
const WRITTEN: [&str; 10] = ["async", "function", "return", "globalThis", "inputs", "typeof", "use", "strict", "var", "void"];

/// Words that are once in `text`, with their place in it.
fn lone_words(text: &str) -> std::collections::HashMap<&str, usize> {
    let mut found = std::collections::HashMap::new();
    let mut twice = std::collections::HashSet::new();
    let mut at = 0;
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if word.len() >= 3 && !WRITTEN.contains(&word) && found.insert(word, at).is_some() {
            twice.insert(word);
        }
        at += word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    found.retain(|word, _| !twice.contains(word));
    found
}

/// The way back leads to places in the text, never backwards, and a word to itself.
fn check_map(text: &str, program: &Program) {
    let places = engine_places(&program.code);
    let stride = (places.len() / 12).max(1);
    let mut last = (1, 1);
    for (at, line, column) in places.iter().step_by(stride) {
        let back = program.map.original(*line, *column);
        assert!(is_place(text, back.0, back.1), "{back:?} is no place in {text:?}");
        assert!(back >= last, "byte {at} of {:?} leads to {back:?}, behind {last:?}", program.code);
        last = back;
    }
    for (line, column) in [(0, 0), (1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
        let back = program.map.original(line, column);
        assert!(is_place(text, back.0, back.1), "{back:?} for {line}:{column}");
    }
    // What is compiled rather than blanked is written anew, and belongs to its place as a whole.
    if ["enum", "constructor"].iter().any(|word| text.contains(word)) {
        return;
    }
    let sent = lone_words(text);
    let kept = |word: &str| program.globals.iter().any(|global| global.name.contains(word));
    let words = lone_words(&program.code)
        .into_iter()
        .filter(|(word, _)| !kept(word))
        .filter_map(|(word, at)| sent.get(word).map(|sent| (word, at, *sent)));
    for (word, at, sent) in words.take(8) {
        let Ok(index) = places.binary_search_by_key(&at, |place| place.0) else { continue };
        let (_, line, column) = places[index];
        assert_eq!(program.map.original(line, column), edits::position(text, sent), "{word:?} in {:?}", program.code);
    }
}

fn check_refusal(text: &str, error: &SourceError) {
    assert!(is_place(text, error.line, error.column), "{}:{} {}", error.line, error.column, error.message);
    assert!(!error.message.is_empty() && error.message.len() <= 400, "{}", error.message);
}

/// What failed in a program is looked for in any text.
fn check_places(text: &str) {
    use super::places::{Kind, Sought, find};
    let (lines, _) = edits::position(text, text.len());
    let last = (lines, u32::MAX);
    for place in [(1, 1), (1, 9), (lines / 2 + 1, 3), last, (0, 0)] {
        for sought in [
            Sought::Member("a", place),
            Sought::Pattern(Kind::Object, place),
            Sought::Pattern(Kind::List, place),
            Sought::RegExp(&|_, _| true),
            Sought::Import("fs"),
            Sought::PrivateName("p"),
            Sought::Taken(&|_, _| true),
        ] {
            if let Some((line, column)) = find(text, sought) {
                assert!(is_place(text, line, column), "{line}:{column} is no place in {text:?}");
            }
        }
    }
}

fn told(text: &str, outcome: &Result<Program, SourceError>) -> String {
    match outcome {
        Ok(program) => {
            let grown = program.code.len().saturating_sub(text.len());
            let size = "x".repeat(usize::try_from(grown.checked_ilog2().unwrap_or(0)).unwrap());
            let returns = "r".repeat(program.code.matches("return").count().min(6));
            format!("{:?}{size}{returns}{}", program.mode, "g".repeat(program.globals.len().min(3)))
        }
        Err(error) => format!("{:?} {}", error.kind, error.message),
    }
}

#[test]
fn any_text_is_refused_with_its_place_or_prepared_with_a_way_back() {
    fuzz(&target("program"), programs(), |input| {
        let text = String::from_utf8_lossy(input);
        check_places(&text);
        let mut all = String::new();
        for (form, language, kept) in READINGS {
            let outcome = prepare(&text, form, language, kept);
            match &outcome {
                Ok(program) => {
                    assert!(!program.code.contains('\0'));
                    assert!(program.code.len() <= 16 * text.len() + 4096, "{} bytes from {}", program.code.len(), text.len());
                    check_map(&text, program);
                }
                Err(error) => check_refusal(&text, error),
            }
            all.push_str(&told(&text, &outcome));
        }
        behaviour(&all)
    });
}

/// Whether the engine takes `code`, an expression that is a function. It does not run it,
/// unless the text breaks out of the function: then not for long.
fn compiles(code: &str) -> bool {
    let runtime = Runtime::new().unwrap();
    runtime.set_max_stack_size(512 * 1024);
    runtime.set_memory_limit(256 * 1024 * 1024);
    let mut ticks = 0;
    runtime.set_interrupt_handler(Some(Box::new(move || {
        ticks += 1;
        ticks > 20
    })));
    Context::full(&runtime).unwrap().with(|ctx| {
        let mut options = EvalOptions::default();
        options.strict = false;
        ctx.eval_with_options::<Value<'_>, _>(code, options).catch(&ctx).is_ok()
    })
}

#[test]
fn what_the_engine_takes_as_a_body_it_still_takes_when_it_is_prepared() {
    fuzz(&target("program-compiles"), programs(), |input| {
        let text = String::from_utf8_lossy(input);
        // A fence is one even where it could be a template.
        let fenced = ["```", "~~~", "</"].iter().any(|mark| text.contains(mark));
        if fenced || text.contains('\0') || !compiles(&format!("(async function(){{{text}\n}})")) {
            return behaviour("no program");
        }
        let outcome = prepare(&text, Form::Body, Language::Javascript, false);
        if let Ok(Program { code, mode: Mode::Body, .. }) = &outcome {
            let function = code.strip_suffix("()").unwrap_or_else(|| panic!("{code:?} is not called"));
            assert!(compiles(function), "{text:?} became {code:?}");
        }
        behaviour(&told(&text, &outcome))
    });
}
