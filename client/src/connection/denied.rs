//! Why a socket that is there can not be connected to.
//!
//! Owns the words for it: whose the socket is, which group may connect, and what to do.
//! Only looks; never changes a mode or a group.

use brig_protocol::escape::ShowPath as _;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What the system said, and, where this user may not connect, who may and what to do.
pub(super) fn reason(path: &Path, fault: &io::Error) -> String {
    if fault.kind() != io::ErrorKind::PermissionDenied {
        return fault.to_string();
    }
    let advice = match std::fs::metadata(path) {
        Ok(facts) => {
            let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
            advice(facts.mode() & 0o777, facts.uid(), &group_of(&groups, facts.gid()))
        }
        Err(_) => {
            let folder = path.parent().unwrap_or(Path::new("/")).shown();
            format!("this user may not enter the folder {folder}, or one above it; whoever may use the socket needs leave to enter (x)")
        }
    };
    format!("{fault}: {advice}; `brig doctor` looks at both sockets")
}

fn advice(mode: u32, owner: u32, group: &str) -> String {
    let lets = format!("the socket has mode {mode:04o}, user {owner} and group {group}");
    if mode & 0o020 != 0 {
        return format!("{lets}; be in that group (usermod -aG {group} USER, as root, then log in again)");
    }
    format!(
        "{lets}, so only user {owner} may connect; to let its group in, set server.socket_mode or, for the admin socket, \
         server.admin_socket_mode to \"0660\""
    )
}

/// The name of a group, or its number where it has none.
fn group_of(groups: &str, gid: u32) -> String {
    let number = gid.to_string();
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(&number)).then(|| name.to_owned())
    });
    named.unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_that_may_connect_is_named_and_one_that_may_not_is_not_advised() {
        let group = group_of("root:x:0:\nbrigd:x:990:\nbrig:x:989:ada\n", 990);
        assert!(advice(0o660, 0, &group).contains("group brigd; be in that group (usermod -aG brigd USER"));
        let own = advice(0o600, 1000, "1000");
        assert!(own.contains("only user 1000") && own.contains("server.admin_socket_mode") && !own.contains("usermod"), "{own}");
        assert_eq!(group_of("", 7), "7");
    }

    #[test]
    fn a_socket_that_is_not_there_is_no_matter_of_groups() {
        let fault = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(reason(Path::new("/no/such.sock"), &fault), fault.to_string());
    }
}
