//! The web APIs as a program sees them.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::cell::Cell;

use rquickjs::{Context, Runtime, Value};

thread_local! {
    static COUNTER: Cell<u8> = const { Cell::new(0) };
}

/// Entropy that never repeats within a test, which is all that tests need.
fn counting(bytes: &mut [u8]) {
    for byte in bytes {
        let next = COUNTER.get().wrapping_mul(167).wrapping_add(13);
        COUNTER.set(next);
        *byte = next;
    }
}

/// Installs the APIs in a fresh realm, runs the body of an async function and gives what it
/// returned as JSON, or `threw NAME: MESSAGE`.
fn run(body: &str) -> String {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| {
        ctx.eval::<(), _>("globalThis.timers = []; globalThis.setTimeout = (f, ms) => { timers.push([ms, f]); };").unwrap();
        super::install(&ctx, counting).unwrap();
        let source = format!(
            "globalThis.out = 'pending'; globalThis.settle = Function.prototype.call.bind(Promise.prototype.then);
            settle((async () => {{ {body} }})(), (v) => {{ out = JSON.stringify(v) ?? 'undefined'; }},
            (e) => {{ out = 'threw ' + e.name + ': ' + e.message; }})"
        );
        if ctx.eval::<Value<'_>, _>(source).is_err() {
            panic!("{:?}", ctx.catch().as_exception().map(ToString::to_string));
        }
        while ctx.execute_pending_job() {}
        ctx.globals().get::<_, String>("out").expect("a result")
    })
}

fn check(cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        assert_eq!(&run(body), expected, "{body}");
    }
}

#[test]
fn urls_are_taken_apart_as_browsers_do() {
    check(&[
        (
            "const u = new URL('../up?q=1#top', 'https://ann:pw@Shop.example:8443/a/b/c');
             return [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash]",
            r##"["https://ann:pw@shop.example:8443/a/up?q=1#top","https://shop.example:8443","https:","ann","pw","shop.example:8443","shop.example","8443","/a/up","?q=1","#top"]"##,
        ),
        ("return new URL('HTTP://EXAMPLE.com:80/%7Efoo/../ü').href", r#""http://example.com/%C3%BC""#),
        ("return new URL('http://0x7f.1/').host", r#""127.0.0.1""#),
        ("return new URL('http://[2001:DB8::0:1]/').host", r#""[2001:db8::1]""#),
        ("return new URL('http://straße.example/').host", r#""xn--strae-oqa.example""#),
        ("return new URL('mailto:a@b.example').pathname", r#""a@b.example""#),
        ("return new URL('data:text/plain,hi there').origin", r#""null""#),
        ("return new URL('\\t https://x.example/a\\nb ').href", r#""https://x.example/ab""#),
        ("return new URL('//cdn.example/x', 'https://a.example/').href", r#""https://cdn.example/x""#),
        ("return [URL.canParse('/x'), URL.canParse('/x', 'http://a.example'), URL.parse('::')]", "[false,true,null]"),
        ("return new URL('nothing')", "threw TypeError: Invalid URL"),
        ("return new URL('http://a b/')", "threw TypeError: Invalid URL"),
        ("return new URL('http://x.example:99999/')", "threw TypeError: Invalid URL"),
    ]);
}

#[test]
fn url_setters_change_what_they_name_and_ignore_what_does_not_fit() {
    check(&[
        (
            "const u = new URL('https://x.example/a'); u.port = '443'; const p = u.port; u.port = '8080'; u.hash = 'h'; u.search = 'a=b c'; u.pathname = 'p q'; return [p, u.href]",
            r##"["","https://x.example:8080/p%20q?a=b%20c#h"]"##,
        ),
        ("const u = new URL('https://x.example/'); u.protocol = 'mailto'; u.host = ''; return u.href", r#""https://x.example/""#),
        (
            "const u = new URL('https://x.example/'); u.username = 'a:b'; u.hostname = 'y.example'; return u.href",
            r#""https://a%3Ab@y.example/""#,
        ),
        ("const u = new URL('https://x.example/'); u.href = 'bad'; return u.href", "threw TypeError: Invalid URL"),
    ]);
}

#[test]
fn search_params_and_their_url_follow_each_other() {
    check(&[
        (
            "const u = new URL('https://x.example/?a=1&a=2'); const p = u.searchParams; p.append('k', 'ä &='); p.delete('a', '1'); const one = u.href; u.search = '?z=9'; return [one, p.get('z'), p.has('a'), p.size, p === u.searchParams]",
            r#"["https://x.example/?a=2&k=%C3%A4+%26%3D","9",false,1,true]"#,
        ),
        ("return [...new URLSearchParams('?a=1&b=%20x+y&a=%F0%9F%98%80&&c')]", r#"[["a","1"],["b"," x y"],["a","😀"],["c",""]]"#),
        ("return new URLSearchParams({ q: 'x y', n: 5 }).toString()", r#""q=x+y&n=5""#),
        ("return new URLSearchParams([['b', '2'], ['a', '1'], ['b', '1']]).toString()", r#""b=2&a=1&b=1""#),
        ("const p = new URLSearchParams('b=2&a=1&b=1'); p.sort(); p.set('b', 'x'); return `${p}`", r#""a=1&b=x""#),
        (
            "return [...new URLSearchParams('a=1').keys()].concat(Object.keys(Object.fromEntries(new URLSearchParams('c=1'))))",
            r#"["a","c"]"#,
        ),
        ("return new URLSearchParams([['only']])", "threw TypeError: URLSearchParams: each query pair must be a [name, value] tuple"),
    ]);
}

#[test]
fn text_becomes_bytes_and_text_again() {
    check(&[
        ("return [...new TextEncoder().encode('h€😀')]", "[104,226,130,172,240,159,152,128]"),
        ("return [...new TextEncoder().encode('\\ud800x')]", "[239,191,189,120]"),
        (
            "const b = new Uint8Array(5); return [new TextEncoder().encodeInto('a😀b', b), [...b]]",
            r#"[{"read":3,"written":5},[97,240,159,152,128]]"#,
        ),
        ("return new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff, 0x62, 0xe2, 0x82]))", "\"a\u{fffd}b\u{fffd}\""),
        ("return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])).length", "2"),
        (
            "return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xc0]))",
            "threw TypeError: The encoded data was not valid for encoding utf-8",
        ),
        (
            "const d = new TextDecoder(); let t = ''; for (const b of [0xef, 0xbb, 0xbf, 0xf0, 0x9f, 0x98, 0x80, 0xe2]) t += d.decode(new Uint8Array([b]), { stream: true }); return t + d.decode()",
            "\"😀\u{fffd}\"",
        ),
        ("return new TextDecoder('utf-16').decode(new Uint8Array([0xff, 0xfe, 0x3d, 0xd8, 0x00, 0xde, 0x00, 0xdc]))", "\"😀\u{fffd}\""),
        ("return new TextDecoder('utf-16be').decode(new DataView(new Uint8Array([9, 0, 0x41, 9]).buffer, 1, 2))", r#""A""#),
        (
            "const d = new TextDecoder('ISO-8859-1'); return [d.encoding, d.decode(new Uint8Array([0x80, 0xe9]))]",
            r#"["windows-1252","€é"]"#,
        ),
        (
            "return new TextDecoder('shift_jis')",
            "threw RangeError: TextDecoder knows utf-8, utf-16le, utf-16be and windows-1252 (latin1, ascii), not \"shift_jis\"",
        ),
        ("return new TextDecoder().decode('text')", "threw TypeError: TextDecoder.decode needs an ArrayBuffer or a view on one"),
    ]);
}

#[test]
fn base64_of_the_engine_is_that_of_browsers() {
    check(&[
        ("return [btoa('hi\\xff'), atob(' aG k= '), atob('aGk')]", r#"["aGn/","hi","hi"]"#),
        (
            "return ['a', 'a===', 'a*b='].map((s) => { try { return atob(s); } catch (e) { return e.name; } })",
            r#"["InvalidCharacterError","InvalidCharacterError","InvalidCharacterError"]"#,
        ),
        ("try { btoa('€'); } catch (e) { return [e.name, e.code, e instanceof DOMException]; }", r#"["InvalidCharacterError",5,true]"#),
    ]);
}

#[test]
fn structured_clone_keeps_kinds_and_cycles() {
    check(&[
        (
            "const a = { list: [1, , 3], date: new Date(5), re: /x/gi, big: 10n, box: Object('s'), view: new Uint16Array([1, 2, 3]).subarray(1) }; a.self = a;
             const b = structuredClone(a);
             return [b.self === b, b !== a, 1 in b.list, b.list.length, b.date.getTime(), String(b.re), b.big === 10n, b.box instanceof String, [...b.view], b.view.buffer.byteLength]",
            r#"[true,true,false,3,5,"/x/gi",true,true,[2,3],6]"#,
        ),
        (
            "const m = structuredClone(new Map([['k', new Set([1, 2])]])); return [m instanceof Map, [...m.get('k')]]",
            "[true,[1,2]]",
        ),
        (
            "class Own extends TypeError {} const e = structuredClone(new Own('m', { cause: { c: 1 } })); return [e.constructor === Error, e.message, e.cause, 'stack' in e]",
            r#"[false,"m",{"c":1},true]"#,
        ),
        ("class P { constructor() { this.x = 1; } get y() { return 2; } } const p = structuredClone(new P()); return [p.constructor === Object, p]", r#"[true,{"x":1}]"#),
        ("const o = JSON.parse('{\"__proto__\": {\"x\": 1}}'); const c = structuredClone(o); return [Object.keys(c), c.x === undefined]", r#"[["__proto__"],true]"#),
        (
            "const buffer = new ArrayBuffer(8); const view = new Uint8Array(buffer, 2, 3); view[0] = 7; const out = structuredClone({ view }, { transfer: [buffer] }); return [buffer.byteLength, out.view[0], out.view.byteOffset, view.length]",
            "[0,7,2,0]",
        ),
    ]);
    for what in ["() => 1", "Symbol('s')", "new Proxy({}, {})", "Promise.resolve()", "new WeakMap()", "new URL('a:b')"] {
        let body = format!("try {{ structuredClone([{what}]); }} catch (e) {{ return [e.name, e.code, e instanceof DOMException]; }}");
        assert_eq!(run(&body), r#"["DataCloneError",25,true]"#, "{what}");
    }
}

#[test]
fn a_failed_transfer_leaves_the_buffer_alone() {
    check(&[(
        "const b = new ArrayBuffer(4); try { structuredClone({ b, f() {} }, { transfer: [b] }); } catch (e) { return [e.name, b.byteLength]; }",
        r#"["DataCloneError",4]"#,
    )]);
}

#[test]
fn aborts_reach_listeners_once_with_their_reason() {
    check(&[
        (
            "const c = new AbortController(); const seen = []; const s = AbortSignal.any([new AbortController().signal, c.signal]);
             s.addEventListener('abort', (e) => seen.push(e.type, e.target === s, e.isTrusted)); c.signal.onabort = function () { seen.push(this === c.signal); };
             c.abort('why'); c.abort('again'); return [seen, s.aborted, s.reason]",
            r#"[[true,"abort",true,true],true,"why"]"#,
        ),
        ("const c = new AbortController(); c.abort(); try { c.signal.throwIfAborted(); } catch (e) { return [e.name, e.code, e === c.signal.reason]; }", r#"["AbortError",20,true]"#),
        ("const s = AbortSignal.timeout(50); const [ms, fire] = timers[0]; const before = s.aborted; fire(); return [ms, before, s.aborted, s.reason.name]", r#"[50,false,true,"TimeoutError"]"#),
        ("return new AbortSignal()", "threw TypeError: AbortSignal is made by AbortController, AbortSignal.abort(), AbortSignal.timeout() or AbortSignal.any()"),
    ]);
}

#[test]
fn event_targets_dispatch_in_order_and_survive_listeners_that_throw() {
    check(&[
        (
            "const t = new EventTarget(); const seen = []; const f = () => seen.push('f');
             t.addEventListener('x', f, { once: true }); t.addEventListener('x', f, { once: true });
             t.addEventListener('x', { handleEvent(e) { seen.push(e.detail); e.preventDefault(); } });
             t.addEventListener('x', () => { throw new Error('ignored'); }); t.addEventListener('x', () => seen.push('last'));
             const go = t.dispatchEvent(new CustomEvent('x', { detail: 5, cancelable: true })); t.dispatchEvent(new Event('x')); return [seen, go]",
            r#"[["f",5,"last",null,"last"],false]"#,
        ),
        ("const t = new EventTarget(); const c = new AbortController(); let n = 0; t.addEventListener('x', () => n++, { signal: c.signal }); t.dispatchEvent(new Event('x')); c.abort(); t.dispatchEvent(new Event('x')); return n", "1"),
    ]);
}

#[test]
fn digests_are_those_of_the_standards() {
    check(&[
        (
            "return new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode('abc'))).toHex()",
            r#""a9993e364706816aba3e25717850c26c9cd0d89d""#,
        ),
        (
            "return new Uint8Array(await crypto.subtle.digest({ name: 'sha-256' }, new ArrayBuffer(0))).toHex()",
            r#""e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#,
        ),
        (
            "const b = await crypto.subtle.digest('SHA-384', new Uint8Array(3)); return [b instanceof ArrayBuffer, b.byteLength]",
            "[true,48]",
        ),
        ("return (await crypto.subtle.digest('SHA-512', new DataView(new ArrayBuffer(2)))).byteLength", "64"),
        (
            "return crypto.subtle.digest('MD5', new Uint8Array())",
            "threw NotSupportedError: crypto.subtle.digest knows SHA-1, SHA-256, SHA-384 and SHA-512, not \"MD5\"",
        ),
        (
            "return crypto.subtle.digest('SHA-256', 'text')",
            "threw TypeError: crypto.subtle.digest needs an ArrayBuffer or a view on one; use new TextEncoder().encode(text) for text",
        ),
    ]);
}

#[test]
fn random_values_fill_integer_arrays_only() {
    check(&[
        ("const a = new Uint16Array(4); return [crypto.getRandomValues(a) === a, new Set(a).size > 1]", "[true,true]"),
        (
            "const a = new Uint8Array(6); crypto.getRandomValues(a.subarray(2, 4)); return [a[0], a[1], a[4], a[5], a[2] !== a[3]]",
            "[0,0,0,0,true]",
        ),
        (
            "return crypto.getRandomValues(new Float64Array(1))",
            "threw TypeMismatchError: crypto.getRandomValues needs a typed array of integers",
        ),
        (
            "return crypto.getRandomValues(new Uint8Array(65537))",
            "threw QuotaExceededError: crypto.getRandomValues gives at most 65536 bytes a call, not 65537",
        ),
        (
            "const id = crypto.randomUUID(); return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), id !== crypto.randomUUID()]",
            "[true,true]",
        ),
    ]);
}

#[test]
fn performance_starts_with_the_evaluation() {
    super::begin_evaluation();
    check(&[
        ("const a = performance.now(); return [a >= 0, performance.now() >= a, performance.timeOrigin > 1.6e12]", "[true,true,true]"),
        (
            "performance.mark('a', { startTime: 5 }); performance.mark('b', { startTime: 9 }); const m = performance.measure('m', 'a', 'b'); return [m.duration, performance.getEntriesByType('mark').length, performance.getEntriesByName('m').length]",
            "[4,2,1]",
        ),
        ("return performance.measure('m', 'missing')", "threw SyntaxError: The performance mark \"missing\" has not been set"),
    ]);
}

#[test]
fn a_guest_that_replaces_built_ins_changes_nothing_here() {
    let hostile = "
        for (const C of [Array, Map, Set, String, Object, Function, Promise, Uint8Array, ArrayBuffer, Date, RegExp, Object.getPrototypeOf(Uint8Array)])
            for (const name of Object.getOwnPropertyNames(C.prototype))
                if (name !== 'constructor') try { Object.defineProperty(C.prototype, name, { value() { throw new Error('caught ' + name); }, configurable: true }); } catch {}
        Object.defineProperty(Array.prototype, 0, { set() { throw new Error('caught'); }, configurable: true });
        JSON.stringify = JSON.parse = () => { throw new Error('caught'); };
        Object.defineProperty(ArrayBuffer, Symbol.species, { get() { throw new Error('caught'); } });
        Object.defineProperty(Object.prototype, 'value', { get() { throw new Error('caught'); }, configurable: true });";
    let body = "
        const u = new URL('https://x.example/?a=1'); u.searchParams.append('b', '2');
        const bytes = new TextEncoder().encode('hi'); const c = structuredClone({ n: 1, d: bytes });
        const signal = AbortSignal.any([AbortSignal.abort(7)]);
        delete Object.prototype.value; delete Array.prototype[0];
        return u.href + new TextDecoder().decode(c.d) + signal.reason;";
    let outcome = run(&format!(
        "const keep = JSON.stringify; {hostile} try {{ {body} }} finally {{ JSON.stringify = keep; delete Object.prototype.value; }}"
    ));
    assert_eq!(outcome, r#""https://x.example/?a=1&b=2hi7""#);
}
