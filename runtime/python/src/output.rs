//! Formats what a client receives about a Python script: its output, or the error for an exception, a timeout or a
//! killed process. The texts are exactly as documented.

use ptc_calls::journal::ErrorRecord;
use ptc_calls::outcome::{Failure, FailureKind};
use ptc_vm::Class;
use std::time::Duration;

/// First line of the answer to a script that succeeded.
pub const SUCCEEDED: &str = "[Script executed successfully]\n";

/// First line of any other answer.
pub const FAILED: &str = "[Script execution failed]\n";

/// Replaces a blank output.
const NO_OUTPUT: &str = "(no output)";

/// Appended to a truncated output.
const TRUNCATED: &str = "\n... (truncated)";

/// The text about a script that does not read the replies to its discovery requests.
pub const UNREAD: &str = "RuntimeError: the script used tools() and help() without reading what they said";

/// Precedes the output of a failed script.
pub const BEFORE: &str = "[Output before the failure]";

/// The text about a failed script: the failure, and its output until then.
pub fn failed(failure: &Failure, printed: &[String]) -> String {
    match printed.is_empty() {
        true => failure.message.clone(),
        false => format!("{}\n\n{BEFORE}\n{}", failure.message, printed.join("\n")),
    }
}

/// The output of a successful script, cut at `limit` bytes (at a character boundary), followed by its notes.
pub fn printed(output: &str, cut: bool, limit: usize, notes: &[String]) -> String {
    let whole = &output[..output.floor_char_boundary(limit)];
    let cut = cut || whole.len() < output.len();
    let mut text = if whole.trim().is_empty() && !cut { NO_OUTPUT.to_owned() } else { whole.to_owned() };
    if cut {
        text.push_str(TRUNCATED);
    }
    for note in notes {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(note);
    }
    text
}

/// A script that raised an exception; the message is its traceback.
pub fn raised(traceback: impl Into<String>) -> Failure {
    Failure::new(FailureKind::new("script_error", Class::RuntimeError), traceback)
}

/// A script that exceeded its time limit.
pub fn too_slow(limit: Duration) -> Failure {
    let text = format!("TimeoutError: Execution exceeded {}s limit", limit.as_secs_f64());
    Failure::new(FailureKind::new("timeout", Class::Timeout), text)
}

/// A script that was cancelled by its caller.
pub fn cancelled() -> Failure {
    Failure::new(FailureKind::new("cancelled", Class::Cancelled), "CancelledError: the call was cancelled")
}

/// A replayed script that waits for what it waited for when it was interrupted.
pub(crate) fn interrupted_as_recorded(recorded: ErrorRecord) -> Failure {
    let kind = match recorded.reason.as_str() {
        "cancelled" => FailureKind::new("cancelled", Class::Cancelled),
        _ => FailureKind::new("timeout", Class::Timeout),
    };
    Failure::new(kind, recorded.message)
}

/// A script with a process that ended without a message.
pub fn ended_by(signal: i32) -> Failure {
    let text = match signal {
        9 => "MemoryError: the process of the script was killed (memory or processor time)".to_owned(),
        11 => "RuntimeError: the process of the script crashed (segmentation fault)".to_owned(),
        signal => format!("RuntimeError: the process of the script was ended by signal {signal}"),
    };
    Failure::new(FailureKind::new("script_killed", Class::RuntimeError), text)
}

/// The engine could not run the script.
pub fn no_engine(why: &str) -> Failure {
    Failure::new(FailureKind::new("engine_unavailable", Class::RuntimeError), format!("RuntimeError: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_read_as_documented() {
        assert_eq!(printed("3\n", false, 10, &[]), "3\n");
        assert_eq!(printed(" \n", false, 10, &[]), "(no output)");
        assert_eq!(printed("äöü", false, 3, &[]), "ä\n... (truncated)");
        assert_eq!(printed("ab", true, 10, &[]), "ab\n... (truncated)");
        assert_eq!(printed("", false, 10, &["note".to_owned()]), "(no output)\nnote");
        assert_eq!(too_slow(Duration::from_secs(120)).message, "TimeoutError: Execution exceeded 120s limit");
    }
}
