//! Defines the settings of one configured server (`ServerEntry`), which are read from a configuration file or made by
//! an application.

use super::credentials::Credentials;
use super::general::{rule, tool_names};
use super::keys::{self, Kind};
use super::location::Document;
use super::{ConfigError, Shape, Startup};
use crate::{CallLimits, HttpSpec, StdioSpec, Transport, UnusableEntry};
use ptc_base::secrets::{Credential, Protection, SecretRegistry, names};
use ptc_calls::policy::{NameRule, ToolPolicy};
use ptc_calls::tools::{HOST, ServerText};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

/// Default time limit of one start.
pub const DEFAULT_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Default time for which a server may send no answer after a call to it was given up. With the default
/// limits of a program, an unresponsive server is replaced within 30 s.
pub const DEFAULT_UNRESPONSIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// One configured server. Holds resolved secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct ServerEntry {
    /// Configured name; `:server` in programs.
    pub name: Arc<str>,
    /// Description that `tool/servers` shows.
    pub description: Option<String>,
    /// How to reach it.
    pub transport: Arc<dyn Transport>,
    /// Time limit of one start.
    pub handshake_timeout: Duration,
    /// The file sets `handshake_timeout`, so no other default applies.
    pub handshake_is_explicit: bool,
    /// How long it may send no answer after a call to it was given up, before it counts as crashed.
    pub unresponsive_timeout: Duration,
    /// Which of its tools may be called.
    pub tools: ToolPolicy,
    /// Limits on calls to it.
    pub limits: CallLimits,
    /// What a failed start means; from `required` or the shape of the file.
    pub startup: Startup,
    /// The file sets `required`, so no global override applies.
    pub startup_is_explicit: bool,
    /// The command may be this very program. No configuration file can set it.
    own_binary: bool,
    /// Fingerprint of the entry in its configuration file; `None` for an entry from elsewhere.
    pub(super) written: Option<u64>,
}

impl ServerEntry {
    /// A server that runs this very program with `arguments`. `ptc demo` gets its servers this way, without
    /// installing anything. Configuration files cannot express it.
    pub fn own_binary(name: &str, description: &str, arguments: &[&str]) -> std::io::Result<ServerEntry> {
        let program = std::env::current_exe()?;
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut entry = ServerEntry::stdio(name, program.display().to_string(), arguments);
        entry.description = Some(description.to_owned());
        entry.own_binary = true;
        Ok(entry)
    }

    /// A strict stdio server with a clean environment.
    pub fn stdio(name: &str, command: String, arguments: Vec<String>) -> ServerEntry {
        ServerEntry::new(name, Arc::new(StdioSpec::new(command, arguments)))
    }

    /// A strict remote server.
    pub fn http(name: &str, spec: HttpSpec) -> ServerEntry {
        ServerEntry::new(name, Arc::new(spec))
    }

    /// A strict server that is reached through a transport of the application.
    pub fn custom(name: &str, transport: Arc<dyn Transport>) -> ServerEntry {
        ServerEntry::new(name, transport)
    }

    fn new(name: &str, transport: Arc<dyn Transport>) -> ServerEntry {
        ServerEntry {
            // A file of a checkout may name a server anything.
            name: ServerText::new(name).into(),
            description: None,
            transport,
            handshake_timeout: DEFAULT_HANDSHAKE_TIMEOUT,
            handshake_is_explicit: false,
            unresponsive_timeout: DEFAULT_UNRESPONSIVE_TIMEOUT,
            tools: ToolPolicy::default(),
            limits: CallLimits::default(),
            startup: Startup::Strict,
            startup_is_explicit: false,
            own_binary: false,
            written: None,
        }
    }

    /// A hash of all that decides how the server works: what its file says, how it is reached, and the variables of
    /// the environment that its file names, or all if it inherits them. Two processes with the same hash may share the server.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.written, self.transport.descriptor().to_string()).hash(&mut hasher);
        hasher.finish()
    }

    /// True when both entries say the same. Entries that are from no file are compared by how they are
    /// reached.
    pub fn is_as_written(&self, other: &ServerEntry) -> bool {
        self.written == other.written && self.transport.descriptor() == other.transport.descriptor()
    }

    /// True when a configuration file names this very program as the command.
    pub fn is_forbidden_self(&self) -> bool {
        if self.own_binary {
            return false;
        }
        let own = std::env::current_exe().and_then(|path| path.canonicalize());
        own.is_ok_and(|own| self.transport.runs(&own))
    }
}

/// Reads one entry.
pub(super) struct EntryReader<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) shape: Shape,
    pub(super) server: &'a str,
    /// The rule for tools of all servers.
    pub(super) tools: Option<&'a NameRule>,
    pub(super) credentials: &'a Credentials,
    pub(super) secrets: &'a SecretRegistry,
    pub(super) variables: &'a dyn Fn(&str) -> Option<String>,
    /// Secrets that redaction cannot hide; reported as warnings.
    pub(super) unprotected: RefCell<Vec<ConfigError>>,
}

impl EntryReader<'_> {
    /// As [`EntryReader::read`], but an invalid entry of a host's file affects only itself: it becomes a
    /// server that does not start and reports why.
    pub(super) fn read_for_its_shape(&self, value: &Value) -> Result<Option<ServerEntry>, ConfigError> {
        let error = match self.read(value) {
            Err(error) if matches!(self.shape, Shape::McpServers | Shape::Servers) => error,
            read => return read,
        };
        // Secrets of an invalid entry are registered as well.
        for secret in value.as_object().into_iter().flat_map(names::in_entry) {
            let _ = self.secrets.register(&secret);
        }
        let mut made = ServerEntry::new(self.server, Arc::new(UnusableEntry(error.to_string())));
        made.startup_is_explicit = value.get("required").is_some_and(Value::is_boolean);
        made.startup = match value.get("required") {
            Some(Value::Bool(true)) => Startup::Strict,
            _ => Startup::Lenient,
        };
        Ok(Some(made))
    }

    /// The entry, or `None` when it is disabled.
    pub(super) fn read(&self, value: &Value) -> Result<Option<ServerEntry>, ConfigError> {
        let server = self.server;
        let Value::Object(entry) = value else {
            return Err(self.error(&[], format!("upstream {server} must be an object")));
        };
        // Programs that write hosts' files spell out empty values.
        let mut present;
        let entry = if self.shape != Shape::Upstreams && entry.values().any(Value::is_null) {
            present = entry.clone();
            present.retain(|_, value| !value.is_null());
            &present
        } else {
            entry
        };
        if server.is_empty() {
            return Err(self.error(&[], "an upstream name must not be empty"));
        }
        if server == HOST {
            let message = format!("an upstream cannot be named {HOST}: functions of the host have that name");
            return Err(self.error(&[], message));
        }
        if self.boolean(entry, "disabled")? == Some(true) || self.boolean(entry, "enabled")? == Some(false) {
            return Ok(None);
        }
        let mut made = ServerEntry::new(server, self.transport(entry)?);
        made.description = self.string(entry, "description")?.map(str::to_owned);
        let handshake = self.positive(entry, "handshake_timeout_ms")?;
        made.handshake_is_explicit = handshake.is_some();
        made.handshake_timeout = handshake.map_or(DEFAULT_HANDSHAKE_TIMEOUT, Duration::from_millis);
        made.unresponsive_timeout = self
            .positive(entry, "unresponsive_timeout_ms")?
            .map_or(DEFAULT_UNRESPONSIVE_TIMEOUT, Duration::from_millis);
        made.tools = self.tool_policy(entry)?;
        made.limits = CallLimits {
            timeout: self.positive(entry, "request_timeout_ms")?.map(Duration::from_millis),
            max_response_bytes: self.positive(entry, "max_response_bytes")?.map(saturated),
            max_concurrent: self.positive(entry, "max_concurrent_calls")?.map(saturated),
            max_calls_per_program: self
                .positive(entry, "max_calls_per_program")?
                .map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
            spills_large: match self.string(entry, "on_large")? {
                None | Some("refuse") => false,
                Some("spill") => true,
                Some(other) => {
                    let message =
                        format!("upstream {server}: on_large is \"refuse\" or \"spill\", got {other:?}");
                    return Err(self.error(&["on_large"], message));
                }
            },
        };
        let required = self.boolean(entry, "required")?;
        made.startup_is_explicit = required.is_some();
        made.startup = match required {
            Some(true) => Startup::Strict,
            Some(false) => Startup::Lenient,
            None => self.shape.startup(),
        };
        if self.shape != Shape::Upstreams && made.is_forbidden_self() {
            let message =
                format!("upstream {server}: its command is this program itself, which is not allowed");
            return Err(self.error(&[], message));
        }
        Ok(Some(made))
    }

    /// A warning for each unknown key.
    pub(super) fn unknown_keys(&self, value: &Value) -> Vec<ConfigError> {
        let hosts = self.shape != Shape::Upstreams;
        let Value::Object(entry) = value else { return Vec::new() };
        let unknown = entry.keys().filter(|key| keys::find(key, hosts).is_none());
        unknown
            .map(|key| {
                let hint = keys::nearest(key).map(|known| format!("; did you mean \"{known}\"?"));
                let hint = hint.unwrap_or_default();
                self.error(&[key], format!("upstream {}: unknown key \"{key}\"{hint}", self.server))
            })
            .collect()
    }

    /// Registers a secret; adds a warning when redaction cannot hide it.
    pub(super) fn protect(&self, path: &[&str], what: &str, value: &str) -> Credential {
        let (credential, protection) = Credential::secret(value, self.secrets);
        if protection == Protection::Full {
            self.secrets.own(self.server, value);
        }
        if let Some(complaint) = Protection::complaint(protection) {
            let message = format!("upstream {}: {what} {complaint}; nothing hides it in output", self.server);
            let warning = self.error(path, message);
            let mut unprotected = self.unprotected.borrow_mut();
            if !unprotected.contains(&warning) {
                unprotected.push(warning);
            }
        }
        credential
    }

    /// Combines the entry's own rule with the one for all servers.
    fn tool_policy(&self, entry: &Map<String, Value>) -> Result<ToolPolicy, ConfigError> {
        let hosts = self.shape != Shape::Upstreams;
        let own = match entry.get("tools") {
            None => None,
            Some(Value::Array(_)) if hosts => None,
            Some(value) => rule(value).map_err(|(below, message)| {
                let path: Vec<&str> = std::iter::once("tools").chain(below).collect();
                self.error(&path, format!("upstream {}: {message}", self.server))
            })?,
        };
        let choices = if hosts { self.choices(entry)? } else { Vec::new() };
        let rules = own.into_iter().chain(choices).chain(self.tools.cloned());
        Ok(rules.fold(ToolPolicy::default(), ToolPolicy::with_rule))
    }

    /// The rules that a host's own keys express.
    fn choices(&self, entry: &Map<String, Value>) -> Result<Vec<NameRule>, ConfigError> {
        let mut rules = Vec::new();
        for keys::KeyRow { name: key, kind, .. } in keys::choices() {
            let Some(value) = entry.get(*key) else { continue };
            match kind {
                Kind::Approval if is_nothing(value) => {}
                Kind::Approval => {
                    let message = format!(
                        "upstream {}: {key} has no effect: programs call every tool without asking; \"tools\": \
                         {{\"allow\": [\u{2026}]}} says which there are",
                        self.server
                    );
                    self.unprotected.borrow_mut().push(self.error(&[key], message));
                }
                Kind::Only if *key == "tools" && value.is_object() => {}
                _ => {
                    let names = tool_names(value)
                        .ok_or_else(|| self.wrong(key, &format!("{key} must be a list of tool names")))?;
                    rules.push(match kind {
                        Kind::Without => NameRule::Block(names),
                        _ => NameRule::Allow(names),
                    });
                }
            }
        }
        Ok(rules)
    }

    pub(super) fn positive(&self, entry: &Map<String, Value>, key: &str) -> Result<Option<u64>, ConfigError> {
        let Some(value) = entry.get(key) else { return Ok(None) };
        match value.as_u64().filter(|&number| number > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(key, &format!("{key} must be a positive number"))),
        }
    }

    pub(super) fn string<'v>(
        &self,
        entry: &'v Map<String, Value>,
        key: &str,
    ) -> Result<Option<&'v str>, ConfigError> {
        match entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, &format!("{key} must be a string"))),
        }
    }

    pub(super) fn boolean(&self, entry: &Map<String, Value>, key: &str) -> Result<Option<bool>, ConfigError> {
        match entry.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong(key, &format!("{key} must be true or false"))),
        }
    }

    pub(super) fn wrong(&self, key: &str, message: &str) -> ConfigError {
        self.error(&[key], format!("upstream {}: {message}", self.server))
    }

    /// An error about a key of the entry.
    pub(super) fn about(&self, below: &[&str], what: &str) -> ConfigError {
        self.error(below, format!("upstream {} {what}", self.server))
    }

    pub(super) fn error(&self, below: &[&str], message: impl Into<String>) -> ConfigError {
        self.document.error(&self.path(below), message)
    }

    /// True if the file writes the number at `below` with these characters.
    pub(super) fn writes_number(&self, below: &[&str], number: &str) -> bool {
        self.document.writes_number(&self.path(below), number)
    }

    fn path<'p>(&'p self, below: &[&'p str]) -> Vec<&'p str> {
        [&[self.shape.key(), self.server], below].concat()
    }
}

/// `false`, and empty lists and texts.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        other => *other == Value::Bool(false),
    }
}

pub(super) fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
