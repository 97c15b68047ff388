//! Lets programs find the tools of the embedding application, `tool/name`, with `apropos`, `dir`, `doc` and similar
//! forms. The namespace `tool` also holds forms of the language.

use super::local::language;
use super::provider::Provider;
use super::record::{NameOrigin, NameRecord};
use super::search::Query;
use ptc_calls::host::GrantedTools;
use ptc_calls::tools::{HOST, UpstreamTool, text as tool_text};

fn record(tool: &UpstreamTool) -> NameRecord {
    let reference = format!("{HOST}/{}", tool.name);
    NameRecord {
        origin: NameOrigin::Tool,
        namespace: HOST.to_owned(),
        name: (*tool.name).to_owned(),
        kind: "host-tool",
        section: "tool",
        doc: tool.description.clone().unwrap_or_default(),
        signatures: vec![format!("({})", tool_text::signature(HOST, tool))],
        examples: Vec::new(),
        export: None,
        reference,
    }
}

impl Provider for GrantedTools {
    fn namespaces(&self) -> Vec<String> {
        Vec::new()
    }

    fn namespace(&self, name: &str) -> Option<String> {
        (name == HOST).then(|| name.to_owned())
    }

    fn members(&self, namespace: &str) -> Option<Vec<NameRecord>> {
        let of_language = language().members(HOST).filter(|_| namespace == HOST)?;
        let forms = of_language.into_iter().filter(|record| record.name != "name");
        let mut members: Vec<NameRecord> = self.iter().map(|tool| record(tool)).chain(forms).collect();
        members.sort_by(|a, b| a.reference.cmp(&b.reference));
        Some(members)
    }

    fn find(&self, reference: &str) -> Vec<NameRecord> {
        let name = reference.split_once('/').filter(|(namespace, _)| *namespace == HOST);
        let tool = name.and_then(|(_, name)| self.iter().find(|tool| *tool.name == *name));
        tool.map(|tool| record(tool)).into_iter().collect()
    }

    fn search(&self, query: &Query) -> Vec<(u32, NameRecord)> {
        let scored = self.iter().map(|tool| {
            let description = tool.description.as_deref().unwrap_or_default();
            (query.score([&*tool.name].into_iter(), [description].into_iter()), tool)
        });
        scored.filter(|(score, _)| *score > 0).map(|(score, tool)| (score, record(tool))).collect()
    }

    fn references(&self) -> Vec<String> {
        self.names_of(false).into_iter().map(|name| format!("{HOST}/{name}")).collect()
    }
}
