//! Reading the configuration: one file, then the drop-ins beside it.
//!
//! Owns which files are read and in what order, that they may be trusted, and where each
//! setting comes from. A drop-in wins over what came before it, key by key; tables merge,
//! lists are replaced. Never knows what a setting means.

use super::{Config, ConfigFault, faults};
use crate::policy::selector::{Accounts, SystemAccounts};
use brig_protocol::escape::ShowPath as _;
use brig_protocol::spelling::unknown_name;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Longest configuration file, in bytes.
const FILE_BYTES: u64 = 1024 * 1024;
/// Most drop-ins.
const DROP_INS: usize = 256;
/// The folder of drop-ins, beside the configuration file.
const DROP_IN_FOLDER: &str = "conf.d";

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In which file.
    pub(crate) file: PathBuf,
    /// On which line, from 1.
    pub(crate) line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file.shown(), self.line)
    }
}

/// All layers as one.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// The files, in the order in which they were read.
    pub(crate) files: Vec<PathBuf>,
    merged: toml::Table,
    places: BTreeMap<String, Place>,
}

impl Layers {
    /// Reads `path` and the drop-ins beside it. Each file must be valid by itself, so
    /// that a fault is told with the file and the line it stands on.
    ///
    /// # Errors
    /// [`ConfigFault`] naming the file.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigFault> {
        let mut layers = Self::default();
        let own = layers.add(path);
        let others = match drop_ins(path) {
            Ok(files) => files.iter().map(|file| layers.add(file)).collect(),
            Err(fault) => vec![Err(fault)],
        };
        super::all_well(std::iter::once(own).chain(others))?;
        Ok(layers)
    }

    /// The configuration that they are together.
    ///
    /// # Errors
    /// [`ConfigFault`] with the place of the setting that can not be.
    pub(crate) fn config(&self) -> Result<Config, ConfigFault> {
        self.config_with(&SystemAccounts)
    }

    /// The same, with names of users and groups from elsewhere.
    ///
    /// # Errors
    /// [`ConfigFault`] with the place of the setting that can not be.
    pub(crate) fn config_with(&self, accounts: &(dyn Accounts + Sync)) -> Result<Config, ConfigFault> {
        let config: Config = toml::Value::Table(self.merged.clone())
            .try_into()
            .map_err(|fault| ConfigFault::Malformed { path: self.last(), fault: fault.to_string() })?;
        config.check_with(accounts).map_err(|fault| self.placed(fault))?;
        Ok(config)
    }

    /// Where this setting, or the innermost table it would be in, is set.
    pub(crate) fn place(&self, setting: &str) -> Option<&Place> {
        self.places.get(setting)
    }

    /// A fault with the place of what it is about, where one is known.
    pub(crate) fn placed(&self, fault: ConfigFault) -> ConfigFault {
        match fault {
            ConfigFault::Value { setting, value, expected } => match self.innermost(&setting) {
                Some(place) => ConfigFault::Placed { place: place.clone(), setting, value, expected },
                None => ConfigFault::Value { setting, value, expected },
            },
            ConfigFault::Several(all) => ConfigFault::Several(all.into_iter().map(|fault| self.placed(fault)).collect()),
            other => other,
        }
    }

    /// The place of a setting, or of the innermost list or table that it is in.
    pub(crate) fn innermost(&self, setting: &str) -> Option<&Place> {
        let ends = setting.char_indices().rev().filter(|(_, character)| matches!(character, '.' | '[')).map(|(at, _)| at);
        std::iter::once(setting.len()).chain(ends).find_map(|end| self.place(setting.get(..end)?))
    }

    fn last(&self) -> PathBuf {
        self.files.last().cloned().unwrap_or_default()
    }

    fn add(&mut self, path: &Path) -> Result<(), ConfigFault> {
        let text = read_trusted(path)?;
        // Twice: once for what it means, once for where it stands.
        parse_strictly(path, &text)?;
        let malformed = |fault: toml::de::Error| ConfigFault::Malformed { path: path.to_owned(), fault: fault.to_string() };
        let table: toml::Table = toml::from_str(&text).map_err(malformed)?;
        let spanned = DeTable::parse(&text).map_err(malformed)?;
        self.files.push(path.to_owned());
        note_places(spanned.get_ref(), "", &Lines::of(path, &text), &mut self.places);
        merge(&mut self.merged, table);
        Ok(())
    }
}

/// One file, by itself.
///
/// # Errors
/// [`ConfigFault::Malformed`] with line, caret and the nearest spelling; all that there are.
pub(super) fn parse_strictly(path: &Path, text: &str) -> Result<Config, ConfigFault> {
    faults::read(text).map_err(|all| {
        let malformed =
            |fault| ConfigFault::Malformed { path: path.to_owned(), fault: with_nearest(&faults::told(fault), fault.message()) };
        match all.as_slice() {
            [one] => malformed(one),
            several => ConfigFault::Several(several.iter().map(malformed).collect()),
        }
    })
}

/// The fault, with the nearest of the names that it says there are.
fn with_nearest(told: &str, message: &str) -> String {
    let unknown = unknown_name(message).filter(|_| message.starts_with("unknown field"));
    let nearest = unknown.and_then(|(written, known)| crate::api::params::nearest(written, &known.collect::<Vec<_>>()));
    nearest.map_or_else(|| told.to_owned(), |near| format!("{}\ndid you mean `{near}`?", told.trim_end()))
}

/// Drop-ins in the order of their names. Files of another ending, and hidden ones, are
/// none: editors and package managers leave such behind.
fn drop_ins(path: &Path) -> Result<Vec<PathBuf>, ConfigFault> {
    let folder = path.parent().unwrap_or(Path::new(".")).join(DROP_IN_FOLDER);
    let unreadable = |fault| ConfigFault::Unreadable { path: folder.clone(), fault };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(fault) => return Err(unreadable(fault)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let name = Path::new(&name);
        let hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        if !hidden && name.extension().is_some_and(|ending| ending == "toml") {
            found.push(folder.join(name));
        }
    }
    if found.len() > DROP_INS {
        return Err(unreadable(io::Error::other(format!("it has {} drop-ins; at most {DROP_INS} are read", found.len()))));
    }
    found.sort();
    Ok(found)
}

/// Reads a file that nobody but root and brigd's own user can have written.
fn read_trusted(path: &Path) -> Result<String, ConfigFault> {
    let unreadable = |fault| ConfigFault::Unreadable { path: path.to_owned(), fault };
    // Looked at before it is opened: opening a FIFO would wait for its other end.
    let kind = fs::metadata(path).map_err(unreadable)?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() {
            "a directory"
        } else if kind.is_fifo() {
            "a FIFO"
        } else {
            "not a file"
        };
        return Err(unreadable(io::Error::other(format!("it is {what}"))));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    if let Some(doubt) = doubt(facts.uid(), facts.gid(), facts.mode()) {
        return Err(ConfigFault::Untrusted { path: path.to_owned(), doubt });
    }
    let mut text = String::new();
    let read = Read::by_ref(&mut file).take(FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > FILE_BYTES {
        return Err(unreadable(io::Error::other(format!("it is longer than {FILE_BYTES} bytes"))));
    }
    Ok(text)
}

/// Why a file with this owner and mode can not say what brigd may do.
fn doubt(owner: u32, group: u32, mode: u32) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != own {
        return Some(format!("it belongs to user {owner}; give it to root (chown root)"));
    }
    // A group may be many people: who writes here decides what brigd allows. The usual
    // group of an ordinary user is that user alone.
    let own_group = owner != 0 && group == rustix::process::getegid().as_raw();
    let open = if own_group { 0o002 } else { 0o022 };
    (mode & open != 0).then(|| format!("its mode is {:04o}: others than its owner may write it; chmod go-w", mode & 0o7777))
}

/// Where lines begin.
struct Lines<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> Lines<'a> {
    const fn of(path: &'a Path, text: &'a str) -> Self {
        Self { path, text }
    }

    fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or_default();
        Place { file: self.path.to_owned(), line: 1 + before.bytes().filter(|byte| *byte == b'\n').count() }
    }
}

fn note_places(table: &DeTable<'_>, prefix: &str, lines: &Lines<'_>, places: &mut BTreeMap<String, Place>) {
    for (key, value) in table {
        let path = joined(prefix, key.get_ref());
        if let Some(inner) = value.get_ref().as_table() {
            note_places(inner, &path, lines, places);
        }
        places.insert(path, lines.place(key.span().start));
    }
}

/// Where each key of one file stands: its line, from 1.
pub(crate) fn lines_of(text: &str) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    if let Ok(spanned) = DeTable::parse(text) {
        note_places(spanned.get_ref(), "", &Lines::of(Path::new(""), text), &mut places);
    }
    places.into_iter().map(|(key, place)| (key, place.line)).collect()
}

/// A dotted path, quoted where a name is no bare key.
pub(super) fn joined(prefix: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if prefix.is_empty() { key } else { format!("{prefix}.{key}") }
}

fn merge(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Files as a folder has them, the first one the configuration.
    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(DROP_IN_FOLDER)).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o640)).unwrap();
        }
        let path = folder.path().join("brig.toml");
        (folder, path)
    }

    fn fault(files: &[(&str, &str)]) -> String {
        let (_folder, path) = folder(files);
        Layers::read(&path).and_then(|layers| layers.config()).unwrap_err().to_string()
    }

    #[test]
    fn drop_ins_win_key_by_key_in_the_order_of_their_names() {
        let (_folder, path) = folder(&[
            ("brig.toml", "[queue]\nrunning = 5\nwaiting = 6\n[clients]\nuids = [1, 2]\n"),
            ("conf.d/20-later.toml", "[queue]\nrunning = 7\n"),
            ("conf.d/10-first.toml", "[queue]\nrunning = 1\n[clients]\nuids = [3]\n"),
            ("conf.d/30-not.toml.dpkg-old", "[queue]\nrunning = 9\n"),
            ("conf.d/.hidden.toml", "[queue]\nrunning = 9\n"),
        ]);
        let layers = Layers::read(&path).unwrap();
        let config = layers.config().unwrap();
        assert_eq!((config.queue.running, config.queue.waiting), (7, 6));
        assert_eq!(config.clients.uids.into_iter().collect::<Vec<_>>(), [3]);
        let place = layers.place("queue.running").unwrap();
        assert!(place.file.ends_with("conf.d/20-later.toml") && place.line == 2, "{place}");
        assert!(layers.place("queue.waiting").unwrap().file.ends_with("brig.toml"));
        assert_eq!(layers.files.len(), 3);
    }

    #[test]
    fn a_fault_names_the_file_the_line_and_the_nearest_spelling() {
        let misspelt = fault(&[("brig.toml", ""), ("conf.d/a.toml", "[workers]\n\nreddy = 3\n")]);
        assert!(
            misspelt.contains("conf.d/a.toml") && misspelt.contains("line 3") && misspelt.contains("did you mean `ready`?"),
            "{misspelt}"
        );
        let value = fault(&[("brig.toml", ""), ("conf.d/a.toml", "[queue]\n# none\nrunning = 0\n")]);
        assert!(value.contains("conf.d/a.toml:3") && value.contains("queue.running") && value.contains("at least 1"), "{value}");
        let limit = fault(&[("brig.toml", "[limits]\nheap_bytes = 1\n")]);
        assert!(limit.contains("brig.toml:2"), "{limit}");
    }

    #[test]
    fn a_fault_within_a_list_is_told_with_the_line_of_the_list() {
        let rules = "[principals.\"uid:1\"]\ncallbacks = \"deny\"\n\n[principals.\"uid:1\".host_function]\nrules = [{ mode = \"allow\", patterns = [\"a\"] }]\n";
        let told = fault(&[("brig.toml", ""), ("conf.d/a.toml", rules)]);
        assert!(told.contains("conf.d/a.toml:5") && told.contains("host_function.rules[0].patterns[0]"), "{told}");
    }

    #[test]
    fn a_file_that_others_can_write_or_that_is_none_is_refused_before_it_is_read() {
        let (folder, path) = folder(&[("brig.toml", ""), ("conf.d/open.toml", "")]);
        let open = folder.path().join("conf.d/open.toml");
        for mode in [0o666, 0o646] {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            let fault = Layers::read(&path).unwrap_err().to_string();
            assert!(fault.contains("open.toml") && fault.contains("chmod go-w"), "{fault}");
        }
        fs::remove_file(&open).unwrap();
        nix::unistd::mkfifo(&open, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(Layers::read(&path).unwrap_err().to_string().contains("FIFO"));
        assert_eq!(doubt(12_345, 0, 0o600).map(|doubt| doubt.contains("12345")), Some(true));
    }

    #[test]
    fn a_file_that_is_too_long_or_not_there_is_told_by_name() {
        let (folder, path) = folder(&[("brig.toml", "")]);
        fs::write(folder.path().join("conf.d/long.toml"), "# long\n".repeat(200_000)).unwrap();
        assert!(Layers::read(&path).unwrap_err().to_string().contains("long.toml"));
        assert!(Layers::read(&folder.path().join("none.toml")).unwrap_err().to_string().contains("none.toml"));
    }

    #[test]
    fn names_that_are_no_bare_keys_are_quoted_in_paths() {
        assert_eq!(joined("principals", "group:agents"), "principals.\"group:agents\"");
        assert_eq!(joined("", "queue"), "queue");
    }
}
