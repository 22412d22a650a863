//! Fuzz targets for everything that parses what another process sent (attack 12). Each
//! runs for a bounded time in a plain `cargo test`; see `drive` for how to run it longer,
//! and `corpus/README.md` for what becomes of a finding. The target of the program
//! normaliser is beside its code in the worker.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod control;
mod conversation;
mod counting;
mod drive;
mod envelopes;
mod framing;
mod names;
mod params;
mod same;
mod seeds;
mod text;

use drive::{Target, fuzz};

fn target<'a>(name: &'a str, words: &'a [&'a str], text_share: usize) -> Target<'a> {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    Target { name, corpus, words, text_share, longest: 16 * 1024 }
}

#[test]
fn the_driver_finds_a_planted_fault_and_makes_it_small() {
    let planted = |input: &[u8]| {
        let depth = input.windows(2).filter(|pair| *pair == b"[[").count();
        assert!(depth < 40 || !input.contains(&b'7'), "planted");
        u64::try_from(depth).unwrap_or(0)
    };
    let seeds = vec![br#"{"a":[1,2,"x"]}"#.to_vec()];
    let mut target = target("planted", &["null"], 70);
    target.corpus = std::path::PathBuf::from("none");
    let found = std::panic::catch_unwind(|| fuzz(&target, seeds, planted));
    let told = found.err().and_then(|panic| panic.downcast::<String>().ok()).unwrap();
    let small = format!("on {}7", "[".repeat(41));
    let other = format!("on 7{}", "[".repeat(41));
    assert!(told.contains(&small) || told.contains(&other), "{told}");
}
