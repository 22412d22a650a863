use super::*;
use brig_protocol::codes::EvaluationCode;

#[test]
fn a_call_sends_the_index_and_the_input_and_gives_the_output() {
    let answer = Program::new("const r = await orders.refund({ id: inputs.id }); return r.ok").host(|_, _| Reply::Json("{\"ok\":true}"));
    let answer = Program { inputs: Some("{\"id\":\"o_1\"}"), ..answer }.run();
    assert_eq!(answer.value(), "true");
    assert_eq!(answer.calls, [(1, "{\"id\":\"o_1\"}".to_owned())]);
}

#[test]
fn no_argument_is_an_empty_object() {
    let answer = run("return [await items.get(), await items.get(undefined), await items.get(null)]");
    assert_eq!(answer.value(), "[{},{},null]");
}

#[test]
fn parallel_calls_are_all_out_before_the_first_answer() {
    let answer = run("return (await Promise.all(Array.from({ length: 50 }, (_, i) => items.get({ i })))).map((r) => r.i).join()");
    assert_eq!(answer.value(), format!("\"{}\"", (0..50).map(|i| i.to_string()).collect::<Vec<_>>().join(",")));
}

#[test]
fn one_more_call_than_may_be_in_flight_waits_for_its_turn() {
    let program = Program::new("return (await Promise.all(Array.from({ length: 9 }, (_, i) => items.get({ i })))).length");
    let answer = program.limits(|limits| limits.host_calls_in_flight = 2).run();
    assert_eq!((answer.value(), answer.calls.len()), ("9", 9));
}

#[test]
fn one_more_call_than_may_be_made_rejects_and_is_the_verdict_when_nobody_catches_it() {
    let source =
        "const r = []; for (let i = 0; i < 4; i++) { try { r.push((await items.get({ i })).i) } catch (e) { r.push(e.code) } } return r";
    let answer = Program::new(source).limits(|limits| limits.host_calls = 2).run();
    assert_eq!(answer.value(), r#"[0,1,"call_limit","call_limit"]"#);
    let answer = Program::new("for (let i = 0; i < 4; i++) await items.get({ i })").limits(|limits| limits.host_calls = 2).run();
    assert_eq!(answer.error().code, EvaluationCode::CallLimit);
    assert_eq!(answer.error().limit.as_deref(), Some("hostCalls"));
    let forged = run("throw Object.assign(new HostError('x'), { code: 'call_limit' })");
    assert_eq!(forged.error().code, EvaluationCode::GuestError);
}

#[test]
fn a_failure_is_a_host_error_with_its_parts_and_nothing_of_the_host() {
    let source = "try { await orders.list({}) } catch (e) { return [e instanceof Error, e instanceof HostError, e.name, e.message, e.code, e.function, Object.keys(e), String(e)] }";
    let answer = Program::new(source).host(|_, _| Reply::Fail(CallCode::PermissionDenied, "no rule allows orders.list")).run();
    assert_eq!(
        answer.value(),
        r#"[true,true,"HostError","no rule allows orders.list","permission_denied","orders.list",["code","function"],"HostError: no rule allows orders.list"]"#
    );
}

#[test]
fn an_uncaught_failure_has_the_place_of_its_call() {
    let answer = Program::new("const a = 1;\nconst b = await orders.list({ a });\nreturn b")
        .host(|_, _| Reply::Fail(CallCode::FunctionFailed, "slow down"))
        .run();
    let error = answer.error();
    assert_eq!(
        (error.code, error.name.as_str(), error.message.as_str(), error.line),
        (EvaluationCode::GuestError, "HostError", "slow down", Some(2))
    );
    assert!(error.excerpt.as_deref().unwrap().contains("await orders.list"), "{error:?}");
}

#[test]
fn the_same_promise_can_be_awaited_twice() {
    let answer = Program::new("const p = items.get({}); const [a, b] = await Promise.all([p, p]); return [a.n, b.n, (await p).n]")
        .host(|_, _| Reply::Json("{\"n\":1}"))
        .run();
    assert_eq!((answer.value(), answer.calls.len()), ("[1,1,1]", 1));
}

#[test]
fn an_oversized_or_circular_input_rejects_and_sends_nothing() {
    let source = "const o = {}; o.self = o; const r = []; for (const x of [o, { s: 'x'.repeat(2000) }]) { try { await items.get(x) } catch (e) { r.push(e.code, e.message) } } return r";
    let answer = Program::new(source).limits(|limits| limits.input_bytes = 1000).run();
    assert!(answer.value().contains("$.self") && answer.value().contains("limit inputBytes is 1000"), "{answer:?}");
    assert!(answer.calls.is_empty());
}

#[test]
fn calls_that_were_issued_are_drained_and_what_never_settles_is_told() {
    let answer = Program::new("orders.list({ m: 1 }); items.get({ m: 2 }); return 'one'")
        .host(|index, _| if index == 2 { Reply::Never } else { Reply::Echo })
        .run();
    assert_eq!((answer.value(), answer.calls.len()), ("\"one\"", 2));
    assert!(answer.warned(WarningCode::CallCancelled)[0].contains("items.get"), "{:?}", answer.warnings);
}

#[test]
fn output_keeps_its_place_among_calls() {
    let answer = run("console.log('a'); const p = items.get({}); console.log('b'); await p; return 1");
    assert_eq!(answer.events, ["output", "call", "output"]);
}

#[test]
fn a_race_is_won_by_who_is_first() {
    let answer = Program::new(
        "const t = (ms) => new Promise((r) => setTimeout(() => r('fallback'), ms)); return await Promise.race([items.get({}), t(20)])",
    )
    .host(|_, _| Reply::Never)
    .run();
    assert_eq!(answer.value(), "\"fallback\"");
    let answer = run("return await Promise.race([items.get({ a: 1 }), new Promise((r) => setTimeout(r, 10000))])");
    assert_eq!(answer.value(), "{\"a\":1}");
}

#[test]
fn inherited_names_are_no_host_functions_and_a_collection_is_no_thenable() {
    let answer = run(
        "const c = await orders; return [typeof c.toString, typeof c.constructor, typeof c.then, typeof c.__proto__, c === orders, Object.keys(orders), 'list' in orders, Object.isFrozen(orders), Object.isFrozen(orders.list), orders.list.name, Object.getPrototypeOf(orders)]",
    );
    assert_eq!(answer.value(), r#"["undefined","undefined","undefined","undefined",true,["list","refund"],true,true,true,"list",null]"#);
}

#[test]
fn a_collection_can_not_be_replaced_or_removed() {
    let answer = run(
        "'use strict'; const r = []; for (const f of [() => { orders = 1 }, () => { delete globalThis.orders }, () => { orders.list = 1 }, () => { orders.x = 1 }]) { try { f(); r.push('done') } catch (e) { r.push(e.name) } } return r",
    );
    assert_eq!(answer.value(), r#"["TypeError","TypeError","TypeError","TypeError"]"#);
}

#[test]
fn odd_names_are_reachable_as_they_are_and_by_their_other_spelling() {
    let mut program = Program::new(
        "return [await tools['list-orders']({ a: 1 }), await tools.listOrders({ a: 2 }), typeof tools.aB, Object.keys(tools), await myTools.x({})]",
    );
    program.collections = vec![("tools", vec!["list-orders", "a-b", "a.b"]), ("my-tools", vec!["x"])];
    let answer = program.run();
    assert_eq!(answer.value(), r#"[{"a":1},{"a":2},"undefined",["list-orders","a-b","a.b"],{}]"#);
    assert_eq!(answer.calls.iter().map(|call| call.0).collect::<Vec<_>>(), [0, 0, 3]);
}

#[test]
fn a_collection_named_like_a_global_is_not_defined_and_told_twice() {
    let mut program = Program::new("return [typeof JSON.stringify, typeof toString]");
    program.collections = vec![("JSON", vec!["list"]), ("toString", vec!["x"])];
    let answer = program.run();
    assert_eq!(answer.value(), r#"["function","function"]"#);
    assert_eq!(answer.warned(WarningCode::CollectionNotDefined).len(), 2);
    assert!(answer.stderr.contains("JSON was not defined"), "{}", answer.stderr);
}

#[test]
fn a_guest_that_replaces_what_the_glue_might_use_fools_only_itself() {
    let source = r"
      JSON.stringify = JSON.parse = () => { throw new Error('JSON') };
      Array.prototype.push = Map.prototype.forEach = Set.prototype.forEach = () => { throw new Error('proto') };
      Date.prototype.toISOString = Date.prototype.getTime = () => { throw new Error('date') };
      Object.defineProperty(Array.prototype, Symbol.iterator, { value() { throw new Error('iterator') } });
      Object.defineProperty(Promise, Symbol.species, { get() { throw new Error('species') } });
      Error.prepareStackTrace = () => { throw new Error('stack') };
      console.log(new Map([[1, { a: [2] }]].values ? undefined : undefined), { b: 3 });
      const r = await items.get({ when: new Date(0), list: [1, { c: 4 }] });
      return { r, set: new Set('x') };";
    let answer = run(&source.replace("new Map([[1, { a: [2] }]].values ? undefined : undefined)", "[1]").replace("new Set('x')", "1"));
    assert_eq!(answer.value(), r#"{"r":{"when":"1970-01-01T00:00:00.000Z","list":[1,{"c":4}]},"set":1}"#);
    assert_eq!(answer.stdout, "[ 1 ] { b: 3 }\n");
}

#[test]
fn promise_hooks_see_no_internals() {
    let source = r#"
      const grabbed = [];
      const original = Promise.prototype.then;
      Promise.prototype.then = function (f, r) { grabbed.push(String(f)); return original.call(this, f, r) };
      Object.defineProperty(Object.prototype, 'then', { configurable: true, get() { grabbed.push('asked'); return undefined } });
      const a = await items.get({ id: 1 });
      delete Object.prototype.then;
      Promise.prototype.then = original;
      return a.id"#;
    assert_eq!(run(source).value(), "1");
}

#[test]
fn a_getter_for_then_that_never_ends_is_ended_by_the_limit() {
    let source = "Object.defineProperty(Object.prototype, 'then', { get() { for (;;); } }); await items.get({}); return 1";
    let answer = Program::new(source).limits(|limits| limits.cpu_ms = 100).run();
    assert_eq!(answer.error().code, EvaluationCode::CpuLimit);
}

#[test]
fn nothing_of_the_bridge_is_on_the_global_object() {
    let source = r"const names = new Set();
      for (let o = globalThis; o; o = Object.getPrototypeOf(o)) for (const k of Reflect.ownKeys(o)) names.add(String(k));
      return [...names].filter((n) => /^__(?!proto__$|defineGetter__$|defineSetter__$|lookupGetter__$|lookupSetter__$)|bridge|native|hostcall|dispatch(?!Event)|rpc|sandbox|quickjs|worker/i.test(n)).sort()";
    assert_eq!(run(source).value(), "[]");
}
