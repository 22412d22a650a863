//! Whom a section, or a list of approvers, is about.
//!
//! Owns the spelling (`uid:`, `user:`, `gid:`, `group:`, `unit:`, `*`) and matching it
//! with the facts of a peer. Names become ids when policy is loaded, never later.

use super::Facts;
use brig_protocol::escape::escaped;
use std::collections::BTreeMap;
use std::io::Read as _;

/// Whom something is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Selector {
    /// One user.
    Uid(u32),
    /// Whoever runs in this unit.
    Unit(String),
    /// Whoever has this group, primary or supplementary.
    Gid(u32),
    /// Everybody.
    Everybody,
}

/// Where names of users and groups come from.
pub(crate) trait Accounts {
    /// The id of a user.
    fn uid(&self, name: &str) -> Option<u32>;
    /// The id of a group.
    fn gid(&self, name: &str) -> Option<u32>;
}

/// Those of this system's files.
///
/// The C library is not asked: brigd is linked statically, and there the library's own
/// way to other sources of names loads code from the system, and crashes. Who has users
/// elsewhere writes `uid:` and `gid:`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemAccounts;

impl Accounts for SystemAccounts {
    fn uid(&self, name: &str) -> Option<u32> {
        id_of(&read("/etc/passwd"), name)
    }

    fn gid(&self, name: &str) -> Option<u32> {
        id_of(&read("/etc/group"), name)
    }
}

impl SystemAccounts {
    /// The primary group of a user, and the others.
    pub(crate) fn groups_of(self, user: &str) -> (Option<u32>, Vec<u32>) {
        AccountFiles::of_system().groups_of(user)
    }
}

/// The text of both files, read once for questions about who is in which group.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountFiles {
    /// As `/etc/passwd`.
    pub(crate) passwd: String,
    /// As `/etc/group`.
    pub(crate) group: String,
}

impl AccountFiles {
    /// Those of this system.
    pub(crate) fn of_system() -> Self {
        Self { passwd: read("/etc/passwd"), group: read("/etc/group") }
    }

    /// The primary group of a user, and the others.
    pub(crate) fn groups_of(&self, user: &str) -> (Option<u32>, Vec<u32>) {
        let primary = (self.passwd.lines().map(|line| line.split(':')))
            .find_map(|mut fields| if fields.next() == Some(user) { fields.nth(2)?.parse().ok() } else { None });
        let has = |line: &&str| line.rsplit(':').next().is_some_and(|members| members.split(',').any(|member| member == user));
        let others = self.group.lines().filter(has).filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect();
        (primary, others)
    }

    /// All groups of the user with this id; none for one that the files do not name.
    pub(crate) fn groups_of_uid(&self, uid: u32) -> Vec<u32> {
        let number = uid.to_string();
        let name = self.passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields.get(2) == Some(&&*number));
        let Some(name) = name.and_then(|fields| fields.first().copied()) else { return Vec::new() };
        let (primary, mut groups) = self.groups_of(name);
        groups.extend(primary);
        groups
    }

    /// The uids of whoever the files say has this group, with their names.
    pub(crate) fn members(&self, gid: u32) -> Vec<(String, u32)> {
        let number = gid.to_string();
        let of_group = self.group.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields.get(2) == Some(&&*number));
        let listed: Vec<&str> = of_group.and_then(|fields| fields.get(3).copied()).into_iter().flat_map(|all| all.split(',')).collect();
        let one = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            let (name, uid, primary) = (*fields.first()?, fields.get(2)?.parse().ok()?, *fields.get(3)?);
            (primary == number || listed.contains(&name)).then(|| (name.to_owned(), uid))
        };
        self.passwd.lines().filter_map(one).collect()
    }
}

/// Longest file of accounts, in bytes.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

fn read(path: &str) -> String {
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut text));
    if let Err(fault) = read {
        tracing::warn!(path, %fault, "names of users or groups are not known");
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The id in the line `name:…:id:…` of a file of accounts.
fn id_of(file: &str, name: &str) -> Option<u32> {
    let mut lines = file.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| if fields.next() == Some(name) { fields.nth(1)?.parse().ok() } else { None })
}

/// Those that a file of cases names, then those of this system.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedAccounts {
    /// Users by name.
    pub(crate) users: BTreeMap<String, u32>,
    /// Groups by name.
    pub(crate) groups: BTreeMap<String, u32>,
}

impl Accounts for NamedAccounts {
    fn uid(&self, name: &str) -> Option<u32> {
        self.users.get(name).copied().or_else(|| SystemAccounts.uid(name))
    }

    fn gid(&self, name: &str) -> Option<u32> {
        self.groups.get(name).copied().or_else(|| SystemAccounts.gid(name))
    }
}

impl Selector {
    /// Reads one.
    ///
    /// # Errors
    /// What it may be, or which name there is not.
    pub(crate) fn parse(text: &str, accounts: &dyn Accounts) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Everybody);
        }
        let shape = || "write \"uid:1000\", \"user:NAME\", \"gid:100\", \"group:NAME\", \"unit:NAME.service\" or \"*\"".to_owned();
        let (kind, name) = text.split_once(':').ok_or_else(shape)?;
        let shown = escaped(name, 100);
        let id = || match name.parse::<u32>() {
            // Only the plain spelling: two of one id would be two sections for one user.
            Ok(id) if id.to_string() == name && id != u32::MAX => Ok(id),
            _ => Err(format!("{shown:?} is no id; it must be a whole number from 0 to {}", u32::MAX - 1)),
        };
        match kind {
            "uid" => id().map(Self::Uid),
            "gid" => id().map(Self::Gid),
            "user" => accounts.uid(name).map(Self::Uid).ok_or_else(|| format!("there is no user {shown:?} on this system")),
            "group" => accounts.gid(name).map(Self::Gid).ok_or_else(|| format!("there is no group {shown:?} on this system")),
            "unit" if is_unit(name) => Ok(Self::Unit(name.to_owned())),
            "unit" => Err(format!("{shown:?} is no unit; write its whole name, as in \"unit:agent.service\"")),
            _ => Err(shape()),
        }
    }

    /// Whether this peer is meant.
    pub(crate) fn matches(&self, facts: &Facts) -> bool {
        match self {
            Self::Uid(uid) => facts.uid == *uid,
            Self::Unit(unit) => facts.unit.as_deref() == Some(unit),
            Self::Gid(gid) => facts.gid == *gid || facts.groups.contains(gid),
            Self::Everybody => true,
        }
    }
}

/// A whole name: what systemd calls a service or a scope.
fn is_unit(name: &str) -> bool {
    let stem = name.strip_suffix(".service").or_else(|| name.strip_suffix(".scope"));
    stem.is_some_and(|stem| !stem.is_empty())
        && name.len() <= 255
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn names_are_those_of_the_systems_files() {
        assert_eq!((SystemAccounts.uid("root"), SystemAccounts.gid("root")), (Some(0), Some(0)));
        let file = "root:x:0:0:root:/root:/bin/sh\nada:x:1001:100::/:\nbad:x:\n+::::::\n";
        assert_eq!(id_of(file, "ada"), Some(1001));
        for none in ["", "+", "bad", "ad", "ada:x", "x", "Ada"] {
            assert_eq!(id_of(file, none), None, "{none:?}");
        }
    }

    #[test]
    fn a_selector_is_read_in_one_spelling_and_names_are_looked_up() {
        let accounts =
            NamedAccounts { users: BTreeMap::from([("ada".to_owned(), 20_001)]), groups: BTreeMap::from([("agents".to_owned(), 30_001)]) };
        let read = |text: &str| Selector::parse(text, &accounts);
        assert_eq!(read("uid:20001"), Ok(Selector::Uid(20_001)));
        assert_eq!(read("user:ada"), Ok(Selector::Uid(20_001)));
        assert_eq!(read("group:agents"), Ok(Selector::Gid(30_001)));
        assert_eq!(read("unit:agent@1.service"), Ok(Selector::Unit("agent@1.service".to_owned())));
        assert_eq!(read("*"), Ok(Selector::Everybody));
        for wrong in
            ["uid:01", "uid:+1", "uid:4294967295", "uid:", "uid:ada", "user:no-such-user", "group:", "unit:x", "UID:1", "**", "", "uid: 1"]
        {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        assert!(read("user:Ada").unwrap_err().contains("there is no user \"Ada\""));
    }
}
