//! Defines the Python functions with which scripts list and read resources and prompts of servers, and parses the
//! arguments of their calls.

use ptc_calls::tools::{CallTarget, ListKind};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Length limit of a resource's address, in bytes.
const LONGEST_ADDRESS: usize = 8_192;

/// Length limit of other texts, in bytes.
const LONGEST_NAME: usize = 512;

/// A function, with its parameters: a server, what is asked for, and the arguments of a prompt.
struct RequestFunction {
    name: &'static str,
    parameters: &'static [&'static str],
    longest_subject: usize,
    target: fn(Arc<str>) -> CallTarget,
}

const FUNCTIONS: [RequestFunction; 5] = [
    list("list_resources", |_| CallTarget::List(ListKind::Resources)),
    list("list_resource_templates", |_| CallTarget::List(ListKind::Templates)),
    list("list_prompts", |_| CallTarget::List(ListKind::Prompts)),
    RequestFunction {
        name: "read_resource",
        parameters: &["server", "uri"],
        longest_subject: LONGEST_ADDRESS,
        target: CallTarget::Resource,
    },
    RequestFunction {
        name: "get_prompt",
        parameters: &["server", "name", "args"],
        longest_subject: LONGEST_NAME,
        target: CallTarget::Prompt,
    },
];

const fn list(name: &'static str, target: fn(Arc<str>) -> CallTarget) -> RequestFunction {
    RequestFunction { name, parameters: &["server"], longest_subject: 0, target }
}

/// Whether this is the name of such a function.
#[cfg(feature = "monty")]
pub(crate) fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|known| known.name == name)
}

/// A request for a list, a resource or a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The server, as the script names it.
    pub(crate) server: String,
    /// What is asked for.
    pub(crate) target: CallTarget,
    /// JSON object text: the arguments of a prompt.
    pub(crate) arguments: String,
}

/// Longest arguments of a request in bytes. They are read into a tree, which may be much larger than its text.
const LONGEST_ARGUMENTS: usize = 64 << 10;

/// Reads a call of a function with `[[positional …], {named …}]`.
///
/// # Errors
/// The message of the script's `ToolError`.
pub(crate) fn parse(function: &str, arguments: &str) -> Result<Request, String> {
    if arguments.len() > LONGEST_ARGUMENTS {
        return Err(format!("its arguments are longer than {LONGEST_ARGUMENTS} bytes"));
    }
    let known = FUNCTIONS.iter().find(|known| known.name == function);
    let RequestFunction { name, parameters, longest_subject, target } =
        known.ok_or_else(|| "there is no such function".to_owned())?;
    let (positional, mut named): (Vec<Value>, Map<String, Value>) =
        serde_json::from_str(arguments).map_err(|error| format!("its arguments cannot be read: {error}"))?;
    let signature = || format!("Signature: {name}({})", parameters.join(", "));
    if positional.len() > parameters.len() {
        let (most, given) = (parameters.len(), positional.len());
        return Err(format!("takes {most} positional arguments but {given} were given; {}", signature()));
    }
    for (parameter, value) in parameters.iter().zip(positional) {
        if named.insert((*parameter).to_owned(), value).is_some() {
            return Err(format!("got multiple values for argument '{parameter}'; {}", signature()));
        }
    }
    if let Some(unknown) = named.keys().find(|name| !parameters.contains(&name.as_str())) {
        let shown = &unknown[..unknown.floor_char_boundary(LONGEST_NAME)];
        return Err(format!("got an unexpected keyword argument '{shown}'; {}", signature()));
    }
    let mut text =
        |at: usize, longest: usize| match parameters.get(at).map(|name| (name, named.remove(*name))) {
            None => Ok(String::new()),
            Some((_, Some(Value::String(text)))) if !text.is_empty() && text.len() <= longest => Ok(text),
            Some((name, _)) => Err(format!("{name} must be a str of 1 to {longest} bytes; {}", signature())),
        };
    let (server, subject) = (text(0, LONGEST_NAME)?, text(1, *longest_subject)?);
    let arguments = match named.remove("args") {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::Object(arguments)) => Value::Object(arguments).to_string(),
        Some(_) => return Err(format!("args must be a dict; {}", signature())),
    };
    Ok(Request { server, target: target(subject.into()), arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_positional_or_named() {
        let read = |name: &str, arguments: &str| {
            parse(name, arguments).map(|request| (request.server, request.target, request.arguments))
        };
        let prompt = CallTarget::Prompt("p".into());
        let wanted = Ok(("s".to_owned(), prompt, r#"{"a":"b"}"#.to_owned()));
        assert_eq!(read("get_prompt", r#"[["s","p",{"a":"b"}],{}]"#), wanted);
        assert_eq!(read("get_prompt", r#"[["s"],{"name":"p","args":{"a":"b"}}]"#), wanted);
        let resource = CallTarget::Resource("u".into());
        assert_eq!(
            read("read_resource", r#"[["s","u"],{}]"#),
            Ok(("s".to_owned(), resource, "{}".to_owned()))
        );
        for (name, arguments, problem) in [
            ("list_resources", r#"[["s","t"],{}]"#, "takes 1 positional arguments but 2 were given"),
            ("list_resources", "[[],{}]", "server must be a str of 1 to 512 bytes"),
            ("read_resource", r#"[["s"],{"url":"u"}]"#, "got an unexpected keyword argument 'url'"),
            ("read_resource", r#"[["s","u"],{"server":"s"}]"#, "got multiple values for argument 'server'"),
            (
                "get_prompt",
                r#"[["s","p",["a"]],{}]"#,
                "args must be a dict; Signature: get_prompt(server, name, args)",
            ),
            ("read_anything", "[[],{}]", "there is no such function"),
        ] {
            let wrong = read(name, arguments).unwrap_err();
            assert!(wrong.contains(problem), "{name}{arguments}: {wrong}");
        }
    }
}
