//! Parses the text of a configuration file: YAML, or JSON with `//` and `/* */` comments and trailing commas.
//! Otherwise JSON is strict.

use super::ConfigError;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use ptc_base::yaml;
use serde_json::Value;
use std::path::Path;

/// The syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSyntax {
    Json,
    /// Files with the extension `.yaml` or `.yml`.
    Yaml,
}

impl FileSyntax {
    pub(super) fn for_file(name: &str) -> FileSyntax {
        match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some(extension) if ["yaml", "yml"].iter().any(|yaml| extension.eq_ignore_ascii_case(yaml)) => {
                FileSyntax::Yaml
            }
            _ => FileSyntax::Json,
        }
    }

    /// Reads a text of the file `name`.
    pub(super) fn parse(self, text: &str, name: &str) -> Result<Value, ConfigError> {
        match self {
            FileSyntax::Json => {
                parse_to_serde_value(text, &json_options()).map_err(|error| ConfigError::json(name, &error))
            }
            FileSyntax::Yaml => yaml::read(text).map_err(|error| ConfigError::yaml(name, &error)),
        }
    }
}

/// The extensions of JSON that are accepted.
pub fn json_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Parses a text; an empty text is null. The error has the location and does not quote the text, which may
/// hold secrets.
pub fn read_json(text: &str) -> Result<Value, String> {
    parse_to_serde_value(without_mark(text), &json_options())
        .map_err(|error: jsonc_parser::errors::ParseError| error.to_string())
}

/// The text without its byte order mark.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_all_there_is_beyond_json() {
        let text = "{ // one \"x\"\n \"a//b\": \"c\\\"/*d\", /* é\n*/ \"e\": [1, ],\n}";
        assert_eq!(read_json(text), Ok(json!({ "a//b": "c\"/*d", "e": [1] })));
        assert_eq!((read_json(" "), read_json("\u{feff}{}")), (Ok(Value::Null), Ok(json!({}))));
        for wrong in ["{a: 1}", "{\"a\": 1 \"b\": 2}", "{'a': 1}", "[0xFF]", "[1 2]", "{", "[,]"] {
            assert!(read_json(wrong).is_err(), "{wrong}");
        }
        let quoted = read_json("{\"key\": s3cret}").unwrap_err();
        assert!(!quoted.contains("s3cret") && quoted.contains("line 1"), "{quoted}");
    }
}
