//! Implements what a Python script can ask of its host: tool calls under the run's budget and checks, resources,
//! prompts, and help about functions.

use crate::functions::Functions;
use crate::received::ReceivedOutput;
use crate::reply::{CallFailure, Reply};
use crate::requests::{self, Request};
use crate::retained::{self, RetainedResults};
use ptc_calls::outcome::CallFault;
use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::{Notation, WrongCall, qualified_name};
use ptc_engine::broker::{CallError, CallPayload, ToolBroker, ToolCall};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The host functions of one script.
pub struct Host {
    /// Calls the tools.
    pub broker: Arc<ToolBroker>,
    /// Budget, ledger and deadline of the run.
    pub account: Arc<RunAccount>,
    /// The functions that the script can call.
    pub functions: Arc<Functions>,
    /// Results that are retained for the script.
    pub retained: RetainedResults,
    /// The script's output so far.
    pub received: Arc<ReceivedOutput>,
}

/// Longest text of a discovery request in bytes. It is compared with many names.
const LONGEST_WORDS: usize = 1_000;

/// Most arguments of a call. Only what is inside of them may be large.
const MOST_ARGUMENTS: usize = 1_000;

/// Most bytes of the names of arguments in a message.
const NAMES_SHOWN: usize = 1_000;

/// The arguments of a call by name; `None` when there are too many.
struct FewArguments<'a>(Option<BTreeMap<String, &'a RawValue>>);

impl<'de> Deserialize<'de> for FewArguments<'de> {
    fn deserialize<D: Deserializer<'de>>(arguments: D) -> Result<FewArguments<'de>, D::Error> {
        struct Few;
        impl<'de> Visitor<'de> for Few {
            type Value = FewArguments<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<FewArguments<'de>, A::Error> {
                let mut few = BTreeMap::new();
                while few.len() <= MOST_ARGUMENTS {
                    let Some((name, value)) = given.next_entry()? else { return Ok(FewArguments(Some(few))) };
                    few.insert(name, value);
                }
                while given.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(FewArguments(None))
            }
        }
        arguments.deserialize_map(Few)
    }
}

/// A discovery request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryRequest {
    /// Names of functions. With words, only those that contain each of them in name or description.
    Tools(String),
    /// Documentation of one function.
    Help(String),
}

impl Host {
    /// Answers a discovery request with JSON text.
    ///
    /// # Errors
    /// The message to raise: the discovery budget is used up, or there is no such function.
    pub fn discover(&self, request: &DiscoveryRequest) -> Result<String, String> {
        if !self.account.take_discovery() {
            let limit = self.account.limits().max_catalog_ops;
            return Err(format!(
                "the discovery budget of {limit} operations is used up; keep what tools() and help() have said"
            ));
        }
        if let DiscoveryRequest::Tools(text) | DiscoveryRequest::Help(text) = request
            && text.len() > LONGEST_WORDS
        {
            let got = text.len();
            return Err(format!("tools() and help() take at most {LONGEST_WORDS} bytes of text, got {got}"));
        }
        let found = match request {
            DiscoveryRequest::Tools(words) => serde_json::to_string(&self.functions.search(words)),
            DiscoveryRequest::Help(name) => {
                let function =
                    self.functions.get(name).ok_or_else(|| format!("there is no function {name}"))?;
                serde_json::to_string(&function.help())
            }
        };
        found.map_err(|error| error.to_string())
    }

    /// The message about a wrong call, as Python words it. `given` has the names of its arguments.
    fn rejected(&self, function: &str, given: &[String], wrong: &WrongCall) -> String {
        let Some((known, target)) = self.functions.get(function).zip(self.functions.target(function)) else {
            return wrong.message.clone();
        };
        let problem = wrong.problem(&target.server, &target.tool).unwrap_or(&wrong.message);
        let mut message = problem.to_owned();
        let is_unknown = |name: &&str| !problem.contains(&format!("'{name}'"));
        let unknown: Vec<&str> = given.iter().map(String::as_str).filter(is_unknown).collect();
        if !unknown.is_empty() {
            message.push_str(&format!("; unexpected keyword arguments: {}", unknown.join(", ")));
        }
        for hint in wrong.suggestions() {
            message.push_str(&format!("; {hint}"));
        }
        // The runtime adds the signature, in the notation of PTC-Lisp, to what a look at it can mend.
        if !unknown.is_empty() || wrong.suggestions().count() < wrong.hints.len() {
            message.push_str(&format!("; Signature: {}", known.signature()));
        }
        message
    }

    /// The arguments under the names that the tool has for them, and the names that it does not take.
    fn named(&self, function: &str, arguments: String) -> Result<(String, Vec<String>), String> {
        let Some(known) = self.functions.get(function) else { return Ok((arguments, Vec::new())) };
        let given = match serde_json::from_str::<FewArguments<'_>>(&arguments) {
            Ok(FewArguments(Some(given))) => given,
            Ok(FewArguments(None)) => {
                return Err(format!("'{function}' failed: it takes at most {MOST_ARGUMENTS} arguments"));
            }
            Err(_) => return Ok((arguments, Vec::new())),
        };
        let mut room = NAMES_SHOWN;
        let mut fits = |name: &&String| {
            let fits = name.len() <= room;
            room = room.saturating_sub(name.len());
            fits
        };
        let unknown = given.keys().filter(|name| !known.takes(name));
        let unknown: Vec<String> = unknown.take_while(&mut fits).cloned().collect();
        if given.keys().all(|name| known.meant(name) == name) {
            return Ok((arguments, unknown));
        }
        let mut named = BTreeMap::new();
        for (name, value) in &given {
            if named.insert(known.meant(name), value).is_some() {
                return Err(format!("'{function}' failed: got multiple values for argument '{name}'"));
            }
        }
        let named = serde_json::to_string(&named).map_err(|error| error.to_string())?;
        Ok((named, unknown))
    }

    /// Calls a function. A result that is too large is spilled if `keeps` is set or the configuration of its
    /// server says so.
    ///
    /// # Errors
    /// The `ToolError`: the tool failed, could not be reached, or was called wrongly.
    pub async fn call(&self, function: &str, arguments: String, keeps: bool) -> Result<Reply, CallFailure> {
        let Some(target) = self.functions.target(function) else {
            return Err(format!("'{function}' is not available in execute_program").into());
        };
        let (arguments, unknown) = self.named(function, arguments)?;
        let (server, tool) = (target.server.to_string(), target.tool.to_string());
        let call = ToolCall { server, tool, arguments, notation: Notation::Python };
        let payload = self.broker.call_keeping(&self.account, call, keeps).await;
        let result = payload.map_err(|error| match error {
            CallError::World(fault) if fault.reason == CallFault::ResponseTooLarge => {
                fault.message + retained::ADVICE
            }
            CallError::Wrong(wrong) => self.rejected(function, &unknown, &wrong),
            error => self.unanswered(error),
        });
        self.reply(function, result)
    }

    /// Asks a server for a list, a resource or a prompt. It counts as a call.
    ///
    /// # Errors
    /// As for [`Host::call`].
    pub async fn request(&self, function: &str, arguments: &str) -> Result<Reply, CallFailure> {
        let failed = |why: String| CallFailure::from(format!("'{function}' failed: {why}"));
        let Request { server, target, arguments } = requests::parse(function, arguments).map_err(failed)?;
        let server = self.configured(&server);
        let notation = Notation::Python;
        let payload = self.broker.request(&self.account, &server, target, arguments, notation).await;
        self.reply(function, payload.map_err(|error| self.unanswered(error)))
    }

    /// The configured name of a server, which a script may write as in the names of its functions.
    fn configured(&self, server: &str) -> Arc<str> {
        let catalog = self.broker.catalog().snapshot();
        let is_same = |known: &str| qualified_name(known, "") == qualified_name(server, "");
        let exact = catalog.servers().find(|known| &*known.name == server);
        let found = exact.or_else(|| catalog.servers().find(|known| is_same(&known.name)));
        found.map_or_else(|| server.into(), |known| known.name.clone())
    }

    /// Why a call has no answer, for the script.
    fn unanswered(&self, error: CallError) -> String {
        match error {
            CallError::World(fault) if fault.message == CallFault::CapExhausted.name() => {
                let most = self.account.limits().max_upstream_calls;
                format!("cap_exhausted: a script may make {most} tool calls (--max-upstream-calls)")
            }
            CallError::World(fault) => fault.message,
            CallError::Wrong(wrong) => {
                let hints = wrong.suggestions().map(|hint| format!("; {hint}"));
                hints.fold(wrong.message.clone(), |message, hint| message + &hint)
            }
            CallError::OverMemory { bytes } => {
                format!("its result of {bytes} bytes does not fit into the memory of the script")
            }
        }
    }

    /// The reply about a payload, or about its absence.
    fn reply(&self, function: &str, payload: Result<CallPayload, String>) -> Result<Reply, CallFailure> {
        let reply = payload.map_err(CallFailure::from).and_then(|payload| match payload.spilled() {
            Some(spilled) if payload.failure().is_none() => {
                Ok(Reply::Spilled(self.retained.retain(spilled.clone())))
            }
            _ => Reply::from_payload(&payload),
        });
        reply.map_err(|failure| CallFailure {
            message: format!("'{function}' failed: {}", failure.message),
            ..failure
        })
    }
}
