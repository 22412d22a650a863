//! `brigd audit export`: records that match, as lines of JSON or as CSV.

use super::show::Shown;
use super::{Outcome, Place, ToolFault};
use crate::audit::segment::{self, Line, Lines};
use crate::say;
use brig_protocol::escape::ShowPath as _;
use brig_protocol::names::Pattern;
use serde_json::Value;
use std::borrow::Cow;
use std::io::Write;

/// The columns of CSV besides `more`, which holds all other members as JSON.
const COLUMNS: &[&str] = &["seq", "time", "event", "evaluation", "call", "function", "uid", "rule", "state", "outcome", "code"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// The lines as they are in the segments, hashes and all.
    Jsonl,
    /// Comma-separated values with a head line.
    Csv,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    place: Place,
    /// Records from this time on: RFC 3339, as 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,
    /// Records before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
    /// Records of one evaluation.
    #[arg(long, value_name = "ID")]
    evaluation: Option<String>,
    /// Records of one principal: uid:1000, or the section of the policy.
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// Records of functions that match, as orders.list or orders.*.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    function: Option<Pattern>,
    /// How they are written.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
}

fn time(text: &str) -> Result<u64, String> {
    let time: jiff::Timestamp = text.parse().map_err(|_| "write a time as 2026-01-31T12:00:00Z".to_owned())?;
    u64::try_from(time.as_millisecond()).map_err(|_| "the time is before 1970".to_owned())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text).map_err(|fault| fault.to_string())
}

impl ExportArgs {
    pub(super) fn run(&self, out: &mut impl Write) -> Result<Outcome, ToolFault> {
        let folder = self.place.folder()?;
        let unreadable = |place: String, fault: std::io::Error| ToolFault::Said(format!("{place} can not be read: {fault}"));
        let numbers = segment::list(&folder).map_err(|fault| unreadable(folder.shown().to_string(), fault))?;
        if numbers.is_empty() {
            return Err(ToolFault::Said(format!("{} has no audit records", folder.shown())));
        }
        if self.format == Format::Csv {
            writeln!(out, "{},more", COLUMNS.join(","))?;
        }
        let mut outcome = Outcome::Good;
        for number in numbers {
            let mut lines = Lines::open(&folder, number).map_err(|fault| unreadable(segment::name(number), fault))?;
            let mut place = 0u64;
            while let Some(line) = lines.next_line().map_err(|fault| unreadable(segment::name(number), fault))? {
                place += 1;
                match line {
                    Line::Whole(line) => match Shown::read(line) {
                        Some(shown) if self.wants(&shown) => self.print(out, line, &shown)?,
                        Some(_) => {}
                        None => outcome = broken(number, place),
                    },
                    Line::TooLong => outcome = broken(number, place),
                    // A record that is being written.
                    Line::Torn { .. } => {}
                }
            }
        }
        Ok(outcome)
    }

    fn wants(&self, record: &Shown) -> bool {
        let time = record.number("time_ms").unwrap_or_default();
        let is_of = |name: &str, wanted: &Option<String>| wanted.as_deref().is_none_or(|wanted| record.text(name) == Some(wanted));
        let function = self.function.as_ref().is_none_or(|pattern| {
            let name = record.text("function").and_then(|name| name.split_once('.'));
            name.is_some_and(|(collection, function)| pattern.matches(collection, function))
        });
        self.from.is_none_or(|from| time >= from)
            && self.to.is_none_or(|to| time < to)
            && is_of("evaluation", &self.evaluation)
            && self.principal.as_deref().is_none_or(|principal| is_by(record, principal))
            && function
    }

    fn print(&self, out: &mut impl Write, line: &[u8], record: &Shown) -> Result<(), ToolFault> {
        match self.format {
            Format::Jsonl => {
                out.write_all(line)?;
                out.write_all(b"\n")?;
            }
            Format::Csv => writeln!(out, "{}", csv(record))?,
        }
        Ok(())
    }
}

fn broken(number: u64, line: u64) -> Outcome {
    say::of("brigd audit", &format!("{}:{line} is not a record as it was written: run brigd audit verify", segment::name(number)));
    Outcome::Broken
}

fn is_by(record: &Shown, principal: &str) -> bool {
    let uid = principal.strip_prefix("uid:").unwrap_or(principal).parse().ok();
    record.text("principal") == Some(principal) || (uid.is_some() && record.number("uid") == uid)
}

fn csv(record: &Shown) -> String {
    let mut cells: Vec<String> = COLUMNS
        .iter()
        .map(|column| match *column {
            "time" => record.time(),
            name => record.members.get(name).map(text_of).unwrap_or_default().into_owned(),
        })
        .map(|cell| quoted(&cell))
        .collect();
    let more: serde_json::Map<String, Value> =
        record.rest().filter(|(name, _)| !COLUMNS.contains(&name.as_str())).map(|(name, value)| (name.clone(), value.clone())).collect();
    cells.push(quoted(&Value::Object(more).to_string()));
    cells.join(",")
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// A cell that is a cell in every reader, and a formula in none.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let plain = !formula && !cell.contains([',', '"', '\n', '\r']);
    if plain { cell.to_owned() } else { format!("\"{}{}\"", if formula { "'" } else { "" }, cell.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cell_is_neither_two_cells_nor_a_formula() {
        assert_eq!(quoted("a"), "a");
        assert_eq!(quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(quoted("=cmd()"), "\"'=cmd()\"");
    }

    #[test]
    fn records_are_chosen_by_time_evaluation_principal_and_function() {
        let members = json!({"seq": 1, "time_ms": 1_000, "evaluation": "ev_1", "uid": 7, "function": "orders.list"});
        let record = Shown { members: members.as_object().unwrap().clone() };
        let all = || ExportArgs {
            place: super::super::Place { dir: None, config: None },
            from: None,
            to: None,
            evaluation: None,
            principal: None,
            function: None,
            format: Format::Csv,
        };
        assert!(all().wants(&record));
        assert!(ExportArgs { from: Some(1_000), to: Some(1_001), ..all() }.wants(&record));
        assert!(!ExportArgs { to: Some(1_000), ..all() }.wants(&record));
        assert!(!ExportArgs { evaluation: Some("ev_2".to_owned()), ..all() }.wants(&record));
        assert!(ExportArgs { principal: Some("uid:7".to_owned()), ..all() }.wants(&record));
        assert!(!ExportArgs { principal: Some("uid:8".to_owned()), ..all() }.wants(&record));
        assert!(ExportArgs { function: Some(pattern("orders.*").unwrap()), ..all() }.wants(&record));
        assert!(!ExportArgs { function: Some(pattern("store.*").unwrap()), ..all() }.wants(&record));
        assert_eq!(time("1970-01-01T00:00:01Z"), Ok(1_000));
        assert!(time("yesterday").is_err());
    }
}
