//! Names that look alike: the "did you mean" of every part of the product.

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
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance > 0 && *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance where swapping neighbours is one change. Names are short, so the square table is small; long ones
/// are far apart.
pub fn distance(a: &[u8], b: &[u8]) -> usize {
    const LONGEST: usize = 64;
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
