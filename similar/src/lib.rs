//! Names that look alike: the "did you mean" of every part of the product.

#![forbid(unsafe_code)]

/// The candidate nearest to a word, if any is near: one change for short words, two for longer ones.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    nearest_of(word, candidates.iter().copied())
}

/// [`nearest`] of names that are not in a list.
pub fn nearest_of<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = match word.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    candidates
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (distance_within(word.as_bytes(), candidate.as_bytes(), allowed), candidate))
        .filter(|(distance, _)| *distance > 0 && *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance where swapping neighbours is one change. Names are short, so the square table is small; long ones
/// are far apart.
pub fn distance(a: &[u8], b: &[u8]) -> usize {
    distance_within(a, b, usize::MAX)
}

/// The same as far as it is at most `most`; anything above that otherwise, which is known soon.
fn distance_within(a: &[u8], b: &[u8], most: usize) -> usize {
    const LONGEST: usize = 64;
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let mut before = [0; LONGEST + 1];
    let mut above: [usize; LONGEST + 1] = std::array::from_fn(|at| at);
    for i in 1..=a.len() {
        let mut row = [i; LONGEST + 1];
        let mut least = i;
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
            least = least.min(row[j]);
        }
        // No row is less than the least of the two above it.
        if least > most && above[..=b.len()].iter().all(|&above| above > most) {
            return usize::MAX;
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_early_end_changes_no_distance_within_the_bound() {
        let words = [
            "", "a", "ab", "ba", "filter", "fitler", "fliter", "remove", "remvoe", "reduce", "educer", "xyz",
        ];
        for (a, b) in words.iter().flat_map(|a| words.map(|b| (a.as_bytes(), b.as_bytes()))) {
            let whole = distance(a, b);
            for most in 0..4 {
                let within = distance_within(a, b, most);
                assert!(within == whole || (whole > most && within > most), "{a:?} {b:?}");
            }
        }
        assert_eq!((distance(b"filter", b"fitler"), distance(b"", b"abc")), (1, 3));
    }
}
