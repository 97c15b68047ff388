//! Provides the summary of the configured servers in the description of the tool `lisp_task`, written by the operator
//! or generated from the tool lists.

use crate::tools::catalog::CatalogMode;
use ptc_calls::tools::{Catalog, CatalogServer, UpstreamTool};
use serde_json::Value;

/// Most fields of a map that the summary names.
const FIELDS: usize = 3;

/// Fewest bytes of a generated summary that replaces an operator's one.
const LEAST_MADE: usize = 1_024;

/// The whole summary where descriptions list no tools.
const POINTER: &str =
    "Servers and tools are not listed here (lazy catalog): a task finds those that it needs while it runs.";

/// The source of the summary.
#[derive(Clone, Debug)]
pub enum CapabilitySummary {
    /// The operator wrote it.
    Given(String),
    /// Generated from the tool lists, in at most this many bytes.
    Made(usize),
}

impl CapabilitySummary {
    /// A generated summary of about the same length.
    pub(super) fn made(&self) -> CapabilitySummary {
        match self {
            CapabilitySummary::Given(text) => CapabilitySummary::Made(text.len().max(LEAST_MADE)),
            CapabilitySummary::Made(most) => CapabilitySummary::Made(*most),
        }
    }

    /// Whether the summary is generated.
    pub(super) fn is_made(&self) -> bool {
        matches!(self, CapabilitySummary::Made(_))
    }

    /// The summary of these servers.
    pub(super) fn text(&self, catalog: &Catalog, mode: CatalogMode) -> String {
        let most = match (self, mode) {
            (CapabilitySummary::Given(text), _) => return text.clone(),
            (CapabilitySummary::Made(_), CatalogMode::Lazy) => return POINTER.to_owned(),
            (CapabilitySummary::Made(most), CatalogMode::Auto | CatalogMode::Inline) => *most,
        };
        let lines: Vec<String> = catalog.servers().map(|server| line(server, most / 2)).collect();
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            let newline = if at > 0 { "\n" } else { "" };
            let rest = format!("{newline}- (+{} more upstreams)", lines.len() - at);
            let is_last = at + 1 == lines.len();
            let room = if is_last { most } else { most.saturating_sub(rest.len()) };
            if text.len() + newline.len() + line.len() > room {
                text.push_str(&rest);
                break;
            }
            text.push_str(newline);
            text.push_str(line);
        }
        text
    }
}

/// One line, such as `- fs: list->[:string], read->:unknown_content`.
fn line(server: &CatalogServer, most: usize) -> String {
    let name = &server.name;
    let Some(tools) = &server.tools else { return format!("- {name}: (unavailable at startup)") };
    if tools.is_empty() {
        return format!("- {name}: (no tools advertised)");
    }
    let mut line = format!("- {name}: ");
    for (at, tool) in tools.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let entry = format!("{comma}{}->{}", tool.name, gives(tool));
        if at > 0 && line.len() + entry.len() > most {
            line.push_str(&format!(" (+{} more)", tools.len() - at));
            break;
        }
        line.push_str(&entry);
    }
    line
}

fn gives(tool: &UpstreamTool) -> String {
    tool.output_schema.as_ref().map_or_else(|| ":unknown_content".to_owned(), |schema| word(schema, 0))
}

fn word(schema: &Value, depth: usize) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => ":string".to_owned(),
        Some("integer") => ":int".to_owned(),
        Some("number") => ":float".to_owned(),
        Some("boolean") => ":bool".to_owned(),
        Some("array") if depth < FIELDS => match schema.get("items") {
            Some(items) => format!("[{}]", word(items, depth + 1)),
            None => "[:any]".to_owned(),
        },
        Some("object") => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) if depth < FIELDS && !fields.is_empty() => {
                let shown: Vec<String> = fields
                    .iter()
                    .take(FIELDS)
                    .map(|(name, field)| format!("{name} {}", word(field, depth + 1)))
                    .collect();
                format!("{{{}}}", shown.join(","))
            }
            _ => ":map".to_owned(),
        },
        _ => ":any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_calls::tools::{SharedCatalog, SnapshotMode, ToolList};
    use serde_json::json;

    #[test]
    fn servers_are_summed_up_within_their_bytes() {
        let catalog = SharedCatalog::new(["a", "b", "c"].map(|name| (name.into(), None)));
        let tool = |name: String, schema: Value| {
            serde_json::from_value::<UpstreamTool>(json!({"name": name, "outputSchema": schema})).unwrap()
        };
        let list = json!({"type": "object", "properties": {"entries": {"type": "array", "items": {"type": "string"}},
            "n": {"type": "integer"}}});
        let tools: Vec<UpstreamTool> = vec![tool("list".into(), list), tool("more".into(), json!({}))];
        catalog.publish("a", ToolList::new(tools), SnapshotMode::Live);
        catalog.publish("b", ToolList::default(), SnapshotMode::Live);
        let catalog = catalog.snapshot();
        let text = CapabilitySummary::Made(800).text(&catalog, CatalogMode::Auto);
        assert_eq!(
            text,
            "- a: list->{entries [:string],n :int}, more->:any\n- b: (no tools advertised)\n\
             - c: (unavailable at startup)"
        );
        let short = CapabilitySummary::Made(80).text(&catalog, CatalogMode::Auto);
        assert!(short.len() <= 80 && short.ends_with("- (+2 more upstreams)"), "{short}");
        assert_eq!(CapabilitySummary::Made(80).text(&catalog, CatalogMode::Lazy), POINTER);
        let given = CapabilitySummary::Given("All of it.".to_owned());
        assert_eq!(given.text(&catalog, CatalogMode::Lazy), "All of it.");
    }
}
