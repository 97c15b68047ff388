//! `${VAR}` inside `env` values; nothing else in the file is expanded.

/// A value with its placeholders filled, and the values that filled them.
pub(super) struct Expanded {
    pub(super) text: String,
    pub(super) used: Vec<(String, String)>,
}

/// Fills `${VAR}`; the error is the name of a variable that is not set.
pub(super) fn expand(text: &str, variables: &dyn Fn(&str) -> Option<String>) -> Result<Expanded, String> {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), used: Vec::new() };
    let mut rest = text;
    while let Some(open) = rest.find("${") {
        let Some(close) = rest[open..].find('}') else { break };
        let name = &rest[open + 2..open + close];
        if !is_name(name) {
            expanded.text.push_str(&rest[..open + 2]);
            rest = &rest[open + 2..];
            continue;
        }
        let value = variables(name).ok_or_else(|| name.to_owned())?;
        expanded.text.push_str(&rest[..open]);
        expanded.text.push_str(&value);
        expanded.used.push((name.to_owned(), value));
        rest = &rest[open + close + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
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
        let text = |input: &str| expand(input, &vars).map(|expanded| expanded.text);
        assert_eq!(text("a ${TOKEN} b"), Ok("a t${TOKEN}t b".into()), "values are not expanded again");
        assert_eq!(text("$TOKEN ${} ${1} ${a-b} ${TOKEN"), Ok("$TOKEN ${} ${1} ${a-b} ${TOKEN".into()));
        assert_eq!(text("x${NOPE}"), Err("NOPE".into()));
    }
}
