//! Finds the place of a value in JSON text that is known to be well formed.

use super::ConfigError;

/// A file being read.
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl Document<'_> {
    /// An error about the key at `path`, or about the last part of the path that exists.
    pub(super) fn error(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        let offset = locate(self.text, path);
        ConfigError {
            file: self.name.to_owned(),
            position: Some(line_column(self.text, offset)),
            message: message.into(),
        }
    }
}

/// Byte offset of the key that `path` leads to through nested objects; of the deepest key found when the
/// path ends early.
fn locate(text: &str, path: &[&str]) -> usize {
    let bytes = text.as_bytes();
    let first = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let (mut best, mut matched, mut at) = (first, 0, first);
    // One entry for each open container: true for an object.
    let mut open = Vec::new();
    let mut key_next = false;
    while at < bytes.len() && matched < path.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                if key_next && open.len() == matched + 1 && is_key(&text[at..end], path[matched]) {
                    best = at;
                    matched += 1;
                }
                key_next = false;
                at = end;
                continue;
            }
            byte @ (b'{' | b'[') => {
                open.push(byte == b'{');
                key_next = byte == b'{';
            }
            b'}' | b']' => {
                open.pop();
                if open.len() < matched {
                    break;
                }
                key_next = false;
            }
            b',' => key_next = open.last() == Some(&true),
            _ => {}
        }
        at += 1;
    }
    best
}

fn is_key(quoted: &str, key: &str) -> bool {
    serde_json::from_str::<String>(quoted).is_ok_and(|found| found == key)
}

/// Index after the quote that closes the string opened at `open`.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_nested_keys_and_skips_namesakes() {
        let text = "{\n \"a\": {\"b\": [\"b\", {\"c\": 1}], \"x\": {\"c\": 0}},\n \"b\": {\"c\": 2}\n}";
        let at = |path: &[&str]| line_column(text, locate(text, path));
        assert_eq!(at(&["b", "c"]), (3, 8));
        assert_eq!(at(&["a", "x", "c"]), (2, 36));
        assert_eq!(at(&["a", "zz"]), (2, 2));
        assert_eq!(at(&[]), (1, 1));
        assert_eq!(at(&["nope"]), (1, 1));
    }
}
