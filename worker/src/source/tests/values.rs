//! What the forms of a program come to.

use super::*;

#[test]
fn an_expression_is_its_value() {
    table(&[
        ("1+2", "3"),
        ("1+2;", "3"),
        ("  1 + 2  ;  ", "3"),
        ("1 + 2 // sum", "3"),
        ("/* sum */ 1 + 2", "3"),
        ("'hello'", "\"hello\""),
        ("\"hello world\"", "\"hello world\""),
        ("\"ok\"", "\"ok\""),
        ("`a${1}b`", "\"a1b\""),
        ("[1,\n 2]", "[1,2]"),
        ("({ a: 1 })", "{\"a\":1}"),
        ("inputs.n", "7"),
        ("await items.get({ id: 1 })", "{\"id\":1,\"name\":\"one\"}"),
        ("(await items.get({ id: 1 })).name", "\"one\""),
        ("items.get({ id: 3 }).then((r) => r.name)", "\"three\""),
        ("new Map([[1, 2]]).get(1)", "2"),
        ("a = 5", "5"),
        ("1, 2, 3", "3"),
        ("true ? 1 : 2", "1"),
        ("null", "null"),
        ("undefined", "undefined"),
        ("/ab+/.test('abb')", "true"),
        ("typeof nothing", "\"undefined\""),
        ("void 0", "undefined"),
        ("class { static x = 1 }.x", "1"),
    ]);
}

#[test]
fn an_object_literal_is_an_object() {
    table(&[
        ("{a: 1}", "{\"a\":1}"),
        ("{ a: 1, b: 2 }", "{\"a\":1,\"b\":2}"),
        ("{ a: 1, b: 2 };", "{\"a\":1,\"b\":2}"),
        ("{ \"a\": 1 }", "{\"a\":1}"),
        ("{\n  total: 1 + 2,\n  list: [1],\n}\n", "{\"total\":3,\"list\":[1]}"),
        ("{}", "{}"),
        ("{ ...inputs, x: 1 }", "{\"n\":7,\"x\":1}"),
        ("{ inputs }", "{\"inputs\":{\"n\":7}}"),
        ("{ a: await items.get({ id: 1 }) }", "{\"a\":{\"id\":1,\"name\":\"one\"}}"),
        ("{ f() { return 1 }, a: 2 }", "{\"a\":2}"),
        ("// c\n{ a: 1 } // d", "{\"a\":1}"),
        ("{ a: 1 }; // d", "{\"a\":1}"),
        ("{ a: 1 as number }", "{\"a\":1}"),
        ("{ a: 1 }.a", "1"),
        // After statements, too.
        ("const a = 1;\n{ a: 1, b: 2 }", "{\"a\":1,\"b\":2}"),
        ("const a = 1;\n{ a: a + 1 }", "{\"a\":2}"),
        ("const a = 1, b = 2\n{ a, b }", "{\"a\":1,\"b\":2}"),
        ("calls = 1\n{\n  list: [\n    { x: 1, y: 2 },\n  ],\n  n: calls as number,\n};\n", "{\"list\":[{\"x\":1,\"y\":2}],\"n\":1}"),
        ("enum E { A = 3 }\n{ a: E.A, b: 2 }", "{\"a\":3,\"b\":2}"),
        ("const a = 1;\n{ }", "undefined"),
        ("if (inputs.q) { a: 1 }", "undefined"),
        // A block that is more than an object.
        ("{ let x = 1; x + 1 }", "2"),
        ("{ calls = 1; }", "1"),
        ("{ items.get({ id: 1 }) }", "{\"id\":1,\"name\":\"one\"}"),
        ("{ a = 1 }", "1"),
    ]);
}

#[test]
fn the_last_expression_of_statements_is_the_value() {
    table(&[
        ("const a = 1; a + 1", "2"),
        ("const a = 1\na + 1\n", "2"),
        ("const a = 1;\na + 1; // done", "2"),
        ("const a = 1;\n[a,\n a + 1]\n  .map((x) => x * 2)\n  .join('-')\n", "\"2-4\""),
        ("let a = 1\n;[2].length", "1"),
        ("const a = await items.get({ id: 2 });\na.name", "\"two\""),
        ("const a = 1; ({ a })", "{\"a\":1}"),
        ("const a = 1;", "undefined"),
        ("5; const a = 1;", "5"),
        ("const f = () => 1; f()", "1"),
        ("const a = 1; if (a) { a + 1 } else { 0 }", "2"),
        ("const a = 0; if (a) { 1 } else if (a === 0) { 'zero' } else { 3 }", "\"zero\""),
        ("const a = 1; try { a + 1 } catch { 0 } finally { 9 }", "2"),
        ("const a = 1; try { null.x } catch (e) { 'caught' }", "\"caught\""),
        ("let t = 0; for (const x of [1, 2, 3]) t += x;", "6"),
        ("let t = 0; for (let i = 0; i < 3; i++) { t += i; t * 2 }", "6"),
        ("const a = 2; switch (a) { case 1: 'one'; break; case 2: 'two'; break; default: 'x' }", "\"two\""),
        ("let i = 0; while (i < 3) i++", "2"),
        ("let i = 0; do { i++ } while (i < 3)", "2"),
        ("const a = 1; { a; a + 5 }", "6"),
        ("const a = 1; lbl: { a + 7 }", "8"),
        ("if (true) 1; else 2", "1"),
        ("for (const x of [1, 2]) x", "2"),
        ("const a = 1; if (!a) 5", "undefined"),
        ("const a = 1; if (a) (1, 2)", "2"),
        ("async function main() { return (await items.get({ id: 3 })).name }\nmain();", "\"three\""),
        ("main();\nasync function main() { return 4 }", "4"),
        ("main()\nasync function main() { return 4 }", "4"),
        ("const run = async () => (await items.get({ id: 3 })).name;\nawait run()", "\"three\""),
        ("const a = 1; a;;;", "1"),
        ("const a = 1; a\n// end", "1"),
        ("const a = 1; a\n/* end */", "1"),
        ("var x = 1; x += 1; var y = x;", "2"),
        ("class A { v = 3 } new A().v", "3"),
        ("'use strict'; const a = 1; a", "1"),
        ("const $$ = 1, $$$ = 2; if (1) $$ + $$$", "3"),
        ("const a = 1; async () => a + 1", "2"),
        ("const a = () => {}\nconst b = [1]\nb.length", "1"),
        ("let x = 1\nx\n++x", "2"),
        ("throw_ = 1; const z = 1; if (z) throw_; else throw new Error('x')", "1"),
        ("const inputs = { n: 1 }; inputs.n", "1"),
        ("const items = [1]; items.length", "1"),
        ("let a = 1; a ||= 2; a", "1"),
        ("const { a, ...rest } = { a: 1, b: 2 }; rest", "{\"b\":2}"),
    ]);
}

#[test]
fn a_body_returns() {
    table(&[
        ("return 1", "1"),
        ("return", "undefined"),
        ("return 1;", "1"),
        ("return await items.get({ id: 1 });", "{\"id\":1,\"name\":\"one\"}"),
        ("const r = await items.get({ id: 1 });\nreturn r.name;", "\"one\""),
        ("if (inputs.n > 5) return 'big';\n'small'", "\"big\""),
        ("if (inputs.n < 5) return 'small';\n'big'", "\"big\""),
        ("for (const x of [1, 2, 3]) { if (x === 2) return x }", "2"),
        ("try { return 1 } finally { calls++ }", "1"),
        ("return {\n  a: 1\n}", "{\"a\":1}"),
        ("return (async () => (await items.get({ id: 3 })).name)();", "\"three\""),
        ("return [1, 2].map((x) => { return x * 2 })", "[2,4]"),
        ("'use strict'; return (function () { return this === undefined })()", "true"),
        ("return (function () { return this === undefined })()", "false"),
        ("const a = 1\nreturn a // x", "1"),
        ("let s = 0; for await (const it of [items.get({ id: 1 })]) s += it.id; return s", "1"),
        ("return 'a\0b'.length", "3"),
        ("return `a\0b`.length", "3"),
        ("return 'a\\\0b'.length", "3"),
        ("// c\u{2028}return 'x\\n'.length", "2"),
        ("return '\\ud83d'.length", "1"),
        ("function f() { return 1 }\nif (0) { f() }", "undefined"),
    ]);
}

#[test]
fn a_function_alone_is_called_once() {
    table(&[
        ("() => 5", "5"),
        ("async () => 5", "5"),
        ("async () => { return await items.get({ id: 1 }) }", "{\"id\":1,\"name\":\"one\"}"),
        ("async () => {\n  calls++;\n  return calls;\n};", "1"),
        ("(async () => 5)", "5"),
        ("(async () => 5);", "5"),
        ("(inputs) => inputs.n", "7"),
        ("async ({ n }) => n", "7"),
        ("function () { return 5 }", "5"),
        ("async function () { return 5 }", "5"),
        ("async function () { return 5 };", "5"),
        ("(function () { return 5 })", "5"),
        ("function main() { return 5 }", "5"),
        ("async function main() { return (await items.get({ id: 2 })).name }", "\"two\""),
        ("// the program\nasync function main(inputs) { return inputs.n }\n", "7"),
        ("'use strict';\nfunction main() { return this === undefined }", "true"),
        ("type R = { a: number };\nasync function main(): Promise<R> { return { a: 1 } }", "{\"a\":1}"),
        ("type R = number;\nasync (): Promise<R> => 1", "1"),
        // Called by the program itself: not called again.
        ("(() => 5)()", "5"),
        ("(async () => {\n  const r = await items.get({ id: 3 });\n  return r.name;\n})()", "\"three\""),
        ("(async () => { calls++; return calls })();", "1"),
        ("(function () { return 5 })()", "5"),
        ("!function () { calls++ }()", "true"),
        ("function a() { return 1 }\nfunction b() { return 2 }", "undefined"),
        ("function* g() { yield 1 }", "undefined"),
        ("const main = async () => 5;", "5"),
        ("const main = async () => 5;\nmain();", "5"),
        ("const N = 2;\nfunction twice(x) { return x * N }\nasync function main() { return twice(N) }", "4"),
        ("calls = 0;\nasync function main() { return ++calls }\nconst r = await main();", "0"),
        ("async function main() { return ++calls }\nconst r = await main();", "undefined"),
    ]);
}
