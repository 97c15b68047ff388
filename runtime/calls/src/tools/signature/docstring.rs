//! Removes the documentation of parameters, in the style of Sphinx, Google, NumPy or JSDoc, from a tool's description,
//! since the tool's schema describes the same parameters.
//!
//! Many servers copy the docstring of a function into the description of the tool. The caller decides for each
//! parameter whether its documentation is removed.

/// Headings of sections with parameters, without the colon.
const HEADINGS: [&str; 9] = [
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
    "input parameters",
    "@params",
];

/// A line with its indentation.
#[derive(Clone, Copy)]
struct Line<'t> {
    indent: usize,
    text: &'t str,
}

/// Removes the parameters for which `takes` is true from a description. `takes` gets the name and the text of
/// each one. A section without remaining parameters goes, too.
pub(crate) fn without_parameters(text: &str, mut takes: impl FnMut(&str, &str) -> bool) -> String {
    let lines: Vec<Line<'_>> = text.lines().map(line).collect();
    let mut left: Vec<bool> = vec![true; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        at = match heading(&lines, at) {
            Some(first) => section(&lines, at, first, &mut left, &mut takes),
            None => field(&lines, at, &mut left, &mut takes),
        };
    }
    let kept = text.lines().zip(left).filter(|(_, is_left)| *is_left).map(|(line, _)| line);
    kept.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn line(text: &str) -> Line<'_> {
    Line { indent: text.len() - text.trim_start().len(), text: text.trim() }
}

/// If a section with parameters begins here: its first line after the heading.
fn heading(lines: &[Line<'_>], at: usize) -> Option<usize> {
    let text = lines[at].text.trim_matches(['#', '*', ' ']);
    let (name, is_colon) = match text.strip_suffix(':') {
        Some(name) => (name.trim_end_matches('*'), true),
        None => (text, false),
    };
    if !HEADINGS.iter().any(|heading| heading.eq_ignore_ascii_case(name)) {
        return None;
    }
    let is_rule = |line: &Line<'_>| line.text.len() > 2 && line.text.chars().all(|char| char == '-');
    match lines.get(at + 1) {
        Some(next) if is_rule(next) => Some(at + 2),
        _ => is_colon.then_some(at + 1),
    }
}

/// Takes the parameters of a section. Returns where it ends.
fn section(
    lines: &[Line<'_>],
    heading: usize,
    first: usize,
    left: &mut [bool],
    takes: &mut impl FnMut(&str, &str) -> bool,
) -> usize {
    let Some(indent) = lines[first..].iter().find(|line| !line.text.is_empty()).map(|line| line.indent)
    else {
        return lines.len();
    };
    let is_numpy = first == heading + 2;
    // Without indentation only a list of entries, up to the first blank line, belongs to the section.
    let is_flat = indent <= lines[heading].indent && !is_numpy;
    let (mut at, mut all_taken, mut has_entries) = (first, true, false);
    while at < lines.len() {
        let line = lines[at];
        if line.text.is_empty() {
            if is_flat && has_entries {
                break;
            }
            at += 1;
            continue;
        }
        let entry = if is_numpy { numpy_entry(lines, at) } else { entry(line.text) };
        let Some((name, about)) = entry.filter(|_| line.indent == indent) else { break };
        let end = end_of_entry(lines, at);
        has_entries = true;
        if takes(name, &joined(about, &lines[at + 1..end])) {
            left[at..end].fill(false);
        } else {
            all_taken = false;
        }
        at = end;
    }
    if has_entries && all_taken {
        left[heading..at].fill(false);
    }
    at.max(first)
}

/// Where the entry at `at` ends: its further lines have a larger indentation.
fn end_of_entry(lines: &[Line<'_>], at: usize) -> usize {
    let is_inside = |line: &Line<'_>| !line.text.is_empty() && line.indent > lines[at].indent;
    at + 1 + lines[at + 1..].iter().take_while(|line| is_inside(line)).count()
}

fn joined(first: &str, more: &[Line<'_>]) -> String {
    let parts =
        std::iter::once(first).chain(more.iter().map(|line| line.text)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

/// `name (type): text`, `- name: text`, ``* `name` - text``.
fn entry(text: &str) -> Option<(&str, &str)> {
    let text =
        text.strip_prefix(['-', '*', '•']).filter(|rest| rest.starts_with(' ')).unwrap_or(text).trim_start();
    let text = text.trim_start_matches(['`', '*', '"', '\'']);
    let (name, rest) = name(text)?;
    let mut rest = rest.trim_start_matches(['`', '*', '"', '\'']).trim_start();
    if rest.starts_with(['(', '[', '{']) {
        rest = after_brackets(rest)?.trim_start();
    }
    let rest = rest.trim_start_matches(['`', '*']);
    let about =
        rest.strip_prefix(':').or_else(|| rest.strip_prefix("- ")).or_else(|| rest.strip_prefix("– "))?;
    Some((name, about.trim_start_matches(['`', '*']).trim_start()))
}

/// `name : type`, or `name` alone with its text below.
fn numpy_entry<'t>(lines: &[Line<'t>], at: usize) -> Option<(&'t str, &'t str)> {
    let (name, rest) = name(lines[at].text)?;
    let rest = rest.trim_start();
    let is_entry = rest.is_empty() || rest.starts_with(':');
    let has_text = lines.get(at + 1).is_some_and(|next| next.indent > lines[at].indent);
    (is_entry && has_text).then_some((name, ""))
}

/// `:param type name: text`, `:type name: text`, `@param {type} name - text`. Returns where it ends.
fn field(
    lines: &[Line<'_>],
    at: usize,
    left: &mut [bool],
    takes: &mut impl FnMut(&str, &str) -> bool,
) -> usize {
    let Some((name, about, is_type)) = sphinx(lines[at].text).or_else(|| jsdoc(lines[at].text)) else {
        return at + 1;
    };
    let begins_field = |line: &Line<'_>| line.text.starts_with([':', '@']);
    let more = lines[at + 1..].iter().take_while(|line| !line.text.is_empty() && !begins_field(line));
    let end = at + 1 + more.count();
    // The schema has the type.
    let about = if is_type { String::new() } else { joined(about, &lines[at + 1..end]) };
    if takes(name, &about) {
        left[at..end].fill(false);
    }
    end
}

fn sphinx(text: &str) -> Option<(&str, &str, bool)> {
    let (field, about) = text.strip_prefix(':')?.split_once(':')?;
    let (word, names) = field.split_once(' ')?;
    let is_type = word == "type";
    let is_parameter = ["param", "parameter", "arg", "argument", "key", "keyword"].contains(&word);
    let name = names.split_whitespace().last()?;
    (is_type || is_parameter).then_some((name, about.trim_start(), is_type))
}

fn jsdoc(text: &str) -> Option<(&str, &str, bool)> {
    let text = text.trim_start_matches("* ");
    let rest = text.strip_prefix("@param ").or_else(|| text.strip_prefix("@arg "))?.trim_start();
    let rest = if rest.starts_with('{') { after_brackets(rest)?.trim_start() } else { rest };
    let (name, rest) = match rest.strip_prefix('[') {
        Some(optional) => (name(optional)?.0, optional.split_once(']')?.1),
        None => name(rest)?,
    };
    Some((name, rest.trim_start().trim_start_matches(['-', ':', '–']).trim_start(), false))
}

/// The name at the start of a text, and the rest.
fn name(text: &str) -> Option<(&str, &str)> {
    let is_of_name = |char: char| char.is_alphanumeric() || "_-.$".contains(char);
    let end = text.find(|char: char| !is_of_name(char)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// What follows the brackets at the start of a text.
fn after_brackets(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(&text[at + char.len_utf8()..]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (String, Vec<String>) {
        let mut found = Vec::new();
        let rest = without_parameters(text, |name, about| {
            let is_known = ["city", "days", "filter-by"].contains(&name);
            if is_known {
                found.push(format!("{name}={about}"));
            }
            is_known
        });
        (rest, found)
    }

    #[test]
    fn every_style_is_understood() {
        let both = ["city=Where it is.", "days=How many, from today on."];
        for text in [
            "Says it.\n\n:param city: Where it is.\n:type city: str\n:param int days: How many,\n    from today on.",
            "Says it.\n\nArgs:\n    city: Where it is.\n    days (int, optional): How many,\n        from today on.",
            "Says it.\n\nParameters\n----------\ncity : str\n    Where it is.\ndays : int, optional\n    How many,\n    from today on.",
            "Says it.\n\n@param {string} city - Where it is.\n@param {number} [days=3] How many, from today on.",
            "Says it.\n\nParameters:\n- `city` (string): Where it is.\n- **days**: How many, from today on.",
            "Says it.\n\n### Arguments:\n* city - Where it is.\n* days - How many, from today on.\n",
        ] {
            let (rest, mut found) = split(text);
            found.retain(|entry| !entry.ends_with('='));
            assert_eq!(
                (rest.as_str(), found.as_slice()),
                ("Says it.", both.map(str::to_owned).as_slice()),
                "{text}"
            );
        }
    }

    #[test]
    fn the_rest_stays() {
        let text = "Says it.\n\nArgs:\n    city: Where.\n    other: Not declared.\n\nReturns:\n    A text.";
        assert_eq!(split(text).0, "Says it.\n\nArgs:\n    other: Not declared.\n\nReturns:\n    A text.");
        let text = "Says it.\n:param city: Where.\n:return: A text.";
        assert_eq!(split(text).0, "Says it.\n:return: A text.");
        for text in [
            "Args: the usual.",
            "Parameters:",
            "city: this is prose",
            "Arguments:\nThey are checked.",
            "a\n:b c\n@param",
            "Args:\n    city (a: b",
        ] {
            assert_eq!(split(text), (text.to_owned(), Vec::new()));
        }
    }
}
