//! Flags for tasks in natural language (`ptc task` and the tool `lisp_task`): the model that solves them, its key,
//! limits, and texts that an operator adds to its prompt.

use super::limits::{FlagTable, LimitFlags};
use super::variables;
use crate::cli::boot::UpstreamFlags;
use ptc_agent::{AgentLimits, Llm, LlmError, LlmErrorKind, ModelOptions, model};
use ptc_calls::limit_table;
use ptc_calls::limits::Limits;
use ptc_engine::Runtime;
use ptc_server::console::Abort;
use ptc_server::tools::lisp_task::{CapabilitySummary, KeylessModel, TaskSettings, Tasks};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The default model.
const MODEL: &str = "gemini-flash-lite";

/// Most bytes of an operator's text in the system prompt.
const SLOT_BYTES: usize = 4_096;

limit_table! {
    /// The limits of a task.
    TaskLimits;
    /// Replies of the model.
    max_turns: Positive = 3, "agentic-max-turns", "ptc_max_turns_exceeded";
    /// Replies beyond those, each for repairing a program that failed.
    retry_turns: Count = 0, "agentic-retry-turns", "ptc_max_turns_exceeded";
    /// Wall clock of a task.
    timeout_ms: Millis = 45_000, "agentic-task-timeout", "budget_exceeded";
    /// Wall clock of one reply, further tries included.
    planner_timeout_ms: Millis = 15_000, "agentic-planner-timeout", "planner_timeout";
    /// Tokens of a reply.
    output_tokens: Positive = 1_200, "agentic-max-output-tokens", "the reply is cut";
    /// Bytes of an answer as text.
    result_bytes: Bytes = 4_096, "agentic-max-result-bytes", "the answer is cut";
    /// Bytes of what the description of lisp_task says about the servers.
    summary_bytes: Bytes = 800, "agentic-capability-summary-max-bytes", "servers are left out";
}

impl FlagTable for TaskLimits {}

/// Flags of `serve`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tasks in words")]
pub struct AgenticFlags {
    /// Offer lisp_task, a tool that solves tasks in words with a model of this server
    #[arg(long)]
    agentic: bool,
    #[command(flatten)]
    task: TaskFlags,
}

/// Flags of whatever solves tasks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tasks in words")]
pub struct TaskFlags {
    /// The model, as provider:model, for example anthropic:claude-haiku-4-5 or ollama:qwen3; its key is in the usual
    /// variable of the provider [default: gemini-flash-lite, of OpenRouter]
    #[arg(long, value_name = "MODEL")]
    agentic_model: Option<String>,
    /// Where the model is: an OpenAI-compatible server, or another address of the provider
    #[arg(long, value_name = "URL")]
    agentic_base_url: Option<String>,
    /// The key of the model: a name in `credentials` of the configuration file, instead of the usual variable
    #[arg(long, value_name = "NAME")]
    agentic_credential: Option<String>,
    /// Let tasks use servers that are not limited to tools that only read
    #[arg(long)]
    agentic_allow_writes: bool,
    /// Whether answers have the program [default: true]
    #[arg(long, value_name = "BOOL")]
    agentic_include_program: Option<bool>,
    /// Whether traces (--trace-dir) include the prompts of the model: for local debugging
    #[arg(long)]
    agentic_trace_prompts: bool,
    /// A JSON file with max_turns, retry_turns and system_prompt {prefix, suffix}
    #[arg(long, value_name = "FILE")]
    agentic_subagent_config: Option<PathBuf>,
    /// A file with what the description of lisp_task says about the servers
    #[arg(long, value_name = "FILE")]
    agentic_capability_summary: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitFlags<TaskLimits>,
}

/// The servers that tasks may use.
#[derive(Clone, Copy, Debug)]
pub struct TaskServers<'a> {
    /// The flags that configure them.
    pub flags: &'a UpstreamFlags,
    /// Whether servers are configured.
    pub has_upstreams: bool,
    /// Whether only read-only tools are available.
    pub read_only: bool,
}

fn invalid(why: &str) -> Abort {
    Abort::usage(format!("agentic configuration invalid: {why}"))
}

impl AgenticFlags {
    /// The tasks of a server, if it offers them.
    pub fn tasks(
        &self,
        runtime: &Arc<Runtime>,
        programs: Limits,
        servers: TaskServers<'_>,
    ) -> Result<Option<Arc<Tasks>>, Abort> {
        if !variables::switch(self.agentic, "agentic")? {
            return match self.task.allows_writes()? {
                true => Err(invalid("--agentic-allow-writes requires --agentic.")),
                false => Ok(None),
            };
        }
        if !servers.has_upstreams {
            tracing::warn!("agentic_without_aggregator: lisp_task is not offered without upstream servers");
            return Ok(None);
        }
        // The other tools need no key, so the server starts without it.
        let keyless = |name, error: LlmError| -> Result<Arc<dyn Llm>, Abort> {
            tracing::warn!("agentic_config_error: {error}: lisp_task answers nothing else");
            Ok(Arc::new(KeylessModel::new(name, error)))
        };
        self.task.tasks_with(runtime, programs, servers, &keyless).map(Some)
    }
}

/// The contents of a subagent file.
#[derive(Default)]
struct SubagentFile {
    max_turns: Option<u64>,
    retry_turns: Option<u64>,
    prefix: Option<String>,
    suffix: Option<String>,
}

impl TaskFlags {
    fn allows_writes(&self) -> Result<bool, Abort> {
        variables::switch(self.agentic_allow_writes, "agentic-allow-writes")
    }

    /// Tasks with the settings of the flags.
    pub fn tasks(
        &self,
        runtime: &Arc<Runtime>,
        programs: Limits,
        servers: TaskServers<'_>,
    ) -> Result<Arc<Tasks>, Abort> {
        self.tasks_with(runtime, programs, servers, &|_, error| Err(invalid(&error.message)))
    }

    /// Tasks with the settings of the flags. `keyless` makes a substitute for a model without its key.
    fn tasks_with(
        &self,
        runtime: &Arc<Runtime>,
        programs: Limits,
        servers: TaskServers<'_>,
        keyless: &dyn Fn(String, LlmError) -> Result<Arc<dyn Llm>, Abort>,
    ) -> Result<Arc<Tasks>, Abort> {
        if servers.has_upstreams && !servers.read_only && !self.allows_writes()? {
            return Err(invalid(
                "configured upstream access is not asserted read-only. Give --aggregator-read-only, or \
                 --agentic-allow-writes if tasks may change things.",
            ));
        }
        let text =
            |given: &Option<String>, flag| variables::given_or_read(given.clone(), flag, variables::text);
        let path =
            |given: &Option<PathBuf>, flag| variables::given_or_read(given.clone(), flag, variables::path);
        let name = text(&self.agentic_model, "agentic-model")?.unwrap_or_else(|| MODEL.to_owned());
        let base_url = text(&self.agentic_base_url, "agentic-base-url")?;
        let credential = text(&self.agentic_credential, "agentic-credential")?;
        let key = credential.map(|name| servers.flags.credential(&name)).transpose()?;
        let options = ModelOptions { base_url, key, ..ModelOptions::new(name.clone()) };
        let llm = match model(options, runtime.secrets()) {
            Err(error) if error.kind == LlmErrorKind::KeyMissing => keyless(name, error)?,
            llm => llm.map_err(|error| invalid(&error.message))?,
        };
        let file = match path(&self.agentic_subagent_config, "agentic-subagent-config")? {
            Some(path) => SubagentFile::read(&path)?,
            None => SubagentFile::default(),
        };
        let usual = TaskLimits::default();
        let limits = self.limits.over(TaskLimits {
            max_turns: file.max_turns.unwrap_or(usual.max_turns),
            retry_turns: file.retry_turns.unwrap_or(usual.retry_turns),
            ..usual
        })?;
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let summary = match path(&self.agentic_capability_summary, "agentic-capability-summary")? {
            None => CapabilitySummary::Made(whole(limits.summary_bytes)),
            Some(path) => {
                let text = read(&path)?;
                if text.len() > whole(limits.summary_bytes) {
                    return Err(invalid(&format!(
                        "{} has {} bytes, --agentic-capability-summary-max-bytes allows {}",
                        path.display(),
                        text.len(),
                        limits.summary_bytes
                    )));
                }
                CapabilitySummary::Given(runtime.secrets().scrub(text.trim()).into_owned())
            }
        };
        let include = self.agentic_include_program;
        let include = variables::given_or_read(include, "agentic-include-program", variables::boolean)?;
        let trace_prompts = variables::switch(self.agentic_trace_prompts, "agentic-trace-prompts")?;
        let (max_turns, retry_turns) = (small(limits.max_turns), small(limits.retry_turns));
        let settings = TaskSettings {
            agent: AgentLimits {
                max_turns,
                retry_turns,
                turn_budget: max_turns.saturating_add(retry_turns),
                timeout: Duration::from_millis(limits.timeout_ms),
                model_timeout: Duration::from_millis(limits.planner_timeout_ms),
                max_output_tokens: Some(small(limits.output_tokens)),
                ..AgentLimits::default()
            },
            programs,
            result_bytes: whole(limits.result_bytes),
            include_program: include.unwrap_or(true),
            trace_prompts,
            prefix: file.prefix,
            suffix: file.suffix,
            summary,
        };
        Ok(Arc::new(Tasks::new(runtime.clone(), llm, settings)))
    }
}

fn read(path: &Path) -> Result<String, Abort> {
    ptc_base::files::read_text(path).map_err(|error| Abort::usage(format!("{}: {error}", path.display())))
}

/// Keys that only the server may set.
const RESERVED: [&str; 6] =
    ["tools", "signature", "output", "ptc_transport", "completion_mode", "trace_context"];

impl SubagentFile {
    fn read(path: &Path) -> Result<SubagentFile, Abort> {
        SubagentFile::parse(&read(path)?, &path.display().to_string()).map_err(Abort::usage)
    }

    fn parse(text: &str, path: &str) -> Result<SubagentFile, String> {
        let wrong = |why: String| format!("agentic_subagent_config: {path} {why}");
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(wrong("must be a JSON object".to_owned())),
            Err(error) => return Err(wrong(format!("is no JSON: {error}"))),
        };
        let is_reserved = |key: &&String| RESERVED.contains(&key.as_str()) || key.starts_with('_');
        let is_known = |key: &&String| ["max_turns", "retry_turns", "system_prompt"].contains(&key.as_str());
        let named = |keys: Vec<&String>| keys.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let reserved: Vec<&String> = fields.keys().filter(is_reserved).collect();
        if !reserved.is_empty() {
            return Err(wrong(format!("contains reserved key(s): {}", named(reserved))));
        }
        let unknown: Vec<&String> = fields.keys().filter(|key| !is_known(key)).collect();
        if !unknown.is_empty() {
            return Err(wrong(format!("contains unknown key(s): {}", named(unknown))));
        }
        let number = |key: &str, least: u64| match fields.get(key) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|number| *number >= least) {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(format!("has a {key} that is no whole number of at least {least}"))),
            },
        };
        let prompt = match fields.get("system_prompt") {
            None => None,
            Some(Value::Object(prompt)) => Some(prompt),
            Some(_) => return Err(wrong("has a system_prompt that is no object".to_owned())),
        };
        if let Some(key) =
            prompt.and_then(|prompt| prompt.keys().find(|key| *key != "prefix" && *key != "suffix"))
        {
            return Err(wrong(format!("contains unknown key(s): system_prompt.{key}")));
        }
        let slot = |key: &str| match prompt.and_then(|prompt| prompt.get(key)) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= SLOT_BYTES => Ok(Some(text.clone())),
            Some(_) => {
                Err(wrong(format!("has a system_prompt.{key} that is no text of at most {SLOT_BYTES} bytes")))
            }
        };
        Ok(SubagentFile {
            max_turns: number("max_turns", 1)?,
            retry_turns: number("retry_turns", 0)?,
            prefix: slot("prefix")?,
            suffix: slot("suffix")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_it_may_and_nothing_else() {
        let file = SubagentFile::parse(
            r#"{"max_turns": 2, "retry_turns": 1, "system_prompt": {"prefix": "Be short."}}"#,
            "a.json",
        );
        let file = file.unwrap();
        assert_eq!(
            (file.max_turns, file.retry_turns, file.prefix.as_deref()),
            (Some(2), Some(1), Some("Be short."))
        );
        let cases = [
            (r#"{"tools": [], "_x": 1}"#, "contains reserved key(s): tools, _x"),
            (r#"{"turns": 1}"#, "contains unknown key(s): turns"),
            (r#"{"max_turns": 0}"#, "has a max_turns that is no whole number of at least 1"),
            (r#"{"system_prompt": {"middle": "x"}}"#, "contains unknown key(s): system_prompt.middle"),
            ("[]", "must be a JSON object"),
        ];
        for (text, want) in cases {
            let message = SubagentFile::parse(text, "a.json").err().unwrap();
            assert_eq!(message, format!("agentic_subagent_config: a.json {want}"));
        }
    }
}
