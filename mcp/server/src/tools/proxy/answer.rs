//! Builds the answers of the tool `proxy-dispatch`, through which clients that write no programs call the tools of
//! other servers. Each is the outcome of a run, because outcomes are redacted.
//!
//! An answer is the result of the call itself: `content`, and the members that the tool's document names. No
//! value is in both, because clients count the bytes that they read.

use crate::answer::caps::Profile;
use crate::answer::outcome::{call_json, metrics, usage_json};
use crate::answer::{CallSummary, Content, ToolAnswer};
use ptc_calls::outcome::{Outcome, RenderedValue};
use ptc_calls::tools::visible::visible;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// Part of the note about failed calls that a program does not show. It is left out here.
const NOT_SHOWN: &str = " gave :ok false, and the answer does not say why";

/// An answer.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProxyAnswer {
    is_error: bool,
    /// Members next to `content`.
    members: Map<String, Value>,
    /// Content blocks that an upstream returned; if empty, the text is the only block.
    blocks: Vec<Value>,
    #[serde(skip)]
    text: String,
}

impl ProxyAnswer {
    /// An answer of one text.
    pub(super) fn text(text: String) -> ProxyAnswer {
        ProxyAnswer { text, ..ProxyAnswer::default() }
    }

    /// An answer of data, as JSON text. Control characters are escaped, which keeps its meaning.
    pub(super) fn data(data: &Value) -> ProxyAnswer {
        ProxyAnswer::text(visible(&data.to_string()).into_owned())
    }

    /// An answer of an upstream's blocks.
    pub(super) fn blocks(blocks: Vec<Value>) -> ProxyAnswer {
        ProxyAnswer { blocks, ..ProxyAnswer::default() }
    }

    /// An error with its reason.
    pub(super) fn error(reason: &'static str, text: impl Into<String>) -> ProxyAnswer {
        ProxyAnswer::text(text.into()).failed(reason)
    }

    /// Adds a member.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> ProxyAnswer {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the file that has the content blocks of a stored result.
    pub(super) fn with_content_file(mut self, path: &str, bytes: u64) -> ProxyAnswer {
        self.text
            .push_str(&format!("\nThe tool's content blocks say more: they are in {path} ({bytes} bytes)."));
        self.with("contentFile", path)
    }

    /// Marks the answer as an error with this reason.
    pub(super) fn failed(self, reason: &'static str) -> ProxyAnswer {
        ProxyAnswer { is_error: true, ..self }.with("reason", reason)
    }

    /// The ending of the run that made the answer.
    pub(super) fn ending(self) -> Outcome {
        // All keys are strings, so this cannot fail.
        let json = serde_json::to_string(&self).unwrap_or_default();
        let answer = RenderedValue { json: Some(Ok(json)), ..RenderedValue::from_text(self.text) };
        Outcome::with_result(Ok(answer))
    }

    /// Reads the answer from the outcome of its run.
    pub(super) fn from_outcome(outcome: &mut Outcome) -> ProxyAnswer {
        match &mut outcome.result {
            Err(failure) => ProxyAnswer::error(failure.reason.class().name(), failure.message.clone()),
            Ok(answer) => {
                let text = std::mem::take(&mut answer.text);
                let json = answer.json.as_ref().and_then(|json| json.as_deref().ok()).unwrap_or_default();
                let read = serde_json::from_str(json).unwrap_or_default();
                ProxyAnswer { text, ..read }
            }
        }
    }

    /// The summary for records of calls.
    pub(super) fn summary<'o>(&self, outcome: &'o Outcome) -> CallSummary<'o> {
        let failed = outcome.result.as_ref().err().map(|failure| failure.reason.class().name().into());
        let own_reason =
            || self.members.get("reason").and_then(Value::as_str).map(|reason| reason.to_owned().into());
        CallSummary {
            reason: failed.or_else(own_reason).filter(|_| self.is_error),
            run: Some(outcome),
            result_bytes: Some(self.text.len() as u64).filter(|_| !self.is_error),
            ..CallSummary::default()
        }
    }

    /// The answer to the call, with facts about its run.
    pub(super) fn after(mut self, profile: Profile, outcome: &Outcome) -> ToolAnswer<'static> {
        // The answer of the single call says itself how it ended.
        let is_new = |note: &&String| !note.contains(NOT_SHOWN);
        let notes: Vec<&String> = outcome.notes.iter().filter(is_new).collect();
        if !notes.is_empty() {
            self = self.with("notes", json!(notes));
        }
        if profile == Profile::Debug {
            let calls: Vec<Value> = outcome.upstream_calls.iter().map(call_json).collect();
            self = self.with("upstream_calls", calls).with("usage", usage_json(outcome));
            let metrics =
                metrics(outcome, self.text.len() as u64).and_then(|all| serde_json::to_value(all).ok());
            if let Some(metrics) = metrics {
                self = self.with("ptc_metrics", metrics);
            }
        }
        self.into_answer()
    }

    /// The answer without facts about the run.
    pub(super) fn into_answer(self) -> ToolAnswer<'static> {
        let ProxyAnswer { is_error, members, blocks, text } = self;
        let blocks = match blocks.is_empty() {
            true => to_raw_value(&[json!({ "type": "text", "text": text })]),
            false => to_raw_value(&blocks),
        };
        let content = match blocks {
            Ok(blocks) => Content::Extended { blocks, members },
            Err(_) => Content::Blocks(RawValue::NULL.to_owned()),
        };
        ToolAnswer { is_error, ..ToolAnswer::new(content) }
    }
}

/// A rough estimate of the tokens of a text.
pub(super) fn estimated_tokens(bytes: u64) -> u64 {
    bytes.saturating_add(2) / 4
}
