//! `status`: everything about this brigd, in figures.

use crate::service::{Phase, Service};
use brig_protocol::admin::{JournalStatus, PrincipalStatus, QueueStatus, StatusResult, WorkersStatus};
use brig_protocol::escape::ShowPath as _;
use std::collections::BTreeMap;

/// What there is now.
pub(super) fn status(service: &Service) -> StatusResult {
    let (running, waiting) = service.admission.counts();
    let pool = service.pool.stats();
    let revoked = service.revocations.list();
    let catalogue = service.catalogue();
    StatusResult {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_ms: u64::try_from(service.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        phase: match *service.phase().borrow() {
            Phase::Serving => "serving",
            Phase::Draining => "draining",
            Phase::Ending => "ending",
        }
        .to_owned(),
        sandbox: (*service.pool.sandbox()).clone(),
        workers: WorkersStatus {
            ready: pool.ready,
            coming: pool.coming,
            leased: pool.leased,
            ending: pool.ending,
            waiting: pool.waiting,
            nurseries: pool.nurseries,
            abnormal_deaths: pool.abnormal_deaths,
            failures: u64::from(pool.failures),
            last_failure: pool.last_failure,
        },
        queue: QueueStatus { running, waiting },
        principals: principals(service),
        vms: service.vms.count(),
        policy_version: service.policy.current().version().to_string(),
        approvals_waiting: service.approvals.waiting(),
        functions_revoked: revoked.functions.len(),
        principals_revoked: revoked.principals.len(),
        revocations_unwritten: service.revocations.is_unwritten(),
        functions: catalogue.count(),
        files_off: catalogue.disabled().iter().map(super::policy::file_off).collect(),
        warnings: service.warnings(),
        audit: service.audit.status(),
        journal: journal(service),
        counters: service
            .metrics
            .counters()
            .into_iter()
            .chain([("approvals_asked", service.approvals.asked())])
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        failures: service.metrics.failures().map(|(code, count)| (code.as_str().to_owned(), count)).collect(),
    }
}

fn journal(service: &Service) -> JournalStatus {
    let place = service.config.server.state_dir.as_ref().map(|folder| folder.shown().to_string());
    JournalStatus {
        durable: service.journal.is_durable(),
        place: place.unwrap_or_else(|| "memory".to_owned()),
        detached: service.detached.len(),
    }
}

fn principals(service: &Service) -> Vec<PrincipalStatus> {
    let mut found: BTreeMap<u32, PrincipalStatus> = BTreeMap::new();
    for (uid, running, waiting) in service.admission.shares() {
        let principal = found.entry(uid).or_default();
        (principal.running, principal.waiting) = (running, waiting);
    }
    for (uid, connections) in service.doors.open() {
        found.entry(uid).or_default().connections = connections;
    }
    found.into_iter().map(|(uid, principal)| PrincipalStatus { uid, ..principal }).collect()
}
