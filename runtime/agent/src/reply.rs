//! Finds the program in the reply of a model.

/// Languages of code blocks that may hold a program.
const LANGUAGES: [&str; 7] = ["clojure", "clj", "lisp", "ptc-lisp", "ptc", "scheme", ""];

/// The program: the last code block in one of [`LANGUAGES`], or a reply that consists only of forms.
pub(super) fn program(reply: &str) -> Option<&str> {
    if let Some(block) = blocks(reply).filter(|block| !block.trim().is_empty()).last() {
        return Some(block.trim());
    }
    let text = reply.trim();
    (text.starts_with('(') && text.ends_with(')')).then_some(text)
}

/// Code blocks in order; an unclosed block reaches to the end.
fn blocks(reply: &str) -> impl Iterator<Item = &str> {
    let mut rest = reply;
    std::iter::from_fn(move || {
        loop {
            let start = fence(rest)?;
            let after = &rest[start + 3..];
            let (language, body) = after.split_once('\n').unwrap_or((after, ""));
            let end = fence(body).unwrap_or(body.len());
            rest = body.get(end + 3..).unwrap_or_default();
            if LANGUAGES.contains(&language.trim().to_ascii_lowercase().as_str()) {
                return Some(&body[..end]);
            }
        }
    })
}

/// Start of the first line that begins with three backticks.
fn fence(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        if line[blank..].starts_with("```") {
            return Some(at + blank);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn programs_are_found_in_what_models_write() {
        let cases = [
            ("```clojure\n(+ 1 2)\n```", Some("(+ 1 2)")),
            ("I think:\n```lisp\n(a)\n```\nand then\n```clj\n(b)\n```\nDone.", Some("(b)")),
            ("```\n(plain)\n```", Some("(plain)")),
            ("  ```Clojure\n  (in)\n  ```", Some("(in)")),
            ("```json\n{\"a\": 1}\n```", None),
            ("```json\n{}\n```\n```clojure\n(x)\n```", Some("(x)")),
            ("```clojure\n(cut off", Some("(cut off")),
            ("```clojure\n\n```", None),
            ("(return 1)", Some("(return 1)")),
            ("\n(def a 1)\n(return a)\n", Some("(def a 1)\n(return a)")),
            ("The answer is 4.", None),
            ("", None),
            ("```", None),
            ("```clojure\n(str \"```\")\n```", Some("(str \"```\")")),
        ];
        for (reply, want) in cases {
            assert_eq!(program(reply), want, "{reply}");
        }
    }
}
