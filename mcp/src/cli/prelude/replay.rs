//! Stand-in MCP servers for `ptc prelude test --replay`, which answer tool calls from a file of recorded answers
//! instead of the real servers.

use crate::sample_server::{self, SampleServer};
use ptc_server::console::{Abort, Exit};
use ptc_server::redact::{self, Form, shapes};
use ptc_upstream::config::ServerEntry;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of the hidden `ptc replay-server`.
#[derive(Debug, clap::Args)]
pub struct ReplayServerArgs {
    /// The file
    file: PathBuf,
    /// Which of its servers
    name: String,
}

/// Runs one server of a file.
pub fn serve(args: &ReplayServerArgs) -> Result<Exit, Abort> {
    let tools = read(&args.file)?.remove(&args.name).unwrap_or_default();
    let server = Recorded { name: args.name.clone(), tools };
    sample_server::serve(server, std::io::stdin().lock(), redact::stdout(Form::Json(&shapes::MCP)))?;
    Ok(Exit::Ok)
}

/// The servers of a file as configuration entries.
pub(super) fn recorded_servers(file: &Path) -> Result<Vec<ServerEntry>, Abort> {
    let path = file.display().to_string();
    let entry = |name: &String| {
        ServerEntry::own_binary(name, "recorded answers", &["replay-server", &path, name])
            .map_err(Abort::from)
    };
    read(file)?.keys().map(entry).collect()
}

fn read(file: &Path) -> Result<Map<String, Value>, Abort> {
    let name = file.display();
    let text = ptc_base::files::read_text(file)
        .map_err(|error| Abort::usage(format!("cannot read {name}: {error}")))?;
    let servers: Value =
        serde_json::from_str(&text).map_err(|error| Abort::usage(format!("{name}: {error}")))?;
    match servers {
        Value::Object(servers) => Ok(servers),
        _ => Err(Abort::usage(format!("{name}: expected an object of servers"))),
    }
}

#[derive(Clone)]
struct Recorded {
    name: String,
    /// For each tool, its answers as a list.
    tools: Value,
}

impl SampleServer for Recorded {
    const CALL_TIME: Duration = Duration::ZERO;

    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> Value {
        let names = self.tools.as_object().into_iter().flatten();
        let tool =
            |(name, _): (&String, &Value)| json!({ "name": name, "inputSchema": { "type": "object" } });
        names.map(tool).collect()
    }

    fn call(&self, name: &str, arguments: &Value) -> Result<Value, String> {
        let answers =
            self.tools.get(name).and_then(Value::as_array).ok_or_else(|| format!("unknown tool {name}"))?;
        let fits = |answer: &&Value| answer.get("args").is_none_or(|args| args == arguments);
        let answer = answers
            .iter()
            .find(fits)
            .ok_or_else(|| format!("no recorded answer of {name} for {arguments}"))?;
        match (answer.get("result"), answer.get("error").and_then(Value::as_str)) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => Err(error.to_owned()),
            (None, None) => Err("the recorded answer has neither result nor error".to_owned()),
        }
    }
}
