//! The servers and tools that the description of `lisp_eval` lists.

/// Every configured server, in name order.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Servers.
    pub servers: Vec<CatalogServer>,
}

/// One configured server.
#[derive(Clone, Debug)]
pub struct CatalogServer {
    /// Name in `tool/call`.
    pub name: String,
    /// From the configuration; may be empty.
    pub description: String,
    /// `None` when the list could not be loaded.
    pub tools: Option<Vec<CatalogTool>>,
}

/// One tool of a server.
#[derive(Clone, Debug)]
pub struct CatalogTool {
    /// Name as the server lists it.
    pub name: String,
    /// Its description; may be empty.
    pub description: String,
    /// Arguments, for example `{:path string :limit int?}`.
    pub signature: String,
}

impl Catalog {
    /// True without any server.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The catalog text within a budget of bytes: descriptions are dropped first, then signatures,
    /// then tools. Always names every server that fits.
    pub fn render(&self, budget: usize) -> String {
        const DETAILS: [Detail; 4] = [Detail::Full, Detail::Signatures, Detail::Names, Detail::Servers];
        for detail in DETAILS {
            let text = self.render_as(detail);
            if text.len() <= budget {
                return text;
            }
        }
        let text = self.render_as(Detail::Servers);
        let whole_lines = super::caps::cut(&text, budget.saturating_sub(4)).0.rfind('\n').unwrap_or(0);
        format!("{}\n- …", &text[..whole_lines])
    }

    fn render_as(&self, detail: Detail) -> String {
        let mut text = String::from("Configured upstream MCP servers:");
        for server in &self.servers {
            text.push_str(&format!("\n- {}:", server.name));
            let description = one_line(&server.description, 80);
            if !description.is_empty() {
                text.push_str(&format!(" {}.", description.trim_end_matches('.')));
            }
            match &server.tools {
                None => text.push_str(" (not loaded)"),
                Some(tools) => text.push_str(&format!(" {} tools.", tools.len())),
            }
            let tools = server.tools.as_deref().unwrap_or_default();
            if tools.is_empty() || detail == Detail::Servers {
                continue;
            }
            if detail == Detail::Names {
                let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                text.push_str(&format!("\n  Tools: {}", names.join(", ")));
                continue;
            }
            text.push_str("\n  Tools:");
            for tool in tools {
                text.push_str(&format!("\n  - {}", tool.name));
                if !tool.signature.is_empty() {
                    text.push_str(&format!(" {}", tool.signature));
                }
                let description = one_line(&tool.description, 80);
                if detail == Detail::Full && !description.is_empty() {
                    text.push_str(&format!(" - {description}"));
                }
            }
        }
        text
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Full,
    Signatures,
    Names,
    Servers,
}

fn one_line(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(characters) {
        None => line,
        Some((end, _)) => format!("{}...", line[..end].trim_end()),
    }
}

/// Writes a tool's input schema as `{:path string :limit int?}`: required arguments in schema order,
/// then optional ones by name.
pub fn signature(input_schema: &serde_json::Value) -> String {
    let Some(properties) = input_schema["properties"].as_object().filter(|map| !map.is_empty()) else {
        return "{}".into();
    };
    let required: Vec<&str> =
        input_schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    let mut optional: Vec<&str> =
        properties.keys().map(String::as_str).filter(|name| !required.contains(name)).collect();
    optional.sort_unstable();
    let argument = |name: &&str, mark: &str| {
        let kind = properties.get(*name).map_or("any", type_name);
        format!(":{name} {kind}{mark}")
    };
    let arguments: Vec<String> = required
        .iter()
        .map(|name| argument(name, ""))
        .chain(optional.iter().map(|name| argument(name, "?")))
        .collect();
    format!("{{{}}}", arguments.join(" "))
}

fn type_name(schema: &serde_json::Value) -> &'static str {
    if schema.get("const").is_some() {
        return "const";
    }
    if schema.get("enum").is_some() {
        return "enum";
    }
    match schema["type"].as_str() {
        Some("string") => "string",
        Some("integer") => "int",
        Some("number") => "number",
        Some("boolean") => "bool",
        Some("array") => "array",
        Some("object") => "map",
        _ => "any",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalog(tools: usize) -> Catalog {
        let tool = |index| CatalogTool {
            name: format!("tool_{index}"),
            description: "Reads\n the thing.".into(),
            signature: "{:path string}".into(),
        };
        let tools = Some((0..tools).map(tool).collect());
        Catalog { servers: vec![CatalogServer { name: "fs".into(), description: "Files.".into(), tools }] }
    }

    #[test]
    fn the_bulleted_form_loses_detail_before_it_loses_tools() {
        let catalog = catalog(2);
        assert_eq!(
            catalog.render(1_000),
            "Configured upstream MCP servers:\n- fs: Files. 2 tools.\n  Tools:\n  \
             - tool_0 {:path string} - Reads the thing.\n  - tool_1 {:path string} - Reads the thing."
        );
        assert!(catalog.render(130).ends_with("- tool_1 {:path string}"));
        assert!(catalog.render(90).ends_with("Tools: tool_0, tool_1"));
        assert!(catalog.render(60).ends_with("2 tools."));
    }

    #[test]
    fn no_catalog_exceeds_its_budget() {
        let mut many = catalog(0);
        many.servers = (0..200)
            .map(|index| CatalogServer {
                name: format!("server-{index}"),
                description: String::new(),
                tools: None,
            })
            .collect();
        assert!(many.render(500).len() <= 500);
    }

    #[test]
    fn signatures_list_required_arguments_first() {
        let schema = json!({"properties": {"z": {"type": "string"}, "a": {"type": "integer"}, "b": {"enum": ["x"]}},
            "required": ["z"]});
        assert_eq!(signature(&schema), "{:z string :a int? :b enum?}");
        assert_eq!(signature(&json!({})), "{}");
    }
}
