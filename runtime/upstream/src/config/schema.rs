//! Generates the JSON Schema of the configuration file from the table of its keys, for editors and for programs that
//! write the file.

use super::credentials::{OAUTH_KEYS, SCHEMES, SOURCES};
use super::keys::{ENTRY_KEYS, HOST_KEYS, KeyRow, Kind};
use super::transport::FILE_WORK;
use super::transport::OVERRIDE_KEYS;
use serde_json::{Map, Value, json};

/// Names of transports, those of hosts and our own.
const HOST_TRANSPORTS: &[&str] = &[
    "mcp_stdio",
    "stdio",
    "mcp_http",
    "http",
    "streamable-http",
    "streamableHttp",
    "streamable_http",
    "sse",
    "openapi",
    "local",
];

/// The schema, for editors and for programs that write the file.
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Upstream MCP servers of ptc",
        "type": "object",
        "properties": {
            "$schema": { "type": "string" },
            "upstreams": servers("entry", "Servers by name. A server that does not start ends ptc, unless it \
                says \"required\": false."),
            "mcpServers": servers("hostEntry", "The same as Claude and Cursor write it. ptc goes on without a \
                server that does not start, unless it says \"required\": true."),
            "servers": {
                "description": "The same as VS Code writes it, or a list of servers with their names.",
                "oneOf": [servers("hostEntry", "Servers by name."), {
                    "type": "array",
                    "items": {
                        "allOf": [{ "$ref": "#/$defs/hostEntry" }],
                        "properties": { "name": { "type": "string", "minLength": 1 } }, "required": ["name"],
                    },
                }],
            },
            "tools": { "$ref": "#/$defs/toolRule", "description": "Which tools of any server programs may call." },
            "execution": {
                "type": "object", "description": "How scripts of execute_program are run.",
                "properties": {
                    "timeout_seconds": { "type": "integer", "minimum": 1 },
                    "max_output_bytes": { "type": "integer", "minimum": 1 },
                },
                "additionalProperties": false,
            },
            "credentials": {
                "type": "object", "description": "Secrets by name, for the auth of entries; resolved once, when ptc \
                    starts.",
                "additionalProperties": { "$ref": "#/$defs/credential" },
            },
            "inputs": { "description": "Questions of VS Code; not used." },
        },
        "anyOf": [{ "required": ["upstreams"] }, { "required": ["mcpServers"] }, { "required": ["servers"] }],
        "$defs": {
            "entry": entry(&[], &["mcp_stdio", "mcp_http", "sse", "openapi", "local"], &["url"]),
            "hostEntry": entry(HOST_KEYS, HOST_TRANSPORTS, &["url", "serverUrl", "httpUrl"]),
            "credential": credential(),
            "emitter": { "oneOf": [{
                "type": "object",
                "properties": {
                    "scheme": { "enum": SCHEMES },
                    "binding": { "type": "string", "description": "The name of a credential." },
                    "header": { "type": "string", "description": "Of a custom_header: which one." },
                },
                "required": ["scheme", "binding"],
                "additionalProperties": false,
            }, oauth()] },
            "toolRule": {
                "type": "object",
                "properties": { "allow": { "$ref": "#/$defs/names" }, "block": { "$ref": "#/$defs/names" } },
                "not": { "required": ["allow", "block"] },
            },
            "names": {
                "type": "array", "items": { "type": "string" },
                "description": "Tool names; * stands for any characters, server/tool and mcp__server__tool are \
                    understood too.",
            },
        },
    })
}

/// The scheme of logins.
fn oauth() -> Value {
    let mut properties = Map::new();
    properties.insert("scheme".into(), json!({ "const": "oauth" }));
    for (key, help) in OAUTH_KEYS {
        let kind = match key {
            "scopes" => json!({ "type": "array", "items": { "type": "string" } }),
            "client" | "idp" => json!({ "type": "object" }),
            "redirect_port" => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
            _ => json!({ "type": "string" }),
        };
        properties.insert(key.into(), kind);
        properties[key]["description"] = help.into();
    }
    json!({ "type": "object", "properties": properties, "required": ["scheme"], "additionalProperties": false })
}

/// One form for each source.
fn credential() -> Value {
    let forms = SOURCES.map(|(source, key, help)| {
        let mut properties = Map::new();
        properties.insert("source".into(), json!({ "const": source }));
        properties.insert(key.into(), json!({ "type": "string", "minLength": 1, "description": help }));
        properties.insert(
            "scheme_hint".into(),
            json!({ "type": "string", "description": "The scheme it is made for." }),
        );
        json!({ "properties": properties, "required": ["source", key], "additionalProperties": false })
    });
    json!({ "type": "object", "oneOf": forms })
}

fn servers(entry: &str, help: &str) -> Value {
    json!({
        "type": "object", "description": help, "propertyNames": { "minLength": 1 },
        "additionalProperties": { "$ref": format!("#/$defs/{entry}") },
    })
}

fn entry(more: &[KeyRow], transports: &[&str], addresses: &[&str]) -> Value {
    let mut properties = Map::new();
    for row in ENTRY_KEYS.iter().chain(more) {
        let mut schema = match row.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Texts | Kind::Only | Kind::Without => {
                json!({ "type": "array", "items": { "type": "string" } })
            }
            Kind::Variables => {
                json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } })
            }
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Positive => json!({ "type": "integer", "minimum": 1 }),
            Kind::Overrides => {
                let mut properties = Map::new();
                for key in OVERRIDE_KEYS {
                    let kind = if key == "default_args" { "object" } else { "string" };
                    properties.insert(key.into(), json!({ "type": kind }));
                }
                let told =
                    json!({ "type": "object", "properties": properties, "additionalProperties": false });
                json!({ "type": "object", "additionalProperties": told })
            }
            Kind::Handlers => json!({ "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["name"], "additionalProperties": false,
                "properties": {
                    "name": { "type": "string", "minLength": 1 },
                    "description": { "type": "string" },
                    "command": { "type": "array", "minItems": 1, "items": { "type": "string" } },
                    "file": { "enum": FILE_WORK.map(|(name, _)| name) },
                    "parameters": { "type": "object", "additionalProperties": { "type": "object" } },
                },
            } }),
            Kind::Emitters => json!({ "type": "array", "items": { "$ref": "#/$defs/emitter" } }),
            Kind::Headers => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            Kind::ToolRule => json!({ "$ref": "#/$defs/toolRule" }),
            Kind::Approval | Kind::Foreign => json!({}),
        };
        if matches!(row.name, "transport" | "type") {
            schema["enum"] = transports.into();
        }
        schema["description"] = row.help.into();
        properties.insert(row.name.into(), schema);
    }
    let reached = ["command", "base_url"].iter().chain(addresses).map(|key| json!({ "required": [key] }));
    json!({ "type": "object", "properties": properties, "anyOf": reached.collect::<Value>() })
}
