//! What is read of promises that were not awaited.

use super::*;

/// What is told of `text`.
fn told(text: &str) -> Vec<String> {
    auto(text).expect(text).promise_reads.iter().map(|read| read.told(text)).collect()
}

#[test]
fn a_member_of_a_promise_that_no_promise_has_is_found() {
    for (text, read, line, column) in [
        ("const list = items.get({ id: 1 });\nreturn list.length", "list.length", 2, 8),
        ("const get = items.get({}); const o = { get: 1 }; o.get + get.size", "get.size", 1, 58),
        ("const one = items.get({ id: 1 }); one.name", "one.name", 1, 35),
        ("const one = items.get({ id: 1 }); if (one.error) throw 1; await one", "one.error", 1, 39),
        ("async function main() {\n  const é = items.get({});\n  return { name: `${é.name}` };\n}\nmain()", "é.name", 3, 21),
        ("const list: number[] = items.get({}); for (let i = 0; i < list.length; i++) { list[i] }", "list.length", 1, 59),
        ("const list = items.get({}); list?.[0]", "list?.[0]", 1, 29),
        ("const list = items.get({}); list.then((l) => l.length); const n = list.length; n", "list.length", 1, 67),
        ("export default async () => { const row = items.get({}); return row.id }", "row.id", 1, 64),
    ] {
        let all = told(text);
        let sentence = format!("so {read} is undefined (line {line}, column {column})");
        assert!(matches!(&all[..], [one] if one.contains(&sentence) && one.contains("= await items.get(…)")), "{text}: {all:?}");
    }
}

#[test]
fn nothing_is_said_of_what_may_be_there() {
    for text in [
        "const list = await items.get({}); list.length",
        "const list = (await items.get({})).rows; list.length",
        "let list = items.get({}); list = await list; list.length",
        "const list = items.get({}); list.then((l) => l.length)",
        "const list = items.get({}); list.length = 3; list.length",
        "const list = items.get({}); [list.length] = [3]; list.length",
        "const list = items.get({}); mark(list); list.length",
        "const list = items.get({}); mark({ list }); list.length",
        "const list = items.get({}); mark[list]; items.list; list.length",
        "const list = items.get({}); Object.assign(list, { length: 3 }); list.length",
        "const list = items.get({}); const all = [list]; list.length",
        "const list = items.get({}); { const list = [1]; list.length }",
        "const list = items.get({}); ((list) => list.length)([1])",
        "const list = items.get({}); (({ list }) => list.length)({ list: [1] })",
        "const list = items.get({}); [[1]].map(([list]) => list.length)",
        "const list = items.get({}); try { f() } catch (list) { list.message }",
        "const list = items.get({}); (function list() { return list.name })()",
        "const list = items.get({}); const f = class list { static n = list.name }; f",
        "const items = { get: () => [1] }; const list = items.get({}); list.length",
        "function f(items) { const list = items.get({}); return list.length }",
        "Promise.prototype.length = 3; const list = items.get({}); list.length",
        "const list = items.get({}); Object.defineProperty(Object.getPrototypeOf(list), 'length', { value: 1 }); list.length",
        "const list = items.get({}); eval('list.length = 2'); list.length",
        "const list = items?.get({}); list.length",
        "const list = items['get']({}); list.length",
        "const list = items.get({}); list['length']",
        "const list = items.get({}); list.constructor; list.toString()",
        "const list = items.get({}); list.map((x) => x)",
    ] {
        assert_eq!(told(text), [""; 0], "{text}");
    }
    let kept = prepare("const list = items.get({}); list.length", Form::Auto, Language::Auto, true);
    assert!(kept.unwrap().promise_reads.is_empty(), "an earlier program may have changed what promises have");
}
