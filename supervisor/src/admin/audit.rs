//! `audit.tail` and `audit.verify`: the records, read as `brigd audit` reads them.
//!
//! Owns their bounds. Never writes a record.

use crate::audit::tools::{self, tail};
use crate::audit::verify::{Report, verify};
use crate::service::Service;
use brig_protocol::admin::{AuditTailParams, AuditTailResult, AuditVerifyParams, AuditVerifyResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use std::path::PathBuf;

/// How many records are told when nobody says how many.
const LINES: usize = 20;
/// Most records that are told at once.
const MOST_LINES: usize = 1_000;
/// Most bytes of records that are told at once.
const MOST_BYTES: usize = 1024 * 1024;
/// Most hashes that are looked for at once.
const MOST_ANCHORS: usize = 100;

/// The last records, oldest first.
///
/// # Errors
/// There is no folder, or it can not be read, or a line in it is not a record.
pub(super) async fn last(service: &Service, params: AuditTailParams) -> Result<AuditTailResult, ErrorData> {
    let folder = folder(service)?;
    let lines = params.lines.map_or(LINES, |lines| usize::try_from(lines).unwrap_or(usize::MAX));
    if !(1..=MOST_LINES).contains(&lines) {
        return Err(invalid(format!("params.lines is {lines}; it must be between 1 and {MOST_LINES}")));
    }
    let records = off_thread(move || tail::last_records(&folder, lines, MOST_BYTES)).await?;
    Ok(AuditTailResult { records })
}

/// Whether all records are as they were written.
///
/// # Errors
/// There is no folder, or it can not be read.
pub(super) async fn check(service: &Service, params: AuditVerifyParams) -> Result<AuditVerifyResult, ErrorData> {
    let folder = folder(service)?;
    if params.anchors.len() > MOST_ANCHORS {
        return Err(invalid(format!("params.anchors has {} hashes; at most {MOST_ANCHORS} are looked for", params.anchors.len())));
    }
    let anchors = params.anchors.iter().enumerate();
    let anchors = anchors.map(|(index, text)| tools::hash(text).map_err(|fault| invalid(format!("params.anchors[{index}]: {fault}"))));
    let anchors = anchors.collect::<Result<Vec<_>, _>>()?;
    let Report { segments, records, first, last, findings, untold, notes } = off_thread(move || verify(&folder, &anchors)).await?;
    Ok(AuditVerifyResult {
        intact: findings.is_empty(),
        segments: segments.len(),
        records,
        first_seq: first.map_or(0, |mark| mark.seq),
        last_seq: last.seq,
        hash: last.hash.to_string(),
        findings: findings.iter().map(ToString::to_string).collect(),
        untold,
        notes,
    })
}

fn folder(service: &Service) -> Result<PathBuf, ErrorData> {
    let sentence = "records go to the log, which can not be asked; a folder for them is set by audit.dir";
    service
        .audit
        .folder()
        .ok_or_else(|| ErrorData { setting: Some("audit.dir".to_owned()), ..ErrorData::new(RequestCode::Unsupported, sentence) })
}

/// Reads files: off the async threads.
async fn off_thread<T: Send + 'static, E: ToString + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, ErrorData> {
    let internal = |fault: String| ErrorData::new(RequestCode::InternalError, fault);
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|fault| internal(format!("the audit could not be read: {fault}")))?.map_err(|fault| internal(fault.to_string()))
}

fn invalid(sentence: String) -> ErrorData {
    ErrorData::new(RequestCode::InvalidParams, sentence)
}
