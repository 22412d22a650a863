use super::*;

fn printed(source: &str) -> String {
    run(source).stdout
}

#[test]
fn the_console_shows_nested_values() {
    assert_eq!(
        printed("console.log({ user: { tags: ['a', 'b', { deep: 42 }] } }, [1, 'x'])"),
        "{ user: { tags: [ 'a', 'b', { deep: 42 } ] } } [ 1, 'x' ]\n"
    );
    assert_eq!(
        printed("console.log('plain', 1, null, undefined, 10n, Symbol('sy'), true, -0, NaN)"),
        "plain 1 null undefined 10n Symbol(sy) true -0 NaN\n"
    );
    assert_eq!(
        printed("console.log(new Map([['k', 'v']]), new Set([9]), new Date(0), /a/g, new Uint8Array(2), Promise.resolve(1))"),
        "Map(1) { 'k' => 'v' } Set(1) { 9 } 1970-01-01T00:00:00.000Z /a/g Uint8Array(2) [ 0, 0 ] Promise { 1 }\n"
    );
    assert_eq!(
        printed("class A { x = 1 } console.log(new A(), class B {}, function f() {}, () => {}, Object.create(null), [,1], Object('s'))"),
        "A { x: 1 } [class B] [Function: f] [Function (anonymous)] [Object: null prototype] {} [ <1 empty item>, 1 ] [String: 's']\n"
    );
    assert!(printed("console.log(new Error('bad thing'))").starts_with("Error: bad thing\n    at program:1:"));
    assert_eq!(printed("console.log({ [Symbol('s')]: 1, 'a-b': 2, get g() { return 1 } })"), "{ 'a-b': 2, g: [Getter], [Symbol(s)]: 1 }\n");
}

#[test]
fn what_web_apis_keep_to_themselves_is_shown_and_many_numbers_share_lines() {
    assert_eq!(
        printed("console.log(new URL('http://a/b'), [new URLSearchParams({ a: 'x y' })], AbortSignal.abort())"),
        "URL { href: 'http://a/b' } [ URLSearchParams { 'a=x+y' } ] AbortSignal { aborted: true }\n"
    );
    let forged = "console.log(Object.create(URL.prototype)); Object.defineProperty(URL.prototype, 'href', { get: () => 'no' }); console.log(new URL('http://a/'))";
    assert_eq!(printed(forged), "URL {}\nURL { href: 'http://a/' }\n");
    assert_eq!(printed("console.log(Array.from({ length: 130 }, (_, i) => i))").lines().count(), 8);
}

#[test]
fn format_specifiers_are_filled_in() {
    assert_eq!(
        printed("console.log('n=%d s=%s %i %f %j %o %% %c.', 7, 'ok', 4.7, 1.5, { a: 1 }, [1], 'css', 'rest')"),
        "n=7 s=ok 4 1.5 { a: 1 } [ 1 ] % . rest\n"
    );
    assert_eq!(printed("console.log('100%', 1, '%s')"), "100% 1 %s\n");
}

#[test]
fn levels_go_to_their_streams() {
    let answer = run("console.log('l'); console.info('i'); console.debug('d'); console.warn('w'); console.error('e'); console.trace('t')");
    assert_eq!(answer.stdout, "l\ni\nd\n");
    assert!(answer.stderr.starts_with("w\ne\nTrace: t\n"), "{}", answer.stderr);
}

#[test]
fn the_rest_of_the_console_works() {
    assert_eq!(
        printed(
            "console.count(); console.count(); console.count('x'); console.group('g'); console.log('in\\nside'); console.groupEnd(); console.log('out'); console.assert(true, 'no'); console.dir({ a: 1 })"
        ),
        "default: 1\ndefault: 2\nx: 1\ng\n  in\n  side\nout\n{ a: 1 }\n"
    );
    assert_eq!(run("console.assert(false, 'x %s', 1)").stderr, "Assertion failed: x 1\n");
    assert_eq!(
        printed("console.table([{ a: 1 }, { a: 2, b: 'x' }])"),
        "┌─────────┬───┬─────┐\n│ (index) │ a │ b   │\n├─────────┼───┼─────┤\n│ 0       │ 1 │     │\n│ 1       │ 2 │ 'x' │\n└─────────┴───┴─────┘\n"
    );
    assert!(printed("console.time('t'); console.timeEnd('t')").starts_with("t: "));
}

#[test]
fn hostile_values_are_shown_without_running_them() {
    let source = "const o = { get a() { throw 1 }, toString() { throw 1 }, toJSON() { throw 1 } }; o.self = o; let p = {}; for (let i = 0; i < 10000; i++) p = new Proxy(p, { get() { throw 1 }, ownKeys() { throw 1 }, getPrototypeOf() { throw 1 } }); console.log(o, p, Object.create(new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } }))); return 1";
    let answer = run(source);
    assert_eq!(answer.value(), "1");
    assert!(
        answer.stdout.contains("<ref *1>") && answer.stdout.contains("[Circular *1]") && answer.stdout.contains("[Getter]"),
        "{}",
        answer.stdout
    );
}

#[test]
fn console_output_is_cut_at_its_limit_with_a_marker_and_the_flag() {
    let answer = Program::new("for (let i = 0; i < 1000; i++) console.log('line ' + i); console.error('other')")
        .limits(|limits| limits.console_bytes = 500)
        .run();
    assert_eq!(answer.truncated, [Stream::Stdout]);
    assert!(answer.stdout.len() <= 500, "{}", answer.stdout.len());
    assert!(answer.stdout.contains("[cut: limit consoleBytes is 500"), "{}", answer.stdout);
    assert_eq!(answer.stderr, "other\n");
    assert!(answer.warned(WarningCode::LimitNear)[0].contains("consoleBytes"));
}

#[test]
fn math_random_differs_with_the_seed_and_looks_like_the_built_in() {
    let draw = |seed: u8| {
        thread::spawn(move || {
            let realm = warm(&Ceilings::default()).unwrap();
            reseed(&realm, &[seed; 64]);
            realm.context.with(|ctx| ctx.eval::<Vec<f64>, _>("Array.from({ length: 4 }, () => Math.random())").unwrap())
        })
        .join()
        .unwrap()
    };
    let mut seen: Vec<Vec<f64>> = (0..20).map(draw).collect();
    assert!(seen.iter().flatten().all(|number| (0.0..1.0).contains(number)));
    seen.dedup();
    assert_eq!(seen.len(), 20);
    assert_eq!(draw(3), draw(3));
    let shape = run(
        "const d = Object.getOwnPropertyDescriptor(Math, 'random'); return [d.writable, d.enumerable, d.configurable, d.value.name, d.value.length]",
    );
    assert_eq!(shape.value(), r#"[true,false,true,"random",0]"#);
}

#[test]
fn a_worker_that_has_rehearsed_is_as_one_that_has_not() {
    let seen = "console.log(1); return [Object.getOwnPropertyNames(globalThis), typeof inputs, new Error('x').stack, await items.get(7)]";
    let plain = Program::new(seen).run();
    let mut worker = Worker::start();
    worker.rehearse();
    worker.rehearse();
    let rehearsed = worker.evaluate(&Program::new(seen));
    assert_eq!((rehearsed.value(), &rehearsed.stdout), (plain.value(), &plain.stdout));
    assert_eq!((rehearsed.calls, rehearsed.events), (plain.calls, plain.events), "the rehearsal is heard by nobody");
}

#[test]
fn a_realm_that_a_program_has_run_in_is_not_rehearsed() {
    let mut worker = Worker::start();
    let kept = |source: &str| Program { keep: true, ..Program::new(source) };
    worker.evaluate(&kept("globalThis.ran = 0; Array.prototype.map = () => { ran++; throw 1 }; 1"));
    worker.rehearse();
    assert_eq!(worker.evaluate(&kept("ran")).value(), "0");
    let waiting = Program::new("return await items.get(1)").host(|_, _| Reply::Echo);
    worker.rehearse();
    assert_eq!(worker.evaluate(&waiting).value(), "1");
}

#[test]
fn touching_a_realm_leaves_no_trace() {
    const SURFACE: &str = "(() => { const seen = new Set(); const out = []; const walk = (o, p, d) => { if (d > 3 || o === null || (typeof o !== 'object' && typeof o !== 'function') || seen.has(o)) return; seen.add(o); for (const k of Reflect.ownKeys(o)) { out.push(p + '.' + String(k)); const s = Object.getOwnPropertyDescriptor(o, k); if ('value' in s) walk(s.value, p + '.' + String(k), d + 1) } }; walk(globalThis, '', 0); return out.join('\\n') })()";
    thread::Builder::new()
        .stack_size(16 << 20)
        .spawn(|| {
            let realm = warm(&Ceilings::default()).unwrap();
            let surface = || realm.context.with(|ctx| ctx.eval::<String, _>(SURFACE).unwrap());
            let before = surface();
            touch(&realm).unwrap();
            assert_eq!(surface(), before);
            assert!(before.lines().count() > 500);
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn the_guest_has_no_shared_memory_and_no_way_to_modules() {
    let answer = run(
        "return [typeof SharedArrayBuffer, typeof Atomics, typeof require, typeof process, typeof std, typeof os, typeof fetch, typeof queueMicrotask, typeof structuredClone]",
    );
    assert!(
        answer.value().starts_with(r#"["undefined","undefined","undefined","undefined","undefined","undefined","undefined","function""#),
        "{answer:?}"
    );
}

#[test]
fn web_apis_and_the_zone_of_the_evaluation_are_there_in_an_evaluation() {
    let source = "const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode('abc'));
        const late = await new Promise((done) => AbortSignal.timeout(1).addEventListener('abort', (e) => done(e.target.reason.name)));
        return [new Date(0).toLocaleTimeString('en-GB'), new Uint8Array(sum).toHex().slice(0, 8), late, performance.now() < 60000]";
    let mut program = Program::new(source);
    program.time_zone = Some("Asia/Tokyo");
    assert_eq!(program.run().value(), r#"["09:00:00","ba7816bf","TimeoutError",true]"#);
    program.time_zone = Some("Mars/Base");
    let answer = program.run();
    assert!(answer.error().message.contains("no time zone \"Mars/Base\""), "{answer:?}");
}

#[test]
fn a_million_values_can_be_spread() {
    for (program, value) in [
        ("Math.max(...Array.from({ length: 1e6 }, (_, i) => i))", "999999"),
        ("const all = []; all.push(...new Array(1e6).fill(1)); all.length", "1000000"),
        ("Math.min.apply(null, new Array(1e6).fill(3)) + Reflect.apply(Math.max, null, new Array(1e6).fill(4))", "7"),
        ("String.fromCharCode(...new Uint8Array(1e6)).length", "1000000"),
        ("((...all) => all.length)(...new Array(1e6).fill(1))", "1000000"),
        ("class A { constructor(...all) { this.n = all.length } } new A(...new Array(1e6).fill(1)).n", "1000000"),
        ("await (async (...all) => all.length)(...new Array(5e5).fill(1))", "500000"),
        ("(function (a, b) { a = 5; return arguments[0] + arguments.length })(...new Array(1e5).fill(1))", "100005"),
        ("new Proxy(Math.max, {})(...new Array(1e6).fill(1))", "1"),
    ] {
        assert_eq!(run(program).value(), value, "{program}");
    }
}

#[test]
fn a_spread_beyond_all_measure_ends_with_an_error() {
    assert_eq!(run("Math.max.apply(null, { length: 1e9 })").error().name, "RangeError");
    // A bound function puts its arguments on the stack, and looks at the room first.
    assert_eq!(run("Math.max.bind(null)(...new Array(1e6).fill(1))").error().name, "RangeError");
}
