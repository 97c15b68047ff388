//! Parses the arguments of `tool/call` and `tool/call!` into server, tool and argument map, and rejects malformed calls
//! with the documented errors.

use super::request::parse_request;
use super::{LONGEST_NAME, fault, shown};
use ptc_calls::tools::CallTarget;
use ptc_calls::tools::call_messages::{configured, rejected};
use ptc_calls::tools::suggest::nearest;
use ptc_vm::builtins::{HostFunction, ToolForm};
use ptc_vm::{Context, Fault, Value};

/// A well-formed call. Whether its server and tool exist is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct ParsedCall {
    pub(crate) server: String,
    pub(crate) target: CallTarget,
    /// A result that is too large is to be spilled.
    pub(crate) keeps_large: bool,
}

/// The keys of a call.
#[derive(Clone, Copy, PartialEq)]
enum Key {
    Server,
    Tool,
    Args,
    OnLarge,
}

/// Reads a call of a server. The second part of the result is the argument map, or nil for none. `servers` are the
/// configured names, for messages.
pub(crate) fn parse(
    cx: &mut Context,
    function: HostFunction,
    arguments: &[Value],
    servers: &[&str],
) -> Result<(ParsedCall, Value), Box<Fault>> {
    let form = match function {
        HostFunction::Ask(form) => return parse_request(cx, form, arguments, servers),
        HostFunction::ToolCallValue => ToolForm::CallValue,
        _ => ToolForm::Call,
    };
    let name = form.qualified_name();
    match arguments {
        [Value::Map(map)] => {
            let entries = map.entries().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
            read_entries(cx, form, entries, servers)
        }
        [Value::Symbol(symbol), rest @ ..] if rest.len() < 2 => {
            let text = cx.text(*symbol).to_owned();
            let parts = text.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
            let Some((server, tool)) = parts else {
                return Err(fault(format_args!(
                    "{name} symbol form requires a qualified symbol like 'server/tool"
                ))
                .hint(format!("Write ({name} 'server/{text} {{…}}).")));
            };
            let call = ParsedCall {
                server: server.to_owned(),
                target: CallTarget::Tool(tool.into()),
                keeps_large: false,
            };
            let args = check_args(cx, &call, rest.first().cloned().unwrap_or_default())?;
            Ok((call, args))
        }
        [Value::Keyword(_), ..] if arguments.len().is_multiple_of(2) => {
            let pairs = arguments.chunks_exact(2);
            let entries = pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect();
            read_entries(cx, form, entries, servers)
        }
        [Value::Symbol(_), _, rest @ ..] => {
            let got = rest.len() + 1;
            Err(fault(format_args!("{name} takes one map after the name of a tool, got {got} values"))
                .hint(format!("Write ({name} 'server/tool {{…}}).")))
        }
        [] => Err(fault(format_args!("{name} requires a map, got no arguments")).hint(syntax(form))),
        [value, rest @ ..] => {
            let text = shown(cx, value)?;
            let hint = positional(form, value, rest.first());
            Err(fault(format_args!("{name} requires a map, got {text}")).hint(hint))
        }
    }
}

/// The syntax of a call.
pub(super) fn syntax(form: ToolForm) -> String {
    format!("({} {{:server \"name\" :tool \"name\" :args {{…}}}})", form.qualified_name())
}

/// The likely meaning of a call with names instead of a map.
fn positional(form: ToolForm, first: &Value, second: Option<&Value>) -> String {
    let called = form.qualified_name();
    let name = |value: &Value| match value {
        Value::Str(text) => text.short(LONGEST_NAME).map(str::to_owned),
        _ => None,
    };
    let parts = name(first).map(|text| (text, second.and_then(name)));
    match parts {
        Some((text, _)) if text.split('/').filter(|part| !part.is_empty()).count() == 2 => {
            format!("Write ({called} '{text} {{…}}).")
        }
        Some((server, Some(tool))) => {
            format!("Write ({called} {{:server {server:?} :tool {tool:?} :args {{…}}}}).")
        }
        _ => syntax(form),
    }
}

/// Names of the argument map in other clients.
const ARGS: &[&str] = &[":arguments", ":params", ":parameters", ":input", ":arg", ":kwargs", ":options"];

fn read_entries(
    cx: &mut Context,
    form: ToolForm,
    entries: Vec<(Value, Value)>,
    servers: &[&str],
) -> Result<(ParsedCall, Value), Box<Fault>> {
    let name = form.qualified_name();
    let mut found: [Option<Value>; 4] = [None, None, None, None];
    for (key, value) in entries {
        let known = match cx.name(&key) {
            Some("server") => Some(Key::Server),
            Some("tool") => Some(Key::Tool),
            Some("args") => Some(Key::Args),
            Some("on-large" | "on_large") => Some(Key::OnLarge),
            _ => None,
        };
        let Some(known) = known else {
            let text = shown(cx, &key)?;
            let fault = fault(format!("{name} got unknown key {text}"));
            if ARGS.contains(&text.replace('"', ":").trim_end_matches(':')) {
                return Err(fault.hint(format!("The arguments of the tool go under :args: {}", syntax(form))));
            }
            return Err(
                match nearest(text.trim_matches([':', '"']), &["server", "tool", "args", "on-large"]) {
                    Some(near) => fault.hint(format!("Did you mean :{near}?")),
                    None => fault.hint(syntax(form)),
                },
            );
        };
        if found[known as usize].replace(value).is_some() {
            let text = shown(cx, &key)?;
            return Err(fault(format!("{name} got duplicate key {text}")));
        }
    }
    let [server, tool, args, on_large] = found.map(Option::unwrap_or_default);
    let Some(server) = non_empty(&server) else {
        let text = shown(cx, &server)?;
        return Err(fault(format!("{name} requires :server (string), got {text}.{}", configured(servers))));
    };
    let Some(tool) = non_empty(&tool) else {
        let text = shown(cx, &tool)?;
        let message = format!("{name} on upstream '{server}' requires :tool (string), got {text}");
        return Err(fault(message));
    };
    let keeps_large = match cx.name(&on_large) {
        Some("spill") => true,
        _ if on_large.is_nil() => false,
        _ => {
            let text = shown(cx, &on_large)?;
            return Err(fault(format!("{name} :on-large must be :spill, got {text}")));
        }
    };
    let call = ParsedCall { server, target: CallTarget::Tool(tool.into()), keeps_large };
    let args = check_args(cx, &call, args)?;
    Ok((call, args))
}

fn non_empty(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) => text.short(LONGEST_NAME).filter(|text| !text.is_empty()).map(str::to_owned),
        _ => None,
    }
}

pub(super) fn check_args(cx: &mut Context, call: &ParsedCall, args: Value) -> Result<Value, Box<Fault>> {
    match args {
        Value::Nil | Value::Map(_) => Ok(args),
        other => {
            let text = shown(cx, &other)?;
            Err(fault(rejected(
                &call.server,
                call.target.label(),
                &format!(":args must be a map, got {text}"),
            )))
        }
    }
}
