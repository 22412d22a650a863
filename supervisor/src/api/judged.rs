//! Questions that need no worker, but may take time: `functions.list`, `.describe`,
//! `.types` and `policy.explain`.
//!
//! Owns where each is answered: on a thread for long work, in the turn of its user, unless
//! it is certain to be short. Never answers by itself.

use super::{explain, functions, types};
use crate::host::schema::Cost;
use crate::host::types::STEPS;
use crate::policy::Grant;
use crate::service::Service;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::{self, ErrorData, Id};
use std::sync::Arc;

/// What asking one function of the catalogue takes, in the steps of a judgement: every rule
/// of the policy may be held against it. Every revoke is one more.
const LOOK: u64 = 50;
/// What a byte of a schema that is written out as a type takes, in the same.
const WRITE: u64 = 10;

/// A method of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// `functions.list`
    FunctionsList,
    /// `functions.describe`
    FunctionsDescribe,
    /// `functions.types`
    FunctionsTypes,
    /// `policy.explain`
    PolicyExplain,
}

/// The answer line, for the user whose grant it is.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn answer(
    service: &Arc<Service>,
    asked: Judged,
    (grant, uid): (Arc<Grant>, u32),
    id: &Id,
    text: String,
) -> Result<Vec<u8>, ErrorData> {
    if asked == Judged::PolicyExplain {
        return explain::explain(service, grant, uid, text).await.map(|said| rpc::result(id, &said));
    }
    let (catalogue, revoked) = (service.catalogue(), Arc::clone(&service.revocations));
    let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let looks = u64::try_from(catalogue.count()).unwrap_or(u64::MAX).saturating_mul(LOOK + revoked.patterns());
    let written =
        if asked == Judged::FunctionsTypes { catalogue.schema_bytes().saturating_add(bytes).saturating_mul(WRITE) } else { bytes };
    let work = looks.saturating_add(written);
    // What is short goes less deep: no level of a schema is written in fewer bytes than ten.
    let steps = if asked == Judged::FunctionsTypes { STEPS.min(written / WRITE / 10) } else { 0 };
    let cost = Cost { work, steps, backtracks: false };
    let id = id.clone();
    let work = move || match asked {
        Judged::FunctionsList => functions::list(&catalogue, &grant, &revoked, &text).map(|result| rpc::result(&id, &result)),
        Judged::FunctionsDescribe => functions::describe(&catalogue, &grant, &text).map(|result| rpc::result(&id, &result)),
        _ => types::answer(&catalogue, &grant.functions, &revoked, &text).map(|result| rpc::result(&id, &result)),
    };
    let failed = || Err(ErrorData::new(RequestCode::InternalError, "the answer could not be made; nothing ran"));
    service.judges.run(uid, cost, work).await.unwrap_or_else(failed)
}
