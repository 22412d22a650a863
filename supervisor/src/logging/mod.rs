//! Where the log goes, and what may stand in it.
//!
//! Owns the one subscriber: the journal when systemd listens ([`journal`]), standard error
//! otherwise. Every value passes here as a whole, wherever it came from: credentials are
//! taken out, and what could forge a line or steer a terminal is escaped. So an event may
//! hold anything, and its author need not think of it.

mod journal;

use crate::host::redact;
use crate::metrics::Counter;
use crate::say;
use brig_protocol::escape::line;
use std::io::Write;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Lines so far: errors, warnings.
pub(crate) static COUNTS: [Counter; 2] = [const { Counter::new() }; 2];

/// Starts the log at `level`: a level, or directives as `brigd=debug`.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let registry = tracing_subscriber::registry().with(filter).with(Counts);
    let journal = if goes_to_journal() { journal::Journal::open().ok() } else { None };
    let started = match journal {
        Some(journal) => registry.with(journal).try_init(),
        None => registry.with(lines(|| Clean)).try_init(),
    };
    if let Err(fault) = started {
        say::complain(&format!("the log could not be started: {fault}"));
    }
}

/// Whether standard error is the stream that systemd made for the journal. The variable
/// alone says nothing: whoever starts brigd from a service may have it, and read elsewhere.
fn goes_to_journal() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stderr()).is_ok_and(|facts| stream.to_str() == Some(&format!("{}:{}", facts.st_dev, facts.st_ino)))
}

/// One line an event, for people.
fn lines<S, W>(writer: fn() -> W) -> impl Layer<S>
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: Write + 'static,
{
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{}", safe(&format!("{value:?}"), true)),
        name => write!(writer, "{name}={}", apart(&format!("{value:?}"))),
    });
    // Standard error that is closed, or full, is nobody's to mend; the layer would panic of it.
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false);
    layer.with_writer(writer).with_ansi(false).with_target(false).fmt_fields(fields.delimited(" "))
}

/// `text` without anything that forges a line or steers a terminal. A message is brigd's
/// own, and may have lines: a fault in a configuration shows where.
fn safe(text: &str, lines: bool) -> String {
    if lines { say::lines(text, usize::MAX) } else { line(text) }
}

/// A value beside others in one line: in quotes where it could be taken for several.
fn apart(text: &str) -> String {
    if is_one(text) {
        return line(text);
    }
    // What is escaped after that begins with one backslash, and these with two.
    line(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Whether no part of it reads as another `key=value`: it has none, or is a JSON text or
/// stands in quotes, which end where it does.
fn is_one(text: &str) -> bool {
    let opens = text.starts_with(['{', '[', '"']);
    let (mut within, mut after_backslash) = (false, false);
    for character in text.chars() {
        match character {
            '"' if !(within && after_backslash) => within = !within,
            '=' if !(within && opens) => return false,
            _ => {}
        }
        after_backslash = character == '\\' && !after_backslash;
    }
    !text.is_empty() && !within
}

/// Counts what is wrong.
struct Counts;

impl<S: Subscriber> Layer<S> for Counts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let [errors, warnings] = &COUNTS;
        match *event.metadata().level() {
            Level::ERROR => errors.count(),
            Level::WARN => warnings.count(),
            _ => {}
        }
    }
}

/// Standard error, without credentials: each event is one write.
struct Clean;

impl Write for Clean {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        std::io::stderr().write_all(redact::clean_log(&text).as_bytes()).ok();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::sync::Mutex;

    static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    struct Kept;

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            WRITTEN.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_value_can_not_forge_a_line_and_a_message_keeps_its_own() {
        let subscriber = tracing_subscriber::registry().with(lines(|| Kept));
        tracing::subscriber::with_default(subscriber, || {
            let hostile = "x\nERROR brigd: all is lost\u{1b}[2J\u{202e}";
            tracing::info!(display = %hostile, debug = ?hostile, text = hostile, "two\nlines\u{1b}[31m");
        });
        let text = String::from_utf8(WRITTEN.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("lines\\u{1b}[31m display=x\\u{a}ERROR brigd: all is lost\\u{1b}[2J\\u{202e} debug="), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("    lines")), "{text}");
    }

    #[test]
    fn a_value_is_one_value_whatever_is_in_it() {
        for (value, shown) in [
            ("plain:7", "plain:7"),
            ("a sentence of \"two\" kinds", "a sentence of \"two\" kinds"),
            (r#"{"event":"x user=0","n":["\"",1]}"#, r#"{"event":"x user=0","n":["\"",1]}"#),
            ("", r#""""#),
            ("x level=ERROR user=0", r#""x level=ERROR user=0""#),
            (r#"x" user=0 y=""#, r#""x\" user=0 y=\"""#),
            (r#""x" user=0 y="z""#, r#""\"x\" user=0 y=\"z\"""#),
            (r#"it opens "one"#, r#""it opens \"one""#),
            (r#""ends in \""#, r#""\"ends in \\\"""#),
            ("a\u{2028}b=\\", r#""a\u{2028}b=\\""#),
        ] {
            assert_eq!(apart(value), shown);
        }
    }
}
