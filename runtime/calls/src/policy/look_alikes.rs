//! Detects names that look like other names (letters of other scripts, invisible characters), and folds names so that
//! such spellings evade no rule.

/// Letters of other scripts that look like these letters and digits. The list is short on purpose: it holds what is
/// drawn the same in common fonts.
const LOOK_ALIKES: [(&str, char); 29] = [
    ("аαɑａ", 'a'),
    ("ьｂ", 'b'),
    ("сϲⅽｃ", 'c'),
    ("ԁⅾｄ", 'd'),
    ("еҽｅ", 'e'),
    ("ｆ", 'f'),
    ("ɡցｇ", 'g'),
    ("һհｈ", 'h'),
    ("іιıⅰｉ", 'i'),
    ("јϳｊ", 'j'),
    ("κｋ", 'k'),
    ("ӏⅼｌ", 'l'),
    ("ⅿｍ", 'm'),
    ("ոｎ", 'n'),
    ("оοօ०ｏ", 'o'),
    ("рρｐ", 'p'),
    ("ԛｑ", 'q'),
    ("ｒ", 'r'),
    ("ѕｓ", 's'),
    ("τｔ", 't'),
    ("υսｕ", 'u'),
    ("νѵⅴｖ", 'v'),
    ("ԝｗ", 'w'),
    ("хχⅹｘ", 'x'),
    ("уγｙ", 'y'),
    ("ｚ", 'z'),
    ("‐‑‒–—−－", '-'),
    ("＿", '_'),
    ("／⁄∕", '/'),
];

/// Capital letters of other scripts that look like these letters, though their small forms do not.
const CAPITALS: [(&str, char); 9] = [
    ("ΒВ", 'b'),
    ("Ε", 'e'),
    ("ΗН", 'h'),
    ("К", 'k'),
    ("ΜМ", 'm'),
    ("Ν", 'n'),
    ("ΤТ", 't'),
    ("Υ", 'y'),
    ("Ζ", 'z'),
];

/// A name without the differences that people do not see, with look-alike letters replaced and invisible characters
/// removed: in lower case first, and as its capital letters are drawn (`Ν` is a small `ν`, and looks like `N`).
pub(super) fn foldings(name: &str) -> [String; 2] {
    let seen = || name.chars().filter(|c| crate::tools::visible::is_shown(*c));
    let small = |c: char| {
        let same = LOOK_ALIKES.iter().find(|(alike, _)| !c.is_ascii() && alike.contains(c));
        same.map_or(c, |(_, plain)| *plain)
    };
    let by_case = seen().flat_map(char::to_lowercase).map(small).collect();
    let as_drawn = seen().map(|c| capital(c).unwrap_or(c)).flat_map(char::to_lowercase).map(small).collect();
    [by_case, as_drawn]
}

/// The letter that a capital letter of another script looks like.
fn capital(c: char) -> Option<char> {
    let same = CAPITALS.iter().find(|(alike, _)| !c.is_ascii() && alike.contains(c));
    same.map(|(_, plain)| *plain)
}

/// True when a reader of JSON that ignores the case of keys takes both for one key. Go's `encoding/json` folds more than
/// ASCII: `ſ` is `s`, and the Kelvin sign is `k`.
pub(super) fn is_same_key(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && key_letters(a).eq(key_letters(b)))
}

/// The letters of a key, without their case.
pub(super) fn key_letters(key: &str) -> impl Iterator<Item = char> {
    // The capital of `ß` is two letters, though `ẞ` is one.
    let small = key.chars().map(|c| if c == 'ẞ' { 'ß' } else { c });
    small.flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// What a name is read as, if that is another one. A name in another script is read as what it is.
pub fn look_alike(name: &str) -> Option<String> {
    let is_hidden = |c: char| !c.is_ascii() && crate::tools::visible::is_obeyed(c);
    let read: String = name.chars().filter(|c| !is_hidden(*c)).map(plain).collect();
    (read != name && read.is_ascii()).then_some(read)
}

/// The letter that this one looks like, in its case; itself if there is none.
fn plain(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    if let Some(plain) = capital(c) {
        return plain.to_ascii_uppercase();
    }
    let lower = c.to_lowercase().next().unwrap_or(c);
    match LOOK_ALIKES.iter().find(|(alike, _)| alike.contains(lower)) {
        Some((_, plain)) if lower == c => *plain,
        Some((_, plain)) => plain.to_ascii_uppercase(),
        None => c,
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Exactness, RulePattern};
    use super::*;

    #[test]
    fn a_name_that_is_read_as_another_one_is_found() {
        for (name, read) in [
            ("d\u{0435}lete_repo", Some("delete_repo")),
            ("\u{0420}ay", Some("Pay")),
            ("\u{0412}ank", Some("Bank")),
            ("delete\u{200b}_repo", Some("delete_repo")),
            ("ｐａｙ", Some("pay")),
            ("delete_repo", None),
            // Names that are what they look like.
            ("удалить", None),
            ("löschen", None),
            ("a\u{0301}", None),
        ] {
            assert_eq!(look_alike(name).as_deref(), read, "{name}");
        }
    }

    /// Numbers that are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % most
        }
    }

    /// The name in other letters that people read the same way.
    fn disguised(name: &str, numbers: &mut Numbers) -> String {
        let mut other = String::new();
        for c in name.chars() {
            let alike = LOOK_ALIKES.iter().find(|(_, plain)| *plain == c);
            match (numbers.below(4), alike) {
                (0, _) => other.extend(c.to_uppercase()),
                (1, Some((alike, _))) => {
                    let letters: Vec<char> = alike.chars().collect();
                    other.push(letters[numbers.below(letters.len())]);
                }
                (2, _) => other.extend([c, '\u{200b}']),
                (3, _) if numbers.below(2) == 0 => {
                    let drawn = CAPITALS.iter().find(|(_, plain)| *plain == c);
                    other.push(drawn.and_then(|(alike, _)| alike.chars().next()).unwrap_or(c));
                }
                _ => other.push(c),
            }
        }
        other
    }

    #[test]
    fn keys_are_the_same_in_another_case() {
        for (one, other) in
            [("straße", "straẞe"), ("straße", "STRASSE"), ("ſort", "Sort"), ("\u{212a}ey", "key")]
        {
            assert!(is_same_key(one, other) && is_same_key(other, one), "{one} {other}");
        }
        assert!(!is_same_key("a", "b") && !is_same_key("ß", "s"));
    }

    #[test]
    fn names_of_another_script_are_the_same_in_another_case() {
        for (pattern, name) in [("Вход*", "вход"), ("νέο", "ΝΈΟ"), ("νέο", "Νέο")] {
            assert!(RulePattern::new(pattern).matches("s", name, Exactness::Loose), "{pattern} {name}");
        }
    }

    #[test]
    fn no_spelling_of_a_name_goes_around_a_rule() {
        let mut numbers = Numbers(7);
        for _ in 0..2_000 {
            let length = 4 + numbers.below(12);
            let name: String =
                (0..length).map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz_"[numbers.below(27)])).collect();
            let other = disguised(&name, &mut numbers);
            let beginning = &name[..2];
            for text in [
                name.clone(),
                format!("bank/{name}"),
                format!("mcp__bank__{name}"),
                format!("b?nk/{beginning}*"),
                format!("BANK/{}", name.to_uppercase()),
            ] {
                let pattern = RulePattern::new(&text);
                assert!(pattern.matches("bank", &other, Exactness::Loose), "{text} {other}");
                let is_named = pattern.matches("bank", &other, Exactness::Exact);
                assert!(!is_named || other == name || text.ends_with('*'), "{text} {other}");
            }
        }
    }
}
