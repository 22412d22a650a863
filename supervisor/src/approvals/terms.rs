//! Who may decide.
//!
//! Owns the rule: whoever one of the rule's approvers means, by what the kernel says of
//! them, and never the user for whom the call would run. Root is no exception on either
//! side: it decides only where the rule names it, and not for itself. What this can not
//! hold is a person who has two users: give approvers a user of their own.

use crate::host::permission::AskTerms;
use crate::policy::Facts;

/// Why they may not; nothing when they may.
pub(super) fn refusal(terms: &AskTerms, requester: u32, who: &Facts) -> Option<String> {
    if who.uid == requester {
        return Some(format!("user {requester} asked for this call, and nobody decides their own"));
    }
    if terms.approvers.iter().any(|approver| approver.matches(who)) {
        return None;
    }
    Some(format!("the rule asks {}; user {} is none of them", terms.approver_names.join(", "), who.uid))
}
