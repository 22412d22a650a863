//! Locale-aware formatting against what ICU answers, and what is refused.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use rquickjs::{Context, Runtime, Value};

/// A realm with everything installed; what the source evaluates to, as JSON.
fn run(source: &str, goldens: &str) -> String {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| {
        super::install(&ctx).unwrap();
        ctx.globals().set("goldens", goldens).unwrap();
        let source = format!("try {{ JSON.stringify({source}) }} catch (e) {{ 'threw ' + e.name + ': ' + e.message }}");
        match ctx.eval::<Value<'_>, _>(source) {
            Ok(value) => value.as_string().map_or_else(|| "undefined".to_owned(), |s| s.to_string().unwrap()),
            Err(_) => panic!("{:?}", ctx.catch().as_exception().map(ToString::to_string)),
        }
    })
}

fn check(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(&run(source, ""), expected, "{source}");
    }
}

/// Runs every recorded case; gives those that differ, and how many were refused.
const COMPARE: &str = "(() => {
    const number = (v) => (typeof v === 'string' && v[0] === '#' ? Number(v.slice(1)) : v);
    const wrong = []; let refused = 0; const all = JSON.parse(goldens);
    for (const [kind, locale, options, value, expected] of all) {
        let got;
        try {
            if (kind === 'n' || kind === 'd') {
                const f = kind === 'n' ? new Intl.NumberFormat(locale, options) : new Intl.DateTimeFormat(locale, { timeZone: 'UTC', ...options });
                got = typeof expected === 'string' ? f.format(number(value)) : f.formatToParts(number(value));
            } else if (kind === 'r') got = new Intl.RelativeTimeFormat(locale, options).format(number(value[0]), value[1]);
            else if (kind === 'p') got = new Intl.PluralRules(locale, options).select(value);
            else if (kind === 't') got = new Intl.ListFormat(locale, options).format(value);
            else {
                const f = new Intl.Collator(locale, options);
                const sorted = value.slice().sort((a, b) => f.compare(a, b) || (a < b ? -1 : 1));
                got = [sorted, sorted.slice(1).map((w, i) => f.compare(sorted[i], w))];
            }
        } catch (e) {
            if (e instanceof RangeError && e.message.includes('not available')) { refused++; continue; }
            got = String(e);
        }
        if (JSON.stringify(got) !== JSON.stringify(expected)) wrong.push([kind, locale, options, value, got, expected]);
    }
    return { wrong, plenty: all.length >= 3000, fewRefused: refused < all.length / 20 };
})()";

#[test]
fn every_answer_is_what_icu_answers_or_a_refusal() {
    let outcome = run(COMPARE, include_str!("testdata/goldens.json"));
    assert_eq!(outcome, r#"{"wrong":[],"plenty":true,"fewRefused":true}"#);
}

#[test]
fn the_usual_calls_read_as_in_english_by_default() {
    check(&[
        ("(1234567.891).toLocaleString()", r#""1,234,567.891""#),
        ("(1e21).toLocaleString()", r#""1,000,000,000,000,000,000,000""#),
        ("12345678901234567890n.toLocaleString('de-DE')", r#""12.345.678.901.234.567.890""#),
        ("(1.005).toLocaleString('en-US', { style: 'currency', currency: 'usd' })", r#""$1.01""#),
        ("Intl.NumberFormat('en-US', { style: 'percent', minimumFractionDigits: 1 }).format(0.65)", r#""65.0%""#),
        ("new Float64Array([1234.5, 2]).toLocaleString('de-DE')", r#""1.234,5,2""#),
        (
            "(() => { const b = new ArrayBuffer(8, { maxByteLength: 8 }); const t = new Uint8Array(b, 4, 4); b.resize(4); \
             try { return t.toLocaleString() } catch (e) { return e.name } })()",
            r#""TypeError""#,
        ),
        ("[1, 2.5, [1e4]].toLocaleString('de-DE', { minimumFractionDigits: 1 })", r#""1,0,2,5,10.000,0""#),
        ("new Date(0).toLocaleString()", r#""1/1/1970, 12:00:00 AM""#),
        ("new Date(NaN).toLocaleDateString('en-US')", r#""Invalid Date""#),
        ("new Date(0).toLocaleDateString('sv-SE')", r#""1970-01-01""#),
        (
            "new Date('2026-03-01T03:30:00Z').toLocaleTimeString('en-GB', { timeZone: 'America/Sao_Paulo', hour: '2-digit', minute: '2-digit' })",
            r#""00:30""#,
        ),
        ("new Intl.DateTimeFormat('en-CA', { timeZone: 'America/Sao_Paulo' }).format(new Date('2026-03-01T03:30:00Z'))", r#""2026-03-01""#),
        ("['b', 'a', 'C', 'ä'].sort((x, y) => x.localeCompare(y))", r#"["a","ä","b","C"]"#),
        ("['v10', 'v9', 'v1'].sort(new Intl.Collator(undefined, { numeric: true }).compare)", r#"["v1","v9","v10"]"#),
        ("'résumé'.localeCompare('RESUME', 'en', { sensitivity: 'base' })", "0"),
        (
            "['iI'.toLocaleUpperCase('tr'), 'ß'.toLocaleUpperCase(), 'ΑΣ'.toLocaleLowerCase('el'), 'ά'.toLocaleUpperCase('el')]",
            r#"["İI","SS","ας","Α"]"#,
        ),
        ("new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day')", r#""yesterday""#),
        ("new Intl.ListFormat('es').format(['Ana', 'Inés'])", r#""Ana e Inés""#),
        ("new Intl.DisplayNames('de', { type: 'region' }).of('FR')", r#""Frankreich""#),
        (
            "['en', 'ru', 'sv'].map((tag) => new Intl.DisplayNames(tag, { type: 'currency' }).of('usd'))",
            r#"["US Dollar","доллар США","amerikansk dollar"]"#,
        ),
        (
            "[1234567.891, 12.5, 12.4, 12].map((n) => new Intl.NumberFormat('en', { roundingIncrement: 5, maximumFractionDigits: 0 }).format(n))",
            r#"["1,234,570","15","10","10"]"#,
        ),
        ("Intl.getCanonicalLocales(['EN-us', 'zh-hans-cn'])", r#"["en-US","zh-Hans-CN"]"#),
        ("Intl.NumberFormat.supportedLocalesOf(['de', 'xx-YY', 'ja-JP'])", r#"["de","ja-JP"]"#),
    ]);
}

#[test]
fn what_is_not_known_is_refused_with_what_is() {
    for (source, named) in [
        ("(1).toLocaleString('ar-EG')", "en-US, en-GB"),
        ("new Date(0).toLocaleString('de-LI')", "de-DE"),
        ("'a'.localeCompare('b', 'th')", "these are"),
        ("(1).toLocaleString('en', { style: 'currency', currency: 'DEM' })", "supportedValuesOf"),
        ("(1).toLocaleString('en', { numberingSystem: 'arab' })", "latn is"),
        ("new Date(0).toLocaleString('ja-JP-u-ca-japanese')", "gregory is"),
        ("new Intl.DateTimeFormat('en', { timeZone: 'Mars/Base' })", "Invalid time zone specified: Mars/Base"),
        ("new Intl.DateTimeFormat('en').formatRange(0, 1)", "one by one"),
        ("new Intl.DateTimeFormat('en', { timeZoneName: 'longGeneric' })", "short, long"),
        ("(1).toLocaleString('not a tag')", "Incorrect locale information"),
    ] {
        let outcome = run(source, "");
        assert!(outcome.starts_with("threw RangeError") && outcome.contains(named), "{source}: {outcome}");
    }
}

#[test]
fn the_zone_of_the_evaluation_is_used_where_none_is_named() {
    assert!(super::set_time_zone("+05:30"));
    assert!(!super::set_time_zone("Nowhere/City"));
    assert!(super::set_time_zone("asia/tokyo"));
    check(&[
        ("new Date(0).toLocaleString('en-GB')", r#""01/01/1970, 09:00:00""#),
        ("Intl.DateTimeFormat().resolvedOptions().timeZone", r#""Asia/Tokyo""#),
        ("new Date(0).toLocaleString('en-GB', { timeZone: 'UTC' })", r#""01/01/1970, 00:00:00""#),
        ("new Date(0).getHours()", "0"),
    ]);
    assert!(super::set_time_zone("UTC"));
}

#[test]
fn clocks_change_when_the_law_says() {
    check(&[
        (
            "['2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z'].map((t) => new Date(t).toLocaleTimeString('de-DE', { timeZone: 'Europe/Berlin' }))",
            r#"["01:59:59","03:00:00"]"#,
        ),
        (
            "[6e14, -6e14].map((t) => new Date(t).toLocaleTimeString('en-GB', { timeZone: 'America/New_York', timeStyle: 'short' }).length)",
            "[5,5]",
        ),
        (
            "new Date('2099-07-01T12:00:00Z').toLocaleString('en-US', { timeZone: 'America/New_York', timeZoneName: 'short', hour: 'numeric' })",
            "\"8 AM EDT\"",
        ),
        ("new Date('2026-07-01T00:00:00Z').toLocaleTimeString('en-US', { timeZone: '+05:45' })", "\"5:45:00 AM\""),
    ]);
}

#[test]
fn guests_that_replace_built_ins_do_not_reach_the_formatters() {
    let source = "(() => {
        const keep = JSON.stringify; const spared = { __proto__: null, constructor: 1, length: 1, toLocaleString: 1, toLocaleDateString: 1 };
        for (const C of [Array, Map, String, Number, Function, Date, RegExp])
            for (const name of Object.getOwnPropertyNames(C.prototype))
                if (!spared[name]) try { Object.defineProperty(C.prototype, name, { value() { throw new Error('caught ' + name); } }); } catch {}
        Object.defineProperty(Object.prototype, 'locale', { set() { throw new Error('caught'); }, configurable: true });
        Object.prototype.toJSON = () => 'caught'; Array.prototype.toJSON = Object.prototype.toJSON;
        JSON.stringify = () => { throw new Error('caught'); };
        const text = new Intl.NumberFormat('de-DE', { maximumFractionDigits: 1 }).format(1234.56) + (5).toLocaleString('en-US', { style: 'percent' })
            + new Date(0).toLocaleDateString('en-GB') + new Intl.ListFormat('en').formatToParts({ *[Symbol.iterator]() { yield 'a'; yield 'b'; } }).length;
        delete Object.prototype.toJSON; delete Array.prototype.toJSON; delete Object.prototype.locale; JSON.stringify = keep;
        return text;
    })()";
    assert_eq!(run(source, ""), r#""1.234,6500%01/01/19703""#);
}

#[test]
fn methods_taken_from_their_prototype_refuse_nothing_as_the_language_does() {
    for method in ["Array.prototype.toLocaleString", "String.prototype.localeCompare", "Date.prototype.toLocaleString"] {
        let told = run(&format!("(0, {method}).call(undefined)"), "");
        assert!(told.starts_with("threw TypeError"), "{method}: {told}");
    }
}
