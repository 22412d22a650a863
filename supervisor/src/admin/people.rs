//! Who may speak on the admin socket, by what the kernel says of them.
//!
//! Owns two roles: admins may everything, approvers may only see and decide the calls
//! whose rule names them. Being an admin makes nobody an approver: that is the rule's.

use crate::config::{Config, ConfigFault, all_well, fault};
use crate::policy::Facts;
use crate::policy::selector::{AccountFiles, Accounts, Selector, SystemAccounts};
use std::collections::BTreeSet;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// See and decide what waits for them.
    Approver,
    /// Everything.
    Admin,
}

/// Those who may speak.
#[derive(Debug)]
pub(crate) struct People {
    own_uid: u32,
    uids: BTreeSet<u32>,
    groups: Vec<Selector>,
    approvers: Vec<Selector>,
}

impl People {
    /// Those of a configuration, on this system.
    ///
    /// # Errors
    /// A group or a principal that there is not, with its place.
    pub(crate) fn of(config: &Config) -> Result<Self, ConfigFault> {
        Self::with(config, &SystemAccounts)
    }

    /// The same, with names of users and groups from elsewhere.
    ///
    /// # Errors
    /// A group or a principal that there is not, with its place.
    pub(crate) fn with(config: &Config, accounts: &dyn Accounts) -> Result<Self, ConfigFault> {
        let own_uid = rustix::process::geteuid().as_raw();
        let read = |place: &str, text: &str, spelling: &str| {
            Selector::parse(spelling, accounts).map_err(|wrong| fault(place, brig_protocol::escape::escaped(text, 100), &wrong))
        };
        let group = |(index, text): (usize, &String)| {
            let kind = if text.bytes().all(|byte| byte.is_ascii_digit()) { "gid" } else { "group" };
            read(&format!("admin.groups[{index}]"), text, &format!("{kind}:{text}"))
        };
        let approver = |(index, text): (usize, &String)| read(&format!("admin.approvers[{index}]"), text, text);
        Ok(Self {
            own_uid,
            uids: config.admin.uids.clone(),
            groups: all_well(config.admin.groups.iter().enumerate().map(group))?,
            approvers: all_well(config.admin.approvers.iter().enumerate().map(approver))?,
        })
    }

    /// Whether anybody whom `who` means may speak, as far as accounts of this system say.
    pub(crate) fn let_in(&self, who: &Selector) -> bool {
        self.let_in_by(who, &AccountFiles::of_system())
    }

    fn let_in_by(&self, who: &Selector, files: &AccountFiles) -> bool {
        let named = |wanted: &Selector| self.groups.iter().chain(&self.approvers).any(|own| own == wanted || *own == Selector::Everybody);
        match who {
            Selector::Everybody => true,
            Selector::Uid(uid) => {
                let groups = files.groups_of_uid(*uid);
                self.role(&Facts { uid: *uid, gid: u32::MAX, groups, ..Facts::default() }).is_some()
            }
            other => named(other),
        }
    }

    /// What this peer may do, if it may speak at all.
    pub(super) fn role(&self, who: &Facts) -> Option<Role> {
        let named = |selectors: &[Selector]| selectors.iter().any(|selector| selector.matches(who));
        if who.uid == 0 || who.uid == self.own_uid || self.uids.contains(&who.uid) || named(&self.groups) {
            return Some(Role::Admin);
        }
        named(&self.approvers).then_some(Role::Approver)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::Admin;
    use crate::policy::selector::NamedAccounts;
    use std::collections::BTreeMap;

    fn people(admin: Admin) -> Result<People, ConfigFault> {
        let groups = BTreeMap::from([("brig-admin".to_owned(), 30_001), ("finance".to_owned(), 30_002)]);
        let accounts = NamedAccounts { users: BTreeMap::new(), groups };
        let mut config = Config::default();
        config.admin = admin;
        let people = People::with(&config, &accounts)?;
        Ok(People { own_uid: 500, ..people })
    }

    fn somebody(uid: u32, groups: &[u32]) -> Facts {
        Facts { uid, gid: 100, groups: groups.to_vec(), ..Facts::default() }
    }

    #[test]
    fn root_its_own_user_and_those_who_are_named_may_speak_and_nobody_else() {
        let admin = Admin {
            uids: BTreeSet::from([20_001]),
            groups: vec!["brig-admin".to_owned(), "31000".to_owned()],
            approvers: vec!["group:finance".to_owned()],
        };
        let people = people(admin).unwrap();
        for (who, role) in [
            (somebody(0, &[]), Some(Role::Admin)),
            (somebody(500, &[]), Some(Role::Admin)),
            (somebody(20_001, &[]), Some(Role::Admin)),
            (somebody(1, &[30_001]), Some(Role::Admin)),
            (somebody(1, &[31_000]), Some(Role::Admin)),
            (somebody(1, &[30_002]), Some(Role::Approver)),
            (somebody(1, &[30_002, 30_001]), Some(Role::Admin)),
            (somebody(1, &[]), None),
            (somebody(30_001, &[20_001]), None),
        ] {
            assert_eq!(people.role(&who), role, "{who:?}");
        }
    }

    #[test]
    fn an_approver_is_let_in_by_name_by_any_group_and_where_everybody_is() {
        let files = AccountFiles {
            passwd: "ada:x:20001:100::/:\nbob:x:20002:30002::/:\neve:x:20003:100::/:\n".to_owned(),
            group: "brig-admin:x:30001:ada\nfinance:x:30002:\n".to_owned(),
        };
        let let_in = |admin: &Admin, who: Selector| people(admin.clone()).unwrap().let_in_by(&who, &files);
        let admin = Admin { groups: vec!["brig-admin".to_owned()], approvers: vec!["group:finance".to_owned()], ..Admin::default() };
        for (who, expected) in [
            (Selector::Uid(0), true),
            (Selector::Uid(500), true),
            // By a supplementary group, by the primary one, and by none.
            (Selector::Uid(20_001), true),
            (Selector::Uid(20_002), true),
            (Selector::Uid(20_003), false),
            // Nobody knows the groups of a user that the files do not name.
            (Selector::Uid(20_004), false),
            (Selector::Gid(30_001), true),
            (Selector::Gid(30_002), true),
            (Selector::Gid(100), false),
            (Selector::Unit("agent.service".to_owned()), false),
            (Selector::Everybody, true),
        ] {
            assert_eq!(let_in(&admin, who.clone()), expected, "{who:?}");
        }
        let everybody = Admin { approvers: vec!["*".to_owned()], ..Admin::default() };
        for who in [Selector::Uid(20_004), Selector::Gid(100), Selector::Unit("agent.service".to_owned())] {
            assert!(let_in(&everybody, who.clone()), "{who:?}");
        }
    }

    #[test]
    fn a_group_that_there_is_not_is_told_with_its_place() {
        let fault = people(Admin { groups: vec!["brig-admin".to_owned(), "nobody-here".to_owned()], ..Admin::default() }).unwrap_err();
        assert!(fault.to_string().contains("admin.groups[1]") && fault.to_string().contains("nobody-here"), "{fault}");
        assert!(people(Admin { approvers: vec!["finance".to_owned()], ..Admin::default() }).is_err());
    }
}
