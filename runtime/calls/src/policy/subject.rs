//! Describes a tool call to the policy that decides about it: server, tool, arguments, caller, and where its data
//! comes from.

use super::condition::Arguments;
use super::effects::ToolEffect;
use super::flows::CallOrigins;
use crate::run::client::asker::CallAsker;
use crate::tools::{CallTarget, HOST, UpstreamTool};
use ptc_vm::Span;
use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// A call that is to be decided about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'c> {
    /// Configured name of the server.
    pub server: &'c str,
    /// The target of the call.
    pub target: &'c CallTarget,
    /// The tool, or what stands for it.
    pub tool: &'c UpstreamTool,
    /// JSON object text.
    pub arguments: &'c str,
    /// Where it stands in the text of its program; `None`: it does not stand there.
    pub place: Option<Span>,
    /// Where its arguments come from, if its run has labels on values.
    pub origins: Option<&'c CallOrigins>,
    /// Who makes it.
    pub asker: CallAsker<'c>,
}

impl<'c> Subject<'c> {
    /// A call that stands in no program.
    pub fn new(
        server: &'c str,
        target: &'c CallTarget,
        tool: &'c UpstreamTool,
        arguments: &'c str,
        asker: CallAsker<'c>,
    ) -> Subject<'c> {
        Subject { server, target, tool, arguments, place: None, origins: None, asker }
    }

    /// The text of [`Subject::named_arguments`], and the names of arguments that the server adds.
    pub(super) fn read<'a>(&self, text: &'a str) -> Arguments<'a>
    where
        'c: 'a,
    {
        let hidden = match self.target {
            CallTarget::Tool(_) => self.tool.hidden_arguments(),
            _ => Vec::new(),
        };
        Arguments::new(text).with_hidden(hidden)
    }

    /// The arguments of a request as rules see them: `/uri` of a resource; `/name` and `/arguments` of a prompt.
    pub(super) fn named_arguments(&self) -> Cow<'c, str> {
        match self.target {
            CallTarget::Tool(_) | CallTarget::Protocol(_) | CallTarget::Task(..) => {
                Cow::Borrowed(self.arguments)
            }
            CallTarget::List(_) => Cow::Borrowed("{}"),
            CallTarget::Resource(uri) => Cow::Owned(json!({ "uri": uri }).to_string()),
            CallTarget::Prompt(name) => {
                let name = Json::from(&**name);
                let arguments = if self.arguments.is_empty() { "{}" } else { self.arguments };
                Cow::Owned(format!("{{\"name\":{name},\"arguments\":{arguments}}}"))
            }
        }
    }
}

/// The effect that a tool declares, given whether the annotations of its server count. Those of host tools always do:
/// they are part of this program.
pub(super) fn declared<'c>(
    server: &'c str,
    target: &'c CallTarget,
    tool: &'c UpstreamTool,
) -> impl FnOnce(bool) -> ToolEffect + 'c {
    move |is_trusted| ToolEffect::of_call(target, tool, is_trusted || server == HOST)
}
