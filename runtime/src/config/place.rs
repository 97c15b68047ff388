//! Finds the place of a value in JSON text that is known to be well formed.

use super::ConfigError;
use super::syntax::json_options;
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};

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
    let parsed = parse_to_ast(text, &CollectOptions::default(), &json_options());
    let Some(root) = parsed.ok().and_then(|parsed| parsed.value) else { return 0 };
    let (mut best, mut value) = (root.start(), &root);
    for key in path {
        let Value::Object(object) = value else { break };
        let Some(found) = object.properties.iter().find(|property| property.name.as_str() == *key) else {
            break;
        };
        (best, value) = (found.start(), &found.value);
    }
    best
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
