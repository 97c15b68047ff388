//! `//` and `/* */` comments, which editors allow in their configuration files.

use std::borrow::Cow;

/// The text with its comments replaced by spaces: every place stays where it was.
pub fn blank_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("//") && !text.contains("/*") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = rest.next() {
        match (c, in_string, rest.peek()) {
            ('\\', true, Some(_)) => {
                out.push(c);
                out.extend(rest.next());
                continue;
            }
            ('"', _, _) => in_string = !in_string,
            ('/', false, Some('/')) => {
                out.push(' ');
                while let Some(c) = rest.next_if(|&c| c != '\n') {
                    blank(c, &mut out);
                }
                continue;
            }
            ('/', false, Some('*')) => {
                // The opening star cannot be the closing one.
                out.push_str("  ");
                rest.next();
                let mut after_star = false;
                for c in rest.by_ref() {
                    blank(c, &mut out);
                    if after_star && c == '/' {
                        break;
                    }
                    after_star = c == '*';
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    Cow::Owned(out)
}

/// As many bytes, and lines stay lines.
fn blank(c: char, out: &mut String) {
    match c {
        '\n' | '\r' => out.push(c),
        _ => out.extend(std::iter::repeat_n(' ', c.len_utf8())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_are_blanked_and_every_place_stays() {
        let text = "{ // one \"x\"\n \"a//b\": \"c\\\"/*d\", /* é\n*/ \"e\": 1 }";
        let out = blank_comments(text);
        assert_eq!(out, "{           \n \"a//b\": \"c\\\"/*d\",      \n   \"e\": 1 }");
        assert_eq!(out.len(), text.len());
        assert_eq!(blank_comments("/* a */1"), "       1");
        assert_eq!(blank_comments("/*/ 1 */2"), "        2");
        assert_eq!(blank_comments("/***/3"), "     3");
        assert!(matches!(blank_comments("{}"), Cow::Borrowed(_)));
    }
}
