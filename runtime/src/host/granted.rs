//! The tools of a host beside each other, as an upstream that needs no server: always ready, in memory.

use super::HostTool;
use crate::tools::{HOST, ToolList, ToolPolicy, UpstreamTool};
use crate::upstream::{
    CallLimits, CallRequest, CallResult, RawAnswer, ResultBody, Upstream, UpstreamFault, UpstreamState,
    UpstreamStatus,
};
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Names of the namespace that are not the host's to give.
const TAKEN: [&str; 2] = ["call", "servers"];

/// Tools by name.
pub(crate) struct GrantedTools {
    /// [`HOST`], in the form in which records of calls share it.
    name: Arc<str>,
    tools: BTreeMap<Arc<str>, (HostTool, Arc<UpstreamTool>)>,
    limits: CallLimits,
}

impl GrantedTools {
    /// These tools.
    ///
    /// # Errors
    /// A name that programs cannot write or that is taken, two tools of one name.
    fn new(tools: Vec<HostTool>) -> Result<GrantedTools, String> {
        let mut by_name = BTreeMap::new();
        for tool in tools {
            let name = tool.listing.name.clone();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.*+!?<>=".contains(c);
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain) {
                return Err(format!(
                    "tool {name:?}: a name begins with a letter and has letters, digits, _ and - only"
                ));
            }
            if TAKEN.contains(&&*name) {
                return Err(format!("tool {name:?}: tool/{name} is a form of the language"));
            }
            let listing = Arc::new(tool.listing.clone());
            if by_name.insert(name.clone(), (tool, listing)).is_some() {
                return Err(format!("tool {name:?} is given twice"));
            }
        }
        Ok(GrantedTools { name: HOST.into(), tools: by_name, limits: CallLimits::default() })
    }

    /// These tools, without those that may change something if programs only read; `None` for none.
    ///
    /// # Errors
    /// As for [`GrantedTools::new`].
    pub(crate) fn of(mut tools: Vec<HostTool>, read_only: bool) -> Result<Option<Arc<GrantedTools>>, String> {
        tools.retain(|tool| tool.is_admitted(read_only));
        (!tools.is_empty()).then(|| GrantedTools::new(tools).map(Arc::new)).transpose()
    }

    /// The tool of this name, and how long a call may take if it says so.
    pub(crate) fn get(&self, name: &str) -> Option<(&Arc<UpstreamTool>, Option<Duration>)> {
        self.tools.get(name).map(|(tool, listing)| (listing, tool.timeout))
    }

    /// The tool of this name, to be given on.
    pub(crate) fn tool(&self, name: &str) -> Option<&HostTool> {
        self.tools.get(name).map(|(tool, _)| tool)
    }

    /// The names of all, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.tools.keys().map(|name| &**name).collect()
    }

    /// The names of those that programs may call, or of the others, sorted.
    pub(crate) fn names_of(&self, are_private: bool) -> Vec<&str> {
        let those = self.tools.iter().filter(|(_, (tool, _))| tool.is_private == are_private);
        those.map(|(name, _)| &**name).collect()
    }

    /// Those that programs may call, in name order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<UpstreamTool>> {
        self.tools.values().filter(|(tool, _)| !tool.is_private).map(|(_, listing)| listing)
    }
}

#[async_trait::async_trait]
impl Upstream for GrantedTools {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn description(&self) -> Option<&str> {
        None
    }

    fn status(&self) -> UpstreamStatus {
        let state = UpstreamState::Ready;
        UpstreamStatus { state, error: None, start_duration: None, server_info: None, protocol: None }
    }

    fn limits(&self) -> &CallLimits {
        &self.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        let tools: Vec<UpstreamTool> = self.iter().map(|tool| UpstreamTool::clone(tool)).collect();
        Some(Arc::new(ToolList::new(HOST, tools, &ToolPolicy::default())))
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        Ok(())
    }

    async fn call(&self, request: CallRequest) -> Result<CallResult, UpstreamFault> {
        let name = request.target.label();
        let Some((tool, _)) = self.tools.get(name) else {
            return Err(UpstreamFault::Protocol(format!("no tool {name}")));
        };
        // What panics in the function is a failure of this call, and of nothing else.
        let begun = catch_unwind(AssertUnwindSafe(|| (tool.function)(request.arguments.as_str())));
        drop(request.arguments);
        let ended = match begun {
            Ok(work) => timeout(request.timeout, AssertUnwindSafe(work).catch_unwind())
                .await
                .map_err(|_| UpstreamFault::Timeout(request.timeout))?,
            Err(panic) => Err(panic),
        };
        let answer = ended.unwrap_or_else(|_| Err("it panicked".to_owned()));
        let (cap, _) = request.sink.parts();
        match answer {
            Ok(json) if json.len() > cap => {
                Err(UpstreamFault::TooLarge { bytes: json.len() as u64, cap: cap as u64 })
            }
            Ok(json) => Ok(CallResult::Json(ResultBody::Inline(RawAnswer::from_bytes(json)))),
            Err(message) => {
                let body = ResultBody::Inline(RawAnswer::from_bytes(Vec::new()));
                Ok(CallResult::Failed { message, body })
            }
        }
    }

    async fn stop(&self) {}
}
