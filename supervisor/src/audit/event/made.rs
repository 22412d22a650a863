//! How events of operators and approvals are made.
//!
//! Owns cutting to size, and making safe to print, what people wrote.

use super::*;

/// Longest comment, reason or name that a person wrote, in bytes.
const WORDS_BYTES: usize = 2_000;

/// brigd stops.
pub(crate) const fn stopped(reason: StopReason<'_>) -> Event<'_> {
    Event::Stopped { reason }
}

/// An operator asks for the end.
pub(crate) const fn drain_asked(by: By<'_>) -> Event<'_> {
    Event::DrainAsked { by }
}

/// Something is revoked.
pub(crate) fn revoked<'a>(what: Revoked<'a>, by: By<'a>, comment: Option<&'a str>) -> Event<'a> {
    Event::Revoked { what, by, comment: comment.map(cut) }
}

/// What was revoked is given back.
pub(crate) fn restored<'a>(what: Revoked<'a>, by: By<'a>, comment: Option<&'a str>) -> Event<'a> {
    Event::Restored { what, by, comment: comment.map(cut) }
}

/// A call waits for a person.
pub(crate) const fn approval_asked<'a>(of: Call<'a>, asked: ApprovalAsk<'a>) -> Event<'a> {
    let ApprovalAsk { approval, input, policy, rule, approvers, wait_seconds } = asked;
    Event::ApprovalAsked { of, approval, input, policy, rule, approvers, wait_seconds }
}

/// What an approval is bound to.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalAsk<'a> {
    /// Its id.
    pub(crate) approval: &'a str,
    /// What would run.
    pub(crate) input: &'a Payload,
    /// Version of the policy.
    pub(crate) policy: &'a str,
    /// The rule that asks.
    pub(crate) rule: &'a str,
    /// Who may decide.
    pub(crate) approvers: &'a [String],
    /// How long it waits.
    pub(crate) wait_seconds: u64,
}

/// A person decided.
pub(crate) fn approval_decided<'a>(of: Call<'a>, approval: &'a str, approved: bool, by: By<'a>, comment: Option<&'a str>) -> Event<'a> {
    Event::ApprovalDecided { of, approval, approved, by, comment: comment.map(cut) }
}

/// Nobody decided.
pub(crate) const fn approval_expired<'a>(of: Call<'a>, approval: &'a str) -> Event<'a> {
    Event::ApprovalExpired { of, approval }
}

/// Another policy holds.
pub(crate) const fn policy_reloaded<'a>(old: &'a str, new: &'a str, by: By<'a>) -> Event<'a> {
    Event::PolicyReloaded { old, new, by }
}

/// A new policy is not valid.
pub(crate) fn policy_refused<'a>(holds: &'a str, why: &'a str, by: By<'a>) -> Event<'a> {
    Event::PolicyRefused { holds, why: cut(why), by }
}

/// A person's words: safe to print, and no longer than they may be.
fn cut(words: &str) -> Cow<'_, str> {
    Cow::Owned(brig_protocol::escape::escaped(words, WORDS_BYTES))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::audit::payload::Disclosure;
    use serde_json::{Value, json};

    const CALL: Call<'_> = Call { evaluation: "ev_1", call: 2, function: "store.refund", uid: 1000 };

    fn json_of(event: &Event<'_>) -> Value {
        serde_json::to_value(event).unwrap()
    }

    #[test]
    fn an_approval_is_bound_to_its_call_input_rule_and_policy() {
        let ask = ApprovalAsk {
            approval: "ap_1",
            input: &Payload::of("{\"amount\":500}", Disclosure::Hash, None),
            policy: "7",
            rule: "rules[3]",
            approvers: &["group:finance".to_owned()],
            wait_seconds: 600,
        };
        let asked = json_of(&approval_asked(CALL, ask));
        assert_eq!(asked.get("event"), Some(&json!("approval_asked")));
        for member in ["evaluation", "call", "function", "uid", "approval", "input", "policy", "rule", "approvers", "wait_seconds"] {
            assert!(asked.get(member).is_some(), "{member} is not in {asked}");
        }
        assert_eq!(asked.pointer("/input/sha256"), Some(&json!(Hash::of(b"{\"amount\":500}").to_string())));
    }

    #[test]
    fn a_decision_says_who_and_in_which_words_and_the_words_can_not_forge_a_line() {
        let decided = json_of(&approval_decided(CALL, "ap_1", false, By::Uid(7), Some("no\n{\"event\":\"started\"}\u{202e}")));
        assert_eq!((decided.get("approved"), decided.pointer("/by/uid")), (Some(&json!(false)), Some(&json!(7))));
        let comment = decided.get("comment").and_then(Value::as_str).unwrap();
        assert!(comment.contains("\\u{a}") && comment.contains("\\u{202e}"), "{comment}");
        let long = json_of(&approval_decided(CALL, "ap_1", true, By::Uid(7), Some(&"x".repeat(99_999))));
        assert!(long.get("comment").and_then(Value::as_str).unwrap().len() < WORDS_BYTES + 8);
        assert_eq!(json_of(&approval_expired(CALL, "ap_1")).get("event"), Some(&json!("approval_expired")));
    }

    #[test]
    fn a_revoke_and_its_end_say_what_and_by_whom() {
        let gone = json_of(&revoked(Revoked::Function("store.refund"), By::Uid(0), Some("incident 7")));
        assert_eq!(gone.pointer("/what/function"), Some(&json!("store.refund")));
        assert_eq!(gone.get("comment"), Some(&json!("incident 7")));
        let back = json_of(&restored(Revoked::Principal("uid:1000"), By::Uid(0), None));
        assert_eq!((back.get("event"), back.pointer("/what/principal")), (Some(&json!("restored")), Some(&json!("uid:1000"))));
        assert_eq!(back.get("comment"), None);
        assert_eq!(
            json_of(&revoked(Revoked::Evaluation("ev_1"), By::Signal("SIGHUP"), None)).pointer("/what/evaluation"),
            Some(&json!("ev_1"))
        );
    }

    #[test]
    fn a_reload_names_both_versions_and_a_refused_one_says_why() {
        let loaded = json_of(&policy_reloaded("a1", "b2", By::Signal("SIGHUP")));
        assert_eq!((loaded.get("old"), loaded.get("new")), (Some(&json!("a1")), Some(&json!("b2"))));
        assert_eq!(loaded.pointer("/by/signal"), Some(&json!("SIGHUP")));
        let refused = json_of(&policy_refused("a1", "line 3: no such key", By::Uid(0)));
        assert_eq!((refused.get("holds"), refused.get("why")), (Some(&json!("a1")), Some(&json!("line 3: no such key"))));
    }
}
