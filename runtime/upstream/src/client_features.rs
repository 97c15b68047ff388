//! Lets upstream servers use features of the client of `ptc`, such as user input: finds the client that can answer a
//! server's request, and adapts the request for it.
//!
//! These features of clients are elicitation (input from a person) and roots (the folders that it works in). They are
//! declared to a server only when the client supports them, so they have to be known at the handshake.

use super::callers::{Callers, RequestKind};
use ptc_calls::run::client::{CallingClient, Offered, ServedClient};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long a handshake waits for a client that has not declared its features.
const PATIENCE: Duration = Duration::from_secs(5);

/// Size limit of the parameters of a forwarded request.
const LARGEST: usize = 64 << 10;

/// A server's request as it is sent to the client.
pub(super) struct PassedRequest {
    pub(super) kind: RequestKind,
    pub(super) method: &'static str,
    /// JSON text.
    pub(super) params: String,
}

/// The capabilities that are declared to servers, as the text of a JSON object.
pub(super) fn capabilities(offered: Offered) -> &'static str {
    match (offered.elicitation, offered.roots) {
        (false, false) => "{}",
        (true, false) => r#"{"elicitation":{}}"#,
        (false, true) => r#"{"roots":{}}"#,
        (true, true) => r#"{"elicitation":{},"roots":{}}"#,
    }
}

/// The request for the client that corresponds to this one; `None` when the client does not support it.
///
/// # Errors
/// The request cannot be forwarded.
pub(super) fn forwarded(
    offered: Offered,
    server: &str,
    method: &str,
    params: &str,
) -> Option<Result<PassedRequest, &'static str>> {
    match method {
        "roots/list" if offered.roots => Some(Ok(PassedRequest {
            kind: RequestKind::Roots,
            method: "roots/list",
            params: "{}".to_owned(),
        })),
        "elicitation/create" if offered.elicitation => Some(form(server, params)),
        _ => None,
    }
}

/// A form that names the server which requests it, because the client would show only our name.
fn form(server: &str, params: &str) -> Result<PassedRequest, &'static str> {
    if params.len() > LARGEST {
        return Err("the form is too large to be passed on");
    }
    let members: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(params).map_err(|_| "the form cannot be read")?;
    if members.get("mode").is_some_and(|mode| mode.get() != "\"form\"") {
        return Err("only forms are passed on");
    }
    let message = members.get("message").and_then(|text| serde_json::from_str::<String>(text.get()).ok());
    let Some(schema) = members.get("requestedSchema").filter(|schema| schema.get().starts_with('{')) else {
        return Err("the form has no requestedSchema");
    };
    let message = serde_json::Value::from(format!("{server}: {}", message.unwrap_or_default()));
    // A message to the client is one line; in JSON, line breaks occur only between values.
    let schema = schema.get().replace(['\n', '\r'], " ");
    let params = format!("{{\"message\":{message},\"requestedSchema\":{schema}}}");
    Ok(PassedRequest { kind: RequestKind::Form, method: "elicitation/create", params })
}

#[derive(Clone)]
enum Served {
    /// It has not declared its features.
    Expected(Instant),
    NoClient,
    Client(Offered, Arc<dyn ServedClient>),
    /// There are many clients; requests go to those with calls under way. These features are declared for all
    /// of them.
    Callers(Offered),
}

/// The client that this process serves, for its servers. Clones share it.
#[derive(Clone)]
pub struct ClientFeatures(Arc<watch::Sender<Served>>);

impl Default for ClientFeatures {
    /// There is no client.
    fn default() -> ClientFeatures {
        ClientFeatures(Arc::new(watch::Sender::new(Served::NoClient)))
    }
}

impl std::fmt::Debug for ClientFeatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &*self.0.borrow() {
            Served::Expected(_) => "ClientFeatures(expected)",
            Served::NoClient => "ClientFeatures(nobody)",
            Served::Client(..) => "ClientFeatures(a client)",
            Served::Callers(_) => "ClientFeatures(callers)",
        })
    }
}

impl ClientFeatures {
    /// A client will connect: handshakes with servers wait until it has declared its features.
    pub fn expected() -> ClientFeatures {
        ClientFeatures(Arc::new(watch::Sender::new(Served::Expected(Instant::now()))))
    }

    /// The client has declared its features; requests of servers are forwarded to it from now on.
    pub fn serve(&self, offered: Offered, client: Arc<dyn ServedClient>) {
        self.0.send_replace(Served::Client(offered, client));
    }

    /// Many clients may connect, and a server may ask the one with calls under way. `declared` is what
    /// servers are promised at their handshake, before any client calls.
    pub fn serve_callers(&self, declared: Offered) {
        self.0.send_replace(Served::Callers(declared));
    }

    /// There is no client with features, or it has disconnected.
    pub fn clear(&self) {
        self.0.send_replace(Served::NoClient);
    }

    /// The expected client has declared no features.
    pub fn declare_none(&self) {
        self.0.send_if_modified(|served| {
            let is_expected = matches!(served, Served::Expected(_));
            if is_expected {
                *served = Served::NoClient;
            }
            is_expected
        });
    }

    /// The client's features, once they are declared.
    pub(super) async fn offered(&self) -> Offered {
        let mut served = self.0.subscribe();
        let since = match &*served.borrow() {
            Served::Expected(since) => *since,
            Served::NoClient => return Offered::default(),
            Served::Client(offered, _) | Served::Callers(offered) => return *offered,
        };
        let said = served.wait_for(|served| !matches!(served, Served::Expected(_)));
        match timeout_at(since + PATIENCE, said).await {
            Ok(Ok(served)) => match &*served {
                Served::Client(offered, _) | Served::Callers(offered) => *offered,
                Served::Expected(_) | Served::NoClient => Offered::default(),
            },
            // `self` owns the sender, so it cannot be closed.
            Ok(Err(_)) | Err(_) => Offered::default(),
        }
    }

    /// The client that can show a form for a run.
    pub fn form_for(&self, run: Option<&CallingClient>) -> Option<Arc<dyn ServedClient>> {
        self.asked_for(run, RequestKind::Form)
    }

    /// The client that can be asked this for a run: its own, or the only one of this process.
    pub(super) fn asked_for(
        &self,
        run: Option<&CallingClient>,
        kind: RequestKind,
    ) -> Option<Arc<dyn ServedClient>> {
        if let Some(client) = run {
            return client.asked.clone().filter(|_| kind.is_among(client.offered));
        }
        match &*self.0.borrow() {
            Served::Client(offered, client) if kind.is_among(*offered) => Some(client.clone()),
            _ => None,
        }
    }

    /// The only client of this process, if it can lead its user to an address.
    pub fn url_client(&self) -> Option<Arc<dyn ServedClient>> {
        match &*self.0.borrow() {
            Served::Client(offered, client) if offered.urls => Some(client.clone()),
            Served::Client(..) | Served::Callers(_) | Served::Expected(_) | Served::NoClient => None,
        }
    }

    /// True if requests go to the client with calls under way.
    pub(super) fn are_callers(&self) -> bool {
        matches!(&*self.0.borrow(), Served::Callers(_))
    }

    /// The client to ask for a server with these calls under way.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn asked(
        &self,
        callers: &Callers,
        kind: RequestKind,
    ) -> Result<Arc<dyn ServedClient>, &'static str> {
        match &*self.0.borrow() {
            // A call that has gone on as a task asks in another way.
            Served::Client(_, client) => Ok(callers.asked(kind).unwrap_or_else(|_| client.clone())),
            Served::Callers(_) => callers.asked(kind),
            Served::Expected(_) | Served::NoClient => Err("the client has gone"),
        }
    }
}
