//! Owns `console`: natively, so that nothing a guest replaces changes what it prints. It
//! never runs guest code to make text, format specifiers that ask for a number apart,
//! which only convert primitives.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    time::Duration,
};

use brig_protocol::client::Stream;
use rquickjs::{Ctx, Function, Object, Result, Value, function::Rest, object::Property};

use super::{
    inspect::{self, Reach},
    output::Output,
    table,
};
use crate::{
    engine::{
        Intrinsics, clock,
        raw::{self, Shape},
    },
    failure::frames,
    value::number,
};

/// Deepest indentation by `console.group`, in levels.
const GROUPS: usize = 32;
/// Most labels of counters and timers.
const LABELS: usize = 1_000;

struct Console {
    intrinsics: Rc<Intrinsics>,
    output: Rc<Output>,
    groups: Cell<usize>,
    counters: RefCell<BTreeMap<String, u64>>,
    clocks: RefCell<BTreeMap<String, Duration>>,
}

type Method = fn(&Console, &Ctx<'_>, &[Value<'_>]);

const METHODS: [(&str, Method); 20] = [
    ("log", |console, _, args| console.print(Stream::Stdout, args)),
    ("info", |console, _, args| console.print(Stream::Stdout, args)),
    ("debug", |console, _, args| console.print(Stream::Stdout, args)),
    ("warn", |console, _, args| console.print(Stream::Stderr, args)),
    ("error", |console, _, args| console.print(Stream::Stderr, args)),
    ("trace", Console::trace),
    ("dir", |console, _, args| console.dir(args)),
    ("dirxml", |console, _, args| console.print(Stream::Stdout, args)),
    ("table", |console, _, args| console.table(args)),
    ("assert", |console, _, args| console.assert(args)),
    ("count", |console, _, args| console.count(args)),
    ("countReset", |console, _, args| console.count_reset(args)),
    ("time", |console, _, args| console.time(args)),
    ("timeLog", |console, _, args| console.time_log(args)),
    ("timeEnd", |console, _, args| console.time_end(args)),
    ("group", |console, _, args| console.group(args)),
    ("groupCollapsed", |console, _, args| console.group(args)),
    ("groupEnd", |console, _, _| console.groups.set(console.groups.get().saturating_sub(1))),
    ("clear", |_, _, _| {}),
    ("timeStamp", |_, _, _| {}),
];

/// Ties one lifetime to context and arguments, which a bare closure can not say.
fn method<F>(run: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, Rest<Value<'js>>) + 'static,
{
    run
}

/// Defines `console`.
///
/// # Errors
/// When the realm refuses the definition.
pub(crate) fn install(ctx: &Ctx<'_>, intrinsics: &Rc<Intrinsics>, output: &Rc<Output>) -> Result<()> {
    let console = Rc::new(Console {
        intrinsics: Rc::clone(intrinsics),
        output: Rc::clone(output),
        groups: Cell::new(0),
        counters: RefCell::default(),
        clocks: RefCell::default(),
    });
    let object = Object::new(ctx.clone())?;
    for (name, run) in METHODS {
        let console = Rc::clone(&console);
        let function = Function::new(ctx.clone(), method(move |ctx, args| run(&console, &ctx, &args.0)))?;
        let function = function.with_name(name)?.with_length(0)?;
        object.prop(name, Property::from(function).writable().configurable().enumerable())?;
    }
    ctx.globals().prop("console", Property::from(object).writable().configurable())
}

fn label(args: &[Value<'_>]) -> String {
    match args.first() {
        Some(value) if value.is_string() => raw::text_of(value).unwrap_or_default(),
        _ => "default".to_owned(),
    }
}

impl Console {
    fn write(&self, stream: Stream, text: &str) {
        let indent = "  ".repeat(self.groups.get());
        let mut line = String::with_capacity(text.len() + indent.len() + 1);
        for (index, part) in text.split('\n').enumerate() {
            if index > 0 {
                line.push('\n');
            }
            line.push_str(&indent);
            line.push_str(part);
        }
        line.push('\n');
        self.output.print(stream, &line);
    }

    fn print(&self, stream: Stream, args: &[Value<'_>]) {
        let text = self.formatted(args);
        self.write(stream, &text);
    }

    /// Arguments as one text, with the specifiers of a first string filled in.
    fn formatted(&self, args: &[Value<'_>]) -> String {
        let (mut text, rest) = match args {
            [first, rest @ ..] if first.is_string() && !rest.is_empty() => self.substituted(&raw::text_of(first).unwrap_or_default(), rest),
            _ => (String::new(), args),
        };
        let bare = rest.len() == args.len();
        for (index, value) in rest.iter().enumerate() {
            if index > 0 || !bare {
                text.push(' ');
            }
            text.push_str(&inspect::shown(&self.intrinsics, value, Reach::default()));
        }
        text
    }

    fn substituted<'a, 'js>(&self, format: &str, args: &'a [Value<'js>]) -> (String, &'a [Value<'js>]) {
        let mut text = String::with_capacity(format.len());
        let mut rest = args;
        let mut parts = format.split('%');
        text.push_str(parts.next().unwrap_or_default());
        let mut literal = false;
        for part in parts {
            if std::mem::take(&mut literal) {
                text.push_str(part);
                continue;
            }
            let mut chars = part.chars();
            match (chars.next(), rest) {
                (None, _) => {
                    // `%%` is one percent sign, and what follows it is plain.
                    text.push('%');
                    literal = true;
                }
                (Some(letter), [value, after @ ..]) if "sdifjoOc".contains(letter) => {
                    text.push_str(&self.specified(letter, value));
                    text.push_str(chars.as_str());
                    rest = after;
                }
                _ => {
                    text.push('%');
                    text.push_str(part);
                }
            }
        }
        (text, rest)
    }

    fn specified(&self, letter: char, value: &Value<'_>) -> String {
        match letter {
            's' if value.is_object() => inspect::shown(&self.intrinsics, value, Reach { depth: 1, ..Reach::default() }),
            's' => inspect::shown(&self.intrinsics, value, Reach::default()),
            'd' | 'i' | 'f' => numeric(letter, value),
            'j' | 'o' | 'O' => inspect::nested(&self.intrinsics, value, Reach::default()),
            // `%c` takes a style, which text has no use for.
            _ => String::new(),
        }
    }

    fn trace(&self, ctx: &Ctx<'_>, args: &[Value<'_>]) {
        let text = self.formatted(args);
        let mut out = if text.is_empty() { "Trace".to_owned() } else { format!("Trace: {text}") };
        for frame in frames::shown(&self.intrinsics.stack_here(ctx).unwrap_or_default()) {
            out.push_str("\n    at ");
            out.push_str(&frame);
        }
        self.write(Stream::Stderr, &out);
    }

    fn dir(&self, args: &[Value<'_>]) {
        if let Some(value) = args.first() {
            self.write(Stream::Stdout, &inspect::nested(&self.intrinsics, value, Reach::default()));
        }
    }

    fn assert(&self, args: &[Value<'_>]) {
        let (holds, rest) = match args {
            [first, rest @ ..] => (is_truthy(first), rest),
            [] => (false, args),
        };
        if !holds {
            let text = self.formatted(rest);
            let text = if text.is_empty() { "Assertion failed".to_owned() } else { format!("Assertion failed: {text}") };
            self.write(Stream::Stderr, &text);
        }
    }

    fn count(&self, args: &[Value<'_>]) {
        let label = label(args);
        let count = {
            let mut counters = self.counters.borrow_mut();
            if counters.len() >= LABELS && !counters.contains_key(&label) {
                return;
            }
            let count = counters.entry(label.clone()).or_default();
            *count += 1;
            *count
        };
        self.write(Stream::Stdout, &format!("{label}: {count}"));
    }

    fn count_reset(&self, args: &[Value<'_>]) {
        self.counters.borrow_mut().remove(&label(args));
    }

    fn time(&self, args: &[Value<'_>]) {
        let mut clocks = self.clocks.borrow_mut();
        if clocks.len() < LABELS {
            clocks.entry(label(args)).or_insert_with(clock::now);
        }
    }

    fn time_log(&self, args: &[Value<'_>]) {
        let label = label(args);
        let started = self.clocks.borrow().get(&label).copied();
        self.elapsed(&label, started, args);
    }

    fn time_end(&self, args: &[Value<'_>]) {
        let label = label(args);
        let started = self.clocks.borrow_mut().remove(&label);
        self.elapsed(&label, started, args);
    }

    fn elapsed(&self, label: &str, started: Option<Duration>, args: &[Value<'_>]) {
        let Some(started) = started else {
            self.write(Stream::Stderr, &format!("No such label '{label}' for console.time()"));
            return;
        };
        let took = clock::now().saturating_sub(started).as_secs_f64() * 1e3;
        let rest = self.formatted(args.get(1..).unwrap_or_default());
        self.write(Stream::Stdout, format!("{label}: {took:.3}ms {rest}").trim_end());
    }

    fn group(&self, args: &[Value<'_>]) {
        if !args.is_empty() {
            self.print(Stream::Stdout, args);
        }
        self.groups.set((self.groups.get() + 1).min(GROUPS));
    }

    fn table(&self, args: &[Value<'_>]) {
        let Some(value) = args.first() else { return };
        match table::shown(&self.intrinsics, value) {
            Some(text) => self.write(Stream::Stdout, &text),
            None => self.print(Stream::Stdout, args),
        }
    }
}

fn is_truthy(value: &Value<'_>) -> bool {
    match raw::shape(value) {
        Shape::Bool(truth) => truth,
        Shape::Int(int) => int != 0,
        Shape::Float(float) => float != 0.0 && !float.is_nan(),
        Shape::String => raw::with_text(value, |text| !text.is_empty()).unwrap_or(true),
        Shape::BigInt => raw::text_of(value).is_ok_and(|digits| digits != "0"),
        Shape::Null | Shape::Undefined => false,
        _ => true,
    }
}

/// `%d`, `%i`, `%f`: primitives are converted, objects are not asked.
fn numeric(letter: char, value: &Value<'_>) -> String {
    let text = match raw::shape(value) {
        Shape::BigInt => return format!("{}n", raw::text_of(value).unwrap_or_default()),
        Shape::Int(int) => return int.to_string(),
        Shape::Float(float) => float,
        Shape::Bool(truth) => f64::from(u8::from(truth)),
        Shape::Null => 0.0,
        Shape::String => raw::text_of(value).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    let number = if letter == 'i' { text.trunc() } else { text };
    if !number.is_finite() {
        return if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let mut out = Vec::new();
    number::push(&mut out, number);
    String::from_utf8_lossy(&out).into_owned()
}
