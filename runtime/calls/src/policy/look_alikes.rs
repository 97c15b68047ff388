//! Detects names that look like other names (letters of other scripts, invisible characters), and folds names so that
//! such spellings evade no rule.

use crate::tools::visible::{is_ignorable, is_shown};
use unicode_normalization::UnicodeNormalization as _;

/// Letters of other scripts that look like these letters and digits. The list is short on purpose: it holds what is
/// drawn the same in common fonts, and no form that normalization replaces (`ａ`, `ⅽ`, `ﬁ`).
const LOOK_ALIKES: [(&str, char); 24] = [
    ("аαɑ", 'a'),
    ("ь", 'b'),
    ("сϲ", 'c'),
    ("ԁ", 'd'),
    ("еҽ", 'e'),
    ("ɡց", 'g'),
    ("һհ", 'h'),
    ("іιıİ", 'i'),
    ("јϳ", 'j'),
    ("κ", 'k'),
    ("ӏ", 'l'),
    ("ո", 'n'),
    ("оοօ०", 'o'),
    ("рρ", 'p'),
    ("ԛ", 'q'),
    ("ѕ", 's'),
    ("τ", 't'),
    ("υս", 'u'),
    ("νѵ", 'v'),
    ("ԝ", 'w'),
    ("хχ", 'x'),
    ("уγ", 'y'),
    ("‐‑‒–—−", '-'),
    ("⁄∕", '/'),
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
    ("ΥҮ", 'y'),
    ("Ζ", 'z'),
];

/// Capital letters of other scripts that look like `I`, with the letter that it stands for besides their small one.
const BARS: [(char, char); 3] = [('І', 'l'), ('Ι', 'l'), ('Ӏ', 'i')];

/// The forms in which [`is_alike`] compares the letters of a name. None of them has invisible characters. A wildcard may
/// stand for any of: a character as it is written; the characters that it is compatible with (NFKC, UAX #15); and those
/// that are left when marks are joined with their letters, and `ß` is two letters as in capitals.
pub(super) fn forms(name: &str) -> [String; 3] {
    let shown: String = name.chars().filter(|c| is_shown(*c) && !is_ignorable(*c)).collect();
    if shown.is_ascii() {
        return [shown.clone(), shown.clone(), shown];
    }
    let mut plain = String::new();
    for c in shown.chars() {
        match listed(c) {
            // Normalization would make a final sigma of `ϲ`.
            Some(_) => plain.push(c),
            None => plain.extend(std::iter::once(c).nfkc()),
        }
    }
    let mut drawn = String::new();
    for c in plain.nfc() {
        let letters: String = key_letters(c.encode_utf8(&mut [0; 4])).collect();
        match letters.chars().nth(1) {
            Some(_) if listed(c).is_none() => drawn.push_str(&letters),
            _ => drawn.push(c),
        }
    }
    [shown, plain, drawn]
}

/// The letter of [`LOOK_ALIKES`] that this one looks like.
fn listed(c: char) -> Option<char> {
    let same = LOOK_ALIKES.iter().find(|(alike, _)| !c.is_ascii() && alike.contains(c));
    same.map(|(_, plain)| *plain)
}

/// True when people may take both letters for the same one: in another case, or because they look alike. A letter can
/// have several readings (`Ν` is a small `ν`, and looks like `N`), so this is not transitive.
pub(super) fn is_alike(one: char, other: char) -> bool {
    one == other || readings(one).iter().any(|reading| readings(other).contains(reading))
}

/// What a letter is read as: its small form, and what it looks like.
fn readings(c: char) -> [char; 3] {
    if c.is_ascii() {
        let small = c.to_ascii_lowercase();
        let other = match c {
            'I' | '1' => 'l',
            '0' => 'o',
            _ => small,
        };
        return [small, other, small];
    }
    let small = c.to_uppercase().flat_map(char::to_lowercase).next().unwrap_or(c);
    let alike = listed(c).or_else(|| listed(small));
    let bar = BARS.iter().find(|(bar, _)| *bar == c).map(|(_, other)| *other);
    [small, alike.unwrap_or(small), bar.or_else(|| capital(c)).unwrap_or(small)]
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
    let is_seen = |c: char| c.is_ascii() || (is_shown(c) && !is_ignorable(c));
    let seen: String = name.chars().filter(|c| is_seen(*c)).map(plain).collect();
    let read: String = seen.nfkc().collect();
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
    match listed(c).or_else(|| listed(lower)) {
        Some(plain) if lower == c => plain,
        Some(plain) => plain.to_ascii_uppercase(),
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
                (2, _) => {
                    other.extend([c, ['\u{200b}', '\u{34f}', '\u{fe0f}', '\u{3164}'][numbers.below(4)]])
                }
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
        for (pattern, name) in [
            ("Вход*", "вход"),
            ("νέο", "ΝΈΟ"),
            ("νέο", "Νέο"),
            ("νέο_note", "ΝΈΟ_Νote"),
            ("νn_x", "ΝΝ_x"),
            ("διαγραφές", "ΔΙΑΓΡΑΦΈΣ"),
            ("straße_del", "STRASSE_DEL"),
            ("sort", "ſort"),
            ("löschen", "lo\u{308}schen"),
            ("files", "ﬁles"),
            ("get_1", "get_１"),
            ("delete", "deIete"),
            ("mcp__s__delete", "dele\u{34f}te"),
        ] {
            assert!(RulePattern::new(pattern).matches("s", name, Exactness::Loose), "{pattern} {name}");
            if !pattern.contains(['*', ':']) && !pattern.starts_with("mcp__") {
                let reverse = RulePattern::new(name);
                assert!(reverse.matches("s", pattern, Exactness::Loose), "{name} {pattern}");
            }
        }
        // Latin names that only a letter of another script could connect.
        for (pattern, name) in
            [("move", "mone"), ("get_1", "get_2"), ("bill", "biil"), ("löschen", "loschen")]
        {
            assert!(!RulePattern::new(pattern).matches("s", name, Exactness::Loose), "{pattern} {name}");
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
