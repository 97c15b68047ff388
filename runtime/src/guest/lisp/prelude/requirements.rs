//! What a prelude needs of its host, checked before a program begins: a run that could not do what its namespaces promise
//! does nothing at all.

use super::{LinkedDefinition, Prelude};
use crate::run::outcome::{Failure, Report};
use crate::tools::{Catalog, LookUp};
use ptc_vm::Reason;
use std::collections::BTreeSet;

/// What an export needs, as its id says.
enum Requirement<'i> {
    Upstream { server: &'i str, tool: &'i str },
    Tool(&'i str),
    Unknown,
}

fn read(id: &str) -> Requirement<'_> {
    if let Some(name) = id.strip_prefix("tool:").filter(|name| !name.is_empty()) {
        return Requirement::Tool(name);
    }
    let parts = id.strip_prefix("upstream:").and_then(|operation| operation.split_once('/'));
    match parts.filter(|(server, tool)| !server.is_empty() && !tool.is_empty()) {
        Some((server, tool)) => Requirement::Upstream { server, tool },
        None => Requirement::Unknown,
    }
}

/// The server that an export with this requirement calls.
pub(super) fn server(id: &str) -> Option<&str> {
    match read(id) {
        Requirement::Upstream { server, .. } => Some(server),
        Requirement::Tool(_) | Requirement::Unknown => None,
    }
}

impl Prelude {
    /// Tools of the host that its exports need, by name.
    pub(in crate::guest::lisp) fn granted_tools(&self) -> BTreeSet<&str> {
        let public = self.definitions.iter().filter(|definition| !definition.compiled.is_private);
        let ids = public.flat_map(|definition| &definition.compiled.requires);
        ids.filter_map(|id| match read(id) {
            Requirement::Tool(name) => Some(name),
            Requirement::Upstream { .. } | Requirement::Unknown => None,
        })
        .collect()
    }

    /// What every export needs is there, as far as that can be known: without any server nothing is asked of them, and a
    /// server whose tools are not listed yet may have what is needed.
    ///
    /// # Errors
    /// The first export that needs what is not there.
    pub(in crate::guest::lisp) fn check(&self, catalog: &Catalog, granted: &[&str]) -> Result<(), Failure> {
        let public = self.definitions.iter().filter(|definition| !definition.compiled.is_private);
        for definition in public {
            for id in &definition.compiled.requires {
                if let Some((message, hint)) = missing(definition, id, catalog, granted) {
                    let message = format!("prelude attach failed: {message}");
                    let report = Report::new(Reason::PreludeAttachFailed, message).hint(hint);
                    return Err(Failure::from(report));
                }
            }
        }
        Ok(())
    }
}

/// What is wrong, and what to do about it.
fn missing(
    definition: &LinkedDefinition,
    id: &str,
    catalog: &Catalog,
    granted: &[&str],
) -> Option<(String, String)> {
    let export = &definition.reference;
    match read(id) {
        Requirement::Tool(name) if granted.contains(&name) => None,
        Requirement::Tool(name) => Some((
            format!(
                "export `{export}` requires granted tool `{name}`, but the host did not grant a tool of that name for this \
                 run"
            ),
            format!(
                "Tools of servers are called as (tool/call {{:server \"name\" :tool \"{name}\" :args {{…}}}})."
            ),
        )),
        Requirement::Unknown => Some((
            format!(
                "export `{export}` declares an unrecognized backing requirement `{id}`; supported shapes are \
                 `upstream:<server>/<tool>` and `tool:<name>`"
            ),
            "Correct :requires of the export.".to_owned(),
        )),
        Requirement::Upstream { .. } if catalog.servers().len() == 0 => None,
        Requirement::Upstream { server, tool } => {
            let required = format!("export `{export}` requires upstream operation `{id}`");
            match catalog.look_up(server, tool) {
                LookUp::Ready(_) | LookUp::NotLoaded => None,
                LookUp::NoServer => Some((
                    format!("{required}, but upstream server `{server}` is not configured for this run"),
                    format!("Configure a server of the name {server}, or run without any server."),
                )),
                LookUp::Refused(_) => Some((
                    format!("{required}, but tool `{tool}` is not present on upstream server `{server}`"),
                    format!("The configuration refuses the tool: look at `ptc tools {server}`."),
                )),
                LookUp::NoTool(_) => Some((
                    format!("{required}, but tool `{tool}` is not present on upstream server `{server}`"),
                    format!("`ptc tools {server}` lists what the server has."),
                )),
            }
        }
    }
}
