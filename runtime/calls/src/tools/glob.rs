//! Matches a text against a pattern with `*` and `?`.

/// Matches a whole text against a pattern with `*` and `?`. It remembers only the last star, so it takes at
/// most pattern times text steps.
pub fn glob(pattern: &str, text: &str) -> bool {
    glob_by(pattern, text, |one, other| one == other)
}

/// [`glob`] with another equality of letters.
pub(crate) fn glob_by(pattern: &str, text: &str, is_same: impl Fn(char, char) -> bool) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || is_same(c, text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                // The last star matches one character more.
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        let cases = [
            ("read", "read", true),
            ("read", "read_file", false),
            ("read*", "read_file", true),
            ("*file", "read_file", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("re?d", "read", true),
            ("re?d", "red", false),
            ("*", "", true),
            ("**", "x", true),
            ("é?", "éa", true),
            ("", "x", false),
        ];
        for (pattern, text, want) in cases {
            assert_eq!(glob(pattern, text), want, "{pattern} on {text}");
        }
        // Hostile patterns take no exponential time.
        assert!(!glob(&"*a".repeat(200), &"a".repeat(190)));
    }
}
