//! Finds the first sentence of texts of servers.

/// The first sentence of a text in Markdown: headings, rules and lines that announce a list are skipped, and a
/// paragraph ends a sentence.
pub(crate) fn first_sentence(text: &str) -> Option<&str> {
    let paragraphs = text.trim().split("\n\n").map(without_headings);
    let paragraph = paragraphs.into_iter().find(|paragraph| is_prose(paragraph))?;
    let end = paragraph.match_indices(['.', '!', '?', '。']).find(|(at, mark)| {
        let rest = paragraph.get(at + mark.len()..).unwrap_or_default();
        rest.is_empty() || rest.starts_with(char::is_whitespace) && !is_abbreviated(&paragraph[..*at])
    });
    Some(end.map_or(paragraph, |(at, mark)| &paragraph[..at + mark.len()]))
}

fn is_prose(paragraph: &str) -> bool {
    let announces = paragraph.ends_with(':') && !paragraph.contains('\n');
    paragraph.chars().any(char::is_alphanumeric) && !announces
}

fn without_headings(paragraph: &str) -> &str {
    let paragraph = paragraph.trim();
    let is_heading = |line: &&str| line.trim_start().starts_with(['#', '=', '-', '<']);
    let skipped = paragraph.split_inclusive('\n').take_while(is_heading).map(str::len).sum();
    paragraph.get(skipped..).unwrap_or_default().trim()
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
            ("---\n", None),
            ("", None),
        ] {
            assert_eq!(first_sentence(text), sentence, "{text:?}");
        }
    }
}
