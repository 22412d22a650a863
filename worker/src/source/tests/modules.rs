//! Modules: what they give, and what no module may say.

use super::*;

#[test]
fn a_module_gives_its_default_export() {
    table(&[
        ("export default 5", "5"),
        ("export default 5;", "5"),
        ("export default { a: 1 }", "{\"a\":1}"),
        ("export default (1, 2)", "2"),
        ("export default async () => 5", "5"),
        ("export default async function () { return 5 }", "5"),
        ("export default async function main() { return await items.get({ id: 1 }) }", "{\"id\":1,\"name\":\"one\"}"),
        ("export default function main(inputs) { return inputs.n }\nconst z = 1;", "7"),
        ("export default function () { return 1 }\n[1].length", "1"),
        ("async function main() { return 5 }\nexport default main;", "5"),
        ("async function main() { return 5 }\nexport { main as default };", "5"),
        ("const a = 1;\nexport default a + 1;\nconsole_ = 3;", "2"),
        ("export default\n  5", "5"),
        ("export const helper = (x) => x + 1;\nexport default helper(1)", "2"),
        ("export const helper = (x) => x + 1;\nhelper(1)", "2"),
        ("const a = 1\nexport { a };\na + 1", "2"),
        ("export function f() { return 1 }\nf() + 1", "2"),
        ("export async function run() { return 3 }", "3"),
        ("const A = 1; function helper() { return A }\nexport async function run() { return helper() + 1 }", "2"),
        ("export const a = 1;", "undefined"),
        ("export const run = async () => 5;", "5"),
        ("const r = await run();\nexport async function run() { return ++calls }", "undefined"),
        ("export type T = number;\nexport interface I { a: T }\nexport const f = (x: T): T => x;\nf(3)", "3"),
        ("const r = await items.get({ id: 1 });\nexport default r.name;", "\"one\""),
        ("export default class X { static a = 1 }", "undefined"),
        ("export {};\n5", "5"),
    ]);
}

/// Texts with what is said of them and where.
fn refused(rows: &[(&str, u32, u32, &str)]) {
    for (text, line, column, message) in rows {
        for form in [Form::Auto, Form::Module] {
            let error = prepare(text, form, Language::Auto, false).expect_err(text);
            assert_eq!((error.line, error.column, error.kind), (*line, *column, SourceErrorKind::Syntax), "{text:?} {error:?}");
            assert!(error.message.contains(message), "{text:?} {error:?}");
        }
    }
}

#[test]
fn an_export_of_what_is_not_declared_is_refused_at_its_name() {
    refused(&[
        ("export { missing }", 1, 10, "'missing' is not defined"),
        ("const a = 1;\nexport { a,\n  b as c };", 3, 3, "'b' is not defined"),
        ("export { main as default };\n1", 1, 10, "'main' is not defined"),
        ("export { a }; { let a = 1 }", 1, 10, "'a' is not defined"),
        ("export { Math }", 1, 10, "'Math' is not defined"),
        ("```js\nexport { é }\n```", 2, 10, "'é' is not defined"),
        ("export { default }", 1, 10, "'default' is not defined"),
        ("export { 'a' }", 1, 10, "'a' is a string"),
    ]);
    table(&[
        ("export { a }; const a = 1; a", "1"),
        ("export { a as default }; const { b: [a] } = { b: [3] };", "3"),
        ("export { a as 'x y' }; { var a = 1 } a", "1"),
        ("export { i }; for (var i of [1, 2]);\ni", "2"),
        ("export { i, j, k }; for (var i = 0; i < 1; i++); for (var j in { q: 1 }); try {} finally { var k = j } k", "\"q\""),
        ("export { f, C, E }; function f() {} class C {} enum E { A }\nE.A", "0"),
        ("export { T, I, N }; type T = 1; interface I {} namespace N { type Q = 1 }\n1", "1"),
        ("import { type A } from 'a'; import type B from 'b'; export { A, B };\n1", "1"),
        ("export type { A };\nexport { type B };\n1", "1"),
        ("declare function g(): void; declare class D {}; export { g, D };\n1", "1"),
        ("export default function f() { return 4 }\nexport { f }", "4"),
    ]);
}

#[test]
fn what_is_exported_or_declared_twice_is_refused_at_the_second() {
    refused(&[
        ("export default 1;\nexport default 2;", 2, 1, "duplicate export of 'default'"),
        ("const a = 1;\nexport { a as default };\nexport default a;", 3, 1, "duplicate export of 'default'"),
        ("export default function () {}\n  export default class {}", 2, 3, "duplicate export of 'default'"),
        ("export const a = 1;\nexport { a };", 2, 10, "duplicate export of 'a'"),
        ("let a, b; export { a as c, b as c }", 1, 33, "duplicate export of 'c'"),
        ("let a, b; export { a as c, b as 'c' }", 1, 33, "duplicate export of 'c'"),
        ("export let { a, b: [c] } = { b: [] }; export { c }", 1, 48, "duplicate export of 'c'"),
        ("export enum E { A } export { E }", 1, 30, "duplicate export of 'E'"),
        ("function f() {}\nexport function f() {}", 2, 17, "'f' has already been declared"),
        ("export {}; var f; async function f() {}", 1, 34, "'f' has already been declared"),
        ("export {}; function f() {} { var f }", 1, 34, "'f' has already been declared"),
    ]);
    table(&[
        ("var a = 2; export { a as b, a as c }; a", "2"),
        ("export function f(x: string): void; export function f(x: any) { return 1 }\nf(1)", "1"),
        ("export default function f(x: string): void; export default function f(x: any) { return 1 }", "1"),
        ("export enum E { A } export enum E { B = 1 }\nE.A + E.B", "1"),
        ("export interface A {} export class A {}\n1", "1"),
        ("export type A = 1; export const A = 1; A", "1"),
        ("export {}; var f = 1; var f = 2; f", "2"),
        ("function f() { return 1 } function f() { return 2 }\nf()", "2"),
    ]);
    let twice = prepare("function f() {} function f() {}", Form::Module, Language::Auto, false);
    assert_eq!(twice.unwrap_err().column, 26);
}

#[test]
fn a_module_is_read_by_the_grammar_of_modules() {
    for text in ["(function () { var await = 1 })()", "with ({}) ;", "var a = 010;"] {
        assert!(prepare(text, Form::Module, Language::Auto, false).is_err(), "{text}");
        assert!(auto(text).is_ok(), "{text}");
    }
}
