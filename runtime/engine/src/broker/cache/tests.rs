//! Tests of the result cache: equal calls to an upstream in memory that counts them, with a clock that the test moves.

use super::*;
use crate::broker::{CallError, CallPayload, PayloadValue, ToolBroker, ToolCall, Upstreams};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::run::client::{CallingClient, ClientTag, Offered};
use ptc_calls::run::limits::Limits;
use ptc_calls::run::outcome::CallStatus;
use ptc_calls::tools::{Notation, SharedCatalog, SnapshotMode, ToolList};
use ptc_upstream::{CallLimits, RawAnswer, UpstreamState, UpstreamStatus};
use ptc_vm::Interrupt;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "counting";

/// Its tools, with their annotations.
const TOOLS: [(&str, &str); 5] = [
    ("look", r#"{"readOnlyHint": true, "idempotentHint": true}"#),
    ("fail", r#"{"readOnlyHint": true, "idempotentHint": true}"#),
    ("read", r#"{"readOnlyHint": true}"#),
    ("put", r#"{"idempotentHint": true}"#),
    ("drop", r#"{"readOnlyHint": true, "idempotentHint": true, "destructiveHint": true}"#),
];

/// Each call takes a second; its result says the how manieth it is.
struct Counting {
    name: Arc<str>,
    catalog: SharedCatalog,
    limits: CallLimits,
    calls: AtomicU64,
}

#[async_trait::async_trait]
impl Upstream for Counting {
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
        let tool = |(name, hints): (&str, &str)| -> UpstreamTool {
            let hints: Value = serde_json::from_str(hints).unwrap();
            serde_json::from_value(json!({ "name": name, "annotations": hints })).unwrap()
        };
        let tools: Vec<UpstreamTool> = TOOLS.into_iter().map(tool).collect();
        self.catalog.publish(NAME, ToolList::new(tools), SnapshotMode::Frozen);
        Ok(())
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let work = tokio::time::sleep(Duration::from_secs(1));
        if tokio::time::timeout_at(request.deadline, work).await.is_err() {
            return Err(UpstreamFault::Timeout(request.timeout));
        }
        let body = RawAnswer::from_bytes(number.to_string());
        match request.target.label() {
            "fail" => Ok(CallResult::Failed { message: number.to_string(), body }),
            _ => Ok(CallResult::Json(body)),
        }
    }

    async fn stop(&self) {}
}

struct World {
    broker: Arc<ToolBroker>,
    counting: Arc<Counting>,
}

const TTL: Duration = Duration::from_secs(60);

fn world(caching: Option<ResultCaching>) -> World {
    let catalog = SharedCatalog::new([(NAME.into(), None)]);
    let counting = Arc::new(Counting {
        name: NAME.into(),
        catalog: catalog.clone(),
        limits: CallLimits::default(),
        calls: AtomicU64::new(0),
    });
    let upstreams = Upstreams::from([(NAME.into(), counting.clone() as Arc<dyn Upstream>)]);
    let mut broker = ToolBroker::new(upstreams, catalog, SecretRegistry::new());
    broker.cache = caching.map(ResultCache::new);
    let broker = Arc::new(broker);
    World { broker, counting }
}

fn caching(max_bytes: usize) -> Option<ResultCaching> {
    Some(ResultCaching { ttl: TTL, max_bytes })
}

fn account(owner: Option<u64>) -> Arc<RunAccount> {
    let limits = Limits { max_upstream_calls: 10_000, ..Limits::with_upstreams() };
    let account = RunAccount::new(limits, Interrupt::default());
    if let Some(owner) = owner {
        let (tag, offered) = (ClientTag::unique(), Offered::default());
        account.set_client(CallingClient { tag, owner, identity: Default::default(), offered, asked: None });
    }
    Arc::new(account)
}

impl World {
    async fn ask(&self, account: &Arc<RunAccount>, tool: &str, arguments: &str) -> Result<String, CallError> {
        let call = ToolCall {
            server: NAME.into(),
            tool: tool.into(),
            arguments: arguments.into(),
            notation: Notation::Json,
        };
        let payload: CallPayload = self.broker.call(account, call).await?;
        match payload.value() {
            PayloadValue::Json(json) => Ok(String::from_utf8_lossy(json).into_owned()),
            other => panic!("{other:?}"),
        }
    }

    async fn get(&self, owner: u64, tool: &str, arguments: &str) -> String {
        self.ask(&account(Some(owner)), tool, arguments).await.unwrap()
    }

    fn calls(&self) -> u64 {
        self.counting.calls.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn equal_calls_make_one_call_one_after_the_other_and_at_once() {
    let world = world(caching(1 << 20));
    let account = account(Some(1));
    let arguments = [r#"{"a": 1, "b": {"c": [2], "d": 3}}"#, r#"{"b":{"d":3,"c":[2]},"a":1}"#];
    let at_once = (0..1_000).map(|at| world.ask(&account, "look", arguments[at % 2]));
    for given in futures_util::future::join_all(at_once).await {
        assert_eq!(given.unwrap(), "1");
    }
    for at in 0..1_000 {
        assert_eq!(world.ask(&account, "look", arguments[at % 2]).await.unwrap(), "1");
    }
    assert_eq!(world.calls(), 1);
    let ledger = account.take_ledger();
    assert_eq!(ledger.iter().filter(|call| call.cached && call.status == CallStatus::Ok).count(), 1_999);
    assert_eq!(account.calls_made(), 2_000, "a kept result is a call of the program");
    assert_eq!(world.ask(&account, "look", r#"{"a": 2}"#).await.unwrap(), "2");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_unasked_or_of_tools_that_do_not_say_both_hints() {
    let off = world(None);
    for number in 1..=3_u64 {
        assert_eq!(off.get(1, "look", "{}").await, number.to_string());
    }
    for tool in ["read", "put", "drop"] {
        let world = world(caching(1 << 20));
        for number in 1..=3_u64 {
            assert_eq!(world.get(1, tool, "{}").await, number.to_string(), "{tool}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_not_kept_and_do_not_hold_up_others() {
    let world = world(caching(1 << 20));
    let account = account(Some(1));
    let begun = Instant::now();
    futures_util::future::join_all((0..100).map(|_| world.ask(&account, "fail", "{}"))).await;
    assert_eq!(world.calls(), 100);
    // The first one, and all others at once.
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    world.ask(&account, "fail", "{}").await.unwrap();
    assert_eq!(world.calls(), 101);
    assert!(account.take_ledger().iter().all(|call| !call.cached));
}

#[tokio::test(start_paused = true)]
async fn an_owner_sees_its_own_results_only() {
    let world = world(caching(1 << 20));
    assert_eq!(world.get(1, "look", "{}").await, "1");
    assert_eq!(world.get(2, "look", "{}").await, "2");
    assert_eq!(world.ask(&account(None), "look", "{}").await.unwrap(), "3");
    let (one, two) = tokio::join!(world.get(3, "look", "{}"), world.get(4, "look", "{}"));
    assert_ne!(one, two);
    assert_eq!(
        (world.get(1, "look", "{}").await, world.get(2, "look", "{}").await),
        ("1".into(), "2".into())
    );
}

#[tokio::test(start_paused = true)]
async fn entries_end_with_their_time_and_with_changes_of_their_server() {
    let world = world(caching(1 << 20));
    assert_eq!(world.get(1, "look", "{}").await, "1");
    tokio::time::advance(TTL - Duration::from_millis(1)).await;
    assert_eq!(world.get(1, "look", "{}").await, "1");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(world.get(1, "look", "{}").await, "2");
    // A call that only reads changes nothing.
    assert_eq!(world.get(1, "read", "{}").await, "3");
    assert_eq!(world.get(1, "look", "{}").await, "2");
    assert_eq!(world.get(2, "put", "{}").await, "4");
    assert_eq!(world.get(1, "look", "{}").await, "5");
    // One that is under way while the server changes may have read what was before.
    let late = async {
        tokio::time::advance(Duration::from_millis(500)).await;
        world.get(1, "look", r#"{"late": 1}"#).await
    };
    let (_, old) = tokio::join!(world.get(1, "put", "{}"), late);
    let new = world.get(1, "look", r#"{"late": 1}"#).await;
    assert_ne!(old, new);
    world
        .broker
        .replace_upstreams(Upstreams::from([(NAME.into(), world.counting.clone() as Arc<dyn Upstream>)]));
    assert_ne!(world.get(1, "look", r#"{"late": 1}"#).await, new);
}

#[tokio::test(start_paused = true)]
async fn kept_results_have_a_bound() {
    let most = 4 * (ENTRY_BYTES + 8);
    let world = world(caching(most));
    for at in 0..100 {
        world.get(1, "look", &format!("{{\"at\": {at}}}")).await;
        let cache = world.broker.cache.as_ref().unwrap();
        let state = cache.state.locked();
        assert!(state.bytes <= most && state.entries.len() <= 4 && state.order.len() == state.entries.len());
        assert!(state.flights.is_empty());
    }
    assert_eq!(world.calls(), 100);
    assert_eq!(world.get(1, "look", r#"{"at": 99}"#).await, "100");
    assert_eq!(world.get(1, "look", r#"{"at": 0}"#).await, "101");
    let none = self::world(caching(ENTRY_BYTES));
    assert_eq!((none.get(1, "look", "{}").await, none.get(1, "look", "{}").await), ("1".into(), "2".into()));
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_a_call_that_is_cancelled_ask_once_themselves() {
    let world = Arc::new(world(caching(1 << 20)));
    let (first, others) = (account(Some(1)), account(Some(1)));
    let first = {
        let world = world.clone();
        ptc_base::tasks::spawn(ptc_base::tasks::TaskOwner::Run, async move {
            world.ask(&first, "look", "{}").await.map_err(drop)
        })
    };
    tokio::time::advance(Duration::from_millis(100)).await;
    let others = {
        let world = world.clone();
        ptc_base::tasks::spawn(ptc_base::tasks::TaskOwner::Run, async move {
            futures_util::future::join_all((0..50).map(|_| world.ask(&others, "look", "{}"))).await
        })
    };
    tokio::time::advance(Duration::from_millis(100)).await;
    assert_eq!(world.calls(), 1);
    first.abort();
    assert!(others.await.unwrap().into_iter().all(|given| given.unwrap() == "2"));
    assert_eq!(world.calls(), 2);
}
