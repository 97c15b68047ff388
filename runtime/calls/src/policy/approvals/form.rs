//! Defines the question that asks a person to approve tool calls, as data for every channel (MCP client, list of
//! `ptc approvals`, webhook), and the approval that comes back. A question is about calls that are alike, or about a
//! whole program.

use super::question::{Question, text};
use std::sync::Arc;

/// A question with its text, for all who may answer.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Unpredictable.
    pub(super) id: Arc<str>,
    /// `server/tool`, or `program`.
    pub(super) subject: String,
    /// The title of the rule that asks.
    pub(super) rule: Arc<str>,
    pub(super) calls: Vec<FormCall>,
    pub(super) text: String,
    /// What an answer in a file has to repeat.
    pub(super) digest: String,
    /// An answer may also approve calls with arguments that the text does not show.
    pub(super) offers_any: bool,
}

/// One call of a question.
#[derive(Clone, Debug)]
pub(super) struct FormCall {
    /// `server/tool`.
    pub(super) name: String,
    /// `None`: they are computed.
    pub(super) arguments: Option<String>,
    /// SHA-256 of the arguments as they are sent.
    pub(super) digest: Option<String>,
}

/// Who approved, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Approver {
    pub(super) by: Arc<str>,
    /// Also calls with arguments that the text did not show.
    pub(super) is_any: bool,
}

impl Approver {
    /// Approves what the text shows.
    pub(super) fn of_shown(by: Arc<str>) -> Approver {
        Approver { by, is_any: false }
    }
}

impl Form {
    /// The question about calls that are alike; `None`: there is none.
    pub(super) fn of_calls(questions: &[&Question]) -> Option<Form> {
        let first = questions.first()?;
        let calls = questions.iter().map(|question| FormCall {
            name: question.name(),
            arguments: Some(question.shown_arguments(usize::MAX)),
            digest: Some(question.arguments_digest.to_owned()),
        });
        let digests: Vec<String> = questions.iter().map(|question| question.digest()).collect();
        Some(Form {
            id: first.id.clone(),
            subject: first.name(),
            rule: first.rule.clone(),
            calls: calls.collect(),
            text: text(questions),
            digest: digests.join("+"),
            offers_any: false,
        })
    }
}
