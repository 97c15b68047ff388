//! Parses `WWW-Authenticate` headers, in which a server demands authentication, and describes them in words for error
//! messages.

use crate::secrets::{Cut, shortened};

/// Characters of a value that are shown.
const SHOWN: usize = 200;

/// Parameters that people can act on, and their names in words.
const EXPLAINED: [(&str, &str); 6] = [
    ("realm", "realm"),
    ("scope", "scope"),
    ("error", "error"),
    ("error_description", "because"),
    ("resource_metadata", "described at"),
    ("authorization_uri", "authorised at"),
];

/// One challenge of `WWW-Authenticate` (RFC 9110, section 11.6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme as it was sent: `Bearer`, `Basic`, …
    pub scheme: String,
    /// Names and values in order, as they were sent, with quotes and escapes.
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The challenges of all headers of a response, in order.
    pub fn parse<'h>(headers: impl Iterator<Item = &'h str>) -> Vec<Challenge> {
        let mut challenges: Vec<Challenge> = Vec::new();
        for part in headers.flat_map(parts) {
            let (scheme, parameter) = match part.split_once(' ') {
                // A scheme and its first parameter, or blanks around an equals sign.
                Some((scheme, rest)) if !scheme.contains('=') && !rest.trim_start().starts_with('=') => {
                    (Some(scheme), rest.trim())
                }
                _ if part.contains('=') => (None, part),
                _ => (Some(part), ""),
            };
            if let Some(scheme) = scheme {
                challenges.push(Challenge { scheme: scheme.to_owned(), parameters: Vec::new() });
            }
            let Some((name, value)) = parameter.split_once('=') else { continue };
            if let Some(challenge) = challenges.last_mut() {
                challenge.parameters.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        challenges
    }

    /// The value of a parameter, whose name has no case.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| unquoted(value))
    }

    /// True for a scheme, which has no case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The challenge in words: `Bearer (realm "x", scope "a b")`. Escapes stay as they were sent: a secret whose escapes are
    /// gone is in no form that redaction knows.
    fn words(&self) -> String {
        let known = self.parameters.iter().filter_map(|(name, value)| {
            let (_, word) = EXPLAINED.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
            Some(format!("{word} \"{}\"", shown(inner(value))))
        });
        let known: Vec<String> = known.collect();
        match known.is_empty() {
            true => shown(&self.scheme),
            false => format!("{} ({})", shown(&self.scheme), known.join(", ")),
        }
    }
}

/// The challenges of these headers in words: `Bearer (realm "x", scope "a b")`, or `Basic or Bearer`. `None` without any.
pub fn explain_challenges<'h>(headers: impl Iterator<Item = &'h str>) -> Option<String> {
    let all: Vec<String> = Challenge::parse(headers).iter().map(Challenge::words).collect();
    (!all.is_empty()).then(|| all.join(" or "))
}

/// A quoted string without quotes and escapes, or a token as it is.
fn unquoted(value: &str) -> String {
    if !value.starts_with('"') {
        return value.to_owned();
    }
    let mut letters = inner(value).chars();
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}

/// What stands between the quotes of a quoted string, or a token as it is.
fn inner(value: &str) -> &str {
    let Some(inner) = value.strip_prefix('"') else { return value };
    inner.strip_suffix('"').unwrap_or(inner)
}

/// What stands between commas that are not quoted.
fn parts(header: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut before = '\0';
    header
        .split(move |letter| {
            if letter == '"' && before != '\\' {
                is_quoted = !is_quoted;
            }
            before = letter;
            letter == ',' && !is_quoted
        })
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn shown(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(SHOWN + 1).collect();
    excerpt(&text, SHOWN)
}

/// The beginning of a text of a server, with a mark where it was cut: redaction has to know that a secret may have been
/// cut.
pub fn excerpt(text: &str, most: usize) -> String {
    shortened(text, Cut::Chars(most)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_put_into_words() {
        let table: &[(&[&str], &str)] = &[
            (&["Bearer"], "Bearer"),
            (&["Basic realm=\"a, b\""], "Basic (realm \"a, b\")"),
            (
                &["Bearer error=\"invalid_token\", error_description=\"expired\", scope=\"a b\""],
                "Bearer (error \"invalid_token\", because \"expired\", scope \"a b\")",
            ),
            (
                &["Basic realm = x, Bearer resource_metadata=\"https://h/.well-known/x\"", "Negotiate"],
                "Basic (realm \"x\") or Bearer (described at \"https://h/.well-known/x\") or Negotiate",
            ),
            (&["Bearer nonce=\"abc\""], "Bearer"),
            (&[r#"Basic realm="a\nb""#], r#"Basic (realm "a\nb")"#),
            (&[",,"], ""),
        ];
        // The cut is marked for redaction.
        let long = explain_challenges([format!("Basic realm=\"{}\"", "r".repeat(300)).as_str()].into_iter());
        assert_eq!(long.unwrap(), format!("Basic (realm \"{}…\")", "r".repeat(SHOWN)));
        for (headers, words) in table {
            let words_of = explain_challenges(headers.iter().copied());
            assert_eq!(words_of.unwrap_or_default(), *words, "{headers:?}");
        }
    }

    #[test]
    fn two_schemes_and_quoted_commas_are_told_apart() {
        let header = r#"Basic realm="a, b=\"c\"", Bearer SCOPE="x y", resource_metadata="https://h/?a=1,2", error=bad"#;
        let all = Challenge::parse([header].into_iter());
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].parameter("realm"), Some("a, b=\"c\"".to_owned()));
        assert!(all[1].is("bearer") && !all[0].is("bearer"));
        assert_eq!(all[1].parameter("scope"), Some("x y".to_owned()));
        assert_eq!(all[1].parameter("resource_metadata"), Some("https://h/?a=1,2".to_owned()));
        assert_eq!(all[1].parameter("error"), Some("bad".to_owned()));
    }
}
