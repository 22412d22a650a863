//! Attack 7: hosts that refuse a part. The nursery says the level that is left, or refuses.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "../attack/supervisor.rs"]
#[expect(dead_code, reason = "the parts that only tests/nursery.rs uses")]
mod supervisor;

use std::path::Path;
use std::process::Command;

use brig_protocol::control::{Cause, Layer, LayerState, Level, Origin, Ready, Report, Request, exit};
use serde_json::{Value, json};
use supervisor::{Nursery, configuration};

const ATTACK: &str = env!("CARGO_BIN_EXE_brig-attack");
const WORKER: &str = env!("CARGO_BIN_EXE_brig-worker");

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A nursery on a host that refuses `calls`, and its answer to a demand for `required`.
fn answer(calls: &str, origin: Origin, required: Level) -> (Nursery, Report) {
    let mut nursery = Nursery::start_as(Path::new(ATTACK), &["without", calls, "nursery"], None).unwrap();
    let mut config = configuration(origin, true);
    config.required = required;
    nursery.send(&Request::Configure(config).encode(), &[]).unwrap();
    let (report, _) = nursery.report().unwrap().unwrap();
    (nursery, report)
}

fn ready(calls: &str, origin: Origin) -> (Nursery, Ready) {
    match answer(calls, origin, Level::Minimal) {
        (nursery, Report::Ready(ready)) => (nursery, ready),
        (_, other) => panic!("{other:?}"),
    }
}

fn refused(layer: Layer, ready: &Ready) -> bool {
    matches!(ready.layers.get(layer), LayerState::Missing { cause: Cause::Refused, errno: 1 })
}

fn failed(calls: &str, required: Level) -> Layer {
    let (nursery, report) = answer(calls, Origin::Fork, required);
    assert_eq!(nursery.close().unwrap().code(), Some(exit::LOCKDOWN_FAILED.into()));
    match report {
        Report::Failed { layer, .. } => layer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_namespaces_landlock_makes_it_strong() {
    for origin in [Origin::Fork, Origin::Exec] {
        let (mut nursery, ready) = ready("unshare", origin);
        assert_eq!(ready.layers.level(), Ok(Level::Strong));
        for layer in Layer::ALL.iter().filter(|layer| layer.is_namespace()) {
            assert!(refused(*layer, &ready), "{layer:?}");
        }
        nursery.spawn(0, 0, 0).unwrap();
        nursery.exited().unwrap();
    }
}

#[test]
fn without_landlock_it_is_what_namespaces_make_it() {
    let with_all = Nursery::ready(Path::new(ATTACK), None, configuration(Origin::Fork, true)).unwrap().1;
    let spaces = with_all.layers.has(Layer::EmptyRoot);
    for origin in [Origin::Fork, Origin::Exec] {
        let (mut nursery, ready) = ready("landlock", origin);
        assert!(refused(Layer::Landlock, &ready));
        assert_eq!(ready.landlock_abi, 0);
        assert_eq!(ready.layers.level(), Ok(if spaces { Level::Strong } else { Level::Minimal }));
        nursery.spawn(0, 0, 0).unwrap();
        nursery.exited().unwrap();
    }
}

#[test]
fn without_both_it_is_minimal_and_strong_is_refused_by_name() {
    let (_nursery, ready) = ready("unshare,landlock", Origin::Fork);
    assert_eq!(ready.layers.level(), Ok(Level::Minimal));
    assert_eq!(failed("unshare,landlock", Level::Strong), Layer::Landlock);
}

#[test]
fn full_is_refused_by_the_name_of_what_is_missing() {
    assert_eq!(failed("unshare", Level::Full), Layer::UserNamespace);
}

#[test]
fn without_a_filter_or_a_timer_nothing_starts_at_any_level() {
    assert_eq!(failed("seccomp", Level::Minimal), Layer::Seccomp);
    assert_eq!(failed("timer", Level::Minimal), Layer::CpuTimer);
}

fn probe(command: &mut Command) -> Value {
    let output = command.env_clear().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_probe_prints_every_layer_and_the_level() {
    let found = probe(Command::new(WORKER).arg("probe"));
    let layers = found["layers"].as_object().unwrap();
    for layer in Layer::ALL {
        let state = &layers[layer.name()];
        assert!(state == "active" || state["missing"].is_string(), "{state}");
    }
    assert_eq!(layers["seccomp"], "active");
    assert!(["minimal", "strong", "full"].contains(&found["level"].as_str().unwrap()));
}

#[test]
fn in_a_bare_root_without_proc_namespaces_are_missing_for_that() {
    if !root() {
        return;
    }
    let bare = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-root");
    std::fs::create_dir_all(&bare).unwrap();
    std::fs::copy(WORKER, bare.join("brig-worker")).unwrap();
    let found = probe(Command::new("/usr/sbin/chroot").arg(&bare).args(["/brig-worker", "probe"]));
    let missing = json!({"missing": "no_proc", "errno": 2});
    assert_eq!(found["layers"]["user_namespace"], missing);
    assert_eq!(found["layers"]["empty_root"], missing);
}

#[test]
fn root_takes_the_other_namespaces_where_user_namespaces_are_used_up() {
    if !root() {
        return;
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" probe";
    let found = probe(Command::new("/usr/bin/unshare").args(["-Ur", "/bin/sh", "-c", script, WORKER]));
    assert_eq!(found["layers"]["user_namespace"], json!({"missing": "refused", "errno": 28}));
    assert_eq!(found["layers"]["empty_root"], "active");
    assert_ne!(found["level"], "full");
}

#[test]
fn arguments_that_are_no_role_are_refused() {
    for arguments in [&[][..], &["serve"], &["probe", "more"]] {
        let status = Command::new(WORKER).args(arguments).status().unwrap();
        assert_eq!(status.code(), Some(exit::USAGE.into()), "{arguments:?}");
    }
}
