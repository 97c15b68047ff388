//! Parses the arguments of the Lisp forms for resources and prompts of servers, such as `resource/read` and
//! `prompt/get`.

use super::parse::{ParsedCall, check_args};
use super::{LONGEST_NAME, fault, shown};
use ptc_calls::tools::call_messages::configured;
use ptc_calls::tools::suggest::nearest;
use ptc_calls::tools::{CallTarget, ListKind};
use ptc_vm::builtins::{self, ServerForm};
use ptc_vm::{Context, Fault, Value};
use std::sync::Arc;

/// Length limit of a resource's address, in bytes.
const LONGEST_ADDRESS: usize = 8_192;

/// Reads a form. The second part of the result is the argument map of a prompt, or nil. `servers` are the
/// configured names, for messages.
pub(super) fn parse_request(
    cx: &mut Context,
    form: ServerForm,
    arguments: &[Value],
    servers: &[&str],
) -> Result<(ParsedCall, Value), Box<Fault>> {
    let keys: &[&str] = match form {
        ServerForm::ListResources | ServerForm::ListTemplates | ServerForm::ListPrompts => &["server"],
        ServerForm::ReadResource => &["server", "uri"],
        ServerForm::GetPrompt => &["server", "name", "args"],
    };
    let map = match arguments.first() {
        Some(Value::Map(map)) => map,
        other => {
            let text = shown(cx, other.unwrap_or(&Value::Nil))?;
            return Err(wrong(form, format_args!("requires a map, got {text}")));
        }
    };
    let mut given: [Value; 3] = Default::default();
    for entry in map.entries() {
        let known = cx.name(entry.key).and_then(|name| keys.iter().position(|key| *key == name));
        match known {
            Some(at) => given[at] = entry.value.clone(),
            None => {
                let text = shown(cx, entry.key)?;
                let fault = wrong(form, format_args!("got unknown key {text}"));
                return Err(match nearest(text.trim_matches([':', '"']), keys) {
                    Some(near) => fault.hint(format!("Did you mean :{near}?")),
                    None => fault,
                });
            }
        }
    }
    let [server, subject, args] = given;
    let Some(server) = text_of(&server, LONGEST_NAME) else {
        let text = shown(cx, &server)?;
        let names = configured(servers);
        return Err(wrong(form, format_args!("requires :server (string), got {text}.{names}")));
    };
    let subject = |cx: &mut Context, key: &str, longest: usize| match text_of(&subject, longest) {
        Some(text) => Ok(Arc::<str>::from(text)),
        None => {
            let text = shown(cx, &subject)?;
            Err(wrong(form, format_args!("on upstream '{server}' requires :{key} (string), got {text}")))
        }
    };
    let target = match form {
        ServerForm::ListResources => CallTarget::List(ListKind::Resources),
        ServerForm::ListTemplates => CallTarget::List(ListKind::Templates),
        ServerForm::ListPrompts => CallTarget::List(ListKind::Prompts),
        ServerForm::ReadResource => CallTarget::Resource(subject(cx, "uri", LONGEST_ADDRESS)?),
        ServerForm::GetPrompt => CallTarget::Prompt(subject(cx, "name", LONGEST_NAME)?),
    };
    let call = ParsedCall { server: server.to_owned(), target, keeps_large: false };
    let args = check_args(cx, &call, args)?;
    Ok((call, args))
}

/// A text that is not empty and not too long.
fn text_of(value: &Value, longest: usize) -> Option<&str> {
    match value {
        Value::Str(text) => text.short(longest).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// The fault about a malformed form, with its syntax.
fn wrong(form: ServerForm, what: std::fmt::Arguments<'_>) -> Box<Fault> {
    let name = form.name();
    let fault = fault(format_args!("{name} {what}"));
    match builtins::lookup(None, name) {
        Some(builtin) => fault.hint(builtin.info().usage),
        None => fault,
    }
}
