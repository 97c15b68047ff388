//! The two sample MCP servers of `ptc demo`, a shop and a help desk: the tools that they list, and the answer of each
//! call.

use super::data;
use crate::sample_server::SampleServer;
use serde_json::{Value, json};
use std::time::Duration;

/// One of the sample servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sample {
    /// Customers and orders.
    Shop,
    /// Tickets.
    Desk,
}

impl Sample {
    /// Both.
    pub const ALL: [Sample; 2] = [Sample::Shop, Sample::Desk];

    /// Its name, as configured and as the argument of the hidden command.
    pub const fn name(self) -> &'static str {
        match self {
            Sample::Shop => "shop",
            Sample::Desk => "desk",
        }
    }

    /// Description of its tools.
    pub const fn description(self) -> &'static str {
        match self {
            Sample::Shop => "Customers and orders of a shop",
            Sample::Desk => "Tickets of a help desk",
        }
    }
}

impl SampleServer for Sample {
    /// Latency of a typical remote server.
    const CALL_TIME: Duration = Duration::from_millis(30);

    fn name(&self) -> &str {
        Sample::name(*self)
    }

    fn tools(&self) -> Value {
        let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
            json!({
                "name": name, "description": description,
                "inputSchema": { "type": "object", "properties": properties, "required": required },
                "annotations": { "readOnlyHint": true },
            })
        };
        let text = |description: &str| json!({ "type": "string", "description": description });
        let tools = match self {
            Sample::Shop => vec![
                tool("get_customer", "One customer", json!({ "id": text("for example c-07") }), &["id"]),
                tool(
                    "list_orders",
                    "Every order of a customer, with lines and shipping",
                    json!({ "customer_id": text("for example c-07") }),
                    &["customer_id"],
                ),
            ],
            Sample::Desk => vec![tool(
                "search_tickets",
                "Tickets with their messages",
                json!({ "status": { "type": "string", "enum": ["open", "waiting", "closed"] } }),
                &[],
            )],
        };
        tools.into()
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let customer = |key: &str| {
            let id = arguments[key].as_str().unwrap_or_default();
            data::customer_index(id).ok_or_else(|| format!("no customer {id:?}"))
        };
        match (self, tool) {
            (Sample::Shop, "get_customer") => customer("id").map(data::customer),
            (Sample::Shop, "list_orders") => {
                customer("customer_id").map(|index| json!({ "orders": data::orders(index) }))
            }
            (Sample::Desk, "search_tickets") => {
                let mut tickets = data::tickets();
                if let Some(status) = arguments["status"].as_str() {
                    tickets.retain(|ticket| ticket["status"] == status);
                }
                Ok(json!({ "tickets": tickets }))
            }
            _ => Err(format!("no tool {tool:?}")),
        }
    }
}
