//! Logs warnings about a policy (rules for which tool calls are allowed) while `ptc serve` runs: rules that can match
//! nothing, and tool names that several servers have.

use ptc_calls::tools::{Catalog, ServerText};
use ptc_engine::Runtime;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use tokio::sync::watch;

/// Logs each finding once, as the lists of the servers arrive. Never ends.
pub async fn follow(runtime: &Runtime, mut changes: watch::Receiver<Arc<Catalog>>) {
    let (mut logged, mut names) = (HashSet::new(), ToolNames::new(&changes.borrow()));
    loop {
        let catalog = changes.borrow_and_update().clone();
        for text in texts(runtime).into_iter().chain(names.taken(&catalog)) {
            if logged.insert(text.clone()) {
                tracing::warn!("{}", ServerText::new(&text));
            }
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// What is odd about the policy at this moment.
pub fn texts(runtime: &Runtime) -> Vec<String> {
    let findings = runtime.policy_findings().into_iter().map(|finding| format!("policy {}", finding.error));
    findings.chain(runtime.ambiguous_rules()).collect()
}

/// Which server had a name first.
struct ToolNames {
    /// The servers at the start.
    first: BTreeSet<Arc<str>>,
    servers: BTreeMap<Arc<str>, Arc<str>>,
}

impl ToolNames {
    fn new(catalog: &Catalog) -> ToolNames {
        let first = catalog.servers().map(|server| server.name.clone()).collect();
        ToolNames { first, servers: BTreeMap::new() }
    }

    /// Names of tools that a server has taken which was added later.
    fn taken(&mut self, catalog: &Catalog) -> Vec<String> {
        let mut taken = Vec::new();
        let servers = catalog.servers();
        let (first, later): (Vec<_>, Vec<_>) = servers.partition(|server| self.first.contains(&server.name));
        for server in first.into_iter().chain(later) {
            for tool in server.tools.iter().flat_map(|tools| tools.iter()) {
                let owner = self.servers.entry(tool.name.clone()).or_insert_with(|| server.name.clone());
                if *owner != server.name && !self.first.contains(&server.name) {
                    taken.push(format!(
                        "the edited configuration adds the server {}, whose tool {} has the name of a tool of {owner}",
                        server.name, tool.name
                    ));
                }
            }
        }
        taken
    }
}
