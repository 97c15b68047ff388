//! Scores names and descriptions against the words of a query, to rank what programs find with `apropos`.

/// Scores of a match, by its kind.
const EXACT: u32 = 10;
const PREFIX: u32 = 5;
const SUBSTRING: u32 = 2;
/// Additional score when the word is part of a name.
const IN_NAME: u32 = 2;

/// The words of a query.
#[derive(Debug)]
pub(crate) struct Query {
    words: Vec<String>,
}

impl Query {
    /// Splits a query; a word counts once.
    pub(crate) fn new(text: &str) -> Query {
        let mut words: Vec<String> = Vec::new();
        for word in split(text) {
            let word = word.to_lowercase();
            if !words.contains(&word) {
                words.push(word);
            }
        }
        Query { words }
    }

    /// The score of an entry: each word of the query adds its best match in the names and its best match in
    /// the other texts.
    pub(crate) fn score<'t>(
        &self,
        names: impl Iterator<Item = &'t str>,
        texts: impl Iterator<Item = &'t str>,
    ) -> u32 {
        let mut best = vec![(0, 0); self.words.len()];
        let mut lower = String::new();
        for word in names.flat_map(split) {
            self.look_at(word, &mut lower, |at, score| {
                let (in_names, _): &mut (u32, u32) = &mut best[at];
                *in_names = (*in_names).max(score + IN_NAME);
            });
        }
        for word in texts.flat_map(split) {
            self.look_at(word, &mut lower, |at, score| {
                let (_, in_texts): &mut (u32, u32) = &mut best[at];
                *in_texts = (*in_texts).max(score);
            });
        }
        best.into_iter().map(|(in_names, in_texts)| in_names + in_texts).sum()
    }

    fn look_at(&self, word: &str, lower: &mut String, mut found: impl FnMut(usize, u32)) {
        lower.clear();
        lower.extend(word.chars().flat_map(char::to_lowercase));
        for (at, wanted) in self.words.iter().enumerate() {
            if *lower == *wanted {
                found(at, EXACT);
            } else if lower.starts_with(wanted.as_str()) {
                found(at, PREFIX);
            } else if lower.contains(wanted.as_str()) {
                found(at, SUBSTRING);
            }
        }
    }
}

/// The words of a text: runs of letters and digits, split where camelCase starts a word.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(char::is_alphanumeric)?;
        rest = &rest[start..];
        let mut characters = rest.char_indices().peekable();
        let (_, mut before) = characters.next()?;
        let mut end = rest.len();
        while let Some((at, c)) = characters.next() {
            let next_is_lower = characters.peek().is_some_and(|(_, next)| next.is_lowercase());
            let starts_word = c.is_uppercase() && (!before.is_uppercase() || next_is_lower);
            if !c.is_alphanumeric() || starts_word {
                end = at;
                break;
            }
            before = c;
        }
        let word = &rest[..end];
        rest = &rest[end..];
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        split(text).collect()
    }

    #[test]
    fn camel_snake_and_kebab_case_are_split() {
        assert_eq!(
            words("readTextFile read_text_file read-text-file"),
            ["read", "Text", "File", "read", "text", "file", "read", "text", "file"]
        );
        assert_eq!(words("HTTPServer v2 getURL"), ["HTTP", "Server", "v2", "get", "URL"]);
        assert_eq!(words("fs/a.b (c,d):e"), ["fs", "a", "b", "c", "d", "e"]);
        assert_eq!(words("Ärger über"), ["Ärger", "über"]);
        assert_eq!(words(" -- "), [""; 0]);
    }

    #[test]
    fn matches_score_as_documented() {
        let score = |query: &str, name: &str, text: &str| {
            Query::new(query).score([name].into_iter(), [text].into_iter())
        };
        assert_eq!(score("read", "read_file", ""), 12);
        assert_eq!(score("READ", "readFile", ""), 12);
        assert_eq!(score("re", "read_file", ""), 7);
        assert_eq!(score("ea", "read_file", ""), 4);
        assert_eq!(score("read", "x", "read it"), 10);
        assert_eq!(score("read", "x", "reads it"), 5);
        assert_eq!(score("read", "read", "read"), 22);
        assert_eq!(score("read file", "read_file", ""), 24);
        assert_eq!(score("read read", "read", ""), 12);
        assert_eq!(score("write", "read", "reading"), 0);
    }
}
