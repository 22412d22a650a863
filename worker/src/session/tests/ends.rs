use super::*;
use brig_protocol::{client::WarningCode, codes::EvaluationCode};

#[test]
fn an_expression_a_script_and_a_body_give_their_value() {
    for (source, value) in [
        ("1+2", "3"),
        ("const a = 1; let b = 2; a + b", "3"),
        ("return await Promise.resolve(3)", "3"),
        ("const x = await Promise.resolve(2); x + 1", "3"),
        ("(async () => { const r = await items.get({ id: 3 }); return r.id; })()", "3"),
        ("async function main() { const r = await items.get({ id: 3 }); return r.id; }\nmain();", "3"),
        ("items.get({ id: 3 }).then((r) => r.id)", "3"),
        ("return (async () => (await items.get({ id: 3 })).id)();", "3"),
        ("({ then(resolve) { resolve(3) } })", "3"),
    ] {
        assert_eq!(run(source).value(), value, "{source}");
    }
    let nothing = run("const a = 1;");
    assert!(nothing.value.is_none() && nothing.error.is_none(), "{nothing:?}");
}

#[test]
fn a_pending_timer_does_not_keep_the_evaluation_alive() {
    let answer = run("setTimeout(() => console.log('late'), 60000); setInterval(() => {}, 5); return 'done'");
    assert_eq!((answer.value(), answer.stdout.as_str()), ("\"done\"", ""));
}

#[test]
fn timers_fire_in_order_while_the_program_awaits() {
    let source = "const log = []; const at = (ms, n) => setTimeout((x) => log.push(x), ms, n); at(20, 'b'); at(1, 'a'); at(30, 'c'); const gone = at(2, 'x'); clearTimeout(gone); \
        let n = 0; await new Promise((r) => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); r() } }, 1) }); await new Promise((r) => setTimeout(r, 40)); setImmediate(() => log.push('i')); await new Promise((r) => setTimeout(r, 1)); return [log.join(''), n]";
    assert_eq!(run(source).value(), "[\"abci\",3]");
}

#[test]
fn what_can_never_settle_is_a_deadlock_at_once() {
    let answer = run("await new Promise(() => {}); return 1");
    assert_eq!(answer.error().code, EvaluationCode::Deadlock);
}

#[test]
fn limits_of_time_end_the_program_whatever_it_catches_and_its_output_is_kept() {
    let source = "console.log('step 1 ok'); for (;;) { try { for (;;); } catch {} finally { continue } }";
    let answer = Program::new(source).limits(|limits| limits.timeout_ms = 150).run();
    assert_eq!((answer.error().code, answer.stdout.as_str()), (EvaluationCode::TimedOut, "step 1 ok\n"));
    let answer = Program::new(source).limits(|limits| limits.cpu_ms = 100).run();
    assert_eq!((answer.error().code, answer.error().limit.as_deref()), (EvaluationCode::CpuLimit, Some("cpuMs")));
    assert!(!answer.warned(WarningCode::LimitNear).is_empty());
    let answer = Program::new("const f = () => Promise.resolve().then(f); await f()").limits(|limits| limits.cpu_ms = 100).run();
    assert_eq!(answer.error().code, EvaluationCode::CpuLimit);
    let answer = Program::new("await new Promise((r) => setTimeout(r, 60000))").limits(|limits| limits.timeout_ms = 50).run();
    assert_eq!(answer.error().code, EvaluationCode::TimedOut);
}

#[test]
fn a_cancelled_program_says_what_it_was_waiting_for() {
    let answer = Program::new("return await items.get({})").host(|_, _| Reply::Cancel).run();
    assert_eq!(answer.error().code, EvaluationCode::Cancelled);
    assert!(answer.error().message.contains("items.get"), "{:?}", answer.error());
}

#[test]
fn words_of_a_guest_never_decide_how_it_ended() {
    for source in [
        "throw new Error('interrupted')",
        "const e = new Error('interrupted'); e.name = 'InternalError'; throw e",
        "throw new Error('Execution timed out')",
        "throw new Error('out of memory')",
        "throw null",
    ] {
        assert_eq!(run(source).error().code, EvaluationCode::GuestError, "{source}");
    }
}

#[test]
fn unhandled_rejections_and_uncaught_timer_errors_are_warnings() {
    let answer = run(
        "Promise.reject(new Error('lost')); const p = Promise.reject(1); p.catch(() => {}); setTimeout(() => { throw new TypeError('late') }, 1); await new Promise((r) => setTimeout(r, 10)); return 1",
    );
    let told = answer.warned(WarningCode::UnhandledRejection);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("Error: lost") && told[1].contains("TypeError: late"), "{told:?}");
}

#[test]
fn what_a_microtask_throws_and_nothing_catches_is_a_warning() {
    let answer = run("queueMicrotask(() => { throw new Error('micro') }); await null; return 5");
    assert_eq!(answer.value(), "5");
    assert_eq!(
        answer.warned(WarningCode::UnhandledRejection),
        ["a microtask threw and nothing caught it: Error: micro (line 1, column 34)"]
    );
    let answer = Program::new("queueMicrotask(() => { for (;;); }); await null; return 5").limits(|limits| limits.cpu_ms = 100).run();
    assert_eq!((answer.error().code, answer.warned(WarningCode::UnhandledRejection)), (EvaluationCode::CpuLimit, vec![]));
}

#[test]
fn deep_recursion_can_be_caught() {
    let answer = run(
        "function depth(n) { try { return depth(n + 1) } catch (e) { return n } } const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2)); return [depth(0) > 500, fib(15)]",
    );
    assert_eq!(answer.value(), "[true,610]");
    let answer = run("const f = () => f(); f()");
    assert_eq!(answer.error().name, "RangeError");
}

#[test]
fn usage_tells_cpu_and_the_peak_above_the_warm_realm() {
    let answer = run("let a = []; for (let i = 0; i < 100000; i++) a.push({ i }); a = null; return 1");
    assert!(answer.usage.cpu_ms > 0.0);
    assert!((1 << 20..64 << 20).contains(&answer.usage.peak_memory_bytes), "{:?}", answer.usage);
}

#[test]
fn a_kept_realm_keeps_its_names_and_gets_new_collections() {
    let mut worker = Worker::start();
    let kept = |source: &str| Program { keep: true, ..Program::new(source) };
    assert_eq!(worker.evaluate(&kept("let total = 1; function add(n) { total += n; return total } add(1)")).value(), "2");
    assert_eq!(worker.evaluate(&kept("throw new Error('x')")).error().code, EvaluationCode::GuestError);
    let mut other = kept("(async () => [add(1), typeof orders, typeof stock, await stock.level({})])()");
    other.collections = vec![("stock", vec!["level"])];
    assert_eq!(worker.evaluate(&other).value(), r#"[3,"undefined","object",{}]"#);
}

#[test]
fn a_kept_realm_refuses_what_any_program_is_refused_and_shows_where() {
    let mut worker = Worker::start();
    let kept = |source: &str| Program { keep: true, ..Program::new(source) };
    assert_eq!(worker.evaluate(&kept("let total = 1; total")).value(), "1");
    let answer = worker.evaluate(&kept("total = 2;\nconst x;"));
    let error = answer.error();
    let plain = run("total = 2;\nconst x;").error.unwrap();
    assert_eq!((error.code, &error.message, error.line), (EvaluationCode::SyntaxError, &plain.message, Some(2)));
    assert_eq!(error.excerpt.as_deref(), Some("2 | const x;\n  |        ^"));
    assert_eq!(worker.evaluate(&kept("total")).value(), "1", "nothing of it ran");
    assert_eq!(worker.evaluate(&kept("let total = 3; total")).value(), "3");
}

#[test]
fn a_kept_realm_refuses_a_name_whose_value_would_be_lost() {
    let mut worker = Worker::start();
    let kept = |source: &str| Program { keep: true, ..Program::new(source) };
    for (source, name, line, column) in [
        ("const a = 1;\nconst orders = 5;", "orders", 2, 7),
        ("let { items } = { items: 1 }; return items", "items", 1, 7),
        ("function orders() {}", "orders", 1, 10),
        ("let inputs = 3", "inputs", 1, 5),
        ("let undefined = 3", "undefined", 1, 5),
        ("class NaN {}", "NaN", 1, 7),
    ] {
        let answer = worker.evaluate(&kept(source));
        let error = answer.error();
        assert_eq!((error.code, error.line, error.column), (EvaluationCode::SyntaxError, Some(line), Some(column)), "{error:?}");
        assert!(error.message.starts_with(&format!("'{name}' cannot be declared in a vm")), "{error:?}");
    }
    assert_eq!(worker.evaluate(&kept("(() => { const orders = 5; return orders })()")).value(), "5");
    assert_eq!(worker.evaluate(&kept("let console = 4; console")).value(), "4");
    assert_eq!(run("const orders = 5; orders").value(), "5");
}

#[test]
fn a_host_call_that_is_read_and_not_awaited_is_warned_of() {
    let answer = run("const list = orders.list({});\nreturn { count: list.length, all: await list }");
    assert_eq!(answer.value(), "{\"all\":{}}");
    let [warned] = &answer.warned(WarningCode::PromiseRead)[..] else { panic!("{answer:?}") };
    assert!(warned.starts_with("list is the promise of orders.list(…), so list.length is undefined (line 2, column 17)"), "{warned}");
    for other in [
        "const list = things.list({}); list.length",
        "const list = orders.lst; list.length",
        "const n = Math.max(1); n.length",
        "const p = orders.list({}); ({ a: p.x } = { a: 5 }); p.x",
        "const p = orders.list({}); ({ a: p.x = 3 } = {}); p.x",
        "{ const Math = orders.list({}); await Math } Math.PI",
        "{ const inputs = orders.list({}); await inputs } inputs.x",
    ] {
        assert!(run(other).warned(WarningCode::PromiseRead).is_empty(), "{other}");
    }
    let clashing = Program { collections: vec![("JSON", vec!["parse"])], ..Program::new("const o = JSON.parse('{\"a\":1}'); o.a") };
    assert!(clashing.run().warned(WarningCode::PromiseRead).is_empty(), "it is the JSON of the language");
    let long = run(&format!("const p = orders.list({{}}); p /*{}*/ .x", "x".repeat(5_000)));
    assert!(long.warned(WarningCode::PromiseRead)[0].ends_with("write const p = await orders.list(…)"), "{long:?}");
}

/// Texts that the parser and the engine cut up in different ways, so that what follows closes
/// the function that the engine is to compile.
const CLOSING: [&str; 3] = [
    "var x=1,y=1\nx<!--y; `\n}); RUNS; (async function(){ // `",
    "with({}){}\nawait /1; '/; }); RUNS; (async function(){ //'",
    "var y=010;await /1; '/; }); RUNS; (async function(){ //'",
];

#[test]
fn a_text_that_closes_the_function_around_it_is_compiled_and_not_run() {
    for text in CLOSING {
        let source = text.replace("RUNS", "console.log('ran'); throw new Error('ran')");
        let checked = Program { parse_only: true, ..Program::new(source) }.run();
        assert!(checked.stdout.is_empty() && checked.error.is_none_or(|error| error.code == EvaluationCode::SyntaxError), "{text}");
    }
    let mut worker = Worker::start();
    let kept = |source: &str| Program { keep: true, ..Program::new(source) };
    let answer = worker.evaluate(&kept("let x=1; x<!--x; `\n}); orders.list(); globalThis.left = 1; (async function(){ // `"));
    assert!(answer.calls.is_empty(), "{answer:?}");
    assert_eq!(worker.evaluate(&kept("typeof left")).value(), "\"undefined\"");
}

#[test]
fn a_class_right_behind_a_directive_outlives_its_program_in_a_vm() {
    for source in ["'use strict';class A{}; return 1", "'use strict'/*c*/;class A{};export {A}; export default 1"] {
        let mut worker = Worker::start();
        let kept = |source: &str| Program { keep: true, ..Program::new(source) };
        let answer = worker.evaluate(&kept(source));
        assert!(answer.error.is_none(), "{source}: {answer:?}");
        assert_eq!(worker.evaluate(&kept("typeof A")).value(), "\"function\"", "{source}");
    }
}

#[test]
fn a_vm_whose_global_object_a_program_closed_says_so() {
    let mut worker = Worker::start();
    let kept = |source: &str| Program { keep: true, ..Program::new(source) };
    worker.evaluate(&kept("Object.freeze(globalThis); 1"));
    let answer = worker.evaluate(&kept("1"));
    let error = answer.error();
    assert_eq!((error.code, error.name.as_str()), (EvaluationCode::GuestError, "TypeError"), "{error:?}");
    assert!(error.message.contains("a program before this one closed it") && error.message.ends_with("make a new vm"), "{error:?}");
}

#[test]
fn a_check_says_what_the_engine_says_and_runs_nothing() {
    let check = |source: &str| Program { parse_only: true, ..Program::new(source) }.run();
    for source in
        ["1 + 1", "console.log('ran'); return missing", "async () => { throw 1 }", "{ a: 1 }", "throw 1", "#!/usr/bin/env node\n1"]
    {
        let answer = check(source);
        assert_eq!((answer.value(), answer.stdout.as_str()), ("null", ""), "{source}");
    }
    for (source, line, column) in [("let x;\nlet x;", 2, 6), ("a = 1;\nbreak", 2, 6), ("export { b }", 1, 10), ("const é = /(/;\n1", 1, 11)]
    {
        let answer = check(source);
        let error = answer.error();
        assert_eq!((error.code, error.line, error.column), (EvaluationCode::SyntaxError, Some(line), Some(column)), "{source}: {error:?}");
        assert!(error.excerpt.is_some(), "{source}");
    }
}

#[test]
fn inputs_are_frozen_through_and_through() {
    let program = Program::new(
        "'use strict'; const r = []; for (const f of [() => { inputs.a = 1 }, () => { inputs.list[0].x = 1 }, () => { inputs.list.push(1) }]) { try { f(); r.push('done') } catch (e) { r.push(e.name) } } return [r, inputs]",
    );
    let answer = Program { inputs: Some("{\"list\":[{\"x\":0}]}"), ..program }.run();
    assert_eq!(answer.value(), r#"[["TypeError","TypeError","TypeError"],{"list":[{"x":0}]}]"#);
}

/// Not a test by itself: the process of the one below.
#[test]
#[ignore = "ends its process; run by the test of the heap limit"]
fn a_program_that_passes_its_heap_limit() {
    let answer = Program::new("console.log('step 1 ok'); const a = []; for (;;) a.push('x'.repeat(1000) + a.length)")
        .limits(|limits| limits.heap_bytes = 4 << 20)
        .run();
    panic!("it ended by itself: {answer:?}");
}

#[test]
fn the_heap_limit_ends_the_process_with_its_own_code() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "session::tests::ends::a_program_that_passes_its_heap_limit", "--ignored"])
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(i32::from(brig_protocol::control::exit::HEAP_LIMIT)), "{child:?}");
}
