//! Checks that the servers and tools which a prelude (a preloaded Lisp library) needs are there, before a program that
//! uses it begins. If anything is missing, the program does nothing.

use super::{LinkedDefinition, Prelude};
use ptc_calls::run::outcome::{Failure, Report};
use ptc_calls::tools::{Catalog, LookUp};
use ptc_compiler::prelude::ExportEffect;
use ptc_vm::Reason;
use std::collections::BTreeSet;

/// What an export needs; parsed from the id of the requirement.
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

/// The operation of a server that an export with this requirement calls.
pub(super) fn operation(id: &str) -> Option<(&str, &str)> {
    match read(id) {
        Requirement::Upstream { server, tool } => Some((server, tool)),
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

    /// Checks that every export has what it needs, as far as that is known now. Without any server,
    /// requirements on servers are not checked. A server without a tool list yet may have what is
    /// needed; what a program uses is checked again when those lists are there ([`Prelude::check_reached`]).
    ///
    /// # Errors
    /// The first export that needs something that is missing.
    pub(in crate::guest::lisp) fn check(&self, catalog: &Catalog, granted: &[&str]) -> Result<(), Failure> {
        let public = self.definitions.iter().filter(|definition| !definition.compiled.is_private);
        for definition in public {
            for id in &definition.compiled.requires {
                if let Some(missing) = missing(definition, id, catalog, granted) {
                    return Err(refusal(missing));
                }
            }
        }
        Ok(())
    }

    /// The prelude as shown when these tools are known: an export over a tool that changes something is not
    /// shown as reading, whatever its text declares. `None` when nothing differs.
    #[doc(hidden)]
    pub fn seen_with(&self, catalog: &Catalog) -> Option<Prelude> {
        let mut seen: Option<Prelude> = None;
        for (at, definition) in self.definitions.iter().enumerate() {
            if self.contradiction(definition, catalog).is_some() {
                let seen = seen.get_or_insert_with(|| self.clone());
                seen.definitions[at].compiled.effect = ExportEffect::Write;
            }
        }
        seen
    }

    /// Exports that declare to read only and call a tool that declares to change something: references of
    /// both.
    #[doc(hidden)]
    pub fn contradictions(&self, catalog: &Catalog) -> Vec<(&str, &str)> {
        let exports = self.exports();
        exports.filter_map(|it| Some((&*it.reference, self.contradiction(it, catalog)?))).collect()
    }

    /// The requirement which proves that an export does not only read.
    fn contradiction<'d>(&self, definition: &'d LinkedDefinition, catalog: &Catalog) -> Option<&'d str> {
        let compiled = &definition.compiled;
        if compiled.effect != ExportEffect::Read {
            return None;
        }
        let changes = |id: &str| {
            let Requirement::Upstream { server, tool } = read(id) else { return false };
            catalog.tool(server, tool).is_some_and(|tool| tool.annotations.says_changes())
        };
        compiled.requires.iter().map(|id| &**id).find(|id| changes(id))
    }

    /// The servers that these definitions call and that have no current tool list.
    pub(in crate::guest::lisp) fn unproven(&self, needed: &[u32], catalog: &Catalog) -> BTreeSet<&str> {
        let ids = needed.iter().flat_map(|&number| &self.definitions[number as usize].compiled.requires);
        let configured = ids.filter_map(|id| catalog.server(server(id)?).map(|found| (id, found)));
        configured.filter(|(_, found)| found.proven().is_none()).filter_map(|(id, _)| server(id)).collect()
    }

    /// Checks that these definitions have what they need, after their servers were asked to start. A server
    /// that has stopped again counts with its last list: its calls fail with a world fault, which is no fault
    /// of the prelude. `why` says why a server has no list.
    ///
    /// # Errors
    /// The first export that needs something that is missing, or a server that never listed its tools.
    pub(in crate::guest::lisp) fn check_reached(
        &self,
        needed: &[u32],
        catalog: &Catalog,
        why: impl Fn(&str) -> String,
    ) -> Result<(), Failure> {
        if catalog.servers().len() == 0 {
            return Ok(());
        }
        for definition in needed.iter().map(|&number| &self.definitions[number as usize]) {
            for id in &definition.compiled.requires {
                let Requirement::Upstream { server, tool } = read(id) else { continue };
                let export = &definition.reference;
                let required = format!("export `{export}` requires upstream operation `{id}`");
                let found = catalog.look_up_last(server, tool);
                let missing = match found {
                    LookUp::NotLoaded => Some((
                        format!(
                            "{required}, but the tools of upstream server `{server}` could not be listed: {}",
                            why(server)
                        ),
                        format!("No call was made. `ptc doctor` shows what is wrong with {server}."),
                    )),
                    found => missing_tool(&required, server, tool, &found),
                };
                if let Some(missing) = missing {
                    return Err(refusal(missing));
                }
            }
        }
        Ok(())
    }
}

/// The failure of a program that lacks this in its prelude.
fn refusal((message, hint): (String, String)) -> Failure {
    let message = format!("prelude attach failed: {message}");
    Failure::from(Report::new(Reason::PreludeAttachFailed, message).hint(hint))
}

/// Message and hint about something missing.
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
            missing_tool(&required, server, tool, &catalog.look_up(server, tool))
        }
    }
}

/// Message and hint about a required tool that is missing.
fn missing_tool(required: &str, server: &str, tool: &str, found: &LookUp) -> Option<(String, String)> {
    match found {
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
