//! The text form of Prometheus, version 0.0.4.
//!
//! Owns the escaping: whatever a label holds, it can not become another line.

use super::family::{Family, Kind, Labels, Value};
use super::figures::{BOUNDS_US, Distribution};
use std::fmt::Write as _;

/// What the answer says it is.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All families, each with its help and type.
pub(super) fn text(families: &[Family]) -> String {
    let mut out = String::with_capacity(16 * 1024);
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        line(&mut out, format_args!("# HELP {} {}", family.name, family.help.replace('\\', "\\\\").replace('\n', "\\n")));
        line(&mut out, format_args!("# TYPE {} {kind}", family.name));
        for sample in &family.samples {
            match &sample.value {
                Value::Whole(value) => line(&mut out, format_args!("{}{} {value}", family.name, braced(&sample.labels, None))),
                Value::Real(value) => line(&mut out, format_args!("{}{} {value}", family.name, braced(&sample.labels, None))),
                Value::Distribution(distribution) => buckets(&mut out, family.name, &sample.labels, distribution),
            }
        }
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A String takes everything.
    writeln!(out, "{text}").ok();
}

fn buckets(out: &mut String, name: &str, labels: &Labels, distribution: &Distribution) {
    let bounds = BOUNDS_US.iter().map(|bound| seconds(*bound)).chain(std::iter::once("+Inf".to_owned()));
    let mut all = 0;
    for (count, bound) in distribution.counts.iter().zip(bounds) {
        all += count;
        line(out, format_args!("{name}_bucket{} {all}", braced(labels, Some(&bound))));
    }
    line(out, format_args!("{name}_sum{} {}", braced(labels, None), distribution.sum_seconds));
    line(out, format_args!("{name}_count{} {all}", braced(labels, None)));
}

/// Exact: microseconds have six decimals.
fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn braced(labels: &Labels, bound: Option<&str>) -> String {
    let labels = labels.iter().map(|(name, value)| (*name, value.as_ref())).chain(bound.map(|bound| ("le", bound)));
    let parts: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if parts.is_empty() { String::new() } else { format!("{{{}}}", parts.join(",")) }
}

fn escaped(value: &str) -> String {
    // Control characters first, so that no form of a line end is left to the reader.
    brig_protocol::escape::escaped(value, 1_000).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::figures::Histogram;
    use super::*;
    use std::time::Duration;

    #[test]
    fn families_have_their_text_form() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(300));
        histogram.observe(Duration::from_secs(60));
        let families = [
            Family::new("brig_x_total", Kind::Counter, "Some\nthing.").with(&[("a", "b"), ("c", "d\"\\\ne")], 7),
            Family::new("brig_nothing", Kind::Gauge, "Left out."),
            Family::new("brig_t_seconds", Kind::Histogram, "Times.").sample(&[], Value::Distribution(histogram.distribution())),
        ];
        let text = text(&families);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines.get(..5),
            Some(
                &[
                    "# HELP brig_x_total Some\\nthing.",
                    "# TYPE brig_x_total counter",
                    "brig_x_total{a=\"b\",c=\"d\\\"\\\\\\\\u{a}e\"} 7",
                    "# HELP brig_t_seconds Times.",
                    "# TYPE brig_t_seconds histogram",
                ][..]
            )
        );
        assert!(lines.contains(&"brig_t_seconds_bucket{le=\"0.00025\"} 0"));
        assert!(lines.contains(&"brig_t_seconds_bucket{le=\"0.0005\"} 1"));
        assert!(lines.contains(&"brig_t_seconds_bucket{le=\"30\"} 1"));
        assert!(lines.contains(&"brig_t_seconds_bucket{le=\"+Inf\"} 2"));
        assert_eq!(lines.get(lines.len() - 2..), Some(&["brig_t_seconds_sum 60.0003", "brig_t_seconds_count 2"][..]));
    }
}
