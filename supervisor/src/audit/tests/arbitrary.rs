//! Any change of any byte is found.

use super::*;

/// The files of a chain of a few segments, to be changed.
fn pristine() -> Vec<(String, Vec<u8>)> {
    static FILES: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    let files = FILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 30);
        let mut names: Vec<String> = segment::list(folder.path()).unwrap().into_iter().map(segment::name).collect();
        names.push("head".to_owned());
        names.into_iter().map(|name| (name.clone(), std::fs::read(folder.path().join(name)).unwrap())).collect()
    });
    files.clone()
}

/// Whether a chain of these files is found to be changed.
fn is_found(files: &[(String, Vec<u8>)]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    !verify(folder.path(), &[]).unwrap().findings.is_empty()
}

#[test]
fn the_chain_that_is_changed_below_is_good_before() {
    assert!(!is_found(&pristine()));
    assert!(pristine().len() > 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_byte_of_any_file_is_found(file in 0usize..100, at in 0usize..100_000, by in 1u8..=255) {
        let mut files = pristine();
        let file = file % files.len();
        let bytes = &mut files[file].1;
        let at = at % bytes.len();
        bytes[at] ^= by;
        prop_assert!(is_found(&files), "{} byte {at}", files[file].0);
    }

    #[test]
    fn any_removed_line_is_found(file in 0usize..100, line in 0usize..10_000) {
        let mut files = pristine();
        let file = file % (files.len() - 1);
        let mut lines: Vec<Vec<u8>> = files[file].1.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.remove(line % lines.len());
        files[file].1 = lines.concat();
        prop_assert!(is_found(&files));
    }

    #[test]
    fn any_cut_is_found(file in 0usize..100, at in 0usize..100_000) {
        let mut files = pristine();
        let file = file % files.len();
        let at = at % files[file].1.len();
        files[file].1.truncate(at);
        prop_assert!(is_found(&files), "{} at {at}", files[file].0);
    }

    #[test]
    fn any_bytes_put_in_are_found_unless_they_are_a_torn_end(file in 0usize..100, at in 0usize..100_000, more in proptest::collection::vec(any::<u8>(), 1..80)) {
        let mut files = pristine();
        let newest = files.len() - 2;
        let file = file % files.len();
        let at = at % (files[file].1.len() + 1);
        let torn_end = file == newest && at == files[file].1.len() && !more.contains(&b'\n');
        let before = files[file].1.clone();
        files[file].1.splice(at..at, more);
        prop_assert!(torn_end || files[file].1 == before || is_found(&files), "{} at {at}", files[file].0);
    }

    #[test]
    fn any_removed_file_and_any_two_swapped_lines_are_found(file in 0usize..100, one in 0usize..1_000, other in 0usize..1_000) {
        let mut files = pristine();
        let file = file % files.len();
        let mut without = files.clone();
        without.remove(file);
        prop_assert!(is_found(&without), "{} removed", files[file].0);
        let mut lines: Vec<Vec<u8>> = files[file].1.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (one, other) = (one % lines.len(), other % lines.len());
        if one != other {
            lines.swap(one, other);
            files[file].1 = lines.concat();
            prop_assert!(is_found(&files));
        }
    }

    #[test]
    fn the_reader_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(is_found(&[("segment-0000000001.jsonl".to_owned(), bytes.clone()), ("head".to_owned(), bytes)]));
    }
}
