#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;

type Change = fn(&mut Configure);
use proptest::prelude::*;

fn configure() -> Configure {
    Configure {
        origin: Origin::Fork,
        namespaces: true,
        required: Level::Strong,
        heap_bytes: 64 << 20,
        stack_bytes: 8 << 20,
        address_space_bytes: 512 << 20,
        cpu_ms: 2000,
        uid_base: 100_000,
        uid_count: 64,
    }
}

fn all_layers() -> Layers {
    let mut layers = Layers::none();
    for layer in Layer::ALL {
        layers.activate(*layer);
    }
    layers
}

fn miss(layers: &mut Layers, layer: Layer) {
    layers.set(layer, LayerState::Missing { cause: Cause::Refused, errno: 1 });
}

fn reports() -> Vec<Report> {
    let mut layers = all_layers();
    miss(&mut layers, Layer::Mdwe);
    vec![
        Report::Ready(Ready { layers, landlock_abi: 7, pid: 4242 }),
        Report::Failed { layer: Layer::Landlock, errno: 1 },
        Report::Spawned(Spawned { slot: 3, generation: 9, pid: 2 }),
        Report::SpawnFailed { slot: 3, generation: 9, errno: 11 },
        Report::Exited(Exited { slot: 3, generation: u64::MAX, status: WaitStatus::Signal(31), user_us: 1, system_us: 2, max_rss_kb: 3 }),
        Report::Exited(Exited {
            slot: 3,
            generation: 1,
            status: WaitStatus::Code(exit::HEAP_LIMIT),
            user_us: 1,
            system_us: 2,
            max_rss_kb: 3,
        }),
    ]
}

fn requests() -> Vec<Request> {
    vec![Request::Configure(configure()), Request::Spawn(Spawn { slot: u16::MAX, generation: 7, cpu_ms: 0, kind: Kind::Vm })]
}

#[test]
fn every_frame_comes_back_as_it_went() {
    for request in requests() {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    for report in reports() {
        assert_eq!(Report::decode(&report.encode()), Ok(report));
    }
}

#[test]
fn the_bytes_of_a_spawn_are_pinned() {
    let spawn = Request::Spawn(Spawn { slot: 0x0102, generation: 3, cpu_ms: 4, kind: Kind::Once });
    assert_eq!(spawn.encode(), [2, 1, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
}

#[test]
fn no_frame_is_longer_than_the_maximum() {
    for bytes in requests().iter().map(Request::encode).chain(reports().iter().map(Report::encode)) {
        assert!(bytes.len() <= FRAME_MAX, "{bytes:?}");
    }
}

#[test]
fn a_frame_cut_or_grown_by_a_byte_is_refused() {
    for request in requests() {
        let mut bytes = request.encode();
        bytes.push(0);
        assert!(matches!(Request::decode(&bytes), Err(FrameError::Length { .. })));
        for cut in 0..bytes.len() - 1 {
            assert!(matches!(Request::decode(&bytes[..cut]), Err(FrameError::Length { .. })));
        }
    }
}

#[test]
fn a_frame_of_the_other_direction_is_refused() {
    for report in reports() {
        assert!(matches!(Request::decode(&report.encode()), Err(FrameError::Tag(_))));
    }
    for request in requests() {
        assert!(matches!(Report::decode(&request.encode()), Err(FrameError::Tag(_))));
    }
}

#[test]
fn another_version_is_refused() {
    let mut bytes = requests()[1].encode();
    bytes[1] = VERSION + 1;
    assert_eq!(Request::decode(&bytes), Err(FrameError::Version(VERSION + 1)));
}

#[test]
fn fields_out_of_range_are_refused_by_name() {
    let cases: [(&str, Change); 8] = [
        ("heap_bytes", |c| c.heap_bytes = 0),
        ("stack_bytes", |c| c.stack_bytes = 0),
        ("address_space_bytes", |c| c.address_space_bytes = 0),
        ("cpu_ms", |c| c.cpu_ms = 0),
        ("uid_base", |c| c.uid_base = 0),
        ("uid_count", |c| c.uid_count = 1),
        ("uid_count", |c| c.uid_count = 65_001),
        ("uid_count", |c| c.uid_base = u32::MAX - 64),
    ];
    for (field, change) in cases {
        let mut c = configure();
        change(&mut c);
        assert_eq!(Request::decode(&Request::Configure(c).encode()), Err(FrameError::Field(field)));
    }
}

#[test]
fn without_a_uid_range_base_and_count_are_both_zero() {
    let mut c = configure();
    (c.uid_base, c.uid_count) = (0, 0);
    let request = Request::Configure(c);
    assert_eq!(Request::decode(&request.encode()), Ok(request));
}

#[test]
fn every_layer_has_its_place_and_its_own_name() {
    assert_eq!(Layer::ALL.len(), LAYERS);
    let names: std::collections::BTreeSet<_> = Layer::ALL.iter().map(|l| l.name()).collect();
    assert_eq!(names.len(), LAYERS);
    for (place, layer) in Layer::ALL.iter().enumerate() {
        assert_eq!(*layer as usize, place);
    }
}

#[test]
fn everything_is_full_and_own_uids_are_not_asked_for() {
    let mut layers = all_layers();
    assert_eq!(layers.level(), Ok(Level::Full));
    miss(&mut layers, Layer::OwnUid);
    assert_eq!(layers.level(), Ok(Level::Full));
}

#[test]
fn each_required_layer_that_is_missing_is_named_and_nothing_runs() {
    for layer in Layer::ALL.iter().filter(|l| l.is_required()) {
        let mut layers = all_layers();
        miss(&mut layers, *layer);
        assert_eq!(layers.level(), Err(*layer));
        assert_eq!(layers.missing_for(Level::Minimal), Some(*layer));
    }
}

#[test]
fn any_one_namespace_missing_is_no_longer_full() {
    for layer in Layer::ALL.iter().filter(|l| l.is_namespace()) {
        let mut layers = all_layers();
        miss(&mut layers, *layer);
        assert_eq!(layers.level(), Ok(Level::Strong));
        assert_eq!(layers.missing_for(Level::Full), Some(*layer));
        assert_eq!(layers.missing_for(Level::Strong), None);
        miss(&mut layers, Layer::Landlock);
        if *layer == Layer::UserNamespace {
            assert_eq!(layers.level(), Ok(Level::Strong));
        } else {
            assert_eq!(layers.level(), Ok(Level::Minimal));
            assert_eq!(layers.missing_for(Level::Strong), Some(Layer::Landlock));
        }
    }
}

#[test]
fn namespaces_alone_are_strong() {
    let mut layers = all_layers();
    miss(&mut layers, Layer::Landlock);
    assert_eq!(layers.level(), Ok(Level::Strong));
}

#[test]
fn without_mdwe_it_is_strong_not_full() {
    let mut layers = all_layers();
    miss(&mut layers, Layer::Mdwe);
    assert_eq!(layers.level(), Ok(Level::Strong));
    assert_eq!(layers.missing_for(Level::Full), Some(Layer::Mdwe));
}

#[test]
fn every_exit_code_has_a_meaning_and_no_other_has() {
    let ours = [exit::FINISHED, exit::HEAP_LIMIT, exit::PANIC, exit::LOCKDOWN_FAILED, exit::PARENT_GONE, exit::PROTOCOL, exit::USAGE];
    for code in 0..=u8::MAX {
        assert_eq!(exit::meaning(code).is_some(), ours.contains(&code), "{code}");
    }
}

proptest! {
    #[test]
    fn bytes_either_decode_to_what_encodes_to_them_or_are_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..FRAME_MAX + 4),
    ) {
        if let Ok(request) = Request::decode(&bytes) {
            prop_assert_eq!(request.encode(), bytes.clone());
        }
        if let Ok(report) = Report::decode(&bytes) {
            prop_assert_eq!(report.encode(), bytes);
        }
    }

    #[test]
    fn any_byte_of_a_valid_frame_changed_still_decodes_exactly_or_is_refused(
        which in 0usize..6, place in 0usize..FRAME_MAX, value: u8,
    ) {
        let mut bytes = reports().get(which).unwrap().encode();
        let place = place % bytes.len();
        bytes[place] = value;
        if let Ok(report) = Report::decode(&bytes) {
            prop_assert_eq!(report.encode(), bytes);
        }
    }
}
