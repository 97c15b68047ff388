//! Asks a person about all tool calls of a program at once, before its first call, in place of one question for each
//! call.
//!
//! The question lists the calls that stand in the text of the program. An approval counts once for each of them, for
//! exactly the arguments that it shows. Calls with computed arguments are asked about when they are made, unless the
//! person approves any arguments.

use super::form::{Form, FormCall};
use super::question::Binding;
use super::{ApprovalAnswer, Approvals};
use crate::run::account::PlannedCall;
use crate::run::client::ServedClient;
use crate::run::outcome::Verdict;
use crate::tools::visible::{shown_name, visible_line};
use ptc_base::digest::sha256_hex;
use ptc_base::secrets::SecretRegistry;
use ptc_base::strict_json;
use ptc_base::sync::Locked;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Most calls in one question, so that a person sees all of them. Further ones are asked about when they are made.
const MOST: usize = 50;

/// Bytes of the arguments of one call that are shown. A call with more is asked about when it is made.
const SHOWN: usize = 1_000;

/// A call of a program with what the policy says of it.
pub(in crate::policy) struct PlannedRow {
    pub(in crate::policy) call: PlannedCall,
    /// `None`: it depends on arguments that are computed.
    pub(in crate::policy) verdict: Option<Verdict>,
    pub(in crate::policy) effect: &'static str,
    /// The call without its arguments; `None`: its tool is not known yet.
    pub(in crate::policy) binding: Option<Binding>,
    /// The data flow into it that is asked about or denied.
    pub(in crate::policy) flow: Option<String>,
}

/// What a person has said to a program.
#[derive(Default)]
pub(in crate::policy) struct ProgramReview {
    calls: Vec<PlannedCall>,
    /// The data flows that the question has shown.
    flows: Vec<String>,
    answer: ReviewAnswer,
}

#[derive(Default)]
enum ReviewAnswer {
    /// The program was not asked about.
    #[default]
    None,
    Approved {
        by: Arc<str>,
        until: Instant,
        calls: Mutex<Vec<ApprovedCall>>,
    },
    Refused(ApprovalAnswer),
}

/// A call that counts as approved.
struct ApprovedCall {
    /// Without arguments.
    call: Binding,
    /// Canonical text. `None`: any, and any number of calls.
    arguments: Option<String>,
}

impl PlannedRow {
    fn name(&self) -> String {
        let tool = self.call.tool.as_deref().map_or_else(|| "a tool that it computes".into(), shown_name);
        format!("{}/{tool}", shown_name(&self.call.server))
    }

    /// A person may have to approve it.
    fn is_asked(&self) -> bool {
        matches!(self.verdict, None | Some(Verdict::Ask))
    }

    /// Its arguments as they are shown, if they are shown in full.
    fn shown(&self, secrets: &SecretRegistry) -> Option<String> {
        let arguments = self.call.arguments.as_deref().filter(|text| text.len() <= SHOWN)?;
        Some(visible_line(&secrets.scrub(arguments)).into_owned())
    }

    fn line(&self, at: usize, secrets: &SecretRegistry) -> String {
        let mut text = format!("{at}. line {}: {} ({})", self.call.line, self.name(), self.effect);
        // Writing to a String cannot fail.
        let _ = match (self.shown(secrets), &self.call.arguments) {
            (Some(arguments), _) => write!(text, " {arguments}"),
            (None, Some(arguments)) => {
                let digest = sha256_hex(arguments.as_bytes());
                write!(text, " with {} bytes of arguments, SHA-256 {digest}", arguments.len())
            }
            (None, None) => write!(text, " with arguments that it computes"),
        };
        text += match self.verdict {
            Some(Verdict::Allow) => ": allowed",
            Some(Verdict::Deny) => ": denied",
            Some(Verdict::Ask) | None => "",
        };
        if let Some(flow) = &self.flow {
            let _ = write!(text, "\n   {}", visible_line(flow));
        }
        text
    }
}

impl ProgramReview {
    /// Asks about a program, if that is less work than to ask about its calls.
    pub(in crate::policy) async fn ask(
        approvals: &Approvals,
        rows: Vec<PlannedRow>,
        asker: &str,
        (owner, client): (Option<u64>, Option<Arc<dyn ServedClient>>),
        secrets: &SecretRegistry,
    ) -> ProgramReview {
        let shown = rows.get(..MOST).unwrap_or(&rows);
        // A data flow is shown before anything runs.
        let has_flow = shown.iter().any(|row| row.is_asked() && row.flow.is_some());
        let answer = match shown.iter().filter(|row| row.is_asked()).count() {
            0 => ReviewAnswer::None,
            1 if !has_flow => ReviewAnswer::None,
            _ => {
                let form = form(shown, rows.len() - shown.len(), asker, secrets);
                match approvals.put(&form, owner, client).await {
                    Ok(approver) => {
                        let until = Instant::now() + approvals.settings.ttl;
                        let calls = Mutex::new(approved(shown, approver.is_any, secrets));
                        ReviewAnswer::Approved { by: approver.by, until, calls }
                    }
                    Err(answer) => ReviewAnswer::Refused(answer),
                }
            }
        };
        let flows = shown.iter().filter_map(|row| row.flow.clone()).collect();
        ProgramReview { calls: rows.into_iter().map(|row| row.call).collect(), flows, answer }
    }

    /// Why no call is approved, if the person said no to the program or gave no answer.
    pub(in crate::policy) fn refusal(&self) -> Option<&ApprovalAnswer> {
        match &self.answer {
            ReviewAnswer::Refused(answer) => Some(answer),
            ReviewAnswer::None | ReviewAnswer::Approved { .. } => None,
        }
    }

    /// Uses the approval of a call, and says who gave it. `flow`: the data flow that is asked about, which the question
    /// must have shown.
    pub(in crate::policy) fn take(
        &self,
        binding: &Binding,
        arguments: &str,
        flow: Option<&str>,
    ) -> Option<Arc<str>> {
        if flow.is_some_and(|flow| !self.flows.iter().any(|shown| shown == flow)) {
            return None;
        }
        let ReviewAnswer::Approved { by, until, calls } = &self.answer else { return None };
        if Instant::now() >= *until {
            return None;
        }
        let call = binding.without_arguments();
        let mut calls = calls.locked();
        let arguments = canonical(arguments);
        let is_meant = |known: &ApprovedCall| known.call == call && known.arguments == arguments;
        match calls.iter().position(|known| arguments.is_some() && is_meant(known)) {
            Some(at) => drop(calls.swap_remove(at)),
            None => {
                calls.iter().find(|known| known.call == call && known.arguments.is_none())?;
            }
        }
        Some(by.clone())
    }

    /// The lines of the program that call this tool.
    pub(in crate::policy) fn lines(&self, server: &str, tool: &str) -> Vec<u32> {
        let calls = self.calls.iter();
        let here = calls.filter(|call| call.server == server && call.tool.as_deref() == Some(tool));
        let mut lines: Vec<u32> = here.map(|call| call.line).collect();
        lines.dedup();
        lines
    }
}

/// The calls that a yes to the question approves.
fn approved(rows: &[PlannedRow], is_any: bool, secrets: &SecretRegistry) -> Vec<ApprovedCall> {
    let calls = rows.iter().filter(|row| row.is_asked()).filter_map(|row| {
        let call = row.binding.clone()?;
        let is_shown = row.shown(secrets).is_some();
        match row.call.arguments.as_deref().and_then(canonical).filter(|_| is_shown) {
            Some(arguments) => Some(ApprovedCall { call, arguments: Some(arguments) }),
            None => is_any.then_some(ApprovedCall { call, arguments: None }),
        }
    });
    calls.collect()
}

fn form(rows: &[PlannedRow], further: usize, asker: &str, secrets: &SecretRegistry) -> Form {
    let mut text = "May ptc run this program? It makes these calls, where it gets to them:".to_owned();
    for (at, row) in rows.iter().enumerate() {
        let _ = write!(text, "\n{}", row.line(at + 1, secrets));
    }
    if further > 0 {
        let _ = write!(text, "\nand {further} more");
    }
    text += "\nYes counts once for each call whose arguments are shown. Other calls are asked about when they are made.";
    let _ = write!(text, "\nasked by: {asker}");
    let calls = rows.iter().map(|row| FormCall {
        name: row.name(),
        arguments: row.shown(secrets),
        digest: row.call.arguments.as_deref().map(|arguments| sha256_hex(arguments.as_bytes())),
    });
    let id = format!("{:016x}{:016x}", ptc_base::files::random(), ptc_base::files::random());
    let offers_any =
        rows.iter().any(|row| row.is_asked() && row.binding.is_some() && row.shown(secrets).is_none());
    Form {
        id: id.into(),
        subject: "program".to_owned(),
        rule: "the policy".into(),
        calls: calls.collect(),
        digest: sha256_hex(text.as_bytes()),
        text,
        offers_any,
    }
}

/// JSON with sorted keys. `None`: it cannot be read, or a key occurs twice, which servers read differently.
fn canonical(text: &str) -> Option<String> {
    let mut value = strict_json::value(text.as_bytes())?;
    value.sort_all_objects();
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_compared_whatever_the_order_of_their_keys() {
        assert_eq!(
            canonical("{\"b\": [1, {\"d\": 1, \"c\": 2}], \"a\": null}"),
            canonical("{\"a\":null,\"b\":[1,{\"c\":2,\"d\":1}]}")
        );
        assert_ne!(canonical("{\"a\": 1}"), canonical("{\"a\": 1.5}"));
        assert_eq!(canonical("{\"a\": {\"b\": 1, \"b\": 2}}"), None);
    }
}
