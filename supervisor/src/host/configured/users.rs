//! Users and groups by name.
//!
//! Owns reading `/etc/passwd` and `/etc/group`. Never asks a directory service: that would
//! load its library into brigd, which is linked statically. One that is only there is given
//! by its numbers.

use super::file::Identity;
use crate::host::schema::phrase::quoted;
use crate::keeper::enter::Ids;

/// What is known of users and groups here.
#[derive(Debug)]
pub(super) struct Users {
    passwd: String,
    group: String,
    /// As whom brigd runs.
    own: u32,
}

/// A number, and the name and group where they are known.
type Account<'a> = (u32, Option<(&'a str, u32)>);

impl Users {
    /// As this host has them, for a brigd that runs as `own`; nothing: as this process.
    pub(super) fn of_host(own: Option<u32>) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let own = own.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        Self { passwd: read("/etc/passwd"), group: read("/etc/group"), own }
    }

    /// As whom a program runs: nothing is brigd's own user.
    ///
    /// # Errors
    /// A half sentence that follows the place of the command.
    pub(super) fn ids(
        &self,
        user: Option<&Identity>,
        group: Option<&Identity>,
        groups: Option<&[Identity]>,
    ) -> Result<Option<Ids>, String> {
        let Some(user) = user else {
            if group.is_some() || groups.is_some() {
                return Err("has a group and no `user`".to_owned());
            }
            if self.own == 0 {
                return Err("has no `user`: brigd runs as root, so say as whom the program runs".to_owned());
            }
            return Ok(None);
        };
        let (uid, entry) = self.user(user)?;
        if self.own != 0 {
            if uid == self.own && group.is_none() && groups.is_none() {
                return Ok(None);
            }
            return Err(format!("is to run as user {uid}, but brigd runs as {} and can not become another; only root can", self.own));
        }
        let gid = match (group, entry) {
            (Some(group), _) => self.group(group)?,
            (None, Some((_, gid))) => gid,
            (None, None) => return Err(format!("has the user {uid}, who is not in /etc/passwd; say its `group` as well")),
        };
        let groups = match (groups, entry) {
            (Some(groups), _) => groups.iter().map(|group| self.group(group)).collect::<Result<_, _>>()?,
            (None, Some((name, _))) => self.groups_of(name),
            (None, None) => Vec::new(),
        };
        Ok(Some(Ids { uid, gid, groups }))
    }

    /// The number, and name and group where it is known.
    fn user(&self, user: &Identity) -> Result<Account<'_>, String> {
        for line in self.passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, ..] = fields.as_slice() else { continue };
            let (Ok(uid), Ok(gid)) = (uid.parse::<u32>(), gid.parse::<u32>()) else { continue };
            let is_it = match user {
                Identity::Number(number) => *number == uid,
                Identity::Name(wanted) => wanted == name,
            };
            if is_it {
                return Ok((uid, Some((name, gid))));
            }
        }
        match user {
            Identity::Number(number) => Ok((*number, None)),
            Identity::Name(name) => Err(format!("has the user {}, who is not in /etc/passwd; make it, or give its number", quoted(name))),
        }
    }

    fn group(&self, group: &Identity) -> Result<u32, String> {
        let Identity::Name(wanted) = group else {
            let Identity::Number(number) = group else { return Err("has no group".to_owned()) };
            return Ok(*number);
        };
        let found = self.groups().find(|(name, _, _)| name == wanted).map(|(_, gid, _)| gid);
        found.ok_or_else(|| format!("has the group {}, which is not in /etc/group; make it, or give its number", quoted(wanted)))
    }

    fn groups_of(&self, user: &str) -> Vec<u32> {
        self.groups().filter(|(_, _, members)| members.split(',').any(|member| member == user)).map(|(_, gid, _)| gid).collect()
    }

    fn groups(&self) -> impl Iterator<Item = (&str, u32, &str)> {
        self.group.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, gid, members] = fields.as_slice() else { return None };
            Some((*name, gid.parse().ok()?, *members))
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn users(own: u32) -> Users {
        let passwd = "root:x:0:0::/root:/bin/sh\nbroken\nshop:x:900:901::/:/usr/sbin/nologin\n".to_owned();
        Users { passwd, group: "root:x:0:\nshop:x:901:\nmail:x:8:other,shop\nshops:x:77:shopper\n".to_owned(), own }
    }

    fn name(name: &str) -> Identity {
        Identity::Name(name.to_owned())
    }

    #[test]
    fn root_becomes_the_user_with_its_groups() {
        let ids = users(0).ids(Some(&name("shop")), None, None).unwrap();
        assert_eq!(ids, Some(Ids { uid: 900, gid: 901, groups: vec![8] }));
        let ids = users(0).ids(Some(&Identity::Number(900)), Some(&name("mail")), Some(&[])).unwrap();
        assert_eq!(ids, Some(Ids { uid: 900, gid: 8, groups: vec![] }));
        let ids = users(0).ids(Some(&Identity::Number(5000)), Some(&Identity::Number(6)), None).unwrap();
        assert_eq!(ids, Some(Ids { uid: 5000, gid: 6, groups: vec![] }));
    }

    #[test]
    fn nobody_becomes_someone_by_accident() {
        assert!(users(0).ids(None, None, None).unwrap_err().contains("say as whom"));
        assert!(users(0).ids(Some(&name("shopp")), None, None).unwrap_err().contains("\"shopp\""));
        assert!(users(0).ids(Some(&Identity::Number(5000)), None, None).unwrap_err().contains("`group`"));
        assert!(users(0).ids(Some(&name("shop")), Some(&name("nogroup")), None).unwrap_err().contains("\"nogroup\""));
        assert!(users(1000).ids(Some(&name("shop")), None, None).unwrap_err().contains("only root can"));
        assert!(users(1000).ids(None, Some(&name("mail")), None).unwrap_err().contains("no `user`"));
        assert_eq!(users(900).ids(Some(&name("shop")), None, None).unwrap(), None);
    }
}
