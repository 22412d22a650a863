use super::*;
use brig_protocol::codes::EvaluationCode;

#[test]
fn plain_values_come_out_as_json_stringify_writes_them() {
    for source in [
        "({a:1,b:[true,false,null,'x'],c:{d:1.5e-7,e:-0,f:1e21}})",
        "[1,[2,[3]],{}, [], '']",
        "({'__proto__x':1, 2:'two', 1:'one', 'é\\n\"':'\\u0001'})",
        "JSON.parse('{\"__proto__\":{\"x\":1},\"y\":2}')",
        "({toJSON(){return {a:1}}})",
        "({a:{toJSON(k){return 'key '+k}}, b:[{toJSON(k){return 'key '+k}}]})",
        "new Proxy({a:1,b:2},{})",
        "new Proxy([1,2,3],{})",
        "Object(1)",
        "Object('s')",
        "Object(true)",
        "[,1,,]",
        "Object.create({inherited:1})",
        "class A { x=1; #y=2; get z(){return 3} }; new A()",
        "[0.1,100,123456789012345680000,5e-324,1.7976931348623157e308,-1.5]",
    ] {
        let ours = run(source);
        let theirs = run(&format!(
            "JSON.parse(JSON.stringify([JSON.stringify((0,eval)({}))]))[0]",
            serde_json::to_string(&format!(
                "({})",
                source
                    .replace("class A { x=1; #y=2; get z(){return 3} }; new A()", "new (class A { x=1; #y=2; get z(){return 3} })()")
                    .trim_start_matches('(')
                    .trim_end_matches(')')
                    .to_owned()
            ))
            .unwrap_or_default()
        ));
        if let Some(theirs) = theirs.value.as_deref() {
            assert_eq!(Some(ours.value()), serde_json::from_str::<String>(theirs).ok().as_deref(), "{source}");
        }
    }
}

#[test]
fn lossy_values_are_converted_and_told_with_their_path() {
    let answer = run("return { when: new Date(0), wei: 98765432109876543210n, parts: [7n, -1n], map: new Map([['k', 1]]), \
         odd: new Map([[1, 2]]), set: new Set([9]), bytes: new Uint8Array([1, 2]), bad: 0 / 0, inf: -1 / 0, \
         fail: new TypeError('no'), f() {}, u: undefined, s: Symbol('x'), r: /a+/gi }");
    assert_eq!(
        answer.value(),
        r#"{"when":"1970-01-01T00:00:00.000Z","wei":"98765432109876543210","parts":["7","-1"],"map":{"k":1},"odd":[[1,2]],"set":[9],"bytes":[1,2],"bad":null,"inf":null,"fail":{"name":"TypeError","message":"no"},"r":"/a+/gi"}"#
    );
    let told = answer.warned(WarningCode::LossyValue).join("\n");
    for place in [
        "$.when: a Date",
        "$.wei, $.parts[0], $.parts[1]: a BigInt",
        "$.map: a Map",
        "$.odd: a Map",
        "$.set: a Set",
        "$.bytes: a typed",
        "$.bad, $.inf: NaN",
        "$.fail: an Error",
        "$.f: a function",
        "$.u: undefined",
        "$.s: a symbol",
        "$.r: a RegExp",
    ] {
        assert!(told.contains(place), "{place} in {told}");
    }
}

#[test]
fn a_value_seen_twice_is_no_cycle_and_one_in_itself_is_told_with_its_path() {
    assert_eq!(run("const a = { c: 1 }; [a, a, { a }]").value(), r#"[{"c":1},{"c":1},{"a":{"c":1}}]"#);
    let answer = run("const a = { list: [] }; a.list.push({ up: a }); return a");
    assert_eq!(answer.error().code, EvaluationCode::UnserializableValue);
    assert!(answer.error().message.contains("$.list[0].up"), "{:?}", answer.error());
}

#[test]
fn promises_in_a_result_give_their_values_and_a_warning() {
    let answer = run("return [1, 2, 3].map((id) => items.get({ id }))");
    assert_eq!(answer.value(), r#"[{"id":1},{"id":2},{"id":3}]"#);
    assert!(answer.warned(WarningCode::LossyValue)[0].contains("await"), "{:?}", answer.warnings);
}

#[test]
fn four_hundred_levels_cross_and_too_many_are_an_error_both_ways() {
    let deep = "let o = { leaf: 1 }; for (let i = 0; i < N; i++) o = { p: o };";
    let answer = run(&format!("{}\nreturn await items.get({{ o }})", deep.replace('N', "400")));
    assert_eq!(answer.value().matches('{').count(), 402);
    let source =
        format!("{}\ntry {{ await items.get({{ s: o }}) }} catch (e) {{ return e.name + ' ' + e.code }}", deep.replace('N', "200000"));
    assert_eq!(run(&source).value(), "\"HostError invalid_input\"");
    let answer = run(&format!("{}\nreturn o", deep.replace('N', "200000")));
    assert_eq!(answer.error().code, EvaluationCode::UnserializableValue);
}

#[test]
fn an_oversized_value_is_refused_and_names_the_limit() {
    let answer = Program::new("Array.from({ length: 100000 }, (_, i) => i)").limits(|limits| limits.result_bytes = 1000).run();
    assert_eq!(answer.error().code, EvaluationCode::ResultTooLarge);
    assert_eq!((answer.error().limit.as_deref(), answer.error().limit_value), (Some("resultBytes"), Some(1000)));
    let answer = run("const a = []; a.length = 4294967295; return a");
    assert_eq!(answer.error().code, EvaluationCode::ResultTooLarge);
}

#[test]
fn a_getter_that_throws_is_told_with_its_path() {
    let answer = run("return { a: { get b() { throw new TypeError('nope') } } }");
    assert_eq!(answer.error().code, EvaluationCode::UnserializableValue);
    assert!(answer.error().message.contains("$.a.b") && answer.error().message.contains("nope"), "{:?}", answer.error());
}

#[test]
fn half_a_surrogate_pair_is_replaced_and_told() {
    let answer = run(r"return ['\ud83d', { '\ud800': 1 }, '😀']");
    assert_eq!(answer.value(), "[\"\u{FFFD}\",{\"\u{FFFD}\":1},\"😀\"]");
    assert_eq!(answer.warned(WarningCode::LossyValue).len(), 1);
}

#[test]
fn a_host_number_beyond_two_to_the_53_is_told_with_its_path() {
    let answer =
        Program::new("const m = await items.get({}); return String(m.id)").host(|_, _| Reply::Json("{\"id\":9007199254740993}")).run();
    assert_eq!(answer.value(), "\"9007199254740992\"");
    assert!(answer.warned(WarningCode::LossyValue)[0].contains("$.id"), "{:?}", answer.warnings);
}

#[test]
fn an_own_proto_key_is_an_ordinary_key_both_ways() {
    let answer = run(
        r#"const o = JSON.parse('{"__proto__": {"x": 1}, "y": 2}'); const r = await items.get({ s: o }); return { viaHost: Object.keys(r.s).sort(), o }"#,
    );
    assert_eq!(answer.value(), r#"{"viaHost":["__proto__","y"],"o":{"__proto__":{"x":1},"y":2}}"#);
}

/// Prints how long a megabyte takes each way; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a claim"]
fn how_long_a_megabyte_takes() {
    use std::{rc::Rc, time::Instant};

    use crate::value::{Bounds, Notes, decode, encode};

    let measure = || {
        let realm = warm(&Ceilings::default()).unwrap();
        realm.context.with(|ctx| {
            let value: rquickjs::Value = ctx.eval("Array.from({ length: 12000 }, (_, i) => ({ id: i, name: 'row number ' + i, price: i / 7, tags: ['a', 'b'], on: true }))").unwrap();
            let intrinsics = Rc::clone(&realm.shared.intrinsics);
            let bounds = Bounds { bytes: 8 << 20, levels: 512 };
            let mut text = Vec::new();
            let start = Instant::now();
            encode(&intrinsics, &value, "$", bounds, &mut text, &mut Notes::default()).unwrap();
            let ours = start.elapsed();
            let start = Instant::now();
            let native = ctx.json_stringify(value).unwrap().unwrap().to_string().unwrap();
            let theirs = start.elapsed();
            assert_eq!(String::from_utf8(text).unwrap(), native);
            let start = Instant::now();
            decode(&ctx, &native, "$", &mut Notes::default()).unwrap();
            println!("{} bytes: encode {ours:?}, the engine's stringify {theirs:?}, decode {:?}", native.len(), start.elapsed());
        });
    };
    thread::Builder::new().stack_size(16 << 20).spawn(measure).unwrap().join().unwrap();
}

#[test]
fn an_object_that_hides_what_it_holds_is_told() {
    let answer = run("class Box { #held = 1 }; return { \
         it: [1].values(), gen: (function* () { yield 1 })(), box: new Box(), query: new URLSearchParams('a=1'), \
         plain: {}, bare: Object.create(null), seen: Object.assign(new Box(), { x: 1 }), math: Math, proxy: new Proxy({}, {}) }");
    assert_eq!(answer.value(), r#"{"it":{},"gen":{},"box":{},"query":{},"plain":{},"bare":{},"seen":{"x":1},"math":{},"proxy":{}}"#);
    let told = answer.warned(WarningCode::LossyValue);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("$.it, $.gen, $.box and 1 more: an object whose class"), "{told:?}");
}
