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
