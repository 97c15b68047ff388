//! Extracts short descriptions from the texts of servers: the first sentence, or the first one that says what a server
//! is for.

use std::ops::Range;

/// Fewer words before a list are its title.
const TITLE_WORDS: usize = 4;

/// Beginnings of advice, which does not say what a server is for.
const ADVICE: [&str; 12] = [
    "if ",
    "when ",
    "before ",
    "after ",
    "always ",
    "never ",
    "audience",
    "these instructions",
    "here are",
    "follow ",
    "note",
    "important",
];

/// The first sentence of prose in a text in Markdown. A paragraph ends a sentence.
pub(crate) fn first_sentence(text: &str) -> Option<&str> {
    let mut all = paragraphs(text);
    all.find_map(|paragraph| match sentence(paragraph) {
        (sentence, true) => Some(sentence),
        // What announces a list is no sentence, but may say enough.
        (start, false) if start.ends_with(':') => {
            Some(start).filter(|start| start.split_whitespace().count() >= TITLE_WORDS)
        }
        (start, false) => Some(start),
    })
}

/// The first sentence that says what a server is for, in its text about itself; `None` if that has only advice.
pub(crate) fn purpose(text: &str) -> Option<&str> {
    let says = |sentence: &&str| {
        let lower = sentence.to_lowercase();
        !sentence.ends_with(':') && !ADVICE.iter().any(|start| lower.starts_with(start))
    };
    paragraphs(text).map(|paragraph| sentence(paragraph).0).find(says)
}

/// The first sentence of a paragraph, or all of it, which is no whole sentence.
fn sentence(paragraph: &str) -> (&str, bool) {
    let end = paragraph.match_indices(['.', '!', '?', '。']).find(|(at, mark)| {
        let rest = paragraph.get(at + mark.len()..).unwrap_or_default();
        rest.is_empty() || rest.starts_with(char::is_whitespace) && !is_abbreviated(&paragraph[..*at])
    });
    match end {
        Some((at, mark)) => (&paragraph[..at + mark.len()], true),
        None => (paragraph, false),
    }
}

/// Runs of lines of prose: without headings, rules, items of lists and code.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let (mut runs, mut at): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
    let (mut is_open, mut is_item, mut is_code) = (false, false, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let words = line.trim();
        let is_fence = words.starts_with("```") || words.starts_with("~~~");
        is_code ^= is_fence;
        // A line that is indented under an item belongs to it.
        is_item =
            is_list_item(words) || is_item && !words.is_empty() && line.starts_with(char::is_whitespace);
        let is_prose = !(is_fence || is_code || is_item || is_heading(words) || is_code_line(words))
            && words.chars().any(char::is_alphanumeric);
        match runs.last_mut().filter(|_| is_open && is_prose) {
            Some(run) => run.end = at,
            None if is_prose => runs.push(start..at),
            None => {}
        }
        is_open = is_prose;
    }
    runs.into_iter().filter_map(|run| text.get(run)).map(str::trim)
}

fn is_heading(line: &str) -> bool {
    line.starts_with(['#', '=', '<', '|'])
}

/// An item of a list with a mark or a number.
fn is_list_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let is_numbered = numbered.len() < line.len() && numbered.starts_with(['.', ')']);
    is_numbered || line.starts_with(['-', '*', '•', '+'])
}

/// A statement of a program.
fn is_code_line(line: &str) -> bool {
    let starts =
        ["import \"", "import '", "import {", "const ", "let ", "var ", "def ", "//", "$ ", "{", "}", "@"];
    line.ends_with([';', '{', '}']) || starts.iter().any(|start| line.starts_with(start))
}

/// True before the point of `e.g.`, `i.e.` and the like.
fn is_abbreviated(text: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    word.contains('.') || matches!(word, "etc" | "vs" | "cf" | "approx" | "incl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_prose() {
        for (text, sentence) in [
            ("Reads files. Writes them too.", Some("Reads files.")),
            (
                "# Files\n\nReads files, e.g. those of v1.2 servers.\nMore.",
                Some("Reads files, e.g. those of v1.2 servers."),
            ),
            ("# Files\nReads files\n\nMore.", Some("Reads files")),
            ("Features:\n\n- one\n\nReads files!", Some("Reads files!")),
            ("Use it. Now", Some("Use it.")),
            ("Says of a file:\n- its size\n- its age\n\nMore.", Some("Says of a file:")),
            ("Makes a thing. Example:\n\nimport \"jsr:@a/b.d.ts\";\n\nserve();", Some("Makes a thing.")),
            ("```js\nrun a. b\n```\nRuns it.", Some("Runs it.")),
            ("- one\n  of two. Or\n\nReads files.", Some("Reads files.")),
            ("---\n", None),
            ("", None),
        ] {
            assert_eq!(first_sentence(text), sentence, "{text:?}");
        }
    }

    #[test]
    fn a_purpose_is_no_advice() {
        for (text, want) in [
            ("Rules of the cloud server:\n- Use Tools: When you can, use tools.\n- If not, ask.", None),
            ("Here are hints:\n\n- one\n\nIf you may, do:\n- two", None),
            ("Audience: models.\n\nFinds routes. Fast.", Some("Finds routes.")),
            ("# Maps\n\n    Finds routes", Some("Finds routes")),
        ] {
            assert_eq!(purpose(text), want, "{text:?}");
        }
    }
}
