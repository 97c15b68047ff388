//! Splits JSON that may be malformed into its members and items, by reading only brackets, strings and commas, so that
//! the valid parts of a server's message can still be used. The values between them are not checked.

/// A member of an object, or an item of a list (with an empty key).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    /// The raw key, without its quotes.
    pub(crate) key: &'t [u8],
    /// The text of the value.
    pub(crate) value: &'t [u8],
    /// False if the text ended inside the value.
    pub(crate) is_whole: bool,
}

/// The members of the object at the start of `text`, as far as they go.
pub(crate) fn members(text: &[u8]) -> ScannedParts<'_> {
    ScannedParts::inside(text, b'{')
}

/// The items of the list at the start of `text`, as far as they go.
pub(crate) fn items(text: &[u8]) -> ScannedParts<'_> {
    ScannedParts::inside(text, b'[')
}

/// Iterates over the parts of one object or list.
pub(crate) struct ScannedParts<'t> {
    text: &'t [u8],
    at: usize,
    has_keys: bool,
}

impl<'t> ScannedParts<'t> {
    fn inside(text: &'t [u8], open: u8) -> ScannedParts<'t> {
        let first = skip_blank(text, 0);
        let at = if text.get(first) == Some(&open) { first + 1 } else { text.len() };
        ScannedParts { text, at, has_keys: open == b'{' }
    }

    fn key(&mut self) -> Option<&'t [u8]> {
        let text = self.text;
        if text.get(self.at) != Some(&b'"') {
            return None;
        }
        let end = string_end(text, self.at)?;
        let key = &text[self.at + 1..end];
        let colon = skip_blank(text, end + 1);
        if text.get(colon) != Some(&b':') {
            return None;
        }
        self.at = skip_blank(text, colon + 1);
        Some(key)
    }
}

impl<'t> Iterator for ScannedParts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        let text = self.text;
        self.at = skip_blank(text, self.at);
        if text.get(self.at) == Some(&b',') {
            self.at = skip_blank(text, self.at + 1);
        }
        if matches!(text.get(self.at), None | Some(b'}' | b']')) {
            self.at = text.len();
            return None;
        }
        let key = if self.has_keys {
            match self.key() {
                Some(key) => key,
                None => {
                    self.at = text.len();
                    return None;
                }
            }
        } else {
            b""
        };
        let begin = self.at;
        let end = value_end(text, begin);
        self.at = end.unwrap_or(text.len());
        let value = text.get(begin..self.at).unwrap_or_default();
        Some(Part { key, value, is_whole: end.is_some() })
    }
}

/// Tracks brackets across the pieces of one text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balance {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Balance {
    /// Scans a piece; returns the position after the bracket that closes the text.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// End of the object or list at the start of the text; `None` when the text ends first.
pub(crate) fn end(text: &[u8]) -> Option<usize> {
    Balance::default().feed(text)
}

/// The concatenated texts, as long as each begins with a bracket; the last one may be incomplete.
pub(crate) fn sequence(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        if !matches!(rest.first(), Some(b'{' | b'[')) {
            return None;
        }
        let (one, more) = rest.split_at(end(rest).unwrap_or(rest.len()));
        rest = more;
        Some(one)
    })
}

/// End of the value that begins at `begin`; `None` when the text ends first. A number at the end of the text
/// may be incomplete.
fn value_end(text: &[u8], begin: usize) -> Option<usize> {
    match text.get(begin)? {
        b'"' => string_end(text, begin).map(|end| end + 1),
        b'{' | b'[' => Balance::default().feed(&text[begin..]).map(|length| begin + length),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            text[begin..].iter().position(ends).map(|length| begin + length)
        }
    }
}

/// Index of the quote that closes the string opened at `open`.
fn string_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn skip_blank(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(parts: ScannedParts<'_>) -> Vec<(String, String, bool)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        parts.map(|part| (text(part.key), text(part.value), part.is_whole)).collect()
    }

    fn part(key: &str, value: &str, is_whole: bool) -> (String, String, bool) {
        (key.into(), value.into(), is_whole)
    }

    #[test]
    fn members_are_found_whatever_their_values_are() {
        let text = br#" { "a" : NaN , "b":"x\"}" ,"c": {"d":[1,{}]}, "e":1e999} "#;
        let want = [
            part("a", "NaN", true),
            part("b", r#""x\"}""#, true),
            part("c", r#"{"d":[1,{}]}"#, true),
            part("e", "1e999", true),
        ];
        assert_eq!(parts(members(text)), want);
        assert_eq!((end(text), end(&text[..20]), end(b"{} {}")), (Some(text.len() - 1), None, Some(2)));
        let all: Vec<&[u8]> = sequence(b" {}[1] {\"a\": x").collect();
        assert_eq!(all, [&b"{}"[..], b"[1]", b"{\"a\": x"]);
    }

    #[test]
    fn a_text_that_ends_early_says_so() {
        assert_eq!(parts(members(br#"{"id":7"#)), [part("id", "7", false)]);
        assert_eq!(
            parts(members(br#"{"id":7,"r":{"a":"#)),
            [part("id", "7", true), part("r", "{\"a\":", false)]
        );
        assert_eq!(parts(members(br#"{"id":7,"resu"#)), [part("id", "7", true)]);
        assert_eq!(parts(members(br#"{"a":"x\"#)), [part("a", "\"x\\", false)]);
        for nothing in ["", "{", "[1]", "{1:2}", "{\"a\"", "{\"a\" 1}", "nothing"] {
            assert_eq!(parts(members(nothing.as_bytes())), [], "{nothing}");
        }
    }

    #[test]
    fn items_of_a_list() {
        let want = [part("", "{\"a\":1}", true), part("", "\"]\"", true), part("", "3", true)];
        assert_eq!(parts(items(b"[{\"a\":1}, \"]\" ,3]")), want);
        assert_eq!(parts(items(b"[]")), []);
        assert_eq!(parts(items(b"{}")), []);
    }

    #[test]
    fn brackets_are_followed_over_pieces() {
        let mut balance = Balance::default();
        assert_eq!(balance.feed(b"{\"a\": \"\\"), None);
        assert_eq!(balance.feed(b"\"}\", "), None);
        assert_eq!(balance.feed(b"\"b\": []} rest"), Some(8));
    }
}
