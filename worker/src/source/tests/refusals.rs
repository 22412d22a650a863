//! What is refused, as which form, and where.

use super::*;

#[test]
fn what_is_no_program_is_refused_with_a_hint() {
    let rows: &[(&str, SourceErrorKind, u32, u32, &str)] = &[
        ("import fs from 'fs';\nfs.readFileSync('x')", SourceErrorKind::Import, 1, 1, "collections"),
        ("const a = 1;\n  import { x } from './x'", SourceErrorKind::Import, 2, 3, "collections"),
        ("const fs = require('fs');", SourceErrorKind::Import, 1, 1, "collections"),
        ("const { a } = require('./b').c;", SourceErrorKind::Import, 1, 1, "collections"),
        ("export * from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("export { a } from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("import { type A, b } from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("export { type A, b } from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("import {} from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("export {} from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("import A = B.C", SourceErrorKind::TypeScript, 1, 1, "no modules"),
        ("import x = require('x')", SourceErrorKind::Import, 1, 1, "collections"),
        ("node -e 'console.log(1)'", SourceErrorKind::NotAProgram, 1, 9, "shell"),
        ("curl https://example.com", SourceErrorKind::NotAProgram, 1, 6, "shell"),
        ("$ ls -la", SourceErrorKind::NotAProgram, 1, 3, "shell"),
        ("ls -la", SourceErrorKind::NotAProgram, 1, 1, "shell"),
        ("npm install left-pad", SourceErrorKind::NotAProgram, 1, 5, "shell"),
        ("#!/bin/bash\necho hi", SourceErrorKind::NotAProgram, 2, 6, "shell"),
        ("\"return 1\"", SourceErrorKind::NotAProgram, 1, 1, "quoted"),
        ("\"const a = 1;\\nreturn a\"", SourceErrorKind::NotAProgram, 1, 1, "quoted"),
        ("{\"code\": \"return 1\"}", SourceErrorKind::NotAProgram, 1, 1, "quoted"),
        ("const a = 1;\\nreturn a", SourceErrorKind::NotAProgram, 1, 13, "escaped twice"),
        ("def f(x):\n  return x", SourceErrorKind::NotAProgram, 1, 5, "Python"),
        ("from os import path", SourceErrorKind::NotAProgram, 1, 6, "Python"),
        ("I cannot do that without more information.", SourceErrorKind::NotAProgram, 1, 3, "fence"),
        ("function f() { await g() }", SourceErrorKind::Syntax, 1, 16, "async"),
        ("namespace N { export const a = 1 }", SourceErrorKind::TypeScript, 1, 1, "object"),
        ("const a = <string>b", SourceErrorKind::TypeScript, 1, 11, "as Type"),
        ("<think>é</think>import fs from 'fs'", SourceErrorKind::Import, 1, 17, "collections"),
        ("const a = \u{201c}x\u{201d}", SourceErrorKind::Syntax, 1, 11, "straight"),
        ("```python\nprint(1)\n```", SourceErrorKind::NotAProgram, 2, 1, "JavaScript"),
        ("Here's the code:\n\nconst a = 1;\nreturn a;", SourceErrorKind::NotAProgram, 1, 5, "fence"),
        ("const x = <div>hi</div>;", SourceErrorKind::Syntax, 1, 19, "JSX"),
        ("\u{200b}return 1", SourceErrorKind::Syntax, 1, 1, "invisible"),
        ("export = 5", SourceErrorKind::TypeScript, 1, 1, "return"),
    ];
    for (text, kind, line, column, hint) in rows {
        let error = auto(text).expect_err(text);
        let got = (error.kind, error.line, error.column);
        assert_eq!(got, (*kind, *line, *column), "{text:?} {error:?}");
        assert!(error.hint.as_ref().is_some_and(|given| given.contains(hint)), "{text:?} {error:?}");
    }
}

#[test]
fn a_form_that_was_asked_for_is_the_form_that_is_read() {
    let read = |text: &str, form| match prepare(text, form, Language::Auto, false) {
        Ok(program) => match Engine::new().came(&program) {
            Came::To(value) => value,
            failed => format!("{failed:?}"),
        },
        Err(error) => format!("{}:{} {}", error.line, error.column, error.message),
    };
    assert_eq!(read("1 + 2", Form::Expression), "3");
    assert_eq!(read("{ a: 1 }", Form::Expression), "{\"a\":1}");
    assert_eq!(read("\"return 1\"", Form::Expression), "\"return 1\"");
    assert_eq!(read("1; 2", Form::Expression), "1:4 only one expression was expected, and here is a second statement");
    assert_eq!(read("let a = 1", Form::Expression), "1:1 an expression was expected, and here is a statement");
    assert_eq!(read("", Form::Expression), "1:1 an expression was expected, and there is none");
    assert_eq!(read("1 + 2", Form::Body), "undefined");
    assert_eq!(read("return 1 + 2", Form::Body), "3");
    assert_eq!(read("{ a: 1 }", Form::Body), "undefined");
    assert_eq!(read("() => 5", Form::Body), "undefined");
    assert_eq!(read("export default 5", Form::Body), "1:1 a function body cannot export");
    assert_eq!(read("export default 5", Form::Module), "5");
    assert_eq!(read("5", Form::Module), "undefined");
    assert_eq!(read("export default (function () { return this === undefined })()", Form::Module), "true");
    assert_eq!(read("1;\nreturn 5", Form::Module), "2:1 a module cannot return; export a default value");
}

#[test]
fn a_language_that_was_asked_for_is_the_language_that_is_read() {
    let types = "const a = 1;\nconst b: number = 2;";
    let error = prepare(types, Form::Auto, Language::Javascript, false).unwrap_err();
    assert_eq!((error.line, error.column), (2, 8));
    assert!(prepare(types, Form::Auto, Language::Typescript, false).is_ok());
    let module = prepare("1;\nimport type A = require('a')", Form::Auto, Language::Javascript, false).unwrap_err();
    assert_eq!((module.line, module.column, module.kind), (2, 1, SourceErrorKind::Syntax));
    let enumeration = prepare("1;\nenum E { A }", Form::Auto, Language::Javascript, false).unwrap_err();
    assert_eq!((enumeration.line, enumeration.column), (2, 1));
    let comparison = prepare("a < b > (c)", Form::Auto, Language::Javascript, false).unwrap();
    assert_eq!(comparison.code, "a < b > (c)");
}

#[test]
fn a_failure_has_the_position_in_the_text_as_sent() {
    let rows = [
        ("const r = await items.get({ id: 99 });\n// r is null\n\nconst upper = r.name.toUpperCase();\nreturn upper;", 4, 17),
        (
            "type Row = { name: string };\ninterface Unused { a: number; b: string }\nconst r = (await items.get({ id: 99 })) as Row;\nconst upper: string = r.name.toUpperCase();\nreturn upper;",
            4,
            25,
        ),
        ("```js\n\n\nconst r = await items.get({ id: 99 }); return r.name;\n```", 4, 48),
        ("inputs.q.x", 1, 1),
        ("const a = 1; inputs.q.x", 1, 14),
        ("const é = 'ü'; inputs.q.x", 1, 16),
        ("<think>é</think>const a = 1; inputs.q.x", 1, 30),
        ("const a = 1;\r\ninputs.q.x", 2, 1),
        ("const a = 1;\rinputs.q.x", 2, 1),
        ("async () => {\n  inputs.q.x\n}", 2, 3),
        ("enum E {\n  A,\n  B\n}\ninputs.q.x", 5, 1),
        ("class A { constructor(public x: number) { inputs.q.x } }\nnew A(1)", 1, 43),
        ("export default inputs.q.x", 1, 16),
        ("export default\n  inputs.q.x", 2, 3),
        ("let a = 1; if (a) inputs.q.x", 1, 19),
        ("#!/usr/bin/env node\nconst a = 1; inputs.q.x", 2, 14),
        ("{ a: inputs.q.x }", 1, 6),
        ("let a = 1; let a = 2;", 1, 16),
    ];
    for (text, line, column) in rows {
        let program = auto(text).expect(text);
        match Engine::new().came(&program) {
            Came::Failed { line: l, column: c, message } => {
                assert_eq!(l, line, "line of {text:?}: {message}");
                assert!(c.abs_diff(column) <= 8, "column of {text:?}: {c}, not {column}: {message}");
            }
            Came::To(value) => panic!("{text:?} came to {value}"),
        }
    }
}

#[test]
fn a_syntax_error_has_the_position_in_the_text_as_sent() {
    for (text, line, column) in [
        ("const a = ;", 1, 11),
        ("const a = 1;\n  const b = ;", 2, 13),
        ("const é = 1; const b = ;", 1, 24),
        ("```js\nconst a = ;\n```", 2, 11),
        ("<think>x</think>const a = ;", 1, 27),
        ("<think>é</think>const a = ;", 1, 27),
        ("é\n```js\nconst a = ;\n```", 3, 11),
        ("return {", 1, 9),
    ] {
        let error = auto(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text:?} {error:?}");
        assert_eq!(error.kind, SourceErrorKind::Syntax);
    }
}

#[test]
fn a_program_that_needs_no_change_is_handed_on_byte_for_byte() {
    for text in ["1+2", "", "await x", "for (const x of [1]) x", "// c\n'é'", "\u{feff}1", "a\r\nb", "if (a) b; else c"] {
        let program = auto(text).unwrap();
        assert_eq!((program.code.as_str(), program.mode), (text, Mode::Script));
    }
}

#[test]
fn a_body_keeps_every_byte_between_its_wrapping() {
    let text = "const a = 1;\nreturn a;";
    assert_eq!(auto(text).unwrap().code, format!("(async function(){{{text}\n}})()"));
}
