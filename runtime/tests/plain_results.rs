//! Results that are not MCP's: an upstream in memory gives plain JSON and plain text, and programs, ledger and caps see
//! what they see of any other.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

mod common;

use common::programs::{options, run, value};
use ptc_runtime::config::Startup;
use ptc_runtime::outcome::{CallFault, CallStatus};
use ptc_runtime::tools::{SharedCatalog, SnapshotMode, Tool, ToolList, ToolPolicy};
use ptc_runtime::upstream::{
    CallLimits, CallRequest, CallResult, RawAnswer, ResultBody, ResultSink, Upstream, UpstreamFault,
    UpstreamState, UpstreamStatus,
};
use ptc_runtime::{AttachedUpstream, Runtime, RuntimeConfig};
use serde_json::json;
use std::sync::Arc;

/// Each tool gives one result, whatever it is called with.
struct Plain {
    catalog: SharedCatalog,
    limits: CallLimits,
}

const NAME: &str = "plain";

/// What a result is, from its bytes.
type Form = fn(ResultBody) -> CallResult;

const RESULTS: [(&str, Form, &[u8]); 6] = [
    ("json", CallResult::Json, br#"{"isError": true, "rows": [1, 2]}"#),
    ("nothing", CallResult::Json, b""),
    ("no-json", CallResult::Json, b"{\"rows\": "),
    ("text", CallResult::Text, br#"{"rows": []}"#),
    ("latin-1", CallResult::Text, b"caf\xe9"),
    ("mcp", CallResult::Mcp, br#"{"content": [{"type": "text", "text": "[1]"}]}"#),
];

#[async_trait::async_trait]
impl Upstream for Plain {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> Option<&str> {
        None
    }

    fn status(&self) -> UpstreamStatus {
        let state = if self.tools().is_some() { UpstreamState::Ready } else { UpstreamState::Idle };
        UpstreamStatus { state, error: None, start_duration: None, server_info: None, protocol: None }
    }

    fn limits(&self) -> &CallLimits {
        &self.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.catalog.snapshot().server(NAME)?.tools.clone()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        let tool = |name: &str| -> Tool { serde_json::from_value(json!({ "name": name })).unwrap() };
        let tools: Vec<Tool> = RESULTS.iter().map(|(name, ..)| tool(name)).collect();
        self.catalog.publish(NAME, ToolList::new(NAME, tools, &ToolPolicy::default()), SnapshotMode::Frozen);
        Ok(())
    }

    async fn call(&self, request: CallRequest) -> Result<CallResult, UpstreamFault> {
        let (_, form, body) = RESULTS.iter().find(|(name, ..)| **name == *request.tool).unwrap();
        let ResultSink::Inline { max_bytes } = request.sink;
        if body.len() > max_bytes {
            return Err(UpstreamFault::TooLarge { bytes: body.len() as u64, cap: max_bytes as u64 });
        }
        Ok(form(ResultBody::Inline(RawAnswer::from_bytes(*body))))
    }

    async fn stop(&self) {}
}

async fn runtime(limits: CallLimits) -> Runtime {
    let plain = AttachedUpstream {
        name: NAME.into(),
        description: None,
        startup: Startup::Strict,
        make: Arc::new(move |catalog| Arc::new(Plain { catalog: catalog.clone(), limits })),
    };
    let config = RuntimeConfig { attached: vec![plain], workers: 1, ..RuntimeConfig::default() };
    Runtime::start(config).await.unwrap()
}

#[tokio::test]
async fn programs_get_the_value_itself() {
    let runtime = runtime(CallLimits::default()).await;
    let table = [
        ("json", r#"{:ok true :value {"isError" true "rows" [1 2]} :value_kind :json}"#),
        ("nothing", "{:ok true :value nil :value_kind :none}"),
        ("text", r#"{:ok true :value "{\"rows\": []}" :value_kind :text}"#),
        ("mcp", "{:ok true :value [1] :value_kind :json}"),
    ];
    for (tool, want) in table {
        let same = format!("(= {want} (tool/call 'plain/{tool}))");
        assert_eq!(value(&runtime, &same).await, "true", "{tool}: {}", {
            value(&runtime, &format!("(tool/call 'plain/{tool})")).await
        });
    }
}

#[tokio::test]
async fn the_ledger_knows_what_cannot_be_read() {
    let runtime = runtime(CallLimits::default()).await;
    let outcome =
        run(&runtime, "(tool/call 'plain/no-json) (tool/call 'plain/latin-1) (tool/call 'plain/json)").await;
    let calls: Vec<_> = outcome.upstream_calls.iter().map(|call| (&call.status, call.result_bytes)).collect();
    let said = |status: &CallStatus| match status {
        CallStatus::Error { reason: CallFault::UpstreamError, error, .. } => error.clone(),
        other => panic!("{other:?}"),
    };
    assert!(said(calls[0].0).starts_with("the result cannot be decoded: "));
    assert_eq!(said(calls[1].0), "the result is not UTF-8");
    assert!(matches!(calls[2], (CallStatus::Ok, Some(33))), "{calls:?}");
}

#[tokio::test]
async fn caps_hold_for_every_form() {
    let runtime = runtime(CallLimits { max_response_bytes: Some(10), ..CallLimits::default() }).await;
    for tool in ["json", "text", "mcp"] {
        let outcome = runtime.run(format!("(tool/call 'plain/{tool})"), options()).await;
        let CallStatus::Error { reason, .. } = outcome.upstream_calls[0].status else { panic!("{tool}") };
        assert_eq!(reason, CallFault::ResponseTooLarge, "{tool}");
    }
}
