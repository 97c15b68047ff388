//! Makes the handshake with an MCP server (`server/discover`, else `initialize`), and loads its tool list and the first
//! page of its resources and prompts.

use super::client::{Question, RpcClient};
use super::dialect::{Dialect, HANDSHAKE, HANDSHAKES, STATELESS, client_info};
use super::task::TaskForm;
use crate::client_features::capabilities;
use crate::jsonrpc::error::METHOD_NOT_FOUND;
use crate::listing::{CATALOG, Listing, PAGE_BYTES};
use crate::request::Era;
use crate::{ErrorObject, RawAnswer, UpstreamFault};
use ptc_base::net::excerpt;
use ptc_base::secrets::{Cut, SecretRegistry, shortened};
use ptc_calls::tools::{CallTarget, ListKind, Listed, Offers, ServerText, visible};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long to wait for `server/discover` before `initialize` is sent as well.
const PROBE_GRACE: Duration = Duration::from_secs(3);

/// Length limit of a version, which is repeated in each request.
const LONGEST_VERSION: usize = 64;

/// Length limit of a server's name and version, in characters.
const LONGEST_INFO: usize = 200;

/// JSON-RPC code: the server is of the stateless era and does not support the requested version.
const UNSUPPORTED_VERSION: i64 = -32022;

/// JSON-RPC code: the server is of the stateless era and misses its headers.
const HEADER_MISMATCH: i64 = -32020;

/// JSON-RPC code: the server is of the stateless era and requires a capability that this client does not
/// have.
const MISSING_CAPABILITY: i64 = -32021;

/// What a server reported in the handshake.
pub(super) struct Hello {
    pub(super) dialect: Dialect,
    /// `name version` as the server reported them.
    pub(super) server_info: String,
    /// The notifications of list changes to which a client of this era must subscribe, as `subscriptions/listen` names
    /// them.
    pub(super) changes: Vec<&'static str>,
    /// The server's text about itself.
    pub(super) instructions: Option<Arc<str>>,
    /// The lists, other than that of tools, that it declares.
    pub(super) lists: Vec<ListKind>,
    /// What it has of tasks.
    pub(super) tasks: TaskForm,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    #[serde(default)]
    protocol_version: String,
    #[serde(default)]
    server_info: ServerInfo,
    #[serde(default)]
    capabilities: Value,
    /// Of any type: a wrong type here must not fail the handshake.
    #[serde(default)]
    instructions: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerInfo {
    name: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    instructions: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

/// Size limit of instructions.
const INSTRUCTIONS: usize = 16 << 10;

/// Size limit of the first page of a list of resources or prompts.
const OFFER_BYTES: usize = 1 << 20;

/// How long a start waits for lists of resources and prompts.
const OFFER_PATIENCE: Duration = Duration::from_secs(3);

fn declared_lists(capabilities: &Value) -> Vec<ListKind> {
    ListKind::ALL.into_iter().filter(|kind| capabilities[kind.capability()].is_object()).collect()
}

/// The notifications of changed lists that the server declares, by their names in `subscriptions/listen`.
fn declared_changes(capabilities: &Value) -> Vec<&'static str> {
    let kinds = [
        ("tools", "toolsListChanged"),
        ("resources", "resourcesListChanged"),
        ("prompts", "promptsListChanged"),
    ];
    let declared =
        |(capability, _): &(&str, _)| capabilities[*capability]["listChanged"] == Value::Bool(true);
    kinds.into_iter().filter(declared).map(|(_, kind)| kind).collect()
}

fn instructions(said: &Value) -> Option<Arc<str>> {
    let text = said.as_str()?.trim();
    (!text.is_empty()).then(|| visible::visible(&shortened(text, Cut::Bytes(INSTRUCTIONS))).into())
}

/// A handshake in progress.
pub(super) struct Greeting<'a> {
    pub(super) client: &'a RpcClient,
    pub(super) secrets: &'a SecretRegistry,
    /// Time limit of each request; the caller limits all of them together.
    pub(super) patience: Duration,
}

/// The era of a server, from its answer to `server/discover`.
enum Discovery {
    Stateless(Hello),
    Legacy,
    /// The server answers no requests for now. It may be of either era.
    Busy(UpstreamFault),
    Hopeless(UpstreamFault),
}

/// Which failure to report of a server that was busy at `server/discover` and failed at `initialize`: the second one says
/// nothing if the server is of the era that does not know the method, or is busy still.
fn more_telling(fault: UpstreamFault, busy: UpstreamFault) -> UpstreamFault {
    match &fault {
        UpstreamFault::Transient { .. } => busy,
        UpstreamFault::Rpc(error) if matches!(error.code, METHOD_NOT_FOUND | HEADER_MISMATCH) => busy,
        _ => fault,
    }
}

impl Greeting<'_> {
    /// Finds out the era and introduces us. A server that `ended_silently` when it was asked for its era is asked to
    /// `initialize` first.
    pub(super) async fn greet(&self, ended_silently: bool) -> Result<Hello, UpstreamFault> {
        if ended_silently {
            return self.initialize().await;
        }
        let discover = self.discover();
        tokio::pin!(discover);
        let grace = PROBE_GRACE.min(self.patience / 3);
        tokio::select! {
            verdict = &mut discover => return match verdict {
                Discovery::Stateless(hello) => Ok(hello),
                Discovery::Legacy => self.initialize().await,
                Discovery::Busy(busy) => self.initialize().await.map_err(|fault| more_telling(fault, busy)),
                Discovery::Hopeless(fault) => Err(fault),
            },
            () = sleep(grace) => {}
        }
        // The server is slow, or ignores unknown methods: it gets both requests, and may answer either.
        let initialize = self.initialize();
        tokio::pin!(initialize);
        tokio::select! {
            hello = &mut initialize => match hello {
                Ok(hello) => Ok(hello),
                Err(fault) => match discover.await {
                    Discovery::Stateless(hello) => Ok(hello),
                    Discovery::Busy(busy) => Err(more_telling(fault, busy)),
                    Discovery::Legacy | Discovery::Hopeless(_) => Err(fault),
                },
            },
            verdict = &mut discover => match verdict {
                // A server of both eras has a session now if it accepted the handshake.
                Discovery::Stateless(hello) => match tokio::time::timeout(grace, initialize).await {
                    Ok(Ok(shaken)) => Ok(shaken),
                    Ok(Err(_)) | Err(_) => Ok(hello),
                },
                Discovery::Busy(busy) => initialize.await.map_err(|fault| more_telling(fault, busy)),
                Discovery::Legacy | Discovery::Hopeless(_) => initialize.await,
            },
        }
    }

    async fn discover(&self) -> Discovery {
        let dialect = Dialect::stateless();
        let ask = || self.request("server/discover", dialect.params(""), dialect.era());
        let mut answer = ask().await;
        // Refused although it supports this revision: the specification then requires another request with a
        // version that the server names.
        if matches!(&answer, Err(UpstreamFault::Rpc(error)) if refused_version(error, |it| it == STATELESS)) {
            answer = ask().await;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(UpstreamFault::Rpc(error)) if refused_version(&error, is_handshake) => {
                return Discovery::Legacy;
            }
            Err(UpstreamFault::Rpc(error)) if error.code == UNSUPPORTED_VERSION => {
                return Discovery::Hopeless(no_common_version(&spoken_versions(&error)));
            }
            Err(UpstreamFault::Rpc(error)) if error.code == MISSING_CAPABILITY => {
                return Discovery::Hopeless(UpstreamFault::Rpc(error));
            }
            Err(fault @ (UpstreamFault::Unavailable(_) | UpstreamFault::LoginRequired(_))) => {
                return Discovery::Hopeless(fault);
            }
            Err(fault @ UpstreamFault::Transient { .. }) => return Discovery::Busy(fault),
            Err(_) => return Discovery::Legacy,
        };
        // A different result comes from a server that answers every method.
        let Ok(result) = self.decode::<DiscoverResult>(&answer, "server/discover") else {
            return Discovery::Legacy;
        };
        if !result.supported_versions.iter().any(|version| version == STATELESS) {
            return Discovery::Legacy;
        }
        let info = &result.meta["io.modelcontextprotocol/serverInfo"];
        let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
        let info = ServerInfo { name: text("name"), version: text("version") };
        let changes = declared_changes(&result.capabilities);
        let instructions = instructions(&result.instructions);
        let lists = declared_lists(&result.capabilities);
        let (server_info, tasks) = (info.text(), TaskForm::of_stateless(&result.capabilities));
        let dialect = match tasks {
            TaskForm::Extension => Dialect::with_tasks(self.client.events.declare().await),
            TaskForm::None | TaskForm::Requested => dialect.clone(),
        };
        Discovery::Stateless(Hello { dialect, server_info, changes, instructions, lists, tasks })
    }

    async fn initialize(&self) -> Result<Hello, UpstreamFault> {
        let capabilities = capabilities(self.client.events.declare().await);
        let params = format!(
            "{{\"protocolVersion\":\"{HANDSHAKE}\",\"capabilities\":{capabilities},\"clientInfo\":{}}}",
            client_info()
        );
        let answer = match self.request("initialize", params, Era::Opening).await {
            Err(UpstreamFault::Rpc(error)) if !spoken_versions(&error).is_empty() => {
                return Err(no_common_version(&spoken_versions(&error)));
            }
            answer => answer?,
        };
        let result: InitializeResult = self.decode(&answer, "initialize")?;
        let (version, bytes) = (&result.protocol_version, result.protocol_version.len());
        if bytes > LONGEST_VERSION {
            return Err(UpstreamFault::Protocol(format!(
                "initialize named a protocolVersion of {bytes} bytes"
            )));
        }
        // Some servers name none.
        if version == STATELESS {
            let why =
                format!("initialize was answered with {STATELESS}, a protocol version without initialize");
            return Err(UpstreamFault::Protocol(why));
        }
        if !version.is_empty() && !HANDSHAKES.contains(&version.as_str()) {
            return Err(no_common_version(std::slice::from_ref(version)));
        }
        let dialect = Dialect::Handshake { version: result.protocol_version.into() };
        self.client.connection.notify("notifications/initialized", dialect.version());
        // In this era the server sends notifications without a subscription.
        let (server_info, instructions) = (result.server_info.text(), instructions(&result.instructions));
        let lists = declared_lists(&result.capabilities);
        let tasks = match dialect.version() {
            HANDSHAKE => TaskForm::of_handshake(&result.capabilities),
            _ => TaskForm::None,
        };
        Ok(Hello { dialect, server_info, changes: Vec::new(), instructions, lists, tasks })
    }

    /// Loads the first page of these lists. What the server does not give in time is not known.
    pub(super) async fn list_offers(&self, dialect: &Dialect, kinds: &[ListKind]) -> Offers {
        let ask = |kind: ListKind| async move {
            let (method, _) = kind.parts();
            let target = CallTarget::Protocol(method);
            let (params, era) = (dialect.params(""), dialect.era());
            let question = Question { target, params, era, max_bytes: OFFER_BYTES, trace: None };
            let answer = self.client.ask(question, self.patience.min(OFFER_PATIENCE)).await;
            (kind, answer.and_then(|answer| self.decode::<Value>(&answer, method)))
        };
        let pages = futures_util::future::join_all(kinds.iter().map(|kind| ask(*kind))).await;
        let mut offers = Offers::default();
        for (kind, page) in pages {
            match page {
                // Declared as a capability, and not there.
                Err(UpstreamFault::Rpc(error)) if error.code == METHOD_NOT_FOUND => {}
                page => offers.add(kind, page.as_ref().ok()),
            }
        }
        offers
    }

    /// Loads the whole tool list; a server without tools has an empty one.
    pub(super) async fn list_tools(&self, dialect: &Dialect) -> Result<Listed, UpstreamFault> {
        let mut listing = Listing::default();
        let mut members = String::new();
        loop {
            let page = match self.request("tools/list", dialect.params(&members), dialect.era()).await {
                Err(UpstreamFault::Rpc(error)) if listing.is_empty() && error.code == METHOD_NOT_FOUND => {
                    return Ok(Listed::default());
                }
                Err(fault @ UpstreamFault::TooLarge { .. }) if !listing.is_empty() => {
                    listing.cut(format_args!("has a page that is too large: {fault}"));
                    return Ok(listing.finish());
                }
                page => page?,
            };
            let cursor;
            (listing, cursor) = listing.take(page, self.secrets).await?;
            match cursor {
                Some(cursor) => members = format!("\"cursor\":{cursor}"),
                None => return Ok(listing.finish()),
            }
        }
    }

    async fn request(
        &self,
        method: &'static str,
        params: String,
        era: Era,
    ) -> Result<RawAnswer, UpstreamFault> {
        let target = CallTarget::Protocol(method);
        let question = Question { target, params, era, max_bytes: PAGE_BYTES, trace: None };
        self.client.ask(question, self.patience).await
    }

    /// Secrets are redacted before anything reads the catalog text, and before it is cut.
    fn decode<T: DeserializeOwned>(&self, answer: &RawAnswer, method: &str) -> Result<T, UpstreamFault> {
        let text = String::from_utf8_lossy(answer.bytes());
        serde_json::from_str(&self.secrets.scrub_json(&text, &CATALOG)).map_err(|error| {
            UpstreamFault::Protocol(format!("{method} returned unexpected payload: {error}"))
        })
    }
}

impl ServerInfo {
    fn text(&self) -> String {
        visible::visible_line(&excerpt(format!("{} {}", self.name, self.version).trim(), LONGEST_INFO))
            .into_owned()
    }
}

/// True for the error that the version is not supported, if one that is supported `is_wanted`.
fn refused_version(error: &ErrorObject, is_wanted: impl Fn(&str) -> bool) -> bool {
    error.code == UNSUPPORTED_VERSION && spoken_versions(error).iter().any(|version| is_wanted(version))
}

/// Revisions are dates; those up to the last one with a handshake require it.
fn is_handshake(version: &str) -> bool {
    version <= HANDSHAKE
}

/// The versions that a server supports, from its error about an unsupported one.
fn spoken_versions(error: &ErrorObject) -> Vec<String> {
    let data: Option<Value> = error.data.as_deref().and_then(|data| serde_json::from_str(data).ok());
    let named = data.as_ref().and_then(|data| data["supported"].as_array()).into_iter().flatten();
    named.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn no_common_version(spoken: &[String]) -> UpstreamFault {
    let theirs = match spoken {
        [] => "others".to_owned(),
        spoken => ServerText::new(&excerpt(&spoken.join(", "), LONGEST_INFO)).to_string(),
    };
    let ours = HANDSHAKES.join(", ");
    UpstreamFault::Protocol(format!(
        "no common protocol version: the server speaks {theirs}; ptc speaks {STATELESS}, {ours}"
    ))
}
