//! The command `ptc call`, which calls one tool without a program.

mod content;
mod exact;

use super::OutputFormat;
use super::boot::{Booted, Need, UpstreamFlags, boot};
use super::flags::limits::LimitFlags;
use super::flags::source::without_mark;
use exact::Exact;
use ptc_calls::asker::CallOrigin;
use ptc_calls::limits::Limits;
use ptc_calls::outcome::{CallFault, Outcome, RenderedValue};
use ptc_calls::tools::{Notation, UpstreamTool, text};
use ptc_engine::broker::{CallError, CallPayload, PayloadValue, ToolCall, looks_like_json};
use ptc_engine::guest::{AsyncRun, interrupted};
use ptc_server::console::progress::ToolLine;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_upstream::UpstreamState;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// Arguments of `ptc call`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc call fs/list_directory path=/tmp
  ptc call github/search_issues '{\"query\": \"is:open\", \"perPage\": 3}'
  ptc call --stdio 'uvx mcp-server-time' server/get_current_time timezone=Europe/Berlin

A value is what the tool's schema says it is: text for a string, JSON otherwise. Exit codes: 0 the tool answered, 1 it
failed, 2 usage or configuration error, 3 its server did not start.")]
pub struct CallArgs {
    /// The tool
    #[arg(value_name = "SERVER/TOOL")]
    tool: String,
    /// Its arguments, or one JSON object (`-` reads it from standard input)
    #[arg(value_name = "KEY=VALUE | JSON | -")]
    arguments: Vec<String>,
    /// How to write the answer: text writes a string as it is, and everything else as JSON for people (further content
    /// next to JSON goes to standard error)
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    /// Write images, sounds and other binary data of the result to this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// What came of the call. It passes through the run as JSON, so that the end of the run redacts it.
#[derive(Debug, Deserialize, Serialize)]
enum Called {
    /// The tool answered. Without further content, `blocks` is empty.
    Answered { value: Exact, is_text: bool, blocks: Vec<Value> },
    /// The tool, or its server, failed.
    Failed { reason: String, message: String },
    /// The call was not sent.
    Wrong { message: String, hints: Vec<String> },
}

/// Runs the command.
pub async fn run(args: CallArgs) -> Result<Exit, Abort> {
    let (server, tool) = names(&args.tool)?;
    let given = Given::read(&args.arguments)?;
    let booted = boot(&args.upstreams, Need::StateOf(server), 1).await?;
    let called = called(&booted, &args, server, tool, given).await;
    booted.runtime.shutdown().await;
    match called? {
        Called::Answered { value, is_text, blocks } => {
            let lines = content::lines(&blocks, args.save.as_deref())?;
            match args.output {
                OutputFormat::Json if blocks.is_empty() => console::write_json(&one_line(&value))?,
                OutputFormat::Json => {
                    console::write_json(&Answer { value: one_line(&value), content: blocks })?
                }
                OutputFormat::Text => show(&value, is_text, &blocks, lines)?,
            }
            Ok(Exit::Ok)
        }
        Called::Failed { message, .. } => {
            console::complain(&message);
            Ok(Exit::ProgramFailed)
        }
        Called::Wrong { message, hints } => {
            let message = std::iter::once(message).chain(hints).collect::<Vec<_>>().join("\n  ");
            Err(Abort::usage(message))
        }
    }
}

/// An answer with further content, for programs.
#[derive(Serialize)]
struct Answer {
    value: Exact,
    content: Vec<Value>,
}

/// A value on one line.
fn one_line(value: &Exact) -> Exact {
    // JSON without the blanks between its tokens is JSON.
    exact::read(&exact::compact(value)).unwrap_or_default()
}

/// Shows an answer to people. Of content with a JSON value, standard output has the value alone, so that a program can
/// read it.
fn show(value: &Exact, is_text: bool, blocks: &[Value], lines: Vec<String>) -> Result<(), Abort> {
    match exact::as_text(value) {
        // The value is one of the lines.
        Some(_) if is_text && !lines.is_empty() => {}
        None if value.get() == "null" && !lines.is_empty() => {}
        Some(text) => console::write_data([text.as_str(), "\n"])?,
        None => {
            console::write_document(&exact::indented(value))?;
            let read = blocks.iter().position(|block| is_text && block["type"] == "text");
            let rest = lines.iter().enumerate().filter(|(at, _)| read != Some(*at));
            rest.for_each(|(_, line)| console::complain(line));
            return Ok(());
        }
    }
    lines.iter().try_for_each(|line| console::write_data([line.as_str(), "\n"]))
}

/// Reads `SERVER/TOOL`.
fn names(word: &str) -> Result<(&str, &str), Abort> {
    if let Some((server, tool)) =
        word.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
    {
        return Ok((server, tool));
    }
    let meant =
        match word.split_once('.').or(word.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"))) {
            Some((server, tool)) => format!("did you mean {server}/{tool}? `ptc tools` lists them"),
            None => format!("`ptc tools {word}` lists the tools of a server"),
        };
    Err(Abort::usage(format!("{word:?} is no SERVER/TOOL; {meant}")))
}

/// Calls the tool in a run of its own.
async fn called(
    booted: &Booted,
    args: &CallArgs,
    server: &str,
    tool: &str,
    given: Given,
) -> Result<Called, Abort> {
    if let Some(why) = down(booted, server) {
        return Err(did_not_start(&args.upstreams, server, &why));
    }
    let known = booted.runtime.catalog().tool(server, tool).cloned();
    let arguments = given.typed(known.as_deref());
    // One call has the time of a call; there is no program around it.
    let limits = args.limits.over(Limits { timeout_ms: u64::MAX, ..Limits::with_upstreams() })?;
    let (broker, most) = (booted.runtime.broker().clone(), limits);
    let call =
        ToolCall { server: server.to_owned(), tool: tool.to_owned(), arguments, notation: Notation::Json };
    let line = ToolLine::on_terminal();
    let listener = line.clone();
    let run = AsyncRun::new(interrupted, move |account| async move {
        account.set_origin(CallOrigin::Direct);
        if let Some(listener) = listener {
            account.set_progress_listener(listener);
        }
        ending(&match broker.call(&account, call.clone()).await {
            Ok(payload) => answered(&payload),
            Err(error) => not_answered(error, &call, known.as_deref(), &most),
        })
    });
    let outcome = booted.runtime.run_async(limits, run).await;
    if let Some(line) = line {
        line.finish();
    }
    let palette = Style::stderr().palette();
    let answer = outcome
        .result
        .map_err(|failure| Abort { exit: Exit::ProgramFailed, message: failure.text("call", palette) })?;
    let json = answer.json.and_then(Result::ok).unwrap_or_default();
    let called = serde_json::from_str(&json).map_err(std::io::Error::from)?;
    if matches!(called, Called::Answered { .. }) {
        outcome.notes.iter().for_each(|note| console::complain(&format!("note: {note}")));
    }
    match (&called, down(booted, server)) {
        (Called::Failed { reason, .. }, Some(why)) if reason == CallFault::UpstreamUnavailable.name() => {
            Err(did_not_start(&args.upstreams, server, &why))
        }
        _ => Ok(called),
    }
}

/// Why a server could not start, if that is its state.
fn down(booted: &Booted, server: &str) -> Option<String> {
    let servers = booted.runtime.servers();
    let status = servers.iter().find(|status| *status.name == *server)?;
    (status.state == UpstreamState::Failed).then(|| status.error.as_deref().unwrap_or_default().to_owned())
}

fn did_not_start(flags: &UpstreamFlags, server: &str, why: &str) -> Abort {
    let remedy = flags.remedy(server, why).map(|remedy| format!("\n  {remedy}")).unwrap_or_default();
    Abort { exit: Exit::Upstream, message: format!("{server} did not start: {why}{remedy}") }
}

fn ending(called: &Called) -> Outcome {
    // All keys are strings, so this cannot fail.
    let json = serde_json::to_string(called).unwrap_or_default();
    Outcome::with_result(Ok(RenderedValue {
        json: Some(Ok(json)),
        ..RenderedValue::from_text(String::new())
    }))
}

fn answered(payload: &CallPayload) -> Called {
    let value = match payload.value() {
        PayloadValue::Json(json) => serde_json::from_slice(json).unwrap_or_default(),
        PayloadValue::Text(text) => {
            let json = if looks_like_json(text) { exact::read(text) } else { None };
            json.unwrap_or_else(|| exact::text(text))
        }
        PayloadValue::Nothing => Exact::default(),
    };
    match payload.failure() {
        None => {
            let is_text = matches!(payload.value(), PayloadValue::Text(_));
            let blocks = payload.blocks().and_then(|blocks| serde_json::from_slice(blocks).ok());
            Called::Answered { value, is_text, blocks: blocks.unwrap_or_default() }
        }
        Some((reason, message)) => {
            // A tool may say more as data than in words.
            let more = match payload.value() {
                PayloadValue::Json(_) => format!("\n{}", exact::compact(&value)),
                PayloadValue::Text(_) | PayloadValue::Nothing => String::new(),
            };
            Called::Failed { reason: reason.name().to_owned(), message: format!("{message}{more}") }
        }
    }
}

fn not_answered(error: CallError, call: &ToolCall, tool: Option<&UpstreamTool>, limits: &Limits) -> Called {
    let ToolCall { server, tool: name, .. } = call;
    match error {
        CallError::Wrong(wrong) => {
            let message = match wrong.problem(server, name) {
                Some(problem) => format!("{server}/{name}: {problem}"),
                None => wrong.message.clone(),
            };
            let mut hints: Vec<String> = wrong.suggestions().map(str::to_owned).collect();
            hints.extend(tool.map(|tool| format!("usage: ptc call {server}/{name} {}", usage(tool))));
            Called::Wrong { message, hints }
        }
        CallError::World(fault) => {
            let flag = match fault.reason {
                CallFault::ResponseTooLarge if fault.message.contains("max_upstream_response_bytes") => {
                    "; --max-upstream-response-bytes sets the limit"
                }
                _ => "",
            };
            Called::Failed {
                reason: fault.reason.name().to_owned(),
                message: format!("{}{flag}", fault.message),
            }
        }
        CallError::OverMemory { bytes } => {
            let most = limits.memory_bytes;
            let message =
                format!("the answer has {bytes} bytes, more than fit into {most}; --memory sets the limit");
            Called::Failed { reason: CallFault::ResponseTooLarge.name().to_owned(), message }
        }
    }
}

/// The arguments of a tool as this command takes them: `KEY=type`, optional ones in brackets.
fn usage(tool: &UpstreamTool) -> String {
    let required: Vec<&str> =
        tool.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = tool.input_schema["properties"].as_object().into_iter().flatten();
    let shown = properties.map(|(key, schema)| {
        let kind = schema["type"].as_str().unwrap_or("value");
        let word = text::one_line(&format!("{key}={kind}"), SHOWN);
        if required.contains(&key.as_str()) { word } else { format!("[{word}]") }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Characters of one argument in a usage line.
const SHOWN: usize = 100;

/// The arguments as they were typed. Their numbers keep all digits.
#[derive(Debug)]
enum Given {
    /// The text of a JSON object.
    Object(String),
    Words(Vec<(String, String)>),
}

impl Given {
    /// Reads `KEY=VALUE …`, or one JSON object.
    fn read(words: &[String]) -> Result<Given, Abort> {
        if let [text] = words
            && (text == "-" || text.trim_start().starts_with('{'))
        {
            let mut read = String::new();
            let text = if text == "-" {
                std::io::stdin().read_to_string(&mut read)?;
                without_mark(read)
            } else {
                text.clone()
            };
            serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&text)
                .map_err(|error| Abort::usage(format!("the arguments are no JSON object: {error}")))?;
            return Ok(Given::Object(text));
        }
        let pair = |word: &String| {
            let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
            let (key, text) =
                pair.ok_or_else(|| Abort::usage(format!("{word:?} is no KEY=VALUE, and no JSON object")))?;
            Ok((key.to_owned(), text.to_owned()))
        };
        words.iter().map(pair).collect::<Result<_, _>>().map(Given::Words)
    }

    /// The arguments as JSON on one line, with the types of the schema.
    fn typed(self, tool: Option<&UpstreamTool>) -> String {
        match self {
            // Strings of JSON have no line breaks.
            Given::Object(text) => text.trim().replace(['\n', '\r'], " "),
            Given::Words(words) => {
                let mut members: Vec<(String, Exact)> = Vec::with_capacity(words.len());
                for (key, text) in words {
                    let value = typed(&text, tool.map(|tool| &tool.input_schema["properties"][&key]["type"]));
                    match members.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, last)) => *last = value,
                        None => members.push((key, value)),
                    }
                }
                let members = members.iter().map(|(key, value)| format!("{}:{value}", Value::from(&**key)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Converts a value to the type in the schema. Without a type, it is JSON if it parses as JSON.
fn typed(text: &str, kind: Option<&Value>) -> Exact {
    let is_text = kind.is_some_and(|kind| kind == "string");
    let parsed = if is_text { None } else { exact::read(text) };
    parsed.unwrap_or_else(|| exact::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_what_the_schema_says() {
        let string = json!("string");
        assert_eq!(typed("5", Some(&string)).get(), "\"5\"");
        assert_eq!(typed("5", Some(&json!("integer"))).get(), "5");
        assert_eq!(typed("[1, 2]", None).get(), "[1, 2]");
        assert_eq!(typed("plain text", None).get(), "\"plain text\"");
        let words = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Given::read(&words).map(|given| given.typed(None))
        };
        assert_eq!(words(&["a=1", "b=x=y", "a=2"]).unwrap(), "{\"a\":2,\"b\":\"x=y\"}");
        assert_eq!(words(&["{\"a\":\n[1]}\n"]).unwrap(), "{\"a\": [1]}");
        assert_eq!(words(&["a=18446744073709551616"]).unwrap(), "{\"a\":18446744073709551616}");
        assert_eq!(words(&[]).unwrap(), "{}");
        assert!(words(&["plain"]).is_err() && words(&["{1"]).is_err());
    }
}
