//! Finds names that people read as other names: letters of other scripts, and invisible characters.

/// Letters of other scripts that look like these letters and digits. The list is short on purpose: it holds what is
/// drawn the same in common fonts.
const LOOK_ALIKES: [(&str, char); 29] = [
    ("аαɑａ", 'a'),
    ("Ьｂ", 'b'),
    ("сϲⅽｃ", 'c'),
    ("ԁⅾｄ", 'd'),
    ("еҽｅ", 'e'),
    ("ｆ", 'f'),
    ("ɡց ｇ", 'g'),
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

/// A name without the differences that people do not see: in lower case, with look-alike letters replaced and invisible
/// characters removed.
pub(super) fn folded(name: &str) -> String {
    let seen = name.chars().filter(|c| crate::tools::visible::is_shown(*c));
    let folded = seen.flat_map(char::to_lowercase).map(|c| {
        let same = LOOK_ALIKES.iter().find(|(alike, _)| !c.is_ascii() && alike.contains(c));
        same.map_or(c, |(_, plain)| *plain)
    });
    folded.collect()
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
    let lower = c.to_lowercase().next().unwrap_or(c);
    match LOOK_ALIKES.iter().find(|(alike, _)| alike.contains(lower)) {
        Some((_, plain)) if lower == c => *plain,
        Some((_, plain)) => plain.to_ascii_uppercase(),
        None => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_read_as_another_one_is_found() {
        for (name, read) in [
            ("d\u{0435}lete_repo", Some("delete_repo")),
            ("\u{0420}ay", Some("Pay")),
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
}
