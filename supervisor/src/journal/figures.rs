//! How the journal does.
//!
//! Owns the times of transactions and the size of the files.

use crate::metrics::{Counter, Histogram};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Figures of the journal since the start.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Transactions, whether they could be committed or not.
    pub(crate) commits: Histogram,
    /// Those that could not.
    pub(crate) failures: Counter,
    /// The store and its write-ahead log, where there are files.
    files: Vec<PathBuf>,
}

impl Figures {
    /// Of a store in this file.
    pub(super) fn of(store: &Path) -> Self {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        Self { files: vec![store.to_owned(), log.into()], ..Self::default() }
    }

    pub(super) fn committed(&self, took: Duration, done: bool) {
        self.commits.observe(took);
        if !done {
            self.failures.count();
        }
    }

    /// Bytes of the files; nothing for a journal in memory.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let sizes = self.files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|facts| facts.len());
        (!self.files.is_empty()).then(|| sizes.sum())
    }
}
