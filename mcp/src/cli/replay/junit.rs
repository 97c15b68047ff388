//! Writes the results of `ptc test` as JUnit XML, which continuous integration reads.

use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console::Abort;
use ptc_server::redact;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The result of one test.
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) took: Duration,
    /// What differs.
    pub(super) failure: Option<String>,
    /// Why it could not be run.
    pub(super) error: Option<String>,
}

/// Writes the results to a file, without secrets.
pub(super) fn write(file: &Path, cases: &[TestCase]) -> Result<(), Abort> {
    let text = redact::secrets().scrub(&document(cases)).into_owned();
    let written = files::replace(file, text.as_bytes(), LinkRule::Follow, FileAccess::Kept);
    written.map_err(|error| Abort::usage(format!("cannot write {}: {error}", file.display())))
}

fn document(cases: &[TestCase]) -> String {
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let errors = cases.iter().filter(|case| case.error.is_some()).count();
    let took: Duration = cases.iter().map(|case| case.took).sum();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", cases.len());
    // Writing to a text does not fail.
    let _ = writeln!(text, "<testsuite name=\"ptc test\" {counts} time=\"{:.3}\">", took.as_secs_f64());
    for case in cases {
        let name = escaped(&case.name);
        let _ = write!(text, "  <testcase name=\"{name}\" time=\"{:.3}\"", case.took.as_secs_f64());
        let inner = case.failure.as_ref().map(|failure| ("failure", failure));
        match inner.or(case.error.as_ref().map(|error| ("error", error))) {
            None => text.push_str("/>\n"),
            Some((element, message)) => {
                let first = escaped(message.lines().next().unwrap_or_default());
                let message = escaped(message);
                let _ = writeln!(text, "><{element} message=\"{first}\">{message}</{element}></testcase>");
            }
        }
    }
    text.push_str("</testsuite>\n");
    text
}

/// Text of XML. Characters that XML 1.0 does not have are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_well_formed() {
        let case = |name: &str, failure: Option<&str>, error: Option<&str>| TestCase {
            name: name.to_owned(),
            took: Duration::from_millis(1),
            failure: failure.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let cases =
            [case("a", None, None), case("b<", Some("x & \u{1}\ny"), None), case("c", None, Some("gone"))];
        let text = document(&cases);
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{text}");
        assert!(
            text.contains("<testcase name=\"b&lt;\" time=\"0.001\"><failure message=\"x &amp; \u{fffd}\">")
        );
        assert!(text.contains("<error message=\"gone\">gone</error></testcase>"), "{text}");
    }
}
