//! The command `ptc call`, which calls one tool without a program.

use super::OutputFormat;
use super::boot::{Need, UpstreamFlags, boot};
use super::flags::limits::LimitFlags;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::console::style::Style;
use ptc_runtime::options::RunOptions;
use ptc_runtime::tools::UpstreamTool;
use serde_json::{Map, Value, json};
use std::io::Read;

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
    /// How to write the answer: text writes a string as it is, and everything else as JSON for people
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(args: CallArgs) -> Result<Exit, Abort> {
    let Some((server, tool)) =
        args.tool.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
    else {
        return Err(Abort::usage(format!("{:?} is no SERVER/TOOL; `ptc tools` lists them", args.tool)));
    };
    let source = program(server, tool);
    let booted = boot(&args.upstreams, Need::Program(&source), 1).await?;
    let known = booted.runtime.catalog().tool(server, tool).cloned();
    let answered = match arguments(&args.arguments, known.as_deref()) {
        Err(abort) => Err(abort),
        Ok(given) => {
            let options = RunOptions {
                context: Some(json!({ "arguments": given }).to_string()),
                limits: args.limits.limits(booted.has_upstreams)?,
                want_json: true,
                source_name: "call".into(),
                ..RunOptions::default()
            };
            Ok(booted.runtime.run(source, options).await)
        }
    };
    booted.runtime.shutdown().await;
    let outcome = answered?;
    for note in &outcome.notes {
        console::complain(&format!("note: {note}"));
    }
    match outcome.result {
        Ok(answer) => {
            let value: Value = match answer.json {
                Some(Ok(json)) => serde_json::from_str(&json).unwrap_or(Value::String(json)),
                _ => Value::String(answer.text),
            };
            match (args.output, value) {
                (OutputFormat::Json, value) => console::write_json(&value)?,
                (OutputFormat::Text, Value::String(text)) => console::write_data([text.as_str(), "\n"])?,
                (OutputFormat::Text, value) => console::write_document(&value)?,
            }
            Ok(Exit::Ok)
        }
        Err(failure) => {
            let palette = Style::stderr().palette();
            // The tool's own message is enough: the user has not written the program around it.
            match &failure.value {
                Some(text) => {
                    console::complain(serde_json::from_str::<String>(text).as_deref().unwrap_or(text))
                }
                None => console::complain(&failure.text("call", palette)),
            }
            Ok(Exit::ProgramFailed)
        }
    }
}

/// A program that calls the tool and returns its value.
pub(super) fn program(server: &str, tool: &str) -> String {
    let (server, tool) = (Value::from(server), Value::from(tool));
    format!(
        "(let [r (tool/call {{:server {server} :tool {tool} :args data/arguments}})]\n  \
         (if (:ok r) (:value r) (fail (:message r))))"
    )
}

/// Reads `KEY=VALUE …`, or one JSON object.
fn arguments(words: &[String], tool: Option<&UpstreamTool>) -> Result<Map<String, Value>, Abort> {
    if let [text] = words
        && (text == "-" || text.trim_start().starts_with('{'))
    {
        let mut read = String::new();
        let text = if text == "-" {
            std::io::stdin().read_to_string(&mut read)?;
            &read
        } else {
            text
        };
        return serde_json::from_str(text)
            .map_err(|error| Abort::usage(format!("the arguments are no JSON object: {error}")));
    }
    words
        .iter()
        .map(|word| {
            let (key, text) = word
                .split_once('=')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| Abort::usage(format!("{word:?} is no KEY=VALUE, and no JSON object")))?;
            Ok((key.to_owned(), typed(text, tool.map(|tool| &tool.input_schema["properties"][key]["type"]))))
        })
        .collect()
}

/// Converts a value to the type in the schema. Without a type, it is JSON if it parses as JSON.
fn typed(text: &str, kind: Option<&Value>) -> Value {
    let is_text = kind.is_some_and(|kind| kind == "string");
    let parsed = if is_text { None } else { serde_json::from_str(text).ok() };
    parsed.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_the_schema_says() {
        let string = json!("string");
        assert_eq!(typed("5", Some(&string)), json!("5"));
        assert_eq!(typed("5", Some(&json!("integer"))), json!(5));
        assert_eq!(typed("[1, 2]", None), json!([1, 2]));
        assert_eq!(typed("plain text", None), json!("plain text"));
        let words = |words: &[&str]| {
            arguments(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), None).map(Value::from)
        };
        assert_eq!(words(&["a=1", "b=x=y"]).unwrap(), json!({ "a": 1, "b": "x=y" }));
        assert_eq!(words(&["{\"a\": [1]}"]).unwrap(), json!({ "a": [1] }));
        assert_eq!(words(&[]).unwrap(), json!({}));
        assert!(words(&["plain"]).is_err() && words(&["{1"]).is_err());
    }
}
