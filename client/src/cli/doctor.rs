//! `brig doctor`: what this host allows, what is missing, and what to do about it.
//!
//! Owns the remedies. The facts are those of `brig-worker probe`, which tries every
//! layer in throw-away processes, and of brigd itself. Never guesses.

mod attack;
mod host;

use super::args::{DoctorArgs, Global};
use super::exit::Exit;
use super::{Fault, session, terminal};
use brig::protocol::escape::ShowPath as _;
use brig::protocol::escape::escaped;
use brig::{Client, Error, find_binary};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How long a probe may take.
const PROBE_TIME: Duration = Duration::from_secs(30);

/// The layer that a probe can not try.
const OWN_UID: &str = "own_uid";

/// How good what was found is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    /// As it should be.
    Good,
    /// Could be better: brigd runs without it.
    Missing,
    /// brigd does not run like this, or not safely enough by default.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    what: String,
    grade: Grade,
    detail: String,
    remedy: Option<String>,
}

impl Finding {
    fn good(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { what: what.into(), grade: Grade::Good, detail: detail.into(), remedy: None }
    }

    fn bad(what: impl Into<String>, detail: impl Into<String>, remedy: Option<String>) -> Self {
        Self { what: what.into(), grade: Grade::Problem, detail: detail.into(), remedy }
    }

    fn to_json(&self) -> Value {
        json!({"what": self.what, "grade": self.grade.name(), "detail": self.detail, "remedy": self.remedy})
    }
}

impl Grade {
    const fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Missing => "missing",
            Self::Problem => "problem",
        }
    }
}

/// Looks at everything, and shows all problems at once.
pub(crate) async fn doctor(global: &Global, args: DoctorArgs) -> Result<Exit, Fault> {
    let mut findings = Vec::new();
    let brigd = find_binary("brigd", "BRIGD");
    findings.push(match &brigd {
        Ok(path) => Finding::good("brigd", path.shown().to_string()),
        Err(why) => Finding::bad("brigd", why.clone(), None),
    });
    let named = std::env::var_os("BRIG_WORKER").filter(|value| !value.is_empty()).map(PathBuf::from);
    match find_worker(brigd.as_deref().ok(), named) {
        Ok(path) => findings.extend(probe(&path).await),
        Err(finding) => findings.push(finding),
    }
    findings.extend(host::look(Path::new("/")));
    let (client, admin) = (session::named_socket(global), args.admin_socket.unwrap_or_else(|| host::ADMIN_SOCKET.into()));
    findings.push(host::socket(Path::new("/"), "client socket", &client, host::CLIENT));
    findings.push(host::socket(Path::new("/"), "admin socket", &admin, host::ADMIN));
    if let Ok(brigd) = &brigd {
        findings.extend(configuration(brigd, &args.config).await);
    }
    let (connection, layers, attacks) = reach(global, args.attack).await;
    believe_ids(&mut findings, &layers);
    findings.push(delegation(&layers));
    findings.push(connection);
    findings.extend(attacks);
    let healthy = findings.iter().all(|finding| finding.grade != Grade::Problem);
    if args.json {
        let all: Vec<Value> = findings.iter().map(Finding::to_json).collect();
        terminal::out(&format!("{}\n", json!({"ok": healthy, "findings": all})));
    } else {
        findings.iter().for_each(|finding| terminal::out(&shown(finding)));
        let summary = match findings.iter().map(|finding| finding.grade).max_by_key(|grade| *grade as u8) {
            Some(Grade::Problem) => "there are problems; see the remedies above\n",
            Some(Grade::Missing) => "brigd runs here; what is missing would confine workers further\n",
            _ => "everything is in order\n",
        };
        terminal::out(summary);
    }
    Ok(if healthy { Exit::Succeeded } else { Exit::Failed })
}

fn shown(finding: &Finding) -> String {
    let mut text = format!(
        "{:<8} {:<18} {}\n",
        finding.grade.name(),
        finding.what,
        terminal::safe_lines(&finding.detail).replace('\n', "\n         ")
    );
    if let Some(remedy) = &finding.remedy {
        writeln!(text, "         remedy: {remedy}").ok();
    }
    text
}

/// The worker that brigd would take: the one that is named, else the first beside
/// brigd's own file or in libexec. `PATH` is not looked at, because brigd does not.
fn find_worker(brigd: Option<&Path>, named: Option<PathBuf>) -> Result<PathBuf, Finding> {
    let bad = |detail, remedy: &str| Err(Finding::bad("brig-worker", detail, Some(remedy.to_owned())));
    if let Some(named) = named {
        return if named.is_file() {
            Ok(named)
        } else {
            bad(format!("BRIG_WORKER names {}, which is no file", named.shown()), "name the worker's file in BRIG_WORKER, or unset it")
        };
    }
    let Some(brigd) = brigd else {
        return bad("brigd looks for it beside itself, and there is no brigd".to_owned(), "install brigd first");
    };
    let places = worker_places(brigd);
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return Ok(found.clone());
    }
    let places: Vec<String> = places.iter().map(|place| place.shown().to_string()).collect();
    bad(
        format!("there is no worker binary at {}", places.join(" or ")),
        "install brig-worker at one of these places, or name it in BRIG_WORKER (or with brigd's --worker)",
    )
}

/// Where brigd looks when nothing names the worker. It sees its own file, not a link to it.
fn worker_places(brigd: &Path) -> Vec<PathBuf> {
    let own = std::fs::canonicalize(brigd).unwrap_or_else(|_| brigd.to_owned());
    let folder = own.parent().unwrap_or(Path::new("/"));
    vec![folder.join("brig-worker"), folder.join("../libexec/brig/brig-worker"), PathBuf::from("/usr/libexec/brig/brig-worker")]
}

/// Which ids workers get, brigd decides: the probe, which has none to give, can not know.
fn believe_ids(findings: &mut [Finding], layers: &[String]) {
    if layers.iter().any(|layer| layer == OWN_UID)
        && let Some(finding) = findings.iter_mut().find(|finding| finding.what == OWN_UID)
    {
        *finding = Finding::good(OWN_UID, "active, says brigd");
    }
}

/// Whether each worker of the brigd that answers has a cgroup of its own.
fn delegation(layers: &[String]) -> Finding {
    if layers.iter().any(|layer| layer == "cgroup") {
        return Finding::good("cgroup", "active, says brigd");
    }
    let remedy = "install the drop-in delegate.conf for brigd.service: then one worker's memory is bounded as a whole, and the kernel's \
                  killing for lack of memory hits that worker only";
    Finding {
        what: "cgroup".to_owned(),
        grade: Grade::Missing,
        detail: "workers have none of their own".to_owned(),
        remedy: Some(remedy.to_owned()),
    }
}

/// What brigd itself says of the service's configuration, where there is one.
async fn configuration(brigd: &Path, file: &Path) -> Option<Finding> {
    match std::fs::metadata(file) {
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return None,
        _ => {}
    }
    let checking = Command::new(brigd).args(["config", "check"]).arg(file).stdin(Stdio::null()).kill_on_drop(true).output();
    Some(match tokio::time::timeout(PROBE_TIME, checking).await {
        Ok(Ok(output)) if output.status.success() => Finding::good("configuration", format!("{} is valid", file.shown())),
        Ok(Ok(output)) => {
            let said = escaped(String::from_utf8_lossy(&output.stderr).trim(), 1000);
            Finding::bad(
                "configuration",
                said,
                Some("mend it there: brigd does not start with it, and a reload changes nothing".to_owned()),
            )
        }
        Ok(Err(fault)) => Finding::bad("configuration", format!("{} can not be started: {fault}", brigd.shown()), None),
        Err(_) => Finding::bad("configuration", format!("the check did not end within {PROBE_TIME:?}"), None),
    })
}

/// Whether a brigd answers, and what it says of itself; also its layers, and what became
/// of the attacks, when they are asked for.
async fn reach(global: &Global, attacks: bool) -> (Finding, Vec<String>, Vec<Finding>) {
    let client = match Client::connect_or_start(session::options(global)).await {
        Ok(client) => client,
        Err(fault) => {
            let remedy = connection_remedy(&fault);
            return (Finding::bad("connection", fault.to_string(), remedy), Vec::new(), Vec::new());
        }
    };
    let facts = client.initialize().await;
    let attacks = if attacks { attack::run(&client).await } else { Vec::new() };
    let origin = match client.origin() {
        brig::Origin::Listening { socket } => format!("on {}", socket.shown()),
        brig::Origin::Private { .. } if global.private => "started for this command, as asked".to_owned(),
        brig::Origin::Private { .. } => "started for this command (no service answers)".to_owned(),
    };
    client.close().await;
    match facts {
        Ok(facts) => {
            let (server, sandbox) = (facts.server, facts.sandbox);
            let detail = format!("{} {} {origin}; sandbox {}; uid {}", server.name, server.version, sandbox.level, facts.principal.uid);
            (Finding::good("connection", detail), sandbox.layers, attacks)
        }
        Err(fault) => (Finding::bad("connection", format!("{origin}: {fault}"), None), Vec::new(), attacks),
    }
}

/// What to do when no brigd can be reached. A brigd that was started has said itself why
/// it did not stay.
fn connection_remedy(fault: &Error) -> Option<String> {
    matches!(fault, Error::Connect { .. }).then(|| {
        "start the brigd of this socket (systemctl start brigd.socket, or brigd --socket PATH), see that this user may connect to it, or leave \
         --socket out and BRIG_SOCKET unset: then a private brigd is started"
            .to_owned()
    })
}

/// Runs the probe and reads what it found.
async fn probe(worker: &Path) -> Vec<Finding> {
    let bad = |why: String| vec![Finding::bad("brig-worker", why, None)];
    let probing = Command::new(worker).arg("probe").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).output();
    let output = match tokio::time::timeout(PROBE_TIME, probing).await {
        Ok(Ok(output)) => output,
        Ok(Err(fault)) => return bad(format!("{} can not be started: {fault}", worker.shown())),
        Err(_) => return bad(format!("{} probe did not end within {PROBE_TIME:?}", worker.shown())),
    };
    match serde_json::from_slice::<Map<String, Value>>(&output.stdout) {
        Ok(report) => {
            let mut findings = vec![Finding::good("brig-worker", worker.shown().to_string())];
            findings.extend(read_report(&report, rustix::process::geteuid().is_root()));
            findings
        }
        Err(_) => bad(format!("{} probe ended with {} and no report", worker.shown(), output.status)),
    }
}

/// A probe's report, finding by finding; `root` is who the probe ran as.
fn read_report(report: &Map<String, Value>, root: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    match report.get("level").and_then(Value::as_str) {
        Some(level @ ("full" | "strong")) => findings.push(Finding::good("sandbox level", escaped(level, 40))),
        Some(level) => {
            let remedy = "see the layers below; `strong` needs all namespaces or Landlock, `full` both and MDWE".to_owned();
            findings.push(Finding::bad("sandbox level", escaped(level, 40), Some(remedy)));
        }
        None => findings.push(Finding::bad("sandbox level", "none: brigd would refuse to start", None)),
    }
    if let Some(failed) = report.get("failed") {
        let layer = failed.get("layer").and_then(Value::as_str).unwrap_or("unknown");
        let finding = missing(layer, "refused", failed.get("errno").and_then(Value::as_i64));
        findings.push(Finding { grade: Grade::Problem, ..finding });
    }
    if let Some(abi) = report.get("landlockAbi").and_then(Value::as_u64).filter(|abi| *abi > 0) {
        findings.push(Finding::good("landlock ABI", abi.to_string()));
    }
    let layers = report.get("layers").and_then(Value::as_object);
    for (layer, state) in layers.into_iter().flatten() {
        if state.as_str() == Some("active") {
            findings.push(Finding::good(escaped(layer, 40), "active"));
        } else {
            let cause = match state.get("missing").and_then(Value::as_str).unwrap_or("unknown") {
                // Root is there already; only the ids are not.
                "needs_root" if root && layer == OWN_UID => "not_configured",
                cause => cause,
            };
            findings.push(missing(layer, cause, state.get("errno").and_then(Value::as_i64)));
        }
    }
    findings
}

fn missing(layer: &str, cause: &str, errno: Option<i64>) -> Finding {
    let system = errno
        .filter(|errno| *errno != 0)
        .and_then(|errno| i32::try_from(errno).ok())
        .map(|errno| format!(" ({})", std::io::Error::from_raw_os_error(errno)))
        .unwrap_or_default();
    let why = match cause {
        "switched_off" => "switched off by configuration",
        "unsupported" => "this kernel does not have it",
        "refused" => "the kernel refuses it",
        "needs_root" => "needs root",
        "not_configured" => "not configured: set workers.uid_range",
        "no_proc" => "needs /proc",
        "not_tried" => "not tried, because something before it is missing",
        other => &escaped(other, 80),
    };
    Finding { what: escaped(layer, 40), grade: Grade::Missing, detail: format!("{why}{system}"), remedy: remedy(layer, cause, errno) }
}

/// What an operator can do about a missing layer.
fn remedy(layer: &str, cause: &str, errno: Option<i64>) -> Option<String> {
    let by_module = errno == Some(i64::from(rustix::io::Errno::ACCESS.raw_os_error()));
    let text = match (layer, cause) {
        (_, "switched_off") => "switch it on again in brigd's configuration",
        (_, "not_tried") => return None,
        (_, "no_proc") => "mount /proc for the process that starts brigd",
        ("own_uid", "not_configured") => {
            "give workers user ids of their own: a range that this user namespace has, in setting workers.uid_range of brigd's configuration"
        }
        ("own_uid", _) => {
            "run brigd as root with a range of user ids for workers (setting workers.uid_range); namespaces and seccomp confine them without it"
        }
        // What forbids all users alike says EPERM or ENOSPC.
        (layer, "refused") if by_module && layer.ends_with("_namespace") => {
            "a security module forbids it, and the kernel's log says which: with AppArmor, give the profile that confines brig-worker (or \
             brigd) the rule `userns,`, besides `mount,`, `umount,` and `pivot_root,`; on Ubuntu see \
             kernel.apparmor_restrict_unprivileged_userns too"
        }
        (
            "user_namespace" | "mount_namespace" | "net_namespace" | "ipc_namespace" | "uts_namespace" | "pid_namespace"
            | "cgroup_namespace",
            _,
        ) => {
            "allow unprivileged user namespaces (sysctl user.max_user_namespaces > 0; on Debian kernel.unprivileged_userns_clone=1; on Ubuntu \
             kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for brig-worker with `userns`), or run brigd as root; in a \
             container, allow unshare in its seccomp profile"
        }
        ("empty_root", _) => "needs the mount namespace: see there",
        ("landlock", "unsupported") => "use a kernel of 5.13 or newer with Landlock built in",
        ("landlock", _) => "add landlock to the kernel's list of security modules (boot parameter lsm=landlock,…)",
        ("mdwe", _) => "use a kernel of 6.3 or newer",
        ("seccomp", _) => "use a kernel with CONFIG_SECCOMP_FILTER; in a container, allow the seccomp system call",
        ("no_new_privs" | "rlimits" | "cpu_timer" | "not_dumpable" | "parent_death" | "descriptors" | "no_capabilities", _) => {
            "this works on every kernel since 5.10: look for a container or security module that forbids it"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests;
