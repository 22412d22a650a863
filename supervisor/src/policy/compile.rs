//! From the tables of a configuration to sections that can be asked.
//!
//! Owns reading `[principals]` strictly: two sections about the same principal, a
//! ceiling above everybody's, a quota of nothing. Each complaint has its place. Never
//! decides which section applies: [`super::Sections`] does.

use super::document::{PrincipalTable, QuotaTable, ScopeTable};
use super::selector::Selector;
use super::{Quotas, Section, Sections};
use crate::config::{Config, ConfigFault, all_well, fault, limits_over};
use crate::host::permission::{Kind, Loader, Scope, condition};
use brig_protocol::client::Mode;
use brig_protocol::limits::{LIMITS, Limits};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stack for compiling: what a schema within its bounds takes. Only what is used is
/// ever touched.
const STACK_BYTES: usize = 256 * 1024 * 1024;
/// Most sections.
const SECTIONS: usize = 1024;
/// Most of anything that a quota counts.
const QUOTA: u64 = 1_000_000;

/// Reads all sections, on a thread that has the stack for it.
///
/// # Errors
/// What is wrong, where, and what would be right.
pub(super) fn sections(config: &Config, ceilings: Limits, loader: Loader<'_>) -> Result<Sections, ConfigFault> {
    let tables = &config.principals;
    if tables.len() > SECTIONS {
        return Err(fault("principals", format!("{} sections", tables.len()), &format!("at most {SECTIONS} are taken")));
    }
    let mut sections = Sections::default();
    all_well(tables.iter().map(|(name, table)| {
        let place = format!("principals.{}", condition::spelt(name));
        let selector = Selector::parse(name, loader.accounts).map_err(|right| fault(&place, "a section", &right));
        let section = section(name, &place, table, ceilings, loader);
        let (selector, section) = both(selector, section)?;
        match sections.insert(selector, Arc::new(section)) {
            None => Ok(()),
            Some(other) => {
                let right = format!("{other:?} is about the same principal; one section applies, so write one");
                Err(fault(&place, "a section", &right))
            }
        }
    }))?;
    Ok(sections)
}

/// Both, or what is wrong with either.
fn both<A, B>(one: Result<A, ConfigFault>, other: Result<B, ConfigFault>) -> Result<(A, B), ConfigFault> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => Err(all_well([one.map(drop), other.map(drop)]).map(drop).err().unwrap_or(ConfigFault::Several(Vec::new()))),
    }
}

fn section(name: &str, place: &str, table: &PrincipalTable, base: Limits, loader: Loader<'_>) -> Result<Section, ConfigFault> {
    let others = table.callbacks.as_ref().is_some_and(|scope| *scope != ScopeTable::All(Mode::Deny));
    let scope = |kind, written: &Option<ScopeTable>| {
        let none = ScopeTable::All(Mode::Deny);
        loader.scope(place, kind, written.as_ref().unwrap_or(&none), others).map(Arc::new)
    };
    let scopes: Result<(Arc<Scope>, Arc<Scope>), ConfigFault> =
        both(scope(Kind::Callbacks, &table.callbacks), scope(Kind::Functions, &table.host_function));
    let bounds = both(ceilings(place, &table.limits, base), quotas(place, &table.quotas));
    let ((callbacks, functions), (ceilings, quotas)) = both(scopes, bounds)?;
    Ok(Section { name: name.into(), ceilings, quotas, callbacks, functions })
}

fn ceilings(place: &str, set: &BTreeMap<String, u64>, base: Limits) -> Result<Limits, ConfigFault> {
    let place = format!("{place}.limits");
    let own = limits_over(base, &place, set)?;
    let above = LIMITS.iter().zip(own.values().into_iter().zip(base.values())).find(|(_, (own, base))| own > base);
    match above {
        Some((row, (own, base))) => {
            let name = row.setting.strip_prefix("limits.").unwrap_or(row.name);
            let right = format!("it must be at most {base}, which is {} for everybody; raise that, too", row.setting);
            Err(fault(&format!("{place}.{name}"), own, &right))
        }
        None => Ok(own),
    }
}

fn quotas(place: &str, table: &QuotaTable) -> Result<Quotas, ConfigFault> {
    let count = |number: Option<usize>| number.map(|number| u64::try_from(number).unwrap_or(u64::MAX));
    for (name, value, least) in [
        ("running", count(table.running), 1),
        ("queued", count(table.queued), 0),
        ("vms", count(table.vms), 0),
        ("calls_per_minute", table.calls_per_minute, 0),
    ] {
        if let Some(value) = value.filter(|value| !(least..=QUOTA).contains(value)) {
            return Err(fault(&format!("{place}.quotas.{name}"), value, &format!("it must be between {least} and {QUOTA}")));
        }
    }
    let QuotaTable { running, queued, vms, calls_per_minute } = *table;
    Ok(Quotas { running, queued, vms, calls_per_minute })
}

/// Names a policy: the same tables have the same name, and no other tables have it.
pub(super) fn version(config: &Config, ceilings: &Limits) -> Arc<str> {
    let document = serde_json::json!({"principals": config.principals, "uids": config.clients.uids, "limits": ceilings});
    let hash = Sha256::digest(document.to_string().as_bytes());
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Runs `work` where there is stack enough to compile a schema.
///
/// # Errors
/// When there is no thread for it, or it panicked.
pub(super) fn with_stack<T: Send>(work: impl FnOnce() -> Result<T, ConfigFault> + Send) -> Result<T, ConfigFault> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("brig-policy".to_owned()).stack_size(STACK_BYTES);
        let failed = || fault("principals", "a policy", "it could not be compiled on this system");
        let thread = builder.spawn_scoped(scope, work).map_err(|_| failed())?;
        thread.join().map_err(|_| failed())?
    })
}
