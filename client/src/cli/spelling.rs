//! Misspelt names.
//!
//! Owns finding the known name that was probably meant. Never changes what was written.

use brig::protocol::spelling::unknown_name;

/// Longest name that is compared, in characters; nobody misspells a longer one.
const LONGEST: usize = 64;

/// The fault of an unknown member, with the known one that is spelt most like it. Any
/// other fault, and a member like no other, stays as it is.
pub(crate) fn suggest(fault: &str) -> String {
    let unknown = unknown_name(fault).filter(|_| fault.starts_with("unknown field"));
    let Some((written, known)) = unknown else { return fault.to_owned() };
    nearest(written, known).map_or_else(|| fault.to_owned(), |near| format!("unknown member {written:?}; did you mean {near:?}?"))
}

/// The known name with the fewest changed characters, if these are a third at most.
pub(super) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    if length > LONGEST {
        return None;
    }
    let near = known.map(|name| (distance(&written.to_lowercase(), &name.to_lowercase()), name)).min()?;
    (near.0 <= (length / 3).max(1)).then_some(near.1)
}

/// How many characters must be added, removed or changed to come from one to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (number, left) in from.chars().enumerate() {
        let mut diagonal = number;
        let mut before = number + 1;
        let mut next = vec![before];
        for (right, above) in to.chars().zip(row.iter().copied().skip(1)) {
            before = (diagonal + usize::from(left != right)).min(above + 1).min(before + 1);
            diagonal = above;
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_added_removed_and_changed_characters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("abc", "abc")), (3, 3, 0));
    }

    #[test]
    fn a_misspelt_member_is_told_with_the_one_that_was_meant() {
        let fault = |written: &str| format!("unknown field `{written}`, expected one of `description`, `inputSchema`, `timeoutMs`");
        for (written, meant) in [("inputschema", "inputSchema"), ("input_schema", "inputSchema"), ("timeoutms", "timeoutMs")] {
            assert_eq!(suggest(&fault(written)), format!("unknown member {written:?}; did you mean {meant:?}?"));
        }
        assert_eq!(suggest(&fault("shell")), fault("shell"));
        assert_eq!(suggest("EOF while parsing"), "EOF while parsing");
    }
}
