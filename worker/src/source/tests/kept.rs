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
    ]);
}

#[test]
fn a_kept_vm_is_told_which_names_a_program_makes_global() {
    let program = prepare("let a = 1; const { b, c: [d] } = x; function f() {} class G {}", Form::Auto, Language::Auto, true);
    assert_eq!(program.unwrap().globals, ["a", "b", "d", "f", "G"]);
    assert!(auto("let a = 1").unwrap().globals.is_empty());
}
