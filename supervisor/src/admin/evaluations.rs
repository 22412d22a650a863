//! `evaluations.list` and `evaluations.kill`.

use super::Speaker;
use super::methods::said;
use crate::audit::event::Revoked;
use crate::service::{Act, Service};
use brig_protocol::admin::{EvaluationsListResult, KillParams};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::rpc::ErrorData;
use tokio::time::Instant;

/// What runs.
pub(super) fn list(service: &Service) -> EvaluationsListResult {
    EvaluationsListResult { evaluations: service.running.infos(Instant::now()) }
}

/// Ends an evaluation.
///
/// # Errors
/// `evaluation_not_found`: it may have ended by itself.
pub(super) fn kill(service: &Service, speaker: &Speaker, params: KillParams) -> Result<(), ErrorData> {
    let reason = said("reason", params.reason)?;
    let evaluation = escaped(&params.evaluation, 100);
    if !service.running.kill(&params.evaluation) {
        let sentence = format!("no evaluation {evaluation:?} runs; it may be over already");
        return Err(ErrorData::new(RequestCode::EvaluationNotFound, sentence));
    }
    service.record_operator(speaker.facts.uid, Act::Revoked(Revoked::Evaluation(&evaluation)), reason.as_deref());
    Ok(())
}
