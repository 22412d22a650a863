//! Misspelt names: how far apart two are, and what a parser says there is.
//!
//! Owns the arithmetic and the reading of serde's sentence. Never says which distance is
//! near enough: that depends on what the names are.

/// Characters that have to be put in, taken out or changed to come from one to the other;
/// two neighbours that changed places count as one. Takes time by the product of both
/// lengths: bound them first.
#[must_use]
pub fn distance(from: &[char], to: &[char]) -> usize {
    let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    let mut older: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, here) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, there) in to.iter().enumerate() {
            let changed = at(&above, j) + usize::from(here != there);
            let mut least = changed.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            if i > 0 && j > 0 && from.get(i - 1) == Some(there) && to.get(j - 1) == Some(here) {
                least = least.min(at(&older, j - 1) + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(usize::MAX)
}

/// What was written, and what there is, in serde's ``unknown field `x`, expected one of
/// `a`, `b` `` and its like.
#[must_use]
pub fn unknown_name(message: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (_, rest) = message.strip_prefix("unknown ")?.split_once('`')?;
    let (written, known) = rest.split_once("`, expected ")?;
    Some((written, known.split('`').skip(1).step_by(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(from: &str, to: &str) -> usize {
        distance(&from.chars().collect::<Vec<_>>(), &to.chars().collect::<Vec<_>>())
    }

    #[test]
    fn a_distance_counts_edits_and_a_swap_as_one() {
        assert_eq!((apart("list", "lst"), apart("list", "list"), apart("abc", "xyz"), apart("", "ab")), (1, 0, 3, 2));
        assert_eq!((apart("fliter", "filter"), apart("tpye", "type"), apart("kitten", "sitting")), (1, 1, 3));
    }

    #[test]
    fn what_a_parser_says_there_is_is_read_and_other_faults_are_left() {
        let read =
            |message: &str| unknown_name(message).map(|(written, known)| format!("{written}: {}", known.collect::<Vec<_>>().join(" ")));
        assert_eq!(read("unknown field `a`, expected one of `b`, `c`").as_deref(), Some("a: b c"));
        assert_eq!(read("unknown variant `a`, expected `b` or `c`").as_deref(), Some("a: b c"));
        for other in ["unknown field `a`, there are no fields", "missing field `a`", "invalid type: string \"unknown `x`\"", "unknown "] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
