//! What counts: one number, a table of numbers, a distribution.
//!
//! Owns the arithmetic, all of it relaxed atomics: what counts never waits. Never a label.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more.
    pub(crate) fn count(&self) {
        self.add(1);
    }

    /// So many more.
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters by the places of two closed lists.
#[derive(Debug)]
pub(crate) struct Table {
    columns: usize,
    cells: Box<[Counter]>,
}

impl Table {
    /// All zero.
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self { columns, cells: (0..rows * columns).map(|_| Counter::default()).collect() }
    }

    /// One more there.
    pub(crate) fn count(&self, row: usize, column: usize) {
        if let Some(cell) = self.cells.get(row * self.columns + column) {
            cell.count();
        }
    }

    /// How many are there.
    pub(crate) fn get(&self, row: usize, column: usize) -> u64 {
        self.cells.get(row * self.columns + column).map_or(0, Counter::get)
    }

    /// How many are in a row.
    pub(crate) fn row(&self, row: usize) -> u64 {
        (0..self.columns).map(|column| self.get(row, column)).sum()
    }
}

/// Upper bounds of a distribution, in microseconds: from an answer at once to the longest
/// default time-out.
pub(crate) const BOUNDS_US: [u64; 14] =
    [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000];

/// How long something took, again and again.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; BOUNDS_US.len() + 1],
    sum_us: Counter,
}

/// What a histogram had at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution {
    /// By bound, then what is over all of them; each counted once.
    pub(crate) counts: Vec<u64>,
    /// All together.
    pub(crate) sum_seconds: f64,
}

impl Histogram {
    /// It took so long once more.
    pub(crate) fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS_US.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.count();
            self.sum_us.add(micros);
        }
    }

    /// As it is now.
    pub(crate) fn distribution(&self) -> Distribution {
        let counts = self.buckets.iter().map(Counter::get).collect();
        Distribution { counts, sum_seconds: Duration::from_micros(self.sum_us.get()).as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for micros in [0, 250, 251, 30_000_000, 30_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let Distribution { counts, sum_seconds } = histogram.distribution();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!((sum_seconds - 60.000_502).abs() < 1e-9, "{sum_seconds}");
    }

    #[test]
    fn a_place_that_is_none_counts_nowhere() {
        let table = Table::new(2, 3);
        table.count(1, 2);
        table.count(2, 0);
        assert_eq!((table.row(0), table.row(1), table.get(2, 0)), (0, 1, 0));
    }
}
