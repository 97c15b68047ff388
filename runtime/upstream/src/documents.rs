//! Tests that the tables of errors and remedies in `docs/troubleshooting.md` equal those that the code generates.
//! `PTC_BLESS=1 cargo test -p ptc-runtime --lib documents` rewrites them.

#[path = "../../../tests/src/document_section.rs"]
mod document_section;

use super::openapi;
use super::transport::stdio::advice;
use document_section::{assert_section, head, row};
use ptc_base::net::error::FAULTS;
use ptc_calls::run::outcome::CallFault;

#[test]
fn remedies_of_servers() {
    let quoted = |text: &str| format!("`{}`", text.trim().trim_end_matches(':'));
    let titles = ["the finding says", "what to do"];
    let mut text = String::from("A program on this machine:\n\n");
    text += &head(&titles);
    for (names, remedy) in advice::INSTALLERS {
        text += &row(&[&format!("`command not found` of {}", names.join(", ")), remedy]);
    }
    for (said, remedy) in advice::STARTS {
        let line = remedy.split_whitespace().collect::<Vec<_>>().join(" ");
        text += &row(&[&quoted(said), &line.replace("{}", "COMMAND")]);
    }
    text += "\nA server or service at an address:\n\n";
    text += &head(&titles);
    for (_, said, remedy) in FAULTS {
        text += &row(&[&quoted(said), remedy]);
    }
    text += "\nA service with an OpenAPI document:\n\n";
    text += &head(&titles);
    for (said, remedy) in openapi::REMEDIES {
        text += &row(&[&quoted(said), remedy]);
    }
    assert_section("troubleshooting.md", "servers", &text);
}

#[test]
fn reasons_of_calls() {
    let about = |fault: CallFault| match fault {
        CallFault::UpstreamUnavailable => {
            "The server could not start, or is restarting: `ptc doctor` says why."
        }
        CallFault::UpstreamError => "The server refused the request: its message says why.",
        CallFault::ToolError => "The tool failed: its message says why.",
        CallFault::Timeout => {
            "Ask for less, or raise `--timeout`, `--upstream-call-timeout` or `request_timeout_ms`."
        }
        CallFault::ResponseTooLarge => {
            "Ask for less, store the result (`:on-large :spill`), or raise `--max-upstream-response-bytes`."
        }
        CallFault::CapExhausted => {
            "Make fewer calls, or raise `--max-upstream-calls` or `max_calls_per_program`."
        }
        CallFault::Starting => {
            "Call again: the start goes on. `--upstream-start-timeout` says how long a call waits for it."
        }
        CallFault::LoginRequired => {
            "Log in with the command that the error names (`ptc login SERVER`), and run the program again."
        }
        CallFault::ScopeDenied => {
            "The server does not accept the scopes that the login has: its administrator decides what it grants."
        }
        CallFault::Cancelled => "The program or the branch ended while the call was in flight.",
        CallFault::Denied => {
            "The message names the rule of the policy: `ptc policy check` explains it ([policy](policy.md))."
        }
        CallFault::ToolChanged => {
            "The server has changed the tool: `ptc pin SERVER` shows how, and accepts it ([pins](policy.md#is-a-tool-still-the-one-that-was-reviewed))."
        }
        CallFault::ApprovalUnavailable => {
            "A person has to approve the call, and none can be asked ([approvals](policy.md#who-is-asked))."
        }
        CallFault::NotRecorded => {
            "The replayed recording has no such call: record the run again ([record](record.md))."
        }
        CallFault::OutcomeUnknown => {
            "The process ended while the call was under way: look at what it has done before you call again ([durable runs](runs.md))."
        }
        CallFault::StateUnavailable => {
            "The folder of `--state` cannot be written, so nothing was changed: the message says why ([durable runs](runs.md))."
        }
    };
    let mut text = head(&["`:reason`", "what to do"]);
    for fault in CallFault::ALL {
        text += &row(&[&format!("`:{}`", fault.name()), about(fault)]);
    }
    assert_section("troubleshooting.md", "calls", &text);
}
