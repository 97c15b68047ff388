//! Formats tracebacks of a script as CPython does, with hints about features that the engine lacks.

use super::script::TOOL_ERROR;
use super::worker::FunctionSet;
use monty_types::{ExcType, MontyException};
use std::collections::HashSet;

/// The text of `help()`.
pub(super) const HELP: &str =
    "help(f) explains the function f; tools() lists the tool functions, tools(\"words\") searches them.";

/// The hint about a missing feature of Python.
pub(super) const WORKAROUND: &str = "The engine monty has not all of Python; `--python-engine cpython` runs scripts with the machine's python3.";

/// Most bytes of a traceback.
const LONGEST_TRACEBACK: usize = 1 << 16;

/// The file name of every script.
const FILE: &str = "<program>";

/// The traceback of an error.
pub(super) fn traceback(
    error: &MontyException,
    tool_errors: &HashSet<String>,
    functions: &FunctionSet,
) -> String {
    let message = error.message().unwrap_or_default();
    let is_tool_error = error.exc_type() == TOOL_ERROR && tool_errors.contains(message);
    if is_tool_error && message.ends_with(" is not available in execute_program") {
        return format!("ToolError: {message}");
    }
    let mut text = String::new();
    if !error.traceback().is_empty() {
        let mut frames = error.traceback().to_vec();
        for frame in &mut frames {
            frame.filename = FILE.to_owned();
            if frame.frame_name.as_deref().is_none_or(|name| name == "<module>") {
                frame.frame_name = Some("__main__".to_owned());
            }
        }
        // Formats the frames without message and kind; the last line is written below.
        let shown = MontyException::with_traceback(ExcType::Exception, None, frames).to_string();
        text.push_str(shown.strip_suffix("Exception").unwrap_or(&shown));
    }
    match is_tool_error {
        true => text.push_str(&format!("ToolError: {message}")),
        false => text.push_str(&error.summary()),
    }
    if let Some(advice) = advice(error, functions) {
        text.push_str(&advice);
    }
    if is_gap(error) {
        text.push('\n');
        text.push_str(WORKAROUND);
    }
    text.truncate(text.floor_char_boundary(LONGEST_TRACEBACK));
    text
}

/// The traceback for a feature that the engine accepts but ignores.
pub(super) fn ignored(code: &str) -> Option<String> {
    const NAME: &str = "__slots__";
    let line = code.lines().position(|line| line.trim_start().starts_with(NAME))?;
    let text = code.lines().nth(line)?.trim();
    Some(format!(
        "Traceback (most recent call last):\n  File \"{FILE}\", line {}, in __main__\n    {text}\n\
         NotImplementedError: {NAME} has no effect here\n{WORKAROUND}",
        line + 1
    ))
}

/// A suggestion for a misspelt name of a tool.
fn advice(error: &MontyException, functions: &FunctionSet) -> Option<String> {
    let quoted = error.message().filter(|_| error.exc_type() == ExcType::NameError)?.split('\'').nth(1)?;
    if let Some(near) = functions.nearest(quoted) {
        return Some(format!(". Did you mean: '{near}'?"));
    }
    let is_tool = quoted.starts_with("mcp__");
    is_tool.then(|| ". There is no such tool; `print(tools())` lists those that there are".to_owned())
}

/// Whether the error may come from a gap of the engine. A mistake of the script can look the same.
fn is_gap(error: &MontyException) -> bool {
    let message = error.message().unwrap_or_default();
    match error.exc_type() {
        ExcType::NotImplementedError
        | ExcType::ModuleNotFoundError
        | ExcType::ImportError
        | ExcType::AttributeError
        | ExcType::SyntaxError => true,
        ExcType::NameError => !message.contains("mcp__"),
        ExcType::TypeError => true,
        _ => {
            message.contains("not supported")
                || message.contains("not yet")
                || message.contains("not implemented")
        }
    }
}
