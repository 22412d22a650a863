//! Frames of the control link: what decodes is what encoding makes, byte for byte.

use crate::drive::{behaviour, fuzz};
use brig_protocol::control::{
    Cause, Configure, Exited, FRAME_MAX, Kind, Layer, LayerState, Layers, Level, Origin, Ready, Report, Request, Spawn, Spawned, WaitStatus,
};

fn seeds() -> Vec<Vec<u8>> {
    let configure = Configure {
        origin: Origin::Fork,
        namespaces: true,
        required: Level::Strong,
        heap_bytes: 1 << 26,
        stack_bytes: 1 << 23,
        address_space_bytes: 1 << 30,
        cpu_ms: 10_000,
        uid_base: 100_000,
        uid_count: 1000,
    };
    let mut layers = Layers::none();
    layers.set(Layer::Seccomp, LayerState::Active);
    layers.set(Layer::Landlock, LayerState::Missing { cause: Cause::Refused, errno: 1 });
    let (slot, generation) = (7, u64::MAX - 1);
    let exited = Exited { slot, generation, status: WaitStatus::Signal(31), user_us: 5, system_us: 6, max_rss_kb: 7 };
    vec![
        Request::Configure(configure).encode(),
        Request::Configure(Configure { uid_base: 0, uid_count: 0, ..configure }).encode(),
        Request::Spawn(Spawn { slot, generation, cpu_ms: 0, kind: Kind::Vm }).encode(),
        Report::Ready(Ready { layers, landlock_abi: 6, pid: 12 }).encode(),
        Report::Failed { layer: Layer::Rlimits, errno: 12 }.encode(),
        Report::Spawned(Spawned { slot, generation, pid: 2 }).encode(),
        Report::SpawnFailed { slot, generation, errno: 16 }.encode(),
        Report::Exited(exited).encode(),
        Report::Exited(Exited { status: WaitStatus::Code(86), ..exited }).encode(),
    ]
}

#[test]
fn a_control_frame_is_refused_or_is_exactly_what_encoding_makes() {
    fuzz(&crate::target("control", &[], 0), seeds(), |packet| {
        let request = Request::decode(packet);
        let report = Report::decode(packet);
        assert!(request.is_err() || report.is_err(), "one direction only");
        if let Ok(request) = request {
            assert_eq!(request.encode(), packet);
        }
        if let Ok(report) = report {
            assert_eq!(report.encode(), packet);
            if let Report::Spawned(spawned) = report {
                assert!(spawned.pid >= 2, "signals to 0 and 1 mean others");
            }
            if let Report::Ready(ready) = report {
                let level = ready.layers.level();
                assert!(ready.layers.missing_for(Level::Minimal).is_some() == level.is_err());
                assert!(
                    Level::ALL
                        .iter()
                        .all(|wanted| ready.layers.missing_for(*wanted).is_none() == level.is_ok_and(|level| level >= *wanted))
                );
            }
        }
        assert!((request.is_err() && report.is_err()) || packet.len() <= FRAME_MAX);
        let kind = |debug: String| debug.split(['{', ' ']).take(2).collect::<String>();
        behaviour(&format!("{} {}", kind(format!("{request:?}")), kind(format!("{report:?}"))))
    });
}
