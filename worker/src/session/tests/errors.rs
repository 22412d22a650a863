use super::*;
use brig_protocol::codes::EvaluationCode;

#[test]
fn an_error_has_its_line_column_excerpt_and_stack_in_the_text_as_sent() {
    let answer = run("const r = null;\n// r is null\n\nconst upper = r.name.toUpperCase();\nreturn upper;");
    let error = answer.error();
    assert_eq!((error.name.as_str(), error.line), ("TypeError", Some(4)));
    assert!(error.message.contains("null") && error.message.contains("name"), "{error:?}");
    assert!(error.excerpt.as_deref().unwrap().starts_with("4 | const upper = r.name"), "{error:?}");
    assert!(!error.stack.as_deref().unwrap().contains("program-"), "{error:?}");
}

#[test]
fn a_first_line_has_the_right_column_too() {
    for (program, column) in [
        ("const a = 1; missing.x", 14),
        ("missing", 1),
        ("return missing", 8),
        ("throw new Error('a')", 11),
        ("const n = (1 as number) + missing", 27),
    ] {
        let error = run(program).error.unwrap();
        assert_eq!((error.line, error.column), (Some(1), Some(column)), "{program}: {error:?}");
    }
}

#[test]
fn a_text_that_does_not_parse_is_a_syntax_error_with_its_place() {
    let error = run("const a = 1;\nconst b = ;").error.unwrap();
    assert_eq!((error.code, error.line), (EvaluationCode::SyntaxError, Some(2)), "{error:?}");
}

#[test]
fn anything_can_be_thrown_and_is_told() {
    for (thrown, message) in [
        ("null", "null"),
        ("'quota used up'", "quota used up"),
        ("{ code: 'E_QUOTA', detail: { left: 0 } }", "E_QUOTA"),
        ("undefined", "undefined"),
        ("Symbol('sy')", "Symbol(sy)"),
        ("42n", "42n"),
        ("new Proxy({}, { get() { throw new Error('nope') } })", "{}"),
        (
            "(() => { const e = new Error('axios-like'); e.response = { request: {} }; e.response.request.response = e.response; return e })()",
            "axios-like",
        ),
    ] {
        let answer = run(&format!("throw {thrown}"));
        let error = answer.error();
        assert_eq!(error.code, EvaluationCode::GuestError, "{thrown}");
        assert!(error.message.contains(message), "{thrown}: {error:?}");
    }
    assert_eq!(run("throw { code: 'E_QUOTA' }").error().data, Some(serde_json::json!({ "code": "E_QUOTA" })));
}

#[test]
fn causes_and_members_are_told() {
    let error = run("throw new Error('outer', { cause: new TypeError('inner', { cause: 'root' }) })").error.unwrap();
    let cause = error.cause.unwrap();
    assert_eq!((cause.name.as_str(), cause.message.as_str()), ("TypeError", "inner"));
    assert_eq!(cause.cause.unwrap().message, "root");
    let error = run("await Promise.any([Promise.reject(new Error('a')), Promise.reject(new RangeError('b'))])").error.unwrap();
    assert_eq!(error.errors.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["Error", "RangeError"]);
    let error = run("const e = new Error('ring'); e.cause = e; throw e").error.unwrap();
    assert!(error.cause.is_some());
}

#[test]
fn a_custom_error_keeps_its_name_and_a_hostile_one_runs_nothing() {
    let error =
        run("class RetryError extends Error { constructor(m) { super(m); this.name = 'RetryError' } } throw new RetryError('gave up')")
            .error
            .unwrap();
    assert_eq!((error.name.as_str(), error.message.as_str()), ("RetryError", "gave up"));
    let error = run("class Quiet extends Error {} throw new Quiet('x')").error.unwrap();
    assert_eq!(error.name, "Error");
    let error = run("const e = new Error('x'); for (const k of ['name', 'message', 'stack', 'cause']) Object.defineProperty(e, k, { get() { for (;;); } }); throw e").error.unwrap();
    assert_eq!(error.code, EvaluationCode::GuestError);
}

#[test]
fn a_stack_hook_of_the_guest_breaks_nothing_and_sees_no_glue() {
    let source = "Error.prepareStackTrace = (e, sites) => { globalThis.seen = sites.map((s) => typeof s.getFunction()); return { odd: 1 } }; try { await orders.list({}) } catch {} ; null.x";
    let error = Program::new(source).host(|_, _| Reply::Fail(CallCode::FunctionFailed, "no")).run().error.unwrap();
    assert_eq!((error.code, error.name.as_str()), (EvaluationCode::GuestError, "TypeError"));
}

#[test]
fn hints_name_what_there_is() {
    for (source, part) in [
        ("return await fetch('https://example.org')", "orders.list, orders.refund, items.get"),
        ("const fs = require('fs')", "orders.list"),
        ("process.env.HOME", "no process"),
        ("return await ordrs.list({})", "did you mean orders?"),
        ("return await refund({})", "orders.refund"),
        ("return await orders.lst({})", "did you mean orders.list?"),
    ] {
        let error = run(source).error.unwrap();
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains(part)), "{source}: {error:?}");
    }
    let error = run("const o = { a: {} };\no.a.nothing(1)").error.unwrap();
    assert!(error.message.contains("o.a.nothing"), "{error:?}");
    let error = run("return await import('fs')").error.unwrap();
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("orders.list")), "{error:?}");
}

#[test]
fn an_error_of_a_class_of_its_own_is_told_where_it_was_made() {
    for program in [
        "class Lost extends Error {}\n\nthrow new Lost('x')",
        "class Lost extends Error { constructor(m) { super(m); this.name = 'L' } }\n\nthrow new Lost('x')",
        "class Base extends Error {}; class Lost extends Base { constructor(m) { super(m) } }\n\nthrow new Lost('x')",
        "class Lost extends Error {}\nfunction go() {\n  throw new Lost('x') }\ngo()",
        "class Lost extends Error { static of(m) { return new this(m) } }\n\nthrow new Lost('x')",
    ] {
        assert_eq!(run(program).error().line, Some(3), "{program}");
    }
    // What a constructor itself does wrong has its own place.
    assert_eq!(run("class Lost extends Error { constructor() {\nsuper(); null.x } }\n\nthrow new Lost()").error().line, Some(2));
}

#[test]
fn a_name_that_was_taken_out_of_a_collection_or_put_in_brackets_is_told_with_the_nearest() {
    for program in ["const { gt } = items; await gt({})", "await items['gt']({})"] {
        let error = run(program).error.unwrap();
        assert!(error.message.ends_with(" is not a function") && error.message.contains("gt"), "{program}: {error:?}");
    }
    let hint = run("await items['gett']({})").error.unwrap().hint.unwrap();
    assert!(hint.starts_with("did you mean items.get?"), "{hint}");
    let hint = run("const { gett } = items; await gett({})").error.unwrap().hint.unwrap();
    assert!(hint.starts_with("did you mean items.get?"), "{hint}");
}

#[test]
fn text_escaped_for_html_and_unknown_keywords_are_told() {
    let hint = |program: &str| run(program).error.unwrap().hint.unwrap_or_default();
    assert!(hint("if (1 &lt; 2) { 5 }").contains("escaped for HTML"));
    assert!(hint("const f = () =&gt; 5; f()").contains("escaped for HTML"));
    assert!(hint("class A { accessor x = 1 }").contains("accessor is not supported"));
}

#[test]
fn an_error_that_a_program_makes_itself_stays_where_it_is_made() {
    let program = "const fail = () => { throw new TypeError('value is not iterable') };\nfail();\nconst [a] = [1];";
    assert_eq!(run(program).error().line, Some(1));
    let thrown = "const fail = () => { throw new TypeError(\"cannot read property 'x' of undefined\"); const o = {}; o.x };\nfail();";
    assert_eq!((run(thrown).error().line, run(thrown).error().column), (Some(1), Some(32)));
}

#[test]
fn a_member_that_a_collection_lacks_is_told_where_it_was_taken_and_only_then() {
    for program in ["const go = items.find; go({})", "const { find: go } = items; await go({})", "const api = { go: items.find }; api.go()"]
    {
        let hint = run(program).error.unwrap().hint.unwrap_or_default();
        assert!(hint.starts_with("there is no items.find, which the program takes; the collection items has: "), "{program}: {hint}");
    }
    for program in ["// items.find\nconst go = 'items.find'; go()", "const go = 1; items.get({ id: 1 }); go()"] {
        let hint = run(program).error.unwrap().hint.unwrap_or_default();
        assert!(!hint.contains("there is no"), "{program}: {hint}");
    }
}

#[test]
fn what_nobody_caught_is_told_with_its_place_and_runs_nothing() {
    let answer =
        run("const odd = new Error('lost'); odd.cause = { toJSON() { for (;;); } };\nPromise.reject(odd);\n(async () => { null.x })();\n1");
    assert_eq!(answer.value(), "1");
    let told: Vec<&str> = answer.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with("Error: lost (line 1, column 17)"), "{told:?}");
    assert!(told[1].ends_with("cannot read property 'x' of null (line 3, column 16)"), "{told:?}");
}

#[test]
fn a_place_that_the_engine_does_not_tell_is_found_in_a_large_program_too_so_many_times() {
    let filler = "// some text that is in the way\n".repeat(30_000);
    let text =
        format!("{filler}const o = {{ bad() {{ return this.q.x }} }};\nfor (let i = 0; i < 40; i++) (async () => {{ o.bad() }})();\n1");
    let answer = run(&text);
    let warned = answer.warned(WarningCode::UnhandledRejection);
    let placed = |column: u32| warned.iter().filter(|one| one.ends_with(&format!("(line 30001, column {column})"))).count();
    // Behind them, where the engine says that it was: at the line.
    assert_eq!((placed(28), placed(1)), (8, 32), "{warned:?}");
    let again = run(&text);
    assert_eq!(again.warned(WarningCode::UnhandledRejection), warned, "each evaluation has its own");
}

#[test]
fn a_program_whose_tree_might_cost_the_worker_its_life_is_not_looked_into() {
    let failing = "const o = { bad() { return this.q.x } }; o.bad()";
    let place = |filler: usize, heap: u64| {
        let program = Program::new(format!("{}\n{failing}", ";".repeat(filler))).limits(|limits| limits.heap_bytes = heap);
        program.run().error.unwrap().column
    };
    assert_eq!((place(1 << 10, 64 << 20), place(200 << 10, 64 << 20)), (Some(28), Some(28)));
    assert_eq!((place(900 << 10, 64 << 20), place(200 << 10, 16 << 20)), (Some(1), Some(1)));
}
