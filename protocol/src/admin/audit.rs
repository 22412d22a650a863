//! `audit.*`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Params of `audit.tail`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditTailParams {
    /// How many of the last records; 20 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

/// Result of `audit.tail`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditTailResult {
    /// As they are in the file, oldest first; fewer than asked for when they are long.
    pub records: Vec<Box<RawValue>>,
}

/// Params of `audit.verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditVerifyParams {
    /// Hashes that were noted elsewhere: a record must have each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
}

/// Result of `audit.verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditVerifyResult {
    /// Whether nothing is wrong.
    pub intact: bool,
    /// Segments that are there.
    pub segments: usize,
    /// Records that are as they were written.
    pub records: u64,
    /// Number of the first record.
    pub first_seq: u64,
    /// Number of the last record.
    pub last_seq: u64,
    /// Hash of the last record.
    pub hash: String,
    /// What is wrong, with segment and line.
    #[serde(default)]
    pub findings: Vec<String>,
    /// How much more is wrong.
    #[serde(default)]
    pub untold: u64,
    /// What happened and is no change: crashes, segments removed as configured.
    #[serde(default)]
    pub notes: Vec<String>,
}
