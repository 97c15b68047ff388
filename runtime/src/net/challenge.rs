//! Explains `WWW-Authenticate` headers in words.

use crate::secrets::{Cut, shortened};

/// Characters of a value that are shown.
const SHOWN: usize = 200;

/// The words for the parameter with which a server asks for OAuth (RFC 9728).
pub const OAUTH: &str = "described at";

/// Parameters that people can act on, and their names in words.
const TOLD: [(&str, &str); 6] = [
    ("realm", "realm"),
    ("scope", "scope"),
    ("error", "error"),
    ("error_description", "because"),
    ("resource_metadata", OAUTH),
    ("authorization_uri", "authorised at"),
];

/// The challenges of these headers: `Bearer (realm "x", scope "a b")`, or `Basic or Bearer`. `None` without any.
pub fn explain_challenges<'h>(headers: impl Iterator<Item = &'h str>) -> Option<String> {
    let mut schemes: Vec<(String, Vec<String>)> = Vec::new();
    for header in headers {
        for part in parts(header) {
            let (scheme, parameter) = match part.split_once(' ') {
                // A scheme and its first parameter, or blanks around an equals sign.
                Some((scheme, rest)) if !scheme.contains('=') && !rest.trim_start().starts_with('=') => {
                    (Some(scheme), rest.trim())
                }
                _ if part.contains('=') => (None, part),
                _ => (Some(part), ""),
            };
            if let Some(scheme) = scheme {
                schemes.push((shown(scheme), Vec::new()));
            }
            let Some((name, value)) = parameter.split_once('=') else { continue };
            let told = TOLD.iter().find(|(known, _)| name.trim().eq_ignore_ascii_case(known));
            if let (Some((_, word)), Some((_, told))) = (told, schemes.last_mut()) {
                told.push(format!("{word} \"{}\"", shown(value.trim().trim_matches('"'))));
            }
        }
    }
    let all: Vec<String> = schemes
        .into_iter()
        .map(|(scheme, told)| match told.is_empty() {
            true => scheme,
            false => format!("{scheme} ({})", told.join(", ")),
        })
        .collect();
    (!all.is_empty()).then(|| all.join(" or "))
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
pub(crate) fn excerpt(text: &str, most: usize) -> String {
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
            (&[",,"], ""),
        ];
        // The cut is marked for redaction.
        let long = explain_challenges([format!("Basic realm=\"{}\"", "r".repeat(300)).as_str()].into_iter());
        assert_eq!(long.unwrap(), format!("Basic (realm \"{}…\")", "r".repeat(SHOWN)));
        for (headers, words) in table {
            let told = explain_challenges(headers.iter().copied());
            assert_eq!(told.unwrap_or_default(), *words, "{headers:?}");
        }
    }
}
