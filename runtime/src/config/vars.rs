//! `${VAR}` placeholders.
//!
//! In the `upstreams` shape only `env` values have them. Hosts also fill the command, its arguments and its
//! folder, and know `${VAR:-default}` and `${env:VAR}`.

/// Which placeholders are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholders {
    /// `${VAR}`.
    Plain,
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`.
    Host,
}

/// A value with its placeholders filled, and the values that filled them.
pub(super) struct Expanded {
    pub(super) text: String,
    pub(super) used: Vec<(String, String)>,
}

/// Fills the placeholders; the error is the name of a variable that is not set.
pub(super) fn expand(
    text: &str,
    placeholders: Placeholders,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Expanded, String> {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), used: Vec::new() };
    let mut rest = text;
    while let Some(open) = rest.find("${") {
        let Some(close) = rest[open..].find('}') else { break };
        let Some((name, default)) = reference(&rest[open + 2..open + close], placeholders) else {
            expanded.text.push_str(&rest[..open + 2]);
            rest = &rest[open + 2..];
            continue;
        };
        expanded.text.push_str(&rest[..open]);
        match (variables(name), default) {
            (Some(value), None) => {
                expanded.text.push_str(&value);
                expanded.used.push((name.to_owned(), value));
            }
            // As in a shell, a default also stands in for an empty value.
            (Some(value), Some(_)) if !value.is_empty() => {
                expanded.text.push_str(&value);
                expanded.used.push((name.to_owned(), value));
            }
            (_, Some(default)) => expanded.text.push_str(default),
            (None, None) => return Err(name.to_owned()),
        }
        rest = &rest[open + close + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

/// The name and the default between the braces; `None` when this is no placeholder.
fn reference(inside: &str, placeholders: Placeholders) -> Option<(&str, Option<&str>)> {
    let (name, default) = match placeholders {
        Placeholders::Plain => (inside, None),
        Placeholders::Host => match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside.strip_prefix("env:").unwrap_or(inside), None),
        },
    };
    is_name(name).then_some((name, default))
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_placeholders_are_filled() {
        let vars = |name: &str| (name == "TOKEN").then(|| "t${TOKEN}t".to_owned());
        let text = |input: &str| expand(input, Placeholders::Plain, &vars).map(|expanded| expanded.text);
        assert_eq!(text("a ${TOKEN} b"), Ok("a t${TOKEN}t b".into()), "values are not expanded again");
        assert_eq!(text("$TOKEN ${} ${1} ${a-b} ${TOKEN"), Ok("$TOKEN ${} ${1} ${a-b} ${TOKEN".into()));
        assert_eq!(text("x${NOPE}"), Err("NOPE".into()));
    }

    #[test]
    fn hosts_have_defaults_and_a_namespace() {
        let vars = |name: &str| match name {
            "TOKEN" => Some("t".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let text = |input: &str| expand(input, Placeholders::Host, &vars).map(|expanded| expanded.text);
        assert_eq!(
            text("${env:TOKEN} ${TOKEN:-x} ${NOPE:-d e} ${EMPTY:-f} ${NOPE:-}"),
            Ok("t t d e f ".into())
        );
        assert_eq!(text("${env:NOPE}"), Err("NOPE".into()));
        assert_eq!(text("${input:key}"), Ok("${input:key}".into()));
        let plain = expand("${TOKEN:-x}", Placeholders::Plain, &vars).map(|expanded| expanded.text);
        assert_eq!(plain, Ok("${TOKEN:-x}".into()));
    }
}
