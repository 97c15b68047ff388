//! Tests of the broker with an upstream in memory whose results are not in MCP's form.

use super::*;
use ptc_base::sync::Locked;
use ptc_calls::policy::Policy;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::outcome::CallStatus;
use ptc_calls::tools::{SnapshotMode, ToolList, UpstreamTool};
use ptc_upstream::{CallLimits, CallResult, RawAnswer, ServerRequest, UpstreamStatus};
use ptc_vm::Interrupt;
use serde_json::json;
use std::sync::Mutex;

/// Each tool gives one result, whatever it is called with.
struct Plain {
    name: Arc<str>,
    catalog: SharedCatalog,
    limits: CallLimits,
    /// What happens while a call waits for its turn.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

const NAME: &str = "plain";

/// What a result is, from its bytes.
type Form = fn(RawAnswer) -> CallResult;

const RESULTS: [(&str, Form, &[u8]); 4] = [
    ("json", CallResult::Json, br#"{"isError": true, "rows": [1, 2]}"#),
    ("nothing", CallResult::Json, b""),
    ("text", CallResult::Text, br#"{"rows": []}"#),
    ("latin-1", CallResult::Text, b"caf\xe9"),
];

#[async_trait::async_trait]
impl Upstream for Plain {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn description(&self) -> Option<&str> {
        None
    }

    fn status(&self) -> UpstreamStatus {
        let state = if self.tools().is_some() { UpstreamState::Ready } else { UpstreamState::Idle };
        UpstreamStatus {
            state,
            error: None,
            starting: None,
            start_duration: None,
            server_info: None,
            protocol: None,
        }
    }

    fn limits(&self) -> &CallLimits {
        &self.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.catalog.snapshot().server(NAME)?.tools.clone()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        self.catalog.publish(
            NAME,
            listed(&RESULTS.map(|(name, ..)| json!({ "name": name }))),
            SnapshotMode::Live,
        );
        Ok(())
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        if let Some(meanwhile) = self.meanwhile.locked().take() {
            meanwhile();
        }
        request.recheck.as_ref().map_or(Ok(()), |recheck| recheck.check(&request))?;
        let (_, form, body) = RESULTS.iter().find(|(name, ..)| *name == request.target.label()).unwrap();
        let max_bytes = request.sink.max_bytes;
        if body.len() > max_bytes {
            return Err(UpstreamFault::TooLarge { bytes: body.len() as u64, cap: max_bytes as u64 });
        }
        Ok(form(RawAnswer::from_bytes(*body)))
    }

    async fn stop(&self) {}
}

fn listed(tools: &[serde_json::Value]) -> ToolList {
    let read = |tool: &serde_json::Value| serde_json::from_value(tool.clone()).unwrap();
    ToolList::new(tools.iter().map(read).collect::<Vec<UpstreamTool>>())
}

/// Calls each tool once; gives what each answered, and the account.
async fn call_all(limits: CallLimits) -> (Vec<Result<CallPayload, CallError>>, Arc<RunAccount>) {
    let catalog = SharedCatalog::new([(NAME.into(), None)]);
    let (broker, _) = broker(catalog, limits);
    let account = Arc::new(RunAccount::new(Limits::with_upstreams(), Interrupt::default()));
    let mut answers = Vec::new();
    for (tool, ..) in RESULTS {
        answers.push(broker.call(&account, call_of(tool)).await);
    }
    (answers, account)
}

fn broker(catalog: SharedCatalog, limits: CallLimits) -> (Arc<ToolBroker>, Arc<Plain>) {
    let name: Arc<str> = NAME.into();
    let plain = Plain { name: name.clone(), catalog: catalog.clone(), limits, meanwhile: Mutex::default() };
    let plain = Arc::new(plain);
    let upstreams = BTreeMap::from([(name, plain.clone() as Arc<dyn Upstream>)]);
    (Arc::new(ToolBroker::new(upstreams, catalog, SecretRegistry::new())), plain)
}

fn call_of(tool: &str) -> ToolCall {
    ToolCall { server: NAME.into(), tool: tool.into(), arguments: "{}".into(), notation: Notation::Json }
}

/// A call that waits for its server leaves only as what it was decided about.
#[tokio::test]
async fn a_call_whose_tool_or_policy_changes_while_it_waits_does_not_leave() {
    type Change = fn(&SharedCatalog, &SharedPolicy);
    let cases: [(Change, Result<(), Option<CallFault>>); 6] = [
        (|_, _| {}, Ok(())),
        (|catalog, _| publish(catalog, json!({ "name": "text", "title": "Text" })), Ok(())),
        (
            |catalog, _| publish(catalog, json!({ "name": "text", "description": "Sends money" })),
            Err(Some(CallFault::ToolChanged)),
        ),
        (|catalog, _| publish(catalog, json!({ "name": "json" })), Err(Some(CallFault::ToolChanged))),
        (|_, shared| shared.replace(ruling("deny")), Err(Some(CallFault::Denied))),
        (|_, shared| shared.replace(ruling("allow")), Ok(())),
    ];
    for (number, (change, want)) in cases.into_iter().enumerate() {
        let catalog = SharedCatalog::new([(NAME.into(), None)]);
        let (broker, plain) = broker(catalog.clone(), CallLimits::default());
        let shared = broker.policy().clone();
        *plain.meanwhile.locked() = Some(Box::new(move || change(&catalog, &shared)));
        let account = Arc::new(RunAccount::new(Limits::with_upstreams(), Interrupt::default()));
        let got = match broker.call(&account, call_of("text")).await {
            Ok(_) => Ok(()),
            Err(CallError::World(fault)) => Err(Some(fault.reason)),
            Err(_) => Err(None),
        };
        assert_eq!(got, want, "case {number}");
    }
}

fn publish(catalog: &SharedCatalog, tool: serde_json::Value) {
    catalog.publish(NAME, listed(&[tool]), SnapshotMode::Live);
}

fn ruling(verdict: &str) -> Arc<Policy> {
    let text = format!("[[rule]]\ndo = \"{verdict}\"\ntools = [\"text\"]\n");
    Arc::new(Policy::parse([("p.toml", &*text)]).unwrap())
}

#[tokio::test]
async fn plain_results_are_the_value_itself() {
    let (answers, account) = call_all(CallLimits::default()).await;
    let answers: Vec<CallPayload> = answers.into_iter().map(Result::unwrap).collect();
    let values: Vec<PayloadValue<'_>> = answers.iter().map(CallPayload::value).collect();
    let want = [
        PayloadValue::Json(RESULTS[0].2),
        PayloadValue::Nothing,
        PayloadValue::Text(r#"{"rows": []}"#),
        PayloadValue::Nothing,
    ];
    assert_eq!(values, want);
    let calls = account.take_ledger();
    let bytes: Vec<_> = calls.iter().map(|call| call.result_bytes).collect();
    assert_eq!(bytes[..3], [Some(33), Some(0), Some(12)]);
    assert!(calls[..3].iter().all(|call| call.status == CallStatus::Ok), "{calls:?}");
    let error = "the result is not UTF-8".to_owned();
    assert_eq!(calls[3].status, CallStatus::Error { reason: CallFault::UpstreamError, error });
}

#[tokio::test]
async fn caps_hold_for_every_form() {
    let (answers, _) = call_all(CallLimits { max_response_bytes: Some(3), ..CallLimits::default() }).await;
    let reason = |answer: Result<CallPayload, CallError>| match answer {
        Ok(_) => None,
        Err(CallError::World(fault)) => Some(fault.reason),
        Err(other) => panic!("{other:?}"),
    };
    let reasons: Vec<_> = answers.into_iter().map(reason).collect();
    let large = Some(CallFault::ResponseTooLarge);
    assert_eq!(reasons, [large, None, large, large]);
}
