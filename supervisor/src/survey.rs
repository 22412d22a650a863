//! Everything about a configuration that a start or a reload would refuse or warn of.
//!
//! Owns looking at all of it at once, without starting, making or locking anything, and the
//! warnings about what loads and yet most likely is not meant. Never decides what is right:
//! each part says that of itself.

use crate::admin::{People, Revocations};
use crate::config::Config;
use crate::config::layers::Layers;
use crate::host::configured::{self, Catalogue, Kept};
use crate::journal::StateDir;
use crate::policy::Policy;
use crate::policy::lint::{self, Known, Warning};
use crate::policy::selector::{Accounts as _, SystemAccounts};
use crate::reload::{check_kept, kept};
use brig_protocol::escape::ShowPath as _;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the service's configuration is, and what its unit gives brigd there.
const SERVICE_CONFIG: &str = "/etc/brig/brig.toml";
const SERVICE_STATE: &str = "/var/lib/brig";
const SERVICE_CREDENTIALS: &str = "/run/credentials/brigd.service";
const SERVICE_USER: &str = "brigd";
/// A user who is not root and has no files.
const NOBODY: u32 = 65_534;

/// What brigd will be given besides the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Given {
    #[command(flatten)]
    pub(crate) whose: Whose,
    /// The state directory that brigd will be given [default: server.state_dir, then
    /// $STATE_DIRECTORY; that of the unit, for the service's own file].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// By whose rights and credentials functions are judged.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Whose {
    /// As whom brigd will run, by name or id [default: whoever runs this; brigd, for the
    /// service's own file].
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The folder of credentials that brigd will be given [default: $CREDENTIALS_DIRECTORY;
    /// that of the running service, for the service's own file].
    #[arg(long, value_name = "DIR")]
    pub(crate) credentials: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// How many functions could be called.
    pub(crate) functions: usize,
    /// What a start or a reload refuses, or leaves out.
    pub(crate) errors: Vec<String>,
    /// What loads and should be mended.
    pub(crate) warnings: Vec<String>,
}

/// Looks at a configuration and at all that belongs to it.
pub(crate) fn look(file: &Path, given: &Given) -> Found {
    let mut found = Found::default();
    let layers = match Layers::read(file) {
        Ok(layers) => layers,
        Err(fault) => {
            found.errors.extend(fault.each().iter().map(ToString::to_string));
            return with_functions(found, &Config::default(), file, given, Kept::OnDisk).0;
        }
    };
    found.files.clone_from(&layers.files);
    match layers.config() {
        Ok(mut config) => {
            config.server.state_dir = state_dir(&config, file, given);
            let (mut found, catalogue) = with_functions(found, &config, file, given, kept(&config));
            policy(&config, &layers, &catalogue, &mut found);
            places(&config, file, given, &mut found);
            found
        }
        Err(fault) => {
            found.errors.extend(fault.each().iter().map(ToString::to_string));
            with_functions(found, &Config::default(), file, given, Kept::OnDisk).0
        }
    }
}

fn is_service(file: &Path) -> bool {
    file == Path::new(SERVICE_CONFIG)
}

fn state_dir(config: &Config, file: &Path, given: &Given) -> Option<PathBuf> {
    let inherited = || std::env::var_os("STATE_DIRECTORY").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let of_unit = || is_service(file).then(|| PathBuf::from(SERVICE_STATE));
    given.state.clone().or_else(|| config.server.state_dir.clone()).or_else(inherited).or_else(of_unit)
}

/// Whose credentials and programs the functions of a configuration are judged by.
pub(crate) fn source(file: &Path, whose: &Whose) -> configured::Source {
    let mut source = configured::Source { own: own_uid(file, whose).ok(), ..configured::Source::of_process() };
    if let Some(folder) = &whose.credentials {
        source.folder = Some(folder.clone());
    } else if source.folder.is_none() && is_service(file) {
        source.folder = Some(SERVICE_CREDENTIALS.into());
    }
    source
}

/// What to say beside files that can not be used, where root looks at the configuration of a
/// brigd that may well run as another user, for whom something else would be wrong: `judged`
/// says what is, by the rights of one.
pub(crate) fn as_whom(
    file: &Path,
    whose: &Whose,
    catalogue: &Catalogue,
    judged: impl FnOnce(&configured::Source) -> Catalogue,
) -> Option<String> {
    let guessed = whose.user.is_none() && !is_service(file) && rustix::process::geteuid().is_root();
    if !guessed || catalogue.disabled().is_empty() {
        return None;
    }
    let other = judged(&configured::Source { own: Some(NOBODY), ..source(file, whose) });
    let matters = catalogue.disabled().iter().any(|one| !other.disabled().contains(one));
    matters.then(|| "files are judged as for a brigd that runs as root; --user USER says as whom it will".to_owned())
}

/// The functions too. Where the configuration can not be read nobody knows of a state
/// directory, and a second fault about that would be noise.
fn with_functions(mut found: Found, config: &Config, file: &Path, given: &Given, kept: Kept) -> (Found, Catalogue) {
    let folder = config.functions.folder(Some(file));
    let judged = |source: &configured::Source| folder.as_ref().map(|folder| configured::load(folder, source, kept)).unwrap_or_default();
    let catalogue = judged(&source(file, &given.whose));
    found.errors.extend(catalogue.disabled().iter().map(ToString::to_string));
    found.warnings.extend(as_whom(file, &given.whose, &catalogue, judged));
    found.functions = catalogue.count();
    (found, catalogue)
}

fn policy(config: &Config, layers: &Layers, catalogue: &Catalogue, found: &mut Found) {
    let compiled = Policy::compile_with(config, &SystemAccounts, catalogue.known().as_ref());
    let kept = compiled.and_then(|policy| check_kept(&policy, config.server.state_dir.as_deref()));
    if let Err(fault) = kept {
        found.errors.extend(fault.each().into_iter().map(|fault| layers.placed(fault).to_string()));
    }
    if let Ok(people) = People::of(config) {
        let all = warnings(config, &people, catalogue);
        // What is refused is not warned of as well.
        let refused = |warning: &Warning| found.errors.iter().any(|fault| fault.contains(&format!("{} is set to", warning.place)));
        let told: Vec<String> = all.iter().filter(|warning| !refused(warning)).map(|warning| told(warning, Some(layers))).collect();
        found.warnings.extend(told);
    }
}

/// A warning with the place of what it is about.
pub(crate) fn told(warning: &Warning, layers: Option<&Layers>) -> String {
    let place = layers.and_then(|layers| layers.innermost(&warning.place)).map(|place| format!("{place}: ")).unwrap_or_default();
    format!("{place}{}: {}", warning.place, warning.sentence)
}

/// Everything that loads and should be mended: of the policy, and of who decides.
pub(crate) fn warnings(config: &Config, people: &People, catalogue: &Catalogue) -> Vec<Warning> {
    let briefs = catalogue.briefs();
    let mut all = lint::warnings(config, Known { functions: briefs.as_deref() });
    all.extend(lint::approvers(config, |approver| people.let_in(approver)));
    all.extend(doors(config));
    all
}

/// Approvers and admins whom the file mode of the admin socket keeps out.
fn doors(config: &Config) -> Vec<Warning> {
    let admin = &config.admin;
    let somebody = !(admin.uids.is_empty() && admin.groups.is_empty() && admin.approvers.is_empty());
    let mut all = Vec::new();
    if config.server.admin_socket.is_some() && somebody && config.admin_socket_mode().ok() == Some(0o600) {
        let sentence =
            "\"0600\" lets only brigd's own user and root connect, whatever [admin] says; \"0660\" lets the group of the socket in";
        all.push(Warning { place: "server.admin_socket_mode".to_owned(), sentence: sentence.to_owned() });
    }
    if config.server.socket.is_some() && config.server.admin_socket.is_none() && lint::asks(config) {
        let sentence = "there is none, so nobody can decide what rules ask about; set it, or give brigd --admin-socket";
        all.push(Warning { place: "server.admin_socket".to_owned(), sentence: sentence.to_owned() });
    }
    all
}

/// Folders and files that a start opens.
fn places(config: &Config, file: &Path, given: &Given, found: &mut Found) {
    let own = match own_uid(file, &given.whose) {
        Ok(own) => own,
        Err(fault) => return found.errors.push(fault),
    };
    if let Some(state) = &config.server.state_dir {
        if let Err(fault) = StateDir::look(state, own) {
            found.errors.push(fault.to_string());
        } else if let Err(fault) = Revocations::open(Some(state)) {
            let me = nix::unistd::geteuid();
            // That it is closed to others is as it should be.
            if fault.is_closed() && !me.is_root() && me.as_raw() != own {
                let sentence = "it is closed to this user, so not looked into; root and brigd's own user can";
                found.warnings.push(format!("{}: {sentence}", state.shown()));
            } else {
                found.errors.push(fault.to_string());
            }
        }
    }
    let figures = config.shown().ok().and_then(|shown| shown.socket);
    let sockets =
        [("server.socket", &config.server.socket), ("server.admin_socket", &config.server.admin_socket), ("metrics.socket", &figures)];
    let mut missing = BTreeSet::new();
    for (setting, path) in sockets {
        let Some(folder) = path.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty()) else { continue };
        // The state directory is made by the start, before what is in it.
        let comes = config.server.state_dir.as_deref() == Some(folder);
        if !comes && !folder.is_dir() && missing.insert(folder.to_owned()) {
            found.errors.push(format!(
                "{setting}: the folder {} is not there; make it: install -d -o {own} {}",
                folder.shown(),
                folder.shown()
            ));
        }
    }
}

fn own_uid(file: &Path, whose: &Whose) -> Result<u32, String> {
    match &whose.user {
        Some(name) => {
            let number = name.parse().ok();
            number.or_else(|| SystemAccounts.uid(name)).ok_or_else(|| format!("--user {name}: there is no such user on this system"))
        }
        None => {
            let own = rustix::process::geteuid().as_raw();
            let of_unit = is_service(file).then(|| SystemAccounts.uid(SERVICE_USER)).flatten();
            Ok(of_unit.unwrap_or(own))
        }
    }
}
