//! The host around brigd, read and not tried: kernel settings, limits, sockets, files.
//!
//! Owns what each should be. Everything is read below a root, so that tests can make a
//! host that is wrong in any way. Never opens a credential.

use super::{Finding, Grade};
use brig::protocol::escape::ShowPath as _;
use rustix::process::{Resource, getrlimit};
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The oldest kernel that brig knows.
const OLDEST_KERNEL: (u32, u32) = (5, 10);
/// Fewer descriptors than this and brigd runs out of them with its default of clients.
const DESCRIPTORS: u64 = 4096;
/// Fewer processes than this and workers can not be made with the defaults.
const PROCESSES: u64 = 512;
/// Less room than this and a journal can not be kept.
const ROOM_BYTES: u64 = 64 << 20;
/// The folders of the service.
const STATE: &str = "var/lib/brig";
const CREDENTIALS: &str = "etc/brig/credentials";
/// No clock of today is before this: 2024-01-01.
const CLOCK_EARLIEST: Duration = Duration::from_secs(1_704_067_200);

/// Looks at all of it.
pub(super) fn look(root: &Path) -> Vec<Finding> {
    let mut findings = vec![kernel(root), seccomp(root)];
    findings.extend(namespaces(root));
    findings.push(bound("open files", Resource::Nofile, DESCRIPTORS, "LimitNOFILE= of the unit, or ulimit -n"));
    findings.push(bound("processes", Resource::Nproc, PROCESSES, "TasksMax= and LimitNPROC= of the unit, or ulimit -u"));
    findings.push(credentials(root));
    findings.push(room(root));
    findings.push(clock(SystemTime::now(), newest(root)));
    findings
}

fn read(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned())
}

fn lacking(what: &str, detail: impl Into<String>, remedy: &str) -> Finding {
    Finding { what: what.to_owned(), grade: Grade::Missing, detail: detail.into(), remedy: Some(remedy.to_owned()) }
}

fn kernel(root: &Path) -> Finding {
    let Some(release) = read(root, "proc/sys/kernel/osrelease") else {
        return lacking("kernel", "its version can not be read", "mount /proc");
    };
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < OLDEST_KERNEL {
        let (major, minor) = OLDEST_KERNEL;
        return Finding::bad("kernel", release, Some(format!("use Linux {major}.{minor} or newer; 6.3 has every layer")));
    }
    Finding::good("kernel", release)
}

fn seccomp(root: &Path) -> Finding {
    match read(root, "proc/sys/kernel/seccomp/actions_avail") {
        Some(actions) if actions.split(' ').any(|action| action == "kill_process") => {
            Finding::good("seccomp actions", "kill_process is there")
        }
        Some(actions) => {
            Finding::bad("seccomp actions", actions, Some("use a kernel whose seccomp has kill_process (4.14 or newer)".to_owned()))
        }
        None => lacking("seccomp actions", "the kernel does not say", "use a kernel with CONFIG_SECCOMP_FILTER, and mount /proc"),
    }
}

/// The settings that keep ordinary users from namespaces, each by itself.
fn namespaces(root: &Path) -> Vec<Finding> {
    let settings = [
        ("user.max_user_namespaces", "proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
        ("kernel.unprivileged_userns_clone", "proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "an AppArmor profile for brig-worker with `userns,`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let judged = settings.into_iter().filter_map(|(name, path, forbids, remedy)| {
        let value = read(root, path)?;
        let remedy = format!("{remedy}; workers are confined by seccomp and Landlock without it");
        Some(if value == forbids { lacking(name, format!("{value}: no user namespaces"), &remedy) } else { Finding::good(name, value) })
    });
    judged.collect()
}

fn bound(what: &str, resource: Resource, least: u64, remedy: &str) -> Finding {
    match getrlimit(resource).maximum {
        Some(most) if most < least => lacking(what, format!("at most {most}, with this user's limits; {least} are wanted"), remedy),
        Some(most) => Finding::good(what, format!("at most {most}")),
        None => Finding::good(what, "unlimited"),
    }
}

/// Where the service takes clients and operators, and the group that may connect there.
pub(super) const ADMIN_SOCKET: &str = "/run/brig/admin.sock";
pub(super) const CLIENT: (&str, &str) = (brig::SERVICE_SOCKET, "brig");
pub(super) const ADMIN: (&str, &str) = (ADMIN_SOCKET, "brigd");

/// Who may connect is what mode and group say. Which group is right is known of the
/// service's own sockets only.
pub(super) fn socket(root: &Path, what: &str, path: &Path, (service, group): (&str, &str)) -> Finding {
    let shown = path.shown().to_string();
    let facts = match fs::metadata(root.join(path.strip_prefix("/").unwrap_or(path))) {
        Ok(facts) => facts,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Finding::good(what, format!("{shown} is not there")),
        Err(fault) => return lacking(what, format!("{shown}: {fault}"), "look as root, or as somebody who may enter its folder"),
    };
    if !facts.file_type().is_socket() {
        return Finding::bad(what, format!("{shown} is not a socket"), Some("remove it, and start the socket unit again".to_owned()));
    }
    if path != Path::new(service) {
        return judge_own_socket(what, &shown, facts.mode() & 0o777, facts.gid());
    }
    let wanted = read(root, "etc/group").and_then(|groups| gid_of(&groups, group));
    judge_socket(what, &shown, facts.mode() & 0o777, facts.gid(), (group, wanted))
}

/// A socket that is not the service's: any group may be meant.
fn judge_own_socket(what: &str, path: &str, mode: u32, gid: u32) -> Finding {
    let detail = format!("{path} has mode {mode:04o} and group {gid}");
    if mode & 0o007 != 0 {
        let remedy = "set server.socket_mode or server.admin_socket_mode to \"0660\" or \"0600\"";
        return Finding::bad(what, format!("{detail}: everybody may connect"), Some(remedy.to_owned()));
    }
    Finding::good(what, detail)
}

fn judge_socket(what: &str, path: &str, mode: u32, gid: u32, (group, wanted): (&str, Option<u32>)) -> Finding {
    let detail = format!("{path} has mode {mode:04o} and group {gid}");
    if mode & 0o007 != 0 {
        return Finding::bad(what, format!("{detail}: everybody may connect"), Some("set SocketMode=0660 in the socket unit".to_owned()));
    }
    match wanted {
        None => Finding::bad(what, format!("{detail}; there is no group {group}"), Some("systemd-sysusers brig.conf".to_owned())),
        Some(wanted) if mode & 0o070 != 0 && wanted != gid => Finding::bad(
            what,
            format!("{detail}, which is not {group} ({wanted})"),
            Some(format!("set SocketGroup={group} in the socket unit")),
        ),
        Some(_) => Finding::good(what, detail),
    }
}

fn gid_of(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// Only root reads secrets from the disk; brigd gets them from the service manager.
fn credentials(root: &Path) -> Finding {
    let folder = root.join(CREDENTIALS);
    let Ok(facts) = fs::metadata(&folder) else { return Finding::good("credentials", format!("there is no /{CREDENTIALS}")) };
    let open = |facts: &Metadata| facts.mode() & 0o077 != 0;
    let mut wrong = Vec::new();
    if open(&facts) {
        wrong.push(format!("/{CREDENTIALS} has mode {:04o}", facts.mode() & 0o777));
    }
    match fs::read_dir(&folder) {
        Ok(entries) => wrong.extend(entries.flatten().filter_map(|entry| {
            let facts = entry.metadata().ok()?;
            open(&facts).then(|| format!("{} has mode {:04o}", Path::new(&entry.file_name()).shown(), facts.mode() & 0o777))
        })),
        Err(_) if wrong.is_empty() => {
            return Finding::good("credentials", format!("/{CREDENTIALS} is closed to this user, as it should be"));
        }
        Err(_) => {}
    }
    if wrong.is_empty() {
        return Finding::good("credentials", format!("/{CREDENTIALS} and what is in it are their owner's only"));
    }
    let remedy = format!("chmod 0700 /{CREDENTIALS}; chmod 0600 /{CREDENTIALS}/*; change each secret that others could read");
    Finding::bad("credentials", wrong.join(", "), Some(remedy))
}

fn room(root: &Path) -> Finding {
    let folder = root.join(STATE);
    match rustix::fs::statvfs(&folder) {
        Err(_) => Finding::good("state", format!("there is no /{STATE} that this user can see")),
        Ok(facts) => judge_room(facts.f_bavail.saturating_mul(facts.f_frsize), facts.f_files != 0 && facts.f_favail < 1024),
    }
}

fn judge_room(free: u64, out_of_files: bool) -> Finding {
    let detail = format!("{} MiB free in /{STATE}", free >> 20);
    if free < ROOM_BYTES || out_of_files {
        let detail = if out_of_files { format!("{detail}, and hardly any file can be made") } else { detail };
        let remedy = "make room: without it write calls and audited calls are refused";
        return Finding::bad("state", detail, Some(remedy.to_owned()));
    }
    Finding::good("state", detail)
}

/// When the newest file of the installation was written.
fn newest(root: &Path) -> Option<SystemTime> {
    let files = ["usr/bin/brigd", "etc/brig/brig.toml"].map(|path| root.join(path));
    files.iter().filter_map(|path: &PathBuf| fs::metadata(path).ok()?.modified().ok()).max()
}

fn clock(now: SystemTime, newest: Option<SystemTime>) -> Finding {
    let remedy = Some("set the clock, and keep it with an NTP client: budgets, approvals and audit records go by it".to_owned());
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    if since < CLOCK_EARLIEST {
        return Finding::bad("clock", "it is before 2024", remedy);
    }
    match newest.and_then(|newest| newest.duration_since(now).ok()).filter(|ahead| *ahead > Duration::from_secs(60)) {
        Some(ahead) => Finding::bad("clock", format!("it is {} s before the time of brig's own files", ahead.as_secs()), remedy),
        None => Finding::good("clock", "plausible"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn grade_of(findings: &[Finding], what: &str) -> Grade {
        findings.iter().find(|finding| finding.what == what).unwrap().grade
    }

    #[test]
    fn an_old_kernel_and_one_without_kill_process_are_problems() {
        let root =
            host(&[("proc/sys/kernel/osrelease", "5.4.0-150-generic\n"), ("proc/sys/kernel/seccomp/actions_avail", "kill_thread trap\n")]);
        assert_eq!((kernel(root.path()).grade, seccomp(root.path()).grade), (Grade::Problem, Grade::Problem));
        let root =
            host(&[("proc/sys/kernel/osrelease", "6.1.0-50-amd64\n"), ("proc/sys/kernel/seccomp/actions_avail", "kill_process trap\n")]);
        assert_eq!((kernel(root.path()).grade, seccomp(root.path()).grade), (Grade::Good, Grade::Good));
    }

    #[test]
    fn each_setting_that_forbids_namespaces_is_named_with_its_remedy() {
        let path = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
        let found = namespaces(host(&[(path, "1\n"), ("proc/sys/user/max_user_namespaces", "96364\n")]).path());
        assert_eq!(grade_of(&found, "kernel.apparmor_restrict_unprivileged_userns"), Grade::Missing);
        assert_eq!(grade_of(&found, "user.max_user_namespaces"), Grade::Good);
        assert!(found.iter().any(|finding| finding.remedy.as_deref().is_some_and(|remedy| remedy.contains("AppArmor profile"))));
        assert_eq!(namespaces(host(&[(path, "0\n")]).path()).len(), 1, "what is not there is not spoken of");
    }

    #[test]
    fn a_socket_for_everybody_or_for_another_group_is_a_problem() {
        let judged = |mode, gid, wanted| judge_socket("client socket", "/run/brig/brig.sock", mode, gid, ("brig", wanted)).grade;
        assert_eq!(judged(0o660, 7, Some(7)), Grade::Good);
        assert_eq!(judged(0o666, 7, Some(7)), Grade::Problem);
        assert_eq!(judged(0o660, 100, Some(7)), Grade::Problem);
        assert_eq!(judged(0o600, 0, Some(7)), Grade::Good);
        assert_eq!(judged(0o660, 7, None), Grade::Problem);
        assert_eq!(gid_of("root:x:0:\nbrigd:x:8:\nbrig:x:7:ada,bob\n", "brig"), Some(7));
        let root = host(&[("run/brig/brig.sock", "no socket")]);
        assert_eq!(socket(root.path(), "client socket", Path::new("/run/brig/brig.sock"), CLIENT).grade, Grade::Problem);
        assert_eq!(judge_own_socket("admin socket", "/srv/admin.sock", 0o660, 100).grade, Grade::Good);
        assert_eq!(judge_own_socket("admin socket", "/srv/admin.sock", 0o666, 100).grade, Grade::Problem);
    }

    #[test]
    fn a_secret_that_others_can_read_is_a_problem_and_named_but_never_opened() {
        let root = host(&[("etc/brig/credentials/token", "hunter2")]);
        let set = |path: &str, mode| fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        set("etc/brig/credentials", 0o700);
        set("etc/brig/credentials/token", 0o644);
        let found = credentials(root.path());
        assert!(found.grade == Grade::Problem && found.detail.contains("token") && !found.detail.contains("hunter2"));
        set("etc/brig/credentials/token", 0o600);
        assert_eq!(credentials(root.path()).grade, Grade::Good);
        set("etc/brig/credentials", 0o755);
        assert_eq!(credentials(root.path()).grade, Grade::Problem);
    }

    #[test]
    fn a_clock_before_the_installation_and_a_full_disk_are_problems() {
        let now = SystemTime::now();
        assert_eq!(clock(SystemTime::UNIX_EPOCH, None).grade, Grade::Problem);
        assert_eq!(clock(now, Some(now + Duration::from_secs(7200))).grade, Grade::Problem);
        assert_eq!(clock(now, Some(now)).grade, Grade::Good);
        assert_eq!(judge_room(1 << 20, false).grade, Grade::Problem);
        assert_eq!(judge_room(1 << 40, true).grade, Grade::Problem);
        assert_eq!(judge_room(1 << 40, false).grade, Grade::Good);
    }
}
