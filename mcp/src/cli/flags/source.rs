//! Reads the program that a command runs (from an argument, a file or standard input), and the JSON input data for it
//! (from an argument or a file).

use ptc_server::console::Abort;
use ptc_server::tools::lisp_eval::arguments::read_context;
use serde_json::value::RawValue;
use std::io::Read;
use std::path::Path;

/// A program with its name in diagnostics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Text.
    pub text: String,
    /// File name, `stdin` or `program`.
    pub name: String,
}

/// Common file extensions of programs. An argument with one of them is a file, never program text.
const EXTENSIONS: &[&str] = &["ptc", "clj", "cljc", "edn", "lisp"];

impl Source {
    /// Reads `PROGRAM | FILE | -`.
    pub fn read(argument: &str) -> Result<Source, Abort> {
        if argument == "-" {
            return Source::read_stdin();
        }
        let path = Path::new(argument);
        let looks_like_file =
            path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| {
                EXTENSIONS.contains(&extension) && !argument.contains(char::is_whitespace)
            });
        if path.is_file() || looks_like_file {
            return Source::read_file(argument);
        }
        Ok(Source { text: argument.to_owned(), name: "program".into() })
    }

    /// Reads `FILE | -`.
    pub fn read_file(argument: &str) -> Result<Source, Abort> {
        if argument == "-" {
            return Source::read_stdin();
        }
        let text = ptc_base::files::read_text(argument.as_ref())
            .map_err(|error| Abort::usage(format!("cannot read {argument}: {error}")))?;
        Ok(Source { text: without_mark(text), name: argument.to_owned() })
    }

    fn read_stdin() -> Result<Source, Abort> {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Abort::usage(format!("cannot read standard input: {error}")))?;
        Ok(Source { text: without_mark(text), name: "stdin".into() })
    }
}

/// The text without the mark of byte order that some editors write at its beginning.
pub fn without_mark(text: String) -> String {
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

/// Reads `--context JSON` or `--context @FILE`.
pub fn context(argument: &str, cap: u64) -> Result<String, Abort> {
    let file = argument.strip_prefix('@');
    let text = match file {
        Some(file) => ptc_base::files::read_text(file.as_ref())
            .map(without_mark)
            .map_err(|error| Abort::usage(format!("cannot read context file {file}: {error}")))?,
        None => argument.to_owned(),
    };
    let raw: &RawValue = serde_json::from_str(&text).map_err(|error| {
        Abort::usage(match file {
            Some(file) => format!("the context file {file} is not JSON: {error}"),
            None => format!("--context is not JSON: {error} (use @FILE to read a file)"),
        })
    })?;
    let named =
        |why: String| file.map_or_else(|| why.clone(), |file| format!("the context file {file}: {why}"));
    read_context(raw.into(), cap).map(str::to_owned).map_err(|why| Abort::usage(named(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_program_and_a_missing_file_is_an_error() {
        assert_eq!(Source::read("(+ 1 2)").expect("text").text, "(+ 1 2)");
        assert_eq!(Source::read("x").expect("text").name, "program");
        assert!(Source::read("no-such-file.ptc").is_err());
        assert!(Source::read_file("no-such-file").is_err());
    }

    #[test]
    fn contexts_are_checked_like_those_of_the_server() {
        assert_eq!(context(r#"{"a":1}"#, 100).expect("context"), r#"{"a":1}"#);
        assert!(context("[1]", 100).is_err());
        assert!(context("{", 100).is_err());
        assert!(context(r#"{"a/b":1}"#, 100).is_err());
        assert!(context("@no-such-file", 100).is_err());
    }
}
