//! One frame of `brig top`.
//!
//! Owns the layout: what matters first, cut to the size there is. Pure. What a guest or a
//! client chose is escaped before it is cut, so that no half of an escape is left.

use super::super::shown::{approval, evaluation, line, span};
use brig::EvaluationCode;
use brig::protocol::admin::{ApprovalInfo, EvaluationInfo, StatusResult};

/// What there was at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) status: StatusResult,
    pub(super) evaluations: Vec<EvaluationInfo>,
    pub(super) approvals: Vec<ApprovalInfo>,
}

/// Its lines, at most `height` of at most `width` columns.
pub(super) fn frame(snapshot: &Snapshot, width: usize, height: usize) -> Vec<String> {
    let mut lines = head(&snapshot.status);
    let sections = [
        ("APPROVALS THAT WAIT", snapshot.approvals.iter().map(approval).collect::<Vec<_>>()),
        ("PRINCIPALS", principals(&snapshot.status)),
        ("EVALUATIONS", snapshot.evaluations.iter().map(evaluation).collect()),
    ];
    let left = height.saturating_sub(lines.len());
    lines.extend(within(sections, left));
    lines.truncate(height);
    lines.into_iter().map(|line| line.chars().take(width).collect()).collect()
}

fn head(status: &StatusResult) -> Vec<String> {
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let told = |limit: bool| {
        let some = status.failures.iter().filter(|(code, _)| is_limit(code) == limit);
        let some: Vec<String> = some.map(|(code, count)| format!("{} {count}", line(code))).collect();
        if some.is_empty() { "none".to_owned() } else { some.join(", ") }
    };
    let mut lines = vec![
        format!(
            "brigd {} {} up {} | sandbox {} | policy {}",
            line(&status.version),
            line(&status.phase),
            span(status.uptime_ms),
            line(&status.sandbox.level),
            line(&status.policy_version),
        ),
        format!(
            "run {} wait {} vms {} | workers ready {} busy {} | approvals {} | revoked {}",
            status.queue.running,
            status.queue.waiting,
            status.vms,
            status.workers.ready,
            status.workers.leased,
            status.approvals_waiting,
            status.functions_revoked + status.principals_revoked,
        ),
        format!(
            "ended: ok {} failed {} timed out {} cancelled {} | refused {}",
            counter("succeeded"),
            counter("failed"),
            counter("timed_out"),
            counter("cancelled"),
            counter("refused")
        ),
        format!("limits hit: {} | other failures: {}", told(true), told(false)),
    ];
    if !(status.files_off.is_empty() && status.warnings.is_empty()) {
        let (off, warnings) = (status.files_off.len(), status.warnings.len());
        lines.push(format!("files of functions not used: {off} | warnings: {warnings} | brig admin status says which"));
    }
    lines
}

/// Whether this is a limit that was broken, and not what a program or a person did.
fn is_limit(code: &str) -> bool {
    EvaluationCode::parse(code).is_some_and(|code| {
        use EvaluationCode as Code;
        matches!(code, Code::MemoryLimit | Code::CpuLimit | Code::StackLimit | Code::OutputLimit | Code::CallLimit | Code::TimedOut)
    })
}

fn principals(status: &StatusResult) -> Vec<String> {
    let one = |principal: &brig::protocol::admin::PrincipalStatus| {
        let (uid, connections) = (principal.uid, principal.connections);
        format!("user {uid:<10} run {:<5} wait {:<5} connections {connections}", principal.running, principal.waiting)
    };
    status.principals.iter().map(one).collect()
}

/// The sections one below the other; each gets its share of the lines, and what one does
/// not need goes to those after it.
fn within<const N: usize>(sections: [(&str, Vec<String>); N], height: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, (title, rows)) in sections.into_iter().enumerate() {
        let share = height.saturating_sub(lines.len()) / (N - index).max(1);
        if rows.is_empty() || share < 3 {
            continue;
        }
        lines.push(String::new());
        lines.push(format!("{title} ({})", rows.len()));
        let room = share - 2;
        let (shown, more) = if rows.len() > room { (room - 1, rows.len() + 1 - room) } else { (rows.len(), 0) };
        lines.extend(rows.into_iter().take(shown));
        if more > 0 {
            lines.push(format!("… {more} more"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use brig::protocol::admin::EvaluationState;
    use serde_json::Value;

    fn golden(name: &str) -> Value {
        let path = format!("{}/../protocol/tests/golden/admin/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let line: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        line.get("result").unwrap().clone()
    }

    fn snapshot(evaluations: usize, function: &str) -> Snapshot {
        let one = |number| EvaluationInfo {
            evaluation: format!("ev_{number}"),
            uid: 20_001,
            pid: None,
            age_ms: 1_500,
            state: EvaluationState::Calling,
            open: vec![function.to_owned()],
        };
        Snapshot {
            status: serde_json::from_value(golden("02-status-told")).unwrap(),
            evaluations: (0..evaluations).map(one).collect(),
            approvals: serde_json::from_value(golden("07-approvals-listed").get("approvals").unwrap().clone()).unwrap(),
        }
    }

    #[test]
    fn a_frame_fits_whatever_the_size_and_says_what_it_left_out() {
        for (width, height) in [(80, 24), (20, 5), (200, 60), (1, 1), (80, 0)] {
            let lines = frame(&snapshot(500, "orders.list"), width, height);
            assert!(lines.len() <= height && lines.iter().all(|line| line.chars().count() <= width), "{width}x{height}");
        }
        let lines = frame(&snapshot(500, "orders.list"), 80, 24);
        for part in ["serving", "APPROVALS THAT WAIT (2)", "PRINCIPALS (1)", "EVALUATIONS (500)", "store.refund", "memory_limit 2", "more"]
        {
            assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:#?}");
        }
    }

    #[test]
    fn only_a_limit_is_told_as_one_that_was_hit() {
        let mut snapshot = snapshot(0, "a.b");
        snapshot.status.failures =
            [("guest_error", 3), ("memory_limit", 2), ("revoked", 1)].map(|(code, count)| (code.to_owned(), count)).into();
        let lines = frame(&snapshot, 200, 24);
        assert!(lines.contains(&"limits hit: memory_limit 2 | other failures: guest_error 3, revoked 1".to_owned()), "{lines:#?}");
    }

    #[test]
    fn nothing_that_a_guest_chose_moves_the_cursor() {
        let lines = frame(&snapshot(1, "a\u{1b}[2J\r\n\u{202e}.b"), 80, 24).concat();
        assert!(!lines.chars().any(|character| character.is_control() || character == '\u{202e}'), "{lines}");
    }
}
