//! What is shown, before it has a form.
//!
//! Owns the shape that the text of Prometheus and the JSON of OpenTelemetry are made from.

use super::figures::Distribution;
use std::borrow::Cow;

/// What a family's numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// As it is now.
    Gauge,
    /// How long something took.
    Histogram,
}

/// One number, or distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A count.
    Whole(u64),
    /// Seconds.
    Real(f64),
    /// For [`Kind::Histogram`].
    Distribution(Distribution),
}

/// Labels of a sample: names are ours, values are from closed lists or the operator's.
pub(crate) type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// One line, or one distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Which.
    pub(crate) labels: Labels,
    /// What.
    pub(crate) value: Value,
}

/// All that has one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it says, in a sentence.
    pub(crate) help: &'static str,
    /// What its numbers mean.
    pub(crate) kind: Kind,
    /// The numbers.
    pub(crate) samples: Vec<Sample>,
}

impl Family {
    /// One that has nothing yet.
    pub(super) const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, help, kind, samples: Vec::new() }
    }

    /// A counter without labels.
    pub(super) fn count(name: &'static str, help: &'static str, value: u64) -> Self {
        Self::new(name, Kind::Counter, help).with(&[], value)
    }

    /// A gauge without labels.
    pub(super) fn gauge(name: &'static str, help: &'static str, value: usize) -> Self {
        Self::new(name, Kind::Gauge, help).with(&[], u64::try_from(value).unwrap_or(u64::MAX))
    }

    /// With one more number. Labels without a value say nothing and are left out.
    pub(super) fn with(self, labels: &[(&'static str, &str)], value: u64) -> Self {
        self.sample(labels, Value::Whole(value))
    }

    /// With one more sample.
    pub(super) fn sample(mut self, labels: &[(&'static str, &str)], value: Value) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, Cow::Owned((*value).to_owned()))).collect();
        self.samples.push(Sample { labels, value });
        self
    }
}
