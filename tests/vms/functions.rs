//! Functions in a vm: whose they are, and by which name.

use super::*;

#[test]
fn functions_of_a_vm_are_answered_by_its_maker_and_those_of_a_request_by_who_asks() {
    let brigd = Brigd::start();
    let mut maker = brigd.connect();
    let vm = create(&mut maker, &json!({"hostFunctions": {"svc": {"f": {}, "g": {}}}}));
    let mut asker = brigd.connect();
    let params = json!({"source": "return [await svc.f({}), await svc.g({}), await own.h({})]", "vm": vm, "hostFunctions": {"svc": {"g": {}}, "own": {"h": {}}}});
    let id = asker.request("evaluate", &params);
    let call = maker.next_message();
    assert_eq!(call.pointer("/params/function"), Some(&json!("svc.f")), "{call}");
    maker.take_call(&call, &mut Handlers::none().on("svc.f", json!({"kind": "static", "result": "maker"})));
    let mut handlers =
        Handlers::none().on("svc.g", json!({"kind": "static", "result": "asker"})).on("own.h", json!({"kind": "static", "result": "own"}));
    let answer = asker.answer(id, &mut handlers);
    assert_eq!(answer.pointer("/result/value"), Some(&json!(["maker", "asker", "own"])), "{answer}");
    // The functions of one request are not there for the next.
    assert_eq!(value(&mut asker, &vm, "[typeof svc.f, typeof svc.g, typeof globalThis.own]"), json!(["function", "function", "undefined"]));
}

#[test]
fn a_host_function_kept_in_a_vm_is_called_by_its_name_whatever_the_table_of_a_later_evaluation() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    let mut handlers = Handlers::none();
    for function in ["m.list", "m.erase", "a.wipe", "z.last"] {
        handlers = handlers.on(function, json!({"kind": "static", "result": function}));
    }
    let mut evaluate = |source: &str, functions: Value| {
        let result = client.evaluate_with(&json!({"source": source, "vm": vm, "hostFunctions": functions}), &mut handlers);
        assert_eq!(result.get("outcome"), Some(&json!("succeeded")), "{source}: {result}");
        result
    };
    let kept = evaluate("globalThis.g = m.list; return await g({})", json!({"m": {"list": {}}}));
    assert_eq!(kept.get("value"), Some(&json!("m.list")), "{kept}");
    // Other functions stand where it stood: before it in its collection, and in another one.
    let moved = evaluate("return await g({})", json!({"a": {"wipe": {}}, "m": {"erase": {}, "list": {}}}));
    assert_eq!(moved.get("value"), Some(&json!("m.list")), "{moved}");
    assert_eq!(moved.pointer("/calls/0/function"), Some(&json!("m.list")), "{moved}");
    // It is not in the table, where another one has its index; then there is no table at all.
    let refused = "return await g({}).then(() => 'ran', (e) => [e instanceof HostError, e.code, e.function, e.message])";
    for functions in [json!({"a": {"wipe": {}}, "m": {"erase": {}}}), json!({})] {
        let gone = evaluate(refused, functions);
        let message = "m.list: this evaluation has no such function; \
                       the reference to it is from an earlier evaluation of the vm; nothing was called";
        assert_eq!(gone.get("value"), Some(&json!([true, "unknown_function", "m.list", message])), "{gone}");
        assert_eq!(gone.get("calls").and_then(Value::as_array).map_or(0, Vec::len), 0, "{gone}");
    }
    // The vm lives, and the reference works again where its function is there again.
    let again = evaluate("return [await g({}), await z.last({})]", json!({"m": {"list": {}}, "z": {"last": {}}}));
    assert_eq!(again.get("value"), Some(&json!(["m.list", "z.last"])), "{again}");
}

#[test]
fn a_kept_host_function_can_not_be_called_under_an_old_index_while_the_next_world_is_made() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    let mut handlers = Handlers::none();
    for function in ["m.list", "a.wipe"] {
        handlers = handlers.on(function, json!({"kind": "static", "result": function}));
    }
    // A proxy behind the global object is asked for each name that brigd is about to define.
    let trap = "globalThis.g = m.list; globalThis.got = [];
        Object.setPrototypeOf(globalThis, new Proxy(Object.prototype, {
            has(target, key) { if (key === 'a') got.push(g({}).catch((e) => e.code)); return Reflect.has(target, key); } }));
        0";
    let first = client.evaluate_with(&json!({"source": trap, "vm": vm, "hostFunctions": {"m": {"list": {}}}}), &mut handlers);
    let next = json!({"source": "return await Promise.all(got)", "vm": vm, "hostFunctions": {"a": {"wipe": {}}}});
    let result = client.evaluate_with(&next, &mut handlers);
    let called = result.get("calls").and_then(Value::as_array).map_or(0, Vec::len);
    assert_eq!(called, 0, "{first} {result}");
    assert_eq!(first.get("outcome"), Some(&json!("succeeded")), "{first}");
    assert_eq!(result.get("value"), Some(&json!(["unknown_function"])), "{result}");
}
