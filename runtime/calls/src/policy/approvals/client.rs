//! Asks the user of the MCP client that started a run to approve tool calls, by a form (elicitation).

use super::form::{Approver, Form};
use super::{ApprovalAnswer, Said};
use crate::run::client::ServedClient;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize)]
struct FormAnswer {
    action: String,
    #[serde(default)]
    content: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    decision: Option<String>,
}

/// Who answers a form.
const USER: &str = "the user of the client";

/// The choices of a form.
const APPROVE: &str = "approve";
const ANY: &str = "approve with any arguments";
const DENY: &str = "deny";

pub(super) fn ask(client: Arc<dyn ServedClient>, form: &Form) -> BoxFuture<'static, Said> {
    let choices = if form.offers_any { vec![APPROVE, ANY, DENY] } else { vec![APPROVE, DENY] };
    let offers_any = form.offers_any;
    let form = json!({
        "message": form.text,
        "requestedSchema": {
            "type": "object",
            "properties": { "decision": { "type": "string", "title": "Decision", "enum": choices } },
            "required": ["decision"],
        },
    });
    let asked = client.ask("elicitation/create", form.to_string());
    Box::pin(async move {
        match asked.await {
            Ok(answer) => read(&answer, offers_any),
            Err(error) => Err(ApprovalAnswer::Unavailable(
                format!("the client gives no answer: {}", error.message).into(),
            )),
        }
    })
}

/// The decision in an answer. Only an explicit yes is one.
fn read(answer: &str, offers_any: bool) -> Said {
    let denied = || Err(ApprovalAnswer::Denied(USER.into()));
    let Ok(answer) = serde_json::from_str::<FormAnswer>(answer) else { return denied() };
    let decision = answer.content.and_then(|content| content.decision);
    match (&*answer.action, decision.as_deref()) {
        ("accept", Some(APPROVE)) => Ok(Approver::of_shown(USER.into())),
        ("accept", Some(ANY)) if offers_any => Ok(Approver { by: USER.into(), is_any: true }),
        ("cancel", _) => Err(ApprovalAnswer::Unavailable("the question was closed without an answer".into())),
        _ => denied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_yes_is_one() {
        for (answer, want) in [
            (r#"{"action":"accept","content":{"decision":"approve"}}"#, "yes"),
            (r#"{"action":"accept","content":{"decision":"deny"}}"#, "no"),
            (r#"{"action":"accept","content":{"decision":"APPROVE"}}"#, "no"),
            (r#"{"action":"accept","content":{"decision":"approve with any arguments"}}"#, "no"),
            (r#"{"action":"accept","content":{}}"#, "no"),
            (r#"{"action":"accept"}"#, "no"),
            (r#"{"action":"decline","content":{"decision":"approve"}}"#, "no"),
            (r#"{"action":"cancel"}"#, "none"),
            ("[]", "no"),
        ] {
            let said = match read(answer, false) {
                Ok(Approver { is_any: false, .. }) => "yes",
                Ok(Approver { is_any: true, .. }) => "any",
                Err(ApprovalAnswer::Denied(_)) => "no",
                Err(ApprovalAnswer::Unavailable(_)) => "none",
            };
            assert_eq!(said, want, "{answer}");
        }
    }
}
