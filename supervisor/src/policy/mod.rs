//! Who may do what: the operator's policy, compiled.
//!
//! Owns the snapshot that holds now ([`PolicyStore`]), and what of it applies to one
//! principal ([`Grant`]). A snapshot never changes; a reload puts another in its place.
//! Never decides about one call: [`crate::host::permission`] does, with what a grant says.
//!
//! One section applies, the most specific; sections are never merged. In order: `uid:`
//! and `user:`; `unit:`; the primary group; the first of the supplementary groups in the
//! order of the sections' names; `*`. Whoever no section is about may do nothing.

pub(crate) mod amount;
mod cases;
pub(crate) mod clock;
mod compile;
pub(crate) mod counters;
pub(crate) mod document;
pub(crate) mod explain;
mod facts;
pub(crate) mod lint;
mod live;
pub(crate) mod peer;
pub(crate) mod selector;
mod show;
pub(crate) mod tool;

#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod tests;

pub(crate) use facts::Facts;
pub(crate) use live::Live;

use crate::changes::Replaceable;
use crate::config::{Config, ConfigFault, fault};
use crate::host::permission::{Holder, Kind, Known, Loader, Scope, ScopeSet};
use brig_protocol::limits::Limits;
use selector::{Accounts, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much a principal may have at once; what is not set is as for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quotas {
    /// Evaluations that run at the same time.
    pub(crate) running: Option<usize>,
    /// Evaluations that wait.
    pub(crate) queued: Option<usize>,
    /// Kept workers.
    pub(crate) vms: Option<usize>,
    /// Host calls in any minute.
    pub(crate) calls_per_minute: Option<u64>,
}

/// What policy says about one principal.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    /// The name of the section that applies; empty when none does.
    pub(crate) section: Arc<str>,
    /// Whether it may use brigd at all.
    pub(crate) may_evaluate: bool,
    /// The setting that would let it.
    pub(crate) admitted_by: &'static str,
    /// Its ceilings.
    pub(crate) ceilings: Limits,
    /// How much it may have at once.
    pub(crate) quotas: Quotas,
    /// Which functions that it declares it may call.
    pub(crate) callbacks: ScopeSet,
    /// Which configured functions it may call.
    pub(crate) functions: ScopeSet,
    /// Which policy says so.
    pub(crate) version: Arc<str>,
}

/// One section, compiled.
#[derive(Debug)]
pub(crate) struct Section {
    /// As the operator wrote it.
    pub(crate) name: Arc<str>,
    /// Ceilings.
    pub(crate) ceilings: Limits,
    /// Quotas.
    pub(crate) quotas: Quotas,
    /// What it says about functions that a client declares.
    pub(crate) callbacks: Arc<Scope>,
    /// What it says about configured functions.
    pub(crate) functions: Arc<Scope>,
}

/// All sections, by whom they are about.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    uids: BTreeMap<u32, Arc<Section>>,
    units: BTreeMap<String, Arc<Section>>,
    /// In the order of the sections' names.
    gids: Vec<(u32, Arc<Section>)>,
    everybody: Option<Arc<Section>>,
}

impl Sections {
    /// Adds one, in the order of the names. The name of one that is there already for the
    /// same principal comes back.
    fn insert(&mut self, selector: Selector, section: Arc<Section>) -> Option<Arc<str>> {
        let other = match selector {
            Selector::Uid(uid) => self.uids.insert(uid, section),
            Selector::Unit(unit) => self.units.insert(unit, section),
            Selector::Everybody => self.everybody.replace(section),
            Selector::Gid(gid) => {
                let other = self.gids.iter().find(|(own, _)| *own == gid).map(|(_, section)| Arc::clone(section));
                self.gids.push((gid, section));
                other
            }
        };
        other.map(|other| Arc::clone(&other.name))
    }

    /// The one that applies.
    fn of(&self, facts: &Facts) -> Option<&Arc<Section>> {
        if let Some(own) = self.uids.get(&facts.uid) {
            return Some(own);
        }
        // What could not be read could be what a section is about: nobody falls through to
        // a wider one by hiding what he is.
        if facts.unseen.is_some() && !(self.units.is_empty() && self.gids.is_empty()) {
            return None;
        }
        let by_group = |wanted: &dyn Fn(u32) -> bool| self.gids.iter().find(|(gid, _)| wanted(*gid)).map(|(_, section)| section);
        let unit = || facts.unit.as_ref().and_then(|unit| self.units.get(unit));
        unit()
            .or_else(|| by_group(&|gid| gid == facts.gid))
            .or_else(|| by_group(&|gid| facts.groups.contains(&gid)))
            .or(self.everybody.as_ref())
    }
}

/// All of the policy, as it was loaded.
#[derive(Debug)]
pub(crate) struct Policy {
    own_uid: u32,
    uids: BTreeSet<u32>,
    ceilings: Limits,
    /// Nothing: the embedded default holds.
    sections: Option<Sections>,
    version: Arc<str>,
}

impl Policy {
    /// The policy of a configuration, on this system. Patterns are not compared with
    /// what is configured.
    #[cfg(test)]
    pub(crate) fn compile(config: &Config) -> Result<Self, ConfigFault> {
        Self::compile_with(config, &selector::SystemAccounts, None)
    }

    /// The policy of a configuration, with names from these accounts, and with the functions
    /// that patterns of `host_function` can be about.
    ///
    /// # Errors
    /// What is wrong, where, and what would be right.
    pub(crate) fn compile_with(config: &Config, accounts: &(dyn Accounts + Sync), known: Option<&Known>) -> Result<Self, ConfigFault> {
        let ceilings = config.ceilings()?;
        if !config.principals.is_empty() && !config.clients.uids.is_empty() {
            let right = "with [principals] they alone say who may evaluate; write a section for each instead";
            return Err(fault("clients.uids", "a list", right));
        }
        let sections = match config.principals.is_empty() {
            true => None,
            false => Some(compile::with_stack(|| compile::sections(config, ceilings, Loader { accounts, known }))?),
        };
        let own_uid = rustix::process::geteuid().as_raw();
        Ok(Self { own_uid, uids: config.clients.uids.clone(), ceilings, sections, version: compile::version(config, &ceilings) })
    }

    /// What it says about this principal. Without `[principals]` only the user that
    /// brigd runs as, root, and `clients.uids` may evaluate; they may call whatever they
    /// declare. What is configured only the user that brigd runs as may call.
    pub(crate) fn grant(&self, facts: &Facts) -> Arc<Grant> {
        let version = Arc::clone(&self.version);
        let Some(sections) = &self.sections else {
            let may_evaluate = facts.uid == 0 || facts.uid == self.own_uid || self.uids.contains(&facts.uid);
            return Arc::new(Grant {
                section: Arc::default(),
                may_evaluate,
                admitted_by: "clients.uids",
                ceilings: self.ceilings,
                quotas: Quotas::default(),
                callbacks: ScopeSet::unconfigured(facts.uid, facts.uid),
                functions: ScopeSet::unconfigured(facts.uid, self.own_uid),
                version,
            });
        };
        let section = sections.of(facts);
        let name = section.map(|section| Arc::clone(&section.name)).unwrap_or_default();
        let scope = |kind, of: fn(&Section) -> &Arc<Scope>| {
            let holder = Holder { section: Arc::clone(&name), uid: facts.uid, kind };
            section
                .map(|section| ScopeSet::of(holder, Arc::clone(of(section))).at_most(section.quotas.calls_per_minute))
                .unwrap_or_default()
        };
        Arc::new(Grant {
            may_evaluate: section.is_some(),
            admitted_by: "principals",
            ceilings: section.map_or(self.ceilings, |section| section.ceilings),
            quotas: section.map(|section| section.quotas).unwrap_or_default(),
            callbacks: scope(Kind::Callbacks, |section| &section.callbacks),
            functions: scope(Kind::Functions, |section| &section.functions),
            section: name,
            version,
        })
    }

    /// Whether any rule needs a person.
    pub(crate) fn asks(&self) -> bool {
        self.any(Scope::asks)
    }

    /// Whether any budget has to outlive brigd.
    pub(crate) fn counts_long(&self) -> bool {
        self.any(Scope::counts_long)
    }

    fn any(&self, of: fn(&Scope) -> bool) -> bool {
        let Some(Sections { uids, units, gids, everybody }) = &self.sections else { return false };
        let mut all = uids.values().chain(units.values()).chain(gids.iter().map(|(_, section)| section)).chain(everybody);
        all.any(|section| of(&section.callbacks) || of(&section.functions))
    }

    /// Names this policy: the same tables have the same version.
    pub(crate) const fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// Its sections, when there are any.
    pub(crate) const fn sections(&self) -> Option<&Sections> {
        self.sections.as_ref()
    }
}

/// The policy that holds now.
pub(crate) type PolicyStore = Replaceable<Policy>;
