//! The host functions of a script: tool calls with the budget, ledger, checks and redaction of every run, and
//! discovery.

use crate::functions::Functions;
use crate::received::ReceivedOutput;
use crate::retained::{self, RetainedResults};
use ptc_runtime::broker::{CallError, PayloadValue, ToolBroker, ToolCall, looks_like_json};
use ptc_runtime::outcome::CallFault;
use ptc_runtime::run::account::RunAccount;
use ptc_runtime::tools::{Notation, WrongCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
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

/// The result of a call.
pub enum CallValue {
    /// JSON text, on one line.
    Value(String),
    /// A description of a result that is too large to carry, as JSON text on one line.
    Spilled(String),
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

    /// The message about a wrong call, as Python words it.
    fn rejected(&self, function: &str, arguments: &RawValue, wrong: &WrongCall) -> String {
        let Some((known, target)) = self.functions.get(function).zip(self.functions.target(function)) else {
            return wrong.message.clone();
        };
        let given: BTreeMap<String, &RawValue> = serde_json::from_str(arguments.get()).unwrap_or_default();
        let problem = wrong.problem(&target.server, &target.tool).unwrap_or(&wrong.message);
        let mut message = problem.to_owned();
        let is_unknown = |name: &&str| {
            !known.params.iter().any(|param| param == name) && !problem.contains(&format!("'{name}'"))
        };
        let unknown: Vec<&str> = given.keys().map(String::as_str).filter(is_unknown).collect();
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

    /// The arguments under the names that the tool has for them.
    fn named(&self, function: &str, arguments: &RawValue) -> Result<Option<String>, String> {
        let Some(known) = self.functions.get(function) else { return Ok(None) };
        let Ok(given) = serde_json::from_str::<BTreeMap<String, &RawValue>>(arguments.get()) else {
            return Ok(None);
        };
        if given.keys().all(|name| known.meant(name) == name) {
            return Ok(None);
        }
        let mut named = BTreeMap::new();
        for (name, value) in &given {
            if named.insert(known.meant(name), value).is_some() {
                return Err(format!("'{function}' failed: got multiple values for argument '{name}'"));
            }
        }
        serde_json::to_string(&named).map(Some).map_err(|error| error.to_string())
    }

    /// Calls a function. A result that is too large is spilled if `keeps` is set or the configuration of its
    /// server says so.
    ///
    /// # Errors
    /// The message of the `ToolError`, without secrets: the tool failed, could not be reached, or was called
    /// wrongly.
    pub async fn call(&self, function: &str, arguments: &RawValue, keeps: bool) -> Result<CallValue, String> {
        let Some(target) = self.functions.target(function) else {
            return Err(format!("'{function}' is not available in execute_program"));
        };
        let named = self.named(function, arguments)?;
        let call = ToolCall {
            server: target.server.to_string(),
            tool: target.tool.to_string(),
            arguments: named.unwrap_or_else(|| arguments.get().to_owned()),
            notation: Notation::Python,
        };
        let failed = |why: &str| format!("'{function}' failed: {why}");
        let payload = match self.broker.call_keeping(&self.account, call, keeps).await {
            Ok(payload) => payload,
            Err(CallError::World(fault)) if fault.reason == CallFault::ResponseTooLarge => {
                return Err(failed(&(fault.message + retained::ADVICE)));
            }
            Err(CallError::World(fault)) if fault.message == CallFault::CapExhausted.name() => {
                let most = self.account.limits().max_upstream_calls;
                return Err(failed(&format!(
                    "cap_exhausted: a script may make {most} tool calls (--max-upstream-calls)"
                )));
            }
            Err(CallError::World(fault)) => return Err(failed(&fault.message)),
            Err(CallError::Wrong(wrong)) => return Err(failed(&self.rejected(function, arguments, &wrong))),
            Err(CallError::OverMemory { bytes }) => {
                return Err(failed(&format!(
                    "its result of {bytes} bytes does not fit into the memory of the script"
                )));
            }
        };
        if let Some(fault) = payload.failure() {
            return Err(failed(fault.1));
        }
        if let Some(spilled) = payload.spilled() {
            return Ok(CallValue::Spilled(self.retained.retain(spilled.clone())));
        }
        let value = match payload.value() {
            PayloadValue::Json(text) => {
                // The channel is made of lines, so the result must be one line.
                let text = std::str::from_utf8(text).map_err(|_| failed("its result is not UTF-8"))?;
                let value: &RawValue =
                    serde_json::from_str(text).map_err(|_| failed("its result is not JSON"))?;
                value.get().replace(['\n', '\r'], " ")
            }
            PayloadValue::Text(text) => {
                let json =
                    looks_like_json(text).then(|| serde_json::from_str::<&RawValue>(text).ok()).flatten();
                match json {
                    Some(value) => value.get().replace(['\n', '\r'], " "),
                    None => serde_json::to_string(text).map_err(|error| failed(&error.to_string()))?,
                }
            }
            PayloadValue::Nothing => "null".to_owned(),
        };
        Ok(CallValue::Value(value))
    }
}
