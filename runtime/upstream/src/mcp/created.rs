//! Reads the answer to a call of a server that has tasks: a result, a task, or questions of the server. An answer that
//! names a task or a type of result which cannot be read is a fault, and no result.

use super::asked::Requests;
use super::task::TaskForm;
use crate::UpstreamFault;
use ptc_calls::tools::ServerText;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// How often a server is asked that advises nothing, and the bounds of what it may advise.
const USUAL: Duration = Duration::from_secs(1);
pub(super) const LEAST: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(60);

/// Most bytes of the state of a task apart from its result.
pub(super) const STATE_BYTES: usize = 256 << 10;

/// Longest id of a task.
const LONGEST_ID: usize = 4 << 10;

/// A task of a server.
#[derive(Clone, Debug)]
pub(super) struct ServerTask {
    pub(super) id: Arc<str>,
    pub(super) poll: Duration,
}

/// What the answer to a call is.
#[derive(Debug)]
pub(super) enum Created<'a> {
    /// A result, or an error of the reader of results.
    Result,
    Task(ServerTask),
    /// The server asks first, and may want its state back.
    Asked {
        requests: Requests<'a>,
        state: Option<String>,
    },
}

/// The members of an answer that say what it is. A present one may be `null`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    result_type: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    task: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

/// A task: the whole answer (2026-07-28), or a member of it (2025-11-25).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedTask<'a> {
    task_id: Arc<str>,
    #[serde(borrow, default)]
    poll_interval: Option<&'a RawValue>,
    #[serde(borrow, default)]
    poll_interval_ms: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asking<'a> {
    #[serde(borrow, default)]
    input_requests: Option<Requests<'a>>,
    #[serde(default)]
    request_state: Option<String>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The advised time between two questions. It is a number of milliseconds of any form; anything else is no advice.
pub(super) fn interval(advised: Option<&RawValue>) -> Duration {
    let advised = advised.and_then(|raw| serde_json::from_str::<f64>(raw.get()).ok());
    advised.map_or(USUAL, |ms| {
        Duration::from_secs_f64((ms / 1000.0).clamp(LEAST.as_secs_f64(), MOST.as_secs_f64()))
    })
}

fn unreadable(what: &str, why: impl std::fmt::Display) -> UpstreamFault {
    UpstreamFault::Protocol(format!("the server answered with {what} that cannot be read: {why}"))
}

impl ServerTask {
    /// A task that is known from before.
    pub(super) fn known(id: &str) -> ServerTask {
        ServerTask { id: id.into(), poll: LEAST }
    }

    fn read(text: &str) -> Result<ServerTask, UpstreamFault> {
        if text.len() > STATE_BYTES {
            return Err(unreadable("a task", format_args!("it has {} bytes", text.len())));
        }
        let task: NamedTask<'_> = serde_json::from_str(text).map_err(|why| unreadable("a task", why))?;
        let id = task.task_id;
        if id.len() > LONGEST_ID {
            return Err(UpstreamFault::Protocol(format!("the server named a task in {} bytes", id.len())));
        }
        Ok(ServerTask { id, poll: interval(task.poll_interval_ms.or(task.poll_interval)) })
    }
}

/// Reads an answer of a server that has tasks in this form.
///
/// # Errors
/// The answer names a task or a type that cannot be read.
pub(super) fn read(form: TaskForm, answer: &[u8]) -> Result<Created<'_>, UpstreamFault> {
    let members: Members<'_> = match serde_json::from_slice(answer) {
        Ok(members) => members,
        // A member is there twice, or it is no object.
        Err(why) if why.is_data() => return Err(unreadable("a result", why)),
        Err(_) => return Ok(Created::Result),
    };
    let text = std::str::from_utf8(answer).unwrap_or_default();
    match form {
        TaskForm::None => Ok(Created::Result),
        TaskForm::Requested => match members.task {
            // Some servers write what they do not have as null.
            Some(task) if task.get() == "null" && members.content.is_some() => Ok(Created::Result),
            Some(task) => ServerTask::read(task.get()).map(Created::Task),
            None => Ok(Created::Result),
        },
        TaskForm::Extension => {
            let Some(kind) = members.result_type else { return Ok(Created::Result) };
            let kind: String =
                serde_json::from_str(kind.get()).map_err(|why| unreadable("a resultType", why))?;
            match &*kind {
                "complete" => Ok(Created::Result),
                "task" => ServerTask::read(text).map(Created::Task),
                "input_required" if text.len() > STATE_BYTES => {
                    Err(unreadable("questions", format_args!("they have {} bytes", text.len())))
                }
                "input_required" => {
                    let asking: Asking<'_> =
                        serde_json::from_str(text).map_err(|why| unreadable("questions", why))?;
                    let Asking { input_requests, request_state: state } = asking;
                    Ok(Created::Asked { requests: input_requests.unwrap_or_default(), state })
                }
                other => {
                    Err(unreadable("a resultType", format_args!("{} is unknown", ServerText::new(other))))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_a_number_of_any_form() {
        let advised = |text: &str| {
            let text = format!("{{\"taskId\":\"t\",\"pollInterval\":{text}}}");
            ServerTask::read(&text).expect("a task").poll
        };
        for (text, want) in [
            ("1000", USUAL),
            ("1000.0", USUAL),
            ("50.5", Duration::from_micros(50_500)),
            ("1e18", MOST),
            ("-5", LEAST),
            ("-0.0", LEAST),
            ("null", USUAL),
            ("1e999", USUAL),
            ("\"30\"", USUAL),
        ] {
            assert_eq!(advised(text), want, "{text}");
        }
    }

    #[test]
    fn what_names_a_task_is_no_result() {
        let kind = |form, text: &str| match read(form, text.as_bytes()) {
            Ok(Created::Result) => "result",
            Ok(Created::Task(_)) => "task",
            Ok(Created::Asked { .. }) => "asked",
            Err(UpstreamFault::Protocol(_)) => "fault",
            Err(other) => panic!("{other}"),
        };
        for (text, want) in [
            (r#"{"task":{"taskId":"t"}}"#, "task"),
            (r#"{"task":{"taskId":5}}"#, "fault"),
            (r#"{"task":null}"#, "fault"),
            (r#"{"task":[]}"#, "fault"),
            (r#"{"task":{}}"#, "fault"),
            (r#"{"task":{"taskId":"t"},"task":{"taskId":"t"}}"#, "fault"),
            (r#"{"content":[],"task":null}"#, "result"),
            (r#"{"content":[]}"#, "result"),
        ] {
            assert_eq!(kind(TaskForm::Requested, text), want, "{text}");
        }
        let large = format!("{{\"task\":{{\"taskId\":\"t\",\"x\":\"{}\"}}}}", "x".repeat(STATE_BYTES));
        assert_eq!(kind(TaskForm::Requested, &large), "fault");
        for (text, want) in [
            (r#"{"resultType":"task","taskId":"t","pollIntervalMs":100.5}"#, "task"),
            (r#"{"resultType":"task","taskId":5}"#, "fault"),
            (r#"{"resultType":"task"}"#, "fault"),
            (r#"{"resultType":null}"#, "fault"),
            (r#"{"resultType":5}"#, "fault"),
            (r#"{"resultType":"other"}"#, "fault"),
            (r#"{"resultType":"input_required","inputRequests":{}}"#, "asked"),
            (r#"{"resultType":"input_required","inputRequests":5}"#, "fault"),
            (r#"{"resultType":"complete","content":[]}"#, "result"),
            (r#"{"content":[]}"#, "result"),
        ] {
            assert_eq!(kind(TaskForm::Extension, text), want, "{text}");
        }
    }
}
