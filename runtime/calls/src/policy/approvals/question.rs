//! Composes the question by which a person approves a tool call, and binds the answer to exactly that call: tool,
//! arguments, version of the policy.

use crate::tools::visible::{literal, shown_name, visible};
use crate::tools::{CallTarget, UpstreamTool};
use ptc_base::digest::{hex, sha256, sha256_hex};
use ptc_base::secrets::SecretRegistry;
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes of arguments that are shown in full.
const SHOWN: usize = 2_048;

/// The same, of each of several calls.
const SHOWN_OF_MANY: usize = 300;

/// Bytes of a server's description that are shown.
const DESCRIPTION: usize = 300;

/// For how long an answer counts, the narrowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::policy) enum Remember {
    /// For the call.
    #[default]
    Call,
    /// For calls of the run with the same arguments.
    Args,
    /// For calls of the run of the same tool.
    Tool,
    /// For all calls of the run that the rule asks about.
    Run,
    /// For all calls of the session that the rule asks about.
    Session,
}

/// The rule of a policy that asks about a call. Titles do not tell rules apart: two files may have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) struct AskRule {
    pub(in crate::policy) remember: Remember,
    /// Index of the file.
    pub(in crate::policy) file: usize,
    /// Index of the rule in its file; `None`: the defaults.
    pub(in crate::policy) rule: Option<usize>,
}

/// What an answer is bound to, next to its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Binding {
    server: Arc<str>,
    /// A hash of what is configured under this name.
    configured: Option<u64>,
    /// A tool; otherwise a list, a resource or a prompt.
    is_tool: bool,
    label: Arc<str>,
    /// SHA-256 of the arguments as they are sent, with the address of a resource or the name of a prompt.
    arguments: [u8; 32],
    /// SHA-256 of the text of the tool.
    tool: [u8; 32],
    /// Version of the policy.
    policy: u64,
}

impl Binding {
    pub(crate) fn new(
        (server, configured): (&str, Option<u64>),
        target: &CallTarget,
        tool: &UpstreamTool,
        arguments: &str,
        policy: u64,
    ) -> Binding {
        let subject = target.subject().unwrap_or_default();
        Binding {
            server: server.into(),
            configured,
            is_tool: matches!(target, CallTarget::Tool(_)),
            label: target.shared_label(),
            // The length keeps the two apart.
            arguments: sha256(format!("{}\n{subject}\n{arguments}", subject.len()).as_bytes()),
            tool: sha256(&serde_json::to_vec(tool).unwrap_or_default()),
            policy,
        }
    }

    /// Version of the policy.
    pub(super) fn policy(&self) -> u64 {
        self.policy
    }

    /// True if the other call is of the same tool or server by name, with another text or configuration behind it.
    pub(super) fn is_replaced_by(&self, other: &Binding) -> bool {
        let is_same_tool = self.is_tool == other.is_tool && self.label == other.label;
        self.server == other.server
            && (self.configured != other.configured || (is_same_tool && self.tool != other.tool))
    }

    /// The same call, whatever its arguments.
    pub(in crate::policy) fn without_arguments(&self) -> Binding {
        Binding { arguments: [0; 32], ..self.clone() }
    }
}

/// A question about one call.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Unpredictable.
    pub(super) id: Arc<str>,
    pub(super) binding: Binding,
    /// The title of the rule that asks.
    pub(super) rule: Arc<str>,
    pub(super) asks: AskRule,
    effect: &'static str,
    /// Who makes the call.
    asker: String,
    /// The lines of the program that call the tool, if they are known.
    lines: Vec<u32>,
    /// The server's text about the tool.
    description: Option<String>,
    /// Without secrets.
    arguments: String,
    /// Size of the arguments as they are sent.
    size: usize,
    /// SHA-256 of the arguments as they are sent.
    pub(super) arguments_digest: String,
}

/// What questions that are alike have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuestionKind {
    /// Without the arguments.
    call: Binding,
    asks: AskRule,
    effect: &'static str,
    asker: String,
}

/// What is known about a call that is to be asked about.
pub(crate) struct AskedCall<'c> {
    pub(crate) binding: Binding,
    pub(crate) rule: Arc<str>,
    pub(in crate::policy) asks: AskRule,
    pub(crate) effect: &'static str,
    pub(crate) asker: String,
    /// The lines of the program that call the tool, if they are known.
    pub(crate) lines: Vec<u32>,
    pub(crate) target: &'c CallTarget,
    pub(crate) tool: &'c UpstreamTool,
    pub(crate) arguments: &'c str,
}

impl Question {
    pub(crate) fn new(call: AskedCall<'_>, secrets: &SecretRegistry) -> Question {
        let AskedCall { binding, rule, asks, effect, asker, lines, target, tool, arguments } = call;
        let id = format!("{:016x}{:016x}", ptc_base::files::random(), ptc_base::files::random());
        let mut shown = secrets.scrub(arguments).into_owned();
        if let CallTarget::Resource(subject) | CallTarget::Prompt(subject) = target {
            shown = format!("{} {shown}", literal(&secrets.scrub(subject)));
        }
        let description = tool.about().map(|text| secrets.scrub(text).into_owned());
        let (size, arguments_digest) = (arguments.len(), sha256_hex(arguments.as_bytes()));
        Question {
            id: id.into(),
            binding,
            rule,
            asks,
            effect,
            asker,
            lines,
            description,
            arguments: shown,
            size,
            arguments_digest,
        }
    }

    /// What it has in common with questions that are alike.
    pub(super) fn kind(&self) -> QuestionKind {
        let (call, asker) = (self.binding.without_arguments(), self.asker.clone());
        QuestionKind { call, asks: self.asks, effect: self.effect, asker }
    }

    /// `server/tool`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", shown_name(&self.binding.server), shown_name(&self.binding.label))
    }

    /// What an answer in a file has to repeat.
    pub(super) fn digest(&self) -> String {
        hex(&self.binding.arguments)
    }

    /// The arguments in full, or their beginning with size and digest.
    pub(super) fn shown_arguments(&self, most: usize) -> String {
        let mut end = most.min(self.arguments.len());
        while !self.arguments.is_char_boundary(end) {
            end -= 1;
        }
        let text = visible(&self.arguments[..end]).replace('\n', " ");
        if end == self.arguments.len() {
            return text;
        }
        format!("{text} … ({} bytes in all, SHA-256 {})", self.size, self.arguments_digest)
    }
}

/// The text of a question about calls that are alike.
pub(super) fn text(questions: &[&Question]) -> String {
    let Some(first) = questions.first() else { return String::new() };
    let name = first.name();
    let mut text = match questions.len() {
        1 => format!("May ptc call {name} ({})?\narguments: {}", first.effect, first.shown_arguments(SHOWN)),
        many => {
            let mut text = format!("May ptc make {many} calls of {name} ({})?", first.effect);
            for (at, question) in questions.iter().enumerate() {
                let _ = write!(text, "\n{}. {}", at + 1, question.shown_arguments(SHOWN_OF_MANY));
            }
            text
        }
    };
    let lines: Vec<String> = first.lines.iter().map(u32::to_string).collect();
    match lines.as_slice() {
        [] => {}
        [line] => text += &format!("\nline of the program: {line}"),
        lines => text += &format!("\nlines of the program: {}", lines.join(", ")),
    }
    let _ = write!(text, "\nasked by: {}\nrule: {}", first.asker, first.rule);
    if let Some(description) = &first.description {
        let cut: String = description.chars().take(DESCRIPTION).collect();
        let _ = write!(text, "\nthe server says of it: {}", literal(&cut));
    }
    let more = match first.asks.remember {
        Remember::Call => None,
        Remember::Args => Some("for calls of this run with the same arguments"),
        Remember::Tool => Some("for all calls of this tool in this run"),
        Remember::Run => Some("for all calls of this rule in this run"),
        Remember::Session => Some("for all calls of this rule in this session"),
    };
    if let Some(more) = more {
        let _ = write!(text, "\nThe answer counts {more}.");
    }
    text
}
