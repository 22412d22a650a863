//! `brigd policy`: what a policy means, without running it.
//!
//! Owns the commands and their words. Never starts anything.

use super::counters::Counters;
use super::explain::{self, Name, Read};
use super::selector::{Accounts, NamedAccounts, Selector, SystemAccounts};
use super::{Facts, Policy, cases, lint, show};
use crate::admin::People;
use crate::config::layers::Layers;
use crate::config::tool::DEFAULT_PATH;
use crate::config::{Config, ConfigFault};
use crate::host::configured::{self, Catalogue, Kept};
use crate::host::permission::Kind;
use crate::host::schema::phrase::{nearest, quoted};
use crate::say::{self, print};
use crate::survey::{self, Whose};
use brig_protocol::escape::ShowPath as _;
use brig_protocol::names;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Say what a policy means, and test it before it is loaded.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PolicyTool {
    /// Read a policy, and say what it means and what in it is suspect.
    Check {
        /// The configuration file; `conf.d` beside it is read as well.
        #[arg(default_value = DEFAULT_PATH)]
        file: PathBuf,
        /// Only the section for this principal, as in `uid:1000,group:agents`.
        #[arg(long, value_name = "PRINCIPAL")]
        principal: Option<String>,
        /// A file of cases whose `[users]` and `[groups]` name ids.
        #[arg(long, value_name = "CASES")]
        names: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Run cases: who calls what, and what is to be decided.
    Test {
        /// The file of cases.
        file: PathBuf,
    },
    /// Say what would be decided about one call, and by which rule.
    Explain {
        /// The configuration file; `conf.d` beside it is read as well.
        #[arg(default_value = DEFAULT_PATH)]
        file: PathBuf,
        /// Who calls, as in `user:ada` or `uid:1000,gid:100,unit:agent.service`.
        #[arg(long, value_name = "PRINCIPAL")]
        principal: String,
        /// What is called, as in `orders.refund`.
        #[arg(long, value_name = "FUNCTION")]
        function: String,
        /// With what, as JSON; without it, whether any call could be allowed.
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
        /// It is a function that the client declares, not a configured one.
        #[arg(long)]
        callback: bool,
        /// A file of cases whose `[users]` and `[groups]` name ids.
        #[arg(long, value_name = "CASES")]
        names: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
}

/// Why a tool did not do its work.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolFault {
    /// The policy.
    #[error(transparent)]
    Config(#[from] ConfigFault),
    /// What was asked.
    #[error("{0}")]
    Asked(String),
}

impl PolicyTool {
    /// Does the work: 0 when it is well, 1 when a case is not as expected, 2 when there
    /// is something to be mended first.
    pub(crate) fn run(&self) -> ExitCode {
        let told = match self {
            Self::Check { file, principal, names, whose } => {
                check((file, whose), principal.as_deref(), names.as_deref()).map(|text| (text, true))
            }
            Self::Test { file } => cases::run(file),
            Self::Explain { file, principal, function, input, callback, names, whose } => {
                let kind = if *callback { Kind::Callbacks } else { Kind::Functions };
                explain((file, whose), names.as_deref(), principal, (kind, function), input.as_deref()).map(|text| (text, true))
            }
        };
        match told {
            Ok((text, true)) => print(&text),
            Ok((text, false)) => {
                print(&text);
                ExitCode::from(1)
            }
            Err(ToolFault::Config(faults)) => {
                faults.each().iter().for_each(|fault| say::complain(&fault.to_string()));
                ExitCode::from(2)
            }
            Err(fault) => {
                say::complain(&fault.to_string());
                ExitCode::from(2)
            }
        }
    }
}

/// A configuration and its policy, with names that a file of cases may add.
pub(super) fn loaded(file: &Path, accounts: &NamedAccounts) -> Result<(Layers, Config, Policy), ToolFault> {
    let layers = Layers::read(file)?;
    let config = layers.config_with(accounts)?;
    let policy = Policy::compile_with(&config, accounts, None).map_err(|fault| layers.placed(fault))?;
    Ok((layers, config, policy))
}

fn named(names: Option<&Path>) -> Result<NamedAccounts, ToolFault> {
    names.map_or_else(|| Ok(NamedAccounts::default()), |path| cases::read(path).map(|cases| cases.accounts()))
}

fn check((file, whose): (&Path, &Whose), principal: Option<&str>, names: Option<&Path>) -> Result<String, ToolFault> {
    let accounts = named(names)?;
    let (layers, config, policy) = loaded(file, &accounts)?;
    let files: Vec<String> = layers.files.iter().map(|file| file.shown().to_string()).collect();
    let mut text = format!("policy {} is valid: {}\n", policy.version(), files.join(", "));
    let section = principal.map(|principal| facts(principal, &accounts)).transpose()?.map(|facts| policy.grant(&facts).section.to_string());
    if policy.sections().is_none() {
        text.push_str("there is no [principals]: root, the user that brigd runs as and clients.uids may call what they declare\n");
    }
    if section.as_deref() == Some("") && policy.sections().is_some() {
        text.push_str("no section is about this principal: it may do nothing\n");
    }
    for (name, table) in config.principals.iter().filter(|(name, _)| section.as_ref().is_none_or(|section| section == *name)) {
        show::section(name, table, &mut text);
    }
    let catalogue = functions(&config, file, whose);
    for disabled in catalogue.iter().flat_map(Catalogue::disabled) {
        text.push_str(&format!("warning: a file of functions can not be used, `config check` says the same: {disabled}\n"));
    }
    let judged = |source: &configured::Source| functions_by(&config, file, source).unwrap_or_default();
    if let Some(whom) = catalogue.as_ref().and_then(|catalogue| survey::as_whom(file, whose, catalogue, judged)) {
        text.push_str(&format!("warning: {whom}\n"));
    }
    let briefs = catalogue.as_ref().and_then(Catalogue::briefs);
    let mut warnings = lint::warnings(&config, lint::Known { functions: briefs.as_deref() });
    if let (Some(_), Ok(people)) = (&catalogue, People::with(&config, &accounts)) {
        warnings.extend(lint::approvers(&config, |approver| people.let_in(approver)));
    }
    for warning in warnings {
        text.push_str(&format!("warning: {}\n", survey::told(&warning, Some(&layers))));
    }
    Ok(text)
}

/// The functions that are configured beside a policy; nothing where there is no folder: a
/// policy can be written, and checked, before there are any.
pub(super) fn functions(config: &Config, file: &Path, whose: &Whose) -> Option<Catalogue> {
    functions_by(config, file, &survey::source(file, whose))
}

fn functions_by(config: &Config, file: &Path, source: &configured::Source) -> Option<Catalogue> {
    let folder = config.functions.folder(Some(file)).filter(|folder| folder.exists())?;
    // Whether there is a state directory is the host's affair, which `config check` looks at.
    Some(configured::load(&folder, source, Kept::OnDisk))
}

fn explain(
    (file, whose): (&Path, &Whose),
    names: Option<&Path>,
    principal: &str,
    (kind, function): (Kind, &str),
    input: Option<&str>,
) -> Result<String, ToolFault> {
    let accounts = named(names)?;
    let (_, config, policy) = loaded(file, &accounts)?;
    let grant = policy.grant(&facts(principal, &accounts)?);
    let catalogue = functions(&config, file, whose).filter(|_| kind == Kind::Functions);
    let function = &full_name(catalogue.as_ref(), function);
    let name = Name::parse(function).map_err(ToolFault::Asked)?;
    let read = input.map(|text| Read::new(text, explain::scopes(&grant, kind)));
    let read = read.transpose().map_err(|fault| ToolFault::Asked(format!("the input {fault}")))?;
    let said = explain::explained(&grant, kind, name, read.as_ref(), &Counters::default());
    let note = catalogue.and_then(|catalogue| not_callable(&catalogue, function));
    Ok(format!("{}{}", show::explained(function, &said), note.map(|note| format!("  note: {note}\n")).unwrap_or_default()))
}

/// The command spelling, `order-store:list-orders`, as one that is configured is spelt, else
/// in camel case. Any other name as it is.
pub(super) fn full_name(catalogue: Option<&Catalogue>, asked: &str) -> String {
    let Some((collection, function)) = asked.split_once(':') else { return asked.to_owned() };
    let same = |brief: &configured::Brief| names::kebab(&brief.collection) == collection && names::kebab(&brief.name) == function;
    match catalogue.and_then(Catalogue::briefs).unwrap_or_default().into_iter().find(same) {
        Some(brief) => format!("{}.{}", brief.collection, brief.name),
        None => format!("{}.{}", names::camel(collection), names::camel(function)),
    }
}

/// Why a call would not even come to the policy: a rule decides about any name, also about one
/// that nothing has.
fn not_callable(catalogue: &Catalogue, function: &str) -> Option<String> {
    if catalogue.has(function) {
        return None;
    }
    let Some(briefs) = catalogue.briefs() else {
        return Some(
            "whether there is such a function is not known: a file of functions can not be read; `config check` says why".to_owned(),
        );
    };
    let names: Vec<String> = briefs.iter().map(|brief| format!("{}.{}", brief.collection, brief.name)).collect();
    if names.iter().any(|name| name == function) {
        return Some("its file of functions is not used, so nobody can call it; `config check` says why".to_owned());
    }
    let near = nearest(function, names.iter().map(String::as_str)).map(|near| format!("; did you mean {}?", quoted(near)));
    Some(format!("no function of this name is configured, so nobody can call it{}", near.unwrap_or_default()))
}

/// Who is meant by `user:ada` or `uid:1,gid:2,gid:3,unit:a.service`. The first group is
/// the primary one; a user of this system without any has its own.
pub(super) fn facts(text: &str, accounts: &NamedAccounts) -> Result<Facts, ToolFault> {
    let mut facts = Facts { uid: u32::MAX, gid: u32::MAX, ..Facts::default() };
    for part in text.split(',').map(str::trim) {
        match Selector::parse(part, accounts).map_err(|right| ToolFault::Asked(format!("the principal {part:?}: {right}")))? {
            Selector::Uid(uid) => facts.uid = uid,
            Selector::Gid(gid) if facts.gid == u32::MAX => facts.gid = gid,
            Selector::Gid(gid) => facts.groups.push(gid),
            Selector::Unit(unit) => facts.unit = Some(unit),
            Selector::Everybody => {}
        }
    }
    if facts.gid == u32::MAX
        && let Some(name) = text.strip_prefix("user:")
        && accounts.uid(name) == SystemAccounts.uid(name)
    {
        let (primary, others) = SystemAccounts.groups_of(name);
        (facts.gid, facts.groups) = (primary.unwrap_or(u32::MAX), others);
    }
    Ok(facts)
}
