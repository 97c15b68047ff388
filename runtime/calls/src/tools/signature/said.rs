//! Extracts from the prose of a parameter's description what its schema does not say: the allowed values of a string,
//! and that a string holds JSON.
//!
//! Descriptions are prose, so only clear ones count: better no hint than a wrong one.

/// Limit of values that a description lists.
const MOST_VALUES: usize = 8;

/// Length limit of one of them.
const LONGEST_VALUE: usize = 32;

/// Words that say that the quoted words are all values.
const CUES: [&str; 14] = [
    "one of",
    "either",
    "must be",
    "allowed",
    "valid ",
    "values:",
    "values are",
    "options",
    "supported",
    "can be",
    "whether",
    "possible",
    "accepts",
    "choose",
];

/// Words that say that the quoted words are something else, or not all values.
const DOUBTS: [&str; 16] = [
    "e.g",
    "example",
    "such as",
    "for instance",
    "like ",
    "common",
    "usual",
    "typical",
    "etc",
    "separated",
    "prefix",
    "suffix",
    "start",
    "custom",
    "not ",
    "any other",
];

/// Words for a text that is JSON.
const JSON: [&str; 6] = [
    "json string",
    "json-encoded",
    "json encoded",
    "stringified json",
    "json-formatted string",
    "string of json",
];

/// Words for a text that may be something else, too.
const MAYBE_JSON: [&str; 6] = ["not ", "non-json", "or json", "or a json", "or string", "or plain"];

/// The values that a description of a text lists in quotes, if it lists all of them.
pub(super) fn values(about: &str) -> Option<Vec<&str>> {
    let lower = about.to_lowercase();
    if DOUBTS.iter().any(|doubt| lower.contains(doubt)) {
        return None;
    }
    let quote = ['\'', '"', '`'].into_iter().find(|quote| !quoted(about, *quote).is_empty())?;
    let found = quoted(about, quote);
    let (first, _) = found.first()?;
    let before = about.get(..*first)?;
    let has_cue = CUES.iter().any(|cue| before.to_lowercase().contains(cue));
    if !(has_cue || is_list(about, &found)) {
        return None;
    }
    let mut values: Vec<&str> = Vec::new();
    for (_, value) in found {
        let is_word = |char: char| char.is_ascii_alphanumeric() || "_-.:+#".contains(char);
        if value.is_empty() || value.len() > LONGEST_VALUE || !value.chars().all(is_word) {
            return None;
        }
        if !values.contains(&value) {
            values.push(value);
        }
    }
    (2..=MOST_VALUES).contains(&values.len()).then_some(values)
}

/// The texts between quotes, each with the index of its quote.
fn quoted(text: &str, quote: char) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    let rest_of = |from: usize| text.get(from..).unwrap_or_default();
    while let Some(start) = rest_of(from).find(quote).map(|start| start + from) {
        let inside = start + quote.len_utf8();
        from = inside;
        // An apostrophe, or `name='value'`.
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        if before.is_some_and(|before| before.is_alphanumeric() || before == '=') {
            continue;
        }
        let Some(end) = rest_of(inside).find(quote).map(|end| end + inside) else { break };
        found.push((start, text.get(inside..end).unwrap_or_default()));
        from = end + quote.len_utf8();
    }
    found
}

/// True for quoted texts that stand one after another, behind a colon, in parentheses or alone.
fn is_list(about: &str, found: &[(usize, &str)]) -> bool {
    let opens = |text: &str| text.is_empty() || text.ends_with([':', '(']);
    let starts = found.first().is_some_and(|(at, _)| opens(about.get(..*at).unwrap_or("?").trim_end()));
    let separates = |pair: &[(usize, &str)]| {
        let [(at, value), (next, _)] = pair else { return true };
        let between = about.get(at + value.len() + 2..*next).unwrap_or("?");
        let words = between.split(|char: char| char.is_whitespace() || ",/|".contains(char));
        !between.is_empty() && words.filter(|word| !word.is_empty()).all(|word| word == "or")
    };
    starts && found.windows(2).all(separates)
}

/// True when a description says that a text is JSON.
pub(super) fn is_json(about: &str) -> bool {
    let lower = about.to_lowercase();
    JSON.iter().any(|word| lower.contains(word)) && !MAYBE_JSON.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_descriptions_list_values() {
        for (about, want) in [
            (
                "Whether to list near ('near'), far ('far') or both kinds ('both').",
                &["near", "far", "both"][..],
            ),
            ("Order: 'up' or 'down'", &["up", "down"]),
            ("The order (\"up\"/\"down\")", &["up", "down"]),
            ("Must be one of `a`, `b` or `c` (default `a`)", &["a", "b", "c"]),
            ("It's either 'a' or 'b'", &["a", "b"]),
            ("The key, e.g. 'A-1' or 'A-2'", &[]),
            ("Common values: 'read', 'write'", &[]),
            ("Between 'a' and 'z'", &[]),
            ("One of the names, as in 'two words' or 'one'", &[]),
            ("Of the owner (for kind='user') or the group (for kind='group'), one of them", &[]),
            ("The branch 'main'", &[]),
            ("", &[]),
        ] {
            assert_eq!(values(about).unwrap_or_default(), want, "{about}");
        }
    }

    #[test]
    fn only_clear_descriptions_mean_json() {
        for (about, want) in [
            ("Parameters as a JSON string", true),
            ("The JSON-encoded rows", true),
            ("Plain text or a JSON string", false),
            ("Not a JSON string", false),
            ("Path to the JSON file", false),
        ] {
            assert_eq!(is_json(about), want, "{about}");
        }
    }
}
