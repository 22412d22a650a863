//! How answers of the admin socket read.
//!
//! Owns the words. Whatever a guest or a client chose goes through an escape.

use crate::cli::terminal::safe_lines;
use brig::protocol::admin::{
    ApprovalDetail, ApprovalInfo, ApprovalState, AuditStatus, AuditTailResult, AuditVerifyResult, EvaluationInfo, EvaluationState,
    Revocation, RevocationsResult, StatusResult,
};
use brig::protocol::escape::{self, escaped};
use std::borrow::Borrow;
use std::fmt::Write as _;

/// Longest text of others in one line, in bytes.
const TEXT_BYTES: usize = 300;

fn audit(audit: &AuditStatus) -> String {
    let place = line(&audit.place);
    if let Some(why) = &audit.failed {
        return format!("{place}: TAKES NO MORE RECORDS, so no calls run: {}", line(why));
    }
    match (audit.seq, audit.on_disk, &audit.hash) {
        (Some(seq), Some(on_disk), Some(hash)) => format!("{place}; record {seq} ({on_disk} on disk) has the hash {}", line(hash)),
        // Without a folder of their own records go to the log.
        _ if audit.place == "log" => "in the log only: audit.dir is not set".to_owned(),
        _ => place,
    }
}

pub(super) fn records<R: Borrow<AuditTailResult>>(told: &R) -> String {
    told.borrow().records.iter().map(|record| format!("{}\n", escape::line(record.get()))).collect()
}

pub(super) fn verified(checked: &AuditVerifyResult) -> String {
    let mut text = String::new();
    checked.notes.iter().for_each(|note| text.push_str(&format!("note: {}\n", escape::line(note))));
    checked.findings.iter().for_each(|finding| text.push_str(&format!("BROKEN: {}\n", escape::line(finding))));
    if checked.untold > 0 {
        text.push_str(&format!("BROKEN: and {} more\n", checked.untold));
    }
    let (records, segments) = (checked.records, checked.segments);
    let summary = format!("{records} records ({} to {}) in {segments} segments", checked.first_seq, checked.last_seq);
    text.push_str(&match checked.intact {
        true => format!("ok: {summary}; the last has the hash {}\n", line(&checked.hash)),
        false => format!("broken: {summary} are as they were written, and the above is wrong\n"),
    });
    text
}

pub(super) fn status<S: Borrow<StatusResult>>(status: &S) -> String {
    let status = status.borrow();
    let workers = &status.workers;
    let mut text = format!(
        "brigd {} is {}, up {}; sandbox {} ({})\n\
         workers      {} ready, {} busy, {} being made; {} died abnormally, {} failures\n\
         evaluations  {} run, {} wait; {} vms\n\
         policy       {}\n\
         approvals    {} wait\n\
         revoked      {} function patterns, {} principals{}\n\
         audit        {}\n\
         journal      {}, {}; {} evaluations go on detached\n",
        line(&status.version),
        line(&status.phase),
        span(status.uptime_ms),
        line(&status.sandbox.level),
        line(&status.sandbox.layers.join(", ")),
        workers.ready,
        workers.leased,
        workers.coming,
        workers.abnormal_deaths,
        workers.failures,
        status.queue.running,
        status.queue.waiting,
        status.vms,
        line(&status.policy_version),
        status.approvals_waiting,
        status.functions_revoked,
        status.principals_revoked,
        if status.revocations_unwritten { "; NOT WRITTEN DOWN YET: a restart now brings back what was before" } else { "" },
        audit(&status.audit),
        line(&status.journal.place),
        if status.journal.durable { "outlives brigd" } else { "ends with brigd" },
        status.journal.detached,
    );
    of_principals(status, &mut text);
    text
}

/// What the users of brigd do and did, and what should be mended.
fn of_principals(status: &StatusResult, text: &mut String) {
    for principal in &status.principals {
        let (uid, connections) = (principal.uid, principal.connections);
        writeln!(text, "user {uid:<8} {} run, {} wait, {connections} connections", principal.running, principal.waiting).ok();
    }
    let counts = |counts: &std::collections::BTreeMap<String, u64>| {
        let some = counts.iter().filter(|(_, count)| **count > 0);
        some.map(|(name, count)| format!("{} {count}", line(name))).collect::<Vec<_>>().join(", ")
    };
    writeln!(text, "so far       {}", counts(&status.counters)).ok();
    if !status.failures.is_empty() {
        writeln!(text, "failures     {}", counts(&status.failures)).ok();
    }
    writeln!(text, "functions    {} configured; files not used: {}", status.functions, status.files_off.len()).ok();
    for off in &status.files_off {
        writeln!(text, "NOT USED     {}: {}", line(&off.file), line(&off.why)).ok();
    }
    for warning in &status.warnings {
        writeln!(text, "warning      {}", line(warning)).ok();
    }
}

pub(super) fn evaluations(evaluations: &[EvaluationInfo]) -> String {
    if evaluations.is_empty() {
        return "nothing runs\n".to_owned();
    }
    evaluations.iter().map(|evaluation| format!("{}\n", self::evaluation(evaluation))).collect()
}

/// One evaluation in one line.
pub(super) fn evaluation(evaluation: &EvaluationInfo) -> String {
    let state = match evaluation.state {
        EvaluationState::Running => "running",
        EvaluationState::Calling => "calling",
        EvaluationState::Approval => "approval",
    };
    let id = line(&evaluation.evaluation);
    format!("{id}  user {:<6} {:>7}  {state:<8} {}", evaluation.uid, span(evaluation.age_ms), line(&evaluation.open.join(", ")))
}

pub(super) fn revoked<R: Borrow<RevocationsResult>>(revoked: &R) -> String {
    let revoked = revoked.borrow();
    let one = |kind: &str, entry: &Revocation| {
        let reason = entry.reason.as_deref().map(|reason| format!(": {}", line(reason))).unwrap_or_default();
        format!("{kind} {}, by user {}{reason}\n", line(&entry.target), entry.by.uid)
    };
    let all: String = (revoked.functions.iter().map(|entry| one("functions", entry)))
        .chain(revoked.principals.iter().map(|entry| one("principal", entry)))
        .collect();
    if all.is_empty() { "nothing is revoked\n".to_owned() } else { all }
}

pub(super) fn approvals(approvals: &[ApprovalInfo]) -> String {
    if approvals.is_empty() {
        return "nothing waits for a decision\n".to_owned();
    }
    approvals.iter().map(|info| format!("{}\n", approval(info))).collect()
}

/// One approval in one line: first what a narrow terminal must not cut off.
pub(super) fn approval(info: &ApprovalInfo) -> String {
    let until = info.expires_in_ms.map(|left| format!(", {} left", span(left))).unwrap_or_default();
    let by = info.decision.as_ref().map(|decision| format!(", decided by user {}", decision.by.uid)).unwrap_or_default();
    let (id, function) = (line(&info.approval), line(&info.function));
    format!("{id}  {:<9} user {:<6} {function}  {}{until}{by}", word(info.state), info.principal.uid, span(info.age_ms))
}

/// Everything that somebody has to know who decides.
pub(super) fn detail(detail: &ApprovalDetail) -> String {
    let info = &detail.approval;
    let why = info.why.as_deref().map(|why| format!(": {}", line(why))).unwrap_or_default();
    // Nobody is asked any more about what is decided.
    let approvers =
        if detail.approvers.is_empty() { String::new() } else { format!("  approvers   {}\n", line(&detail.approvers.join(", "))) };
    let part = if detail.redacted { "; the rule shows only a part of it" } else { "" };
    let mut text = format!(
        "{}\n  function    {}\n  for         user {} (group {}), call {} of {}\n  rule        {}{why}\n  policy      {}\n\
         {approvers}  input       {} bytes, sha256 {}{part}\n",
        approval(info),
        line(&info.function),
        info.principal.uid,
        info.principal.gid,
        info.call,
        line(&info.evaluation),
        line(&info.rule),
        line(&info.policy_version),
        info.input_bytes,
        line(&info.input_sha256),
    );
    if let Some(input) = &detail.input {
        writeln!(text, "\n{}", safe_lines(&indented(input.get()))).ok();
    }
    if let Some(refused) = &detail.refused {
        writeln!(text, "\nyou can not decide it: {}", line(refused)).ok();
    }
    text
}

/// A text of JSON on several lines. Nothing in it is read and written anew: a number or a
/// string that looks odd is shown as it is.
fn indented(json: &str) -> String {
    let (mut out, mut depth, mut in_string, mut escaped) = (String::new(), 0usize, false, false);
    for character in json.chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            out.push(character);
            continue;
        }
        match character {
            '{' | '[' => {
                depth += 1;
                out.push(character);
                out.push_str(&new_line(depth));
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                out.push_str(&new_line(depth));
                out.push(character);
            }
            ',' => out.push_str(&format!(",{}", new_line(depth))),
            ':' => out.push_str(": "),
            ' ' | '\t' | '\r' | '\n' => {}
            other => {
                in_string = other == '"';
                out.push(other);
            }
        }
    }
    out
}

fn new_line(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth.min(40)))
}

/// For people: `850 ms`, `12 s`, `3 m 5 s`, `2 h 7 m`.
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3600, seconds / 60 % 60),
    }
}

/// One line of a text of others.
pub(super) fn line(text: &str) -> String {
    escaped(text, TEXT_BYTES)
}

const fn word(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Waiting => "waiting",
        ApprovalState::Approved => "approved",
        ApprovalState::Denied => "denied",
        ApprovalState::Expired => "expired",
        ApprovalState::Withdrawn => "withdrawn",
        ApprovalState::Abandoned => "abandoned",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn json_is_laid_out_and_never_written_anew() {
        let text = r#"{"a":[1.00,12345678901234567890],"b":"x,{\"}:","c":{}}"#;
        assert_eq!(
            indented(text),
            "{\n  \"a\": [\n    1.00,\n    12345678901234567890\n  ],\n  \"b\": \"x,{\\\"}:\",\n  \"c\": {\n    \n  }\n}"
        );
        assert_eq!(indented(r#""a\\""#), r#""a\\""#);
    }

    #[test]
    fn an_approval_at_eighty_columns_still_says_what_would_run_and_who_decided_comes_last() {
        let golden = include_str!("../../../../protocol/tests/golden/admin/07-approvals-listed.json");
        let told: serde_json::Value = serde_json::from_str(golden).expect("a golden");
        let mut info: ApprovalInfo = serde_json::from_value(told["result"]["approvals"][0].clone()).expect("an approval");
        info.approval = format!("ap_{}", "0".repeat(32));
        assert!(approval(&info).chars().take(80).collect::<String>().contains(&info.function));
        info.decision = serde_json::from_value(told["result"]["approvals"][1]["decision"].clone()).expect("a decision");
        assert!(approval(&info).ends_with(", decided by user 20002"), "{}", approval(&info));
    }

    #[test]
    fn spans_are_told_in_the_unit_that_matters() {
        assert_eq!([850, 12_000, 185_000, 7_620_000].map(span), ["850 ms", "12 s", "3 m 5 s", "2 h 7 m"]);
    }
}
