//! Programs that run one after the other in a vm.

use super::*;

/// Evaluates programs one after the other in one realm.
fn session(programs: &[(&str, &str)]) {
    let engine = Engine::new();
    for (text, wanted) in programs {
        let program = prepare(text, Form::Auto, Language::Auto, true).expect(text);
        match engine.came(&program) {
            Came::To(value) => assert_eq!(value, *wanted, "{text:?} as {}", program.code),
            Came::Failed { message, .. } => assert_eq!(format!("failed {message}"), *wanted, "{text:?} as {}", program.code),
        }
    }
}

#[test]
fn declarations_in_a_kept_vm_outlive_the_evaluation() {
    session(&[
        ("let a = 1", "undefined"),
        ("a + 1", "2"),
        ("let a = 5; a", "5"),
        ("const a = 6; a", "6"),
        ("let a; a", "undefined"),
        ("const { x, y: [z], ...rest } = { x: 1, y: [2], q: 3 }", "undefined"),
        ("[x, z, rest]", "[1,2,{\"q\":3}]"),
        ("class A { v() { return 1 } }", "undefined"),
        ("class A { v() { return 2 } }\nnew A().v()", "2"),
        ("function f() { return 1 }", "undefined"),
        ("f()", "1"),
        ("async function f() { return 2 }", "undefined"),
        ("await f()", "2"),
        ("const r = await items.get({ id: 1 }); r.name", "\"one\""),
        ("r.id", "1"),
        ("const n: number = 4; enum E { A = 3 }", "undefined"),
        ("n + E.A", "7"),
        ("() => 9", "9"),
        ("export const k = 5;", "undefined"),
        ("k", "5"),
        ("const o = 5\n{ o, p: 1 }", "{\"o\":5,\"p\":1}"),
    ]);
}

#[test]
fn declarations_beside_a_return_in_a_kept_vm_outlive_it_too() {
    session(&[
        ("const a = 1, { b } = { b: 2 }; let c; function f() { return a } class K {}\nreturn b", "2"),
        ("[a, b, typeof c, f(), typeof K]", "[1,2,\"undefined\",1,\"function\"]"),
        ("const a = 10\nconst [q] = [3]\nif (a > 5) return q", "3"),
        ("a + q", "13"),
        ("var v = 1; return v", "1"),
        ("v", "1"),
        ("null.x", "failed cannot read property 'x' of null"),
        ("a", "10"),
        ("export default a + 1", "11"),
        ("export default function main() { return this === undefined }", "false"),
        ("export default class Kept { n() { return 6 } }", "undefined"),
        ("[main(), new Kept().n()]", "[false,6]"),
        ("'use strict'; function strict() { return this === undefined } return strict()", "true"),
        ("'use strict'\n'x'\nfunction strict() { return this === undefined }\nreturn strict()", "true"),
    ]);
}

#[test]
fn a_kept_vm_is_told_which_names_a_program_makes_global() {
    let program = prepare("let a = 1; const { b, c: [d] } = x; function f() {} class G {}", Form::Auto, Language::Auto, true);
    let names: Vec<_> = program.unwrap().globals.into_iter().map(|global| global.name).collect();
    assert_eq!(names, ["a", "b", "d", "f", "G"]);
    assert!(auto("let a = 1").unwrap().globals.is_empty());
}

#[test]
fn what_an_earlier_program_declared_can_be_exported_and_nothing_else() {
    session(&[
        ("const a = 1; async function main() { return a }", "undefined"),
        ("export { a }\n(2)", "2"),
        ("export { a,\n  main as default\n}", "1"),
        ("export { T, b, f }; type T = 1; let b; function f() {}", "undefined"),
        ("export { missing }", "failed missing is not defined"),
        ("export { a, missing as c }", "failed missing is not defined"),
        ("export {}\n(3)", "3"),
    ]);
    let program = prepare("export { a,\n  missing\n}", Form::Auto, Language::Auto, true).unwrap();
    let engine = Engine::new();
    engine.run("var a", false).unwrap();
    let place = (2, 3);
    assert!(matches!(engine.came(&program), Came::Failed { line, column, .. } if (line, column) == place));
}

#[test]
fn what_is_wrong_in_a_program_is_wrong_in_a_vm_at_the_same_place() {
    let wrong = [
        "const x;",
        "const a = 1,\n  b;",
        "const x: number;",
        "let x;\nlet x;",
        "let x = 1; const x = 2;",
        "var x; let x;",
        "let x; var x;",
        "let x; { var x }",
        "{ var x } let x",
        "for (var x of []) ; let x",
        "let f; function f() {}",
        "function f() {} let f",
        "const f = 1; async function f() {}",
        "class A {}\nclass A {}",
        "class A {} let A",
        "class A {} function A() {}",
        "class A {} var A",
        "let let = 1",
        "const let = 1",
        "let l\\u0065t = 1",
        "let \\u0061 = 1; let a",
        "let { a } = {}, a = 1",
        "let { a, a } = {}",
        "const [a, a] = []",
        "let [x] = [1], x",
        "const { a };",
        "let [a];",
        "var { a };",
        "for (const x;;) break",
        "for (let x, x;;) break",
        "let await = 1",
        "class await {}",
        "'use strict'; let static = 1",
        "'use strict'; let x = 1; delete x",
        "enum E { A } let E",
        "let E; enum E { A }",
        "return; let x; let x",
        "return 1; const y;",
        "return 1; let { y };",
        "return 1; var { y };",
        "return 1; let x; { var x }",
        "return 1; class A {} let A",
        "export default 1; const a;",
        "export default class A {} let A",
        "export let a; let a",
        "const a;\n{ a: 1, b: 2 }",
    ];
    for text in wrong {
        let came = |kept| Engine::new().came(&prepare(text, Form::Auto, Language::Auto, kept).expect(text));
        let (plain, kept) = (came(false), came(true));
        assert!(matches!(plain, Came::Failed { .. }), "{text:?} came to {plain:?}");
        assert_eq!(kept, plain, "{text:?}");
    }
}

#[test]
fn what_needs_no_change_for_a_vm_is_looked_at_once() {
    for text in ["1 + 2", "a = 1; f(a)", "function f() {}", "return 1", "async () => 1", "{ a: 1 }", "declare const q: number; 1"] {
        assert_eq!(prepare(text, Form::Auto, Language::Auto, true).unwrap().as_written, None, "{text}");
    }
}
