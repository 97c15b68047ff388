//! Finds the known name with the fewest edits from a misspelt one, for "did you mean" hints.

/// Names longer than this in bytes are near to none: a comparison takes time in proportion to both lengths.
const LONGEST: usize = 64;

/// The candidate with the fewest edits from `word`, if it is near: at most one edit for short words, two for longer
/// ones. A swap of two neighbours is one edit.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = match word.len() {
        0..=2 => return None,
        3..=5 => 1,
        6..=LONGEST => 2,
        _ => return None,
    };
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST && candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| (1..=allowed).contains(distance))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_found() {
        let names = ["map", "filter", "remove", "reduce"];
        assert_eq!(nearest("fitler", names), Some("filter"));
        assert_eq!(nearest("mpa", names), Some("map"));
        assert_eq!(nearest("mxx", names), None);
        assert_eq!(nearest("map", names), None);
        assert_eq!(nearest("ma", names), None);
        assert_eq!(nearest(&"x".repeat(10_000), names), None);
    }
}
