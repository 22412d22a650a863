//! Types are taken away, or compiled where they are more.

use super::*;

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
        ("export { type A, type B } from './a';\n3", "3"),
        ("export type * from './a';\nexport type * as N from './a';\n3", "3"),
        ("import type A from './a'; import type * as B from './b'; import type { C, D } from './c';\n3", "3"),
        ("import type A = require('./a');\n3", "3"),
        ("import type A = require('./a'); const A = 4; A", "4"),
        ("export import type A = require('./a');\n(3)", "3"),
        ("import type A = require('./a')\nenum E { B = 3 }\nE.B", "3"),
        ("const a: import('./a').A = 3; a", "3"),
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
