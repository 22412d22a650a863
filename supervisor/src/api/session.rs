//! What is answered from what is known, without a worker.
//!
//! Owns `initialize`, and which methods this build does not offer: they answer so, and
//! never guess.

use super::{AtOnce, params, vm};
use crate::listener::Peer;
use crate::policy::Grant;
use crate::service::Service;
use brig_protocol::client::{InitializeParams, InitializeResult, PROTOCOL_VERSION, Principal, ServerInfo, VmListResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::rpc::{self, ErrorData, Id};
use serde::Deserialize;

/// Params of methods that have none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

/// The answer line of a method that is answered from what is known.
///
/// # Errors
/// What is wrong with the request, or that it is not offered.
pub(crate) fn answer_at_once(
    service: &Service,
    (peer, grant): (Peer, &Grant),
    id: &Id,
    method: AtOnce,
    text: &str,
) -> Result<Vec<u8>, ErrorData> {
    match method {
        AtOnce::Initialize => initialize(service, (peer, grant), text).map(|result| rpc::result(id, &result)),
        AtOnce::VmList => {
            params::parse::<NoParams>(text)?;
            Ok(rpc::result(id, &VmListResult { vms: service.vms.list(peer.uid) }))
        }
        AtOnce::VmDispose => {
            vm::dispose(service, peer, text)?;
            Ok(rpc::result(id, &serde_json::Map::new()))
        }
    }
}

fn initialize(service: &Service, (peer, grant): (Peer, &Grant), text: &str) -> Result<InitializeResult, ErrorData> {
    let asked: InitializeParams = params::parse(text)?;
    if let Some(version) = asked.protocol_version.as_deref().filter(|version| *version != PROTOCOL_VERSION) {
        let version = escaped(version, 50);
        let sentence = format!("params.protocolVersion is {version:?}; this brigd speaks {PROTOCOL_VERSION:?}");
        return Err(ErrorData::new(RequestCode::Unsupported, sentence));
    }
    if let Some(client) = asked.client {
        let (name, version) = (escaped(&client.name, 100), escaped(&client.version, 50));
        tracing::debug!(uid = peer.uid, client = %name, version = %version, "a client says who it is");
    }
    Ok(InitializeResult {
        protocol_version: PROTOCOL_VERSION.to_owned(),
        server: ServerInfo { name: "brigd".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        limits: grant.ceilings,
        sandbox: (*service.pool.sandbox()).clone(),
        principal: Principal { uid: peer.uid, gid: peer.gid },
    })
}
