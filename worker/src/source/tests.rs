//! Behaviour of program preparation, most of it seen through the engine.

#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

use super::{Form, Language, Mode, Program, SourceError, SourceErrorKind, prepare};
use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Promise, Runtime, Value};

/// What a program came to: its value as JSON text, or where it failed.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    To(String),
    Failed { message: String, line: u32, column: u32 },
}

struct Engine {
    context: Context,
    runtime: Runtime,
}

impl Engine {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        runtime.set_max_stack_size(512 * 1024);
        let context = Context::full(&runtime).unwrap();
        let engine = Self { context, runtime };
        let world = "globalThis.inputs = Object.freeze({ n: 7 });
            globalThis.items = { get: async ({ id }) => id > 3 ? null : { id, name: ['zero', 'one', 'two', 'three'][id] } };
            globalThis.logs = []; globalThis.calls = 0;";
        assert_eq!(engine.run(world, false).map(|_| ()), Ok(()));
        engine
    }

    fn run(&self, code: &str, promise: bool) -> Result<String, (String, String)> {
        self.context.with(|ctx| {
            let mut options = EvalOptions::default();
            options.promise = promise;
            options.strict = false;
            options.filename = Some("program".into());
            let value = ctx.eval_with_options::<Value<'_>, _>(code, options).catch(&ctx).map_err(describe)?;
            let value = self.settled(&ctx, value)?;
            let value = if promise { value.as_object().unwrap().get("value").unwrap() } else { value };
            let value = self.settled(&ctx, value)?;
            Ok(ctx.json_stringify(value).unwrap().map_or("undefined".into(), |text| text.to_string().unwrap()))
        })
    }

    fn settled<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<Value<'js>, (String, String)> {
        let Some(promise) = value.as_promise() else { return Ok(value) };
        let promise: Promise<'js> = promise.clone();
        while ctx.execute_pending_job() {}
        match promise.result::<Value<'js>>() {
            Some(result) => result.catch(ctx).map_err(describe),
            None => panic!("the program never settles"),
        }
    }

    fn came(&self, program: &Program) -> Came {
        match self.run(&program.code, program.mode == Mode::Script) {
            Ok(value) => Came::To(value),
            Err((message, stack)) => {
                let (line, column) = first_position(&stack);
                let (line, column) = program.map.original(line, column);
                Came::Failed { message, line, column }
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.runtime.run_gc();
    }
}

fn describe(error: CaughtError<'_>) -> (String, String) {
    match error {
        CaughtError::Exception(exception) => (exception.message().unwrap_or_default(), exception.stack().unwrap_or_default()),
        CaughtError::Value(value) => (format!("{value:?}"), String::new()),
        CaughtError::Error(error) => (error.to_string(), String::new()),
    }
}

/// The first `program:LINE:COLUMN` of a stack.
fn first_position(stack: &str) -> (u32, u32) {
    let Some(at) = stack.find("program:") else { return (1, 1) };
    let mut numbers = stack[at + 8..].split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().unwrap_or(1));
    (numbers.next().unwrap(), numbers.next().unwrap_or(1))
}

fn auto(text: &str) -> Result<Program, SourceError> {
    prepare(text, Form::Auto, Language::Auto, false)
}

/// What `text` comes to in a fresh engine, in any form.
fn value(text: &str) -> String {
    let program = match auto(text) {
        Ok(program) => program,
        Err(error) => return format!("refused {:?} {}:{} {}", error.kind, error.line, error.column, error.message),
    };
    match Engine::new().came(&program) {
        Came::To(value) => value,
        Came::Failed { message, line, column } => format!("failed {line}:{column} {message} <- {}", program.code),
    }
}

fn table(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, wanted)| (text, wanted, value(text)))
        .filter(|(_, wanted, got)| got != *wanted)
        .map(|(text, wanted, got)| format!("{text:?}\n   wanted {wanted}\n   got    {got}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

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

#[test]
fn types_are_taken_away() {
    table(&[
        ("const n: number = 1; n", "1"),
        ("interface R { a: number }\nconst r = { a: 1 } as R;\nr.a", "1"),
        ("const r = { a: 1 } satisfies object; r.a", "1"),
        ("function f<T>(x: T): T { return x }\nf<number>(4)", "4"),
        ("const ok = <T,>(v: T): T => v; ok<string>('s')", "\"s\""),
        ("const m = new Map<string, number[]>(); m.size", "0"),
        ("const x: string | null = null; x!", "null"),
        ("function f(a: string): string; function f(a: number): number; function f(a: any) { return a }\nf(1)", "1"),
        ("declare const q: string;\n2", "2"),
        ("import type { A } from './a';\n3", "3"),
        ("import { type A } from './a';\n3", "3"),
        ("export type { A } from './a';\n3", "3"),
        ("const f = (x: unknown): x is string => typeof x === 'string'; f('a')", "true"),
        ("abstract class B { abstract f(): void; g() { return 1 } }\nclass C extends B { f() {} }\nnew C().g()", "1"),
        ("class A { private readonly x: number = 1; get y(): number { return this.x } }\nnew A().y", "1"),
        ("return (await items.get({ id: 1 })).name as string;", "\"one\""),
        ("const é: 'é' | 'ü' = 'é'; é", "\"é\""),
        ("let v: any = 1\nv as number\n", "1"),
        ("enum E { A, B, C }\nE.C", "2"),
        ("enum E { A = 5, B }\n[E.B, E[5]]", "[6,\"A\"]"),
        ("enum S { Open = \"open\", Closed = 'closed' }\nS.Open", "\"open\""),
        ("const enum E { A = 1 << 2, B = A | 1, C = (1 + 2) * 3 }\n[E.A, E.B, E.C]", "[4,5,9]"),
        ("enum E { 'a-b' = 1, default }\nE['a-b'] + E.default", "3"),
        ("export enum E { A }\nE.A", "0"),
        ("enum E { A } enum E { B = 1 }\nE.A + E.B", "1"),
        ("declare enum E { A }\n1", "1"),
        ("function f() { enum E { A = 3 } return E.A }\nf()", "3"),
        ("async () => { enum E { A = 3 } return E.A }", "3"),
        ("class P { constructor(public readonly n: number, private m = 2) {} s() { return this.n + this.m } }\nnew P(1).s()", "3"),
        ("class B {} class D extends B { constructor(public n: number) { super(); this.n += 1 } }\nnew D(1).n", "2"),
        ("const C = class { constructor(protected x: number) { 'use strict' } get() { return this.x } }; new C(5).get()", "5"),
        ("const a = 1 < 2, b = 3 > (2); [a, b]", "[true,true]"),
        ("let x = 1 as const\n;(x)", "1"),
        ("type A = {\n  a: 1\n}\n[1][0]", "1"),
    ]);
}

#[test]
fn cases_of_typescript_as_models_write_it_come_out() {
    let rows = "const db = { rows: async () => ({ rows: [{ id: 1, qty: 2, price: 5 }, { id: 2, qty: 1, price: 7.5 }] }) };\n";
    let variants = [
        "interface Row { id: number; qty: number; price: number }\ntype Id = Row[\"id\"] | string;\nconst rows = (await db.rows({ table: \"t\" })).rows as Array<Row>;\nconst byId = new Map<number, { total: number; tags: Set<string> }>();\nfor (const r of rows) byId.set(r.id, { total: r.qty * r.price, tags: new Set<string>() });\nconst get = (id: number): number | undefined => byId.get(id)?.total;\nreturn rows.map((r: Row): number => get(r.id)!).reduce((a: number, b: number): number => a + b, 0) satisfies number;",
        "enum Status { Open = \"open\", Closed = \"closed\" }\nconst s: Status = Status.Open;\nfunction pick<T extends object, K extends keyof T>(o: T, ...ks: K[]): Pick<T, K> { const out = {} as Pick<T, K>; for (const k of ks) out[k] = o[k]; return out; }\nconst r = pick<any, any>((await db.rows({ table: \"t\" })).rows[0], \"qty\", \"price\") as { qty: number; price: number };\nconst flag = r.qty > 1 ? (r.price < 6 ? \"a : string\" : \"b\") : (\"c\" as const);\nreturn s === \"open\" && flag === \"a : string\" ? 17.5 : `no: ${flag as string}`;",
        "function foo(x: (string | number), cb: ((n: number) => void) | null = null): x is string { return typeof x === \"string\"; }\nconst ok = <T,>(v: T): T => v;\ndeclare const unused: string;\nlet total: number = 0; let maybe: number | null = null;\nfor (const { qty, price } of (await db.rows({ table: \"t\" })).rows as { qty: number; price: number }[]) total += qty * price;\nabstract class Base { protected constructor(public readonly n: number) {} }\nclass D extends Base { private static cache: Record<string, D> = {}; constructor(n: number) { super(n); } get v(): number { return this.n; } }\nreturn ok<number>(new D(total).v) + (maybe ?? 0);",
    ];
    for variant in variants {
        assert_eq!(value(&format!("{rows}{variant}")), "17.5", "{variant}");
    }
}

#[test]
fn what_models_put_around_a_program_is_taken_away() {
    table(&[
        ("```js\nreturn 1\n```", "1"),
        ("```javascript\r\nconst r = 1;\r\nreturn r;\r\n```\r\n", "1"),
        ("```\nreturn 1\n```  ", "1"),
        ("~~~ts\nconst n: number = 1;\nreturn n;\n~~~", "1"),
        ("````js\nreturn 1\n````", "1"),
        ("```JavaScript title=\"a.js\"\nreturn 1\n```", "1"),
        ("```{js}\nreturn 1\n```", "1"),
        ("  ```js\n  return 1\n  ```", "1"),
        ("Here is the program:\n\n```js\nreturn 1;\n```\n\nIt returns the name.", "1"),
        ("Program:\n```js\nitems.get({ id: 1 })\n```", "{\"id\":1,\"name\":\"one\"}"),
        ("Sure!\n```js\n1 + 1\n```", "2"),
        ("<think>I should call items.get</think>\n```typescript\nreturn 'x' as string;\n```", "\"x\""),
        ("<think>\n```js\nreturn 0\n```\n</think>\n```js\nreturn 1\n```", "1"),
        ("Hm.\n<think>\n```js\nreturn 0\n```\n</think>\n```js\nreturn 1\n```", "1"),
        ("<think>first</think>return 1", "1"),
        ("<thinking>first</thinking>\n1 + 1", "2"),
        ("I should add.\n</think>\n1 + 1", "2"),
        ("<code>return 1</code>", "1"),
        ("<answer>\n```js\nreturn 1\n```\n</answer>", "1"),
        ("\u{feff}```tsx\nreturn 1;\n```", "1"),
        ("\u{feff}return 1", "1"),
        ("```js\nreturn 1", "1"),
        ("```js\nreturn 1```", "1"),
        ("```js return 1```", "1"),
        ("const a = 1;\nreturn a;\n```", "1"),
        ("```js\nconst a = 1;\n```\nand then\n```js\nreturn a + 1\n```", "2"),
        ("```bash\nnpm install\n```\n```js\nreturn 1\n```\n```json\n{\"a\": 1}\n```", "1"),
        ("```js\nreturn 41 + 1\n```\nOutput:\n```\n42\n```", "42"),
        ("```\n1 + 1\n```\nOutput:\n```\n2\n```", "2"),
        ("```js\nasync () => 5\n```", "5"),
        ("```js\n{ a: 1 }\n```", "{\"a\":1}"),
        ("```js\nexport default 5\n```", "5"),
        // Not a fence of the message.
        ("const md = '```js\\nx\\n```'; md.length", "11"),
        ("const md = `\n\\`\\`\\`js\nx\n\\`\\`\\`\n`; md.length", "13"),
        ("const md = `\n~~~js\nx\n~~~\n`; md.length", "13"),
        ("/*\n```js\nreturn 0\n```\n*/\nreturn 1", "1"),
        ("const md = 'a\\\n```js\\\nb'; md", "\"a```jsb\""),
        ("```js\nconst md = `\n~~~\n\\`\\`\\`\n`; md.length\n```", "9"),
    ]);
}

#[test]
fn odd_texts_are_read_as_the_language_says() {
    table(&[
        ("", "undefined"),
        ("   \n\t ", "undefined"),
        ("// nothing", "undefined"),
        ("/* nothing */", "undefined"),
        (";", "undefined"),
        (";;;", "undefined"),
        ("```js\n```", "undefined"),
        ("#!/usr/bin/env node\n1 + 1", "2"),
        ("#!/usr/bin/env node\nreturn 1", "1"),
        ("1 <!-- two\n--> three\n+ 1", "2"),
        ("const a = 1;\n<!-- two\na", "1"),
        ("const a = 1;\r\na\r\n", "1"),
        ("const a = 1;\ra\r", "1"),
        ("const a = 1;\u{2028}a", "1"),
        ("with ({ a: 1 }) a", "1"),
        ("var a = 010; a", "8"),
        ("'use strict'", "\"use strict\""),
        ("debugger; 1", "1"),
        ("let await_ = 1; await_", "1"),
        ("return new.target", "undefined"),
    ]);
}

#[test]
fn what_is_no_program_is_refused_with_a_hint() {
    let rows: &[(&str, SourceErrorKind, u32, u32, &str)] = &[
        ("import fs from 'fs';\nfs.readFileSync('x')", SourceErrorKind::Import, 1, 1, "collections"),
        ("const a = 1;\n  import { x } from './x'", SourceErrorKind::Import, 2, 3, "collections"),
        ("const fs = require('fs');", SourceErrorKind::Import, 1, 1, "collections"),
        ("const { a } = require('./b').c;", SourceErrorKind::Import, 1, 1, "collections"),
        ("export * from './x'", SourceErrorKind::Import, 1, 1, "collections"),
        ("export { a } from './x'", SourceErrorKind::Import, 1, 1, "collections"),
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

mod arbitrary {
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
}
