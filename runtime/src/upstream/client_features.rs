//! What servers may ask of the client that we serve: questions to a person (elicitation), and the folders that it works
//! in (roots). They are declared to a server only when the client offers them, so that has to be known when the server
//! is greeted.

use super::callers::{Asks, Callers};
use crate::run::client::{Offered, ServedClient};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long, from the beginning, a greeting waits for a client that has not said what it offers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of the parameters of a request that is passed on.
const LARGEST: usize = 64 << 10;

/// A request of a server as the client is sent it.
pub(super) struct PassedRequest {
    pub(super) asks: Asks,
    pub(super) method: &'static str,
    /// JSON text.
    pub(super) params: String,
}

impl Offered {
    /// What servers are told about it, JSON object text.
    pub(super) fn capabilities(self) -> &'static str {
        match (self.elicitation, self.roots) {
            (false, false) => "{}",
            (true, false) => r#"{"elicitation":{}}"#,
            (false, true) => r#"{"roots":{}}"#,
            (true, true) => r#"{"elicitation":{},"roots":{}}"#,
        }
    }

    /// What the client is sent for this request of a server; `None` when it does not offer the like.
    ///
    /// # Errors
    /// A request that cannot be passed on.
    pub(super) fn forwarded(
        self,
        server: &str,
        method: &str,
        params: &str,
    ) -> Option<Result<PassedRequest, &'static str>> {
        match method {
            "roots/list" if self.roots => {
                Some(Ok(PassedRequest { asks: Asks::Roots, method: "roots/list", params: "{}".to_owned() }))
            }
            "elicitation/create" if self.elicitation => Some(form(server, params)),
            _ => None,
        }
    }
}

/// A form with the name of the server that wants it filled in, since its person sees our name otherwise.
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
    // A message to the client is one line; in JSON, breaks stand between values only.
    let schema = schema.get().replace(['\n', '\r'], " ");
    let params = format!("{{\"message\":{message},\"requestedSchema\":{schema}}}");
    Ok(PassedRequest { asks: Asks::Form, method: "elicitation/create", params })
}

#[derive(Clone)]
enum Served {
    /// It has not said what it offers.
    Expected(Instant),
    Nobody,
    Client(Offered, Arc<dyn ServedClient>),
    /// There are many: those whose calls are under way. This is what is declared for all of them.
    Callers(Offered),
}

/// The client that this process serves, as its servers know it. Clones share it.
#[derive(Clone)]
pub struct ClientFeatures(Arc<watch::Sender<Served>>);

impl Default for ClientFeatures {
    /// There is no client.
    fn default() -> ClientFeatures {
        ClientFeatures(Arc::new(watch::Sender::new(Served::Nobody)))
    }
}

impl std::fmt::Debug for ClientFeatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &*self.0.borrow() {
            Served::Expected(_) => "ClientFeatures(expected)",
            Served::Nobody => "ClientFeatures(nobody)",
            Served::Client(..) => "ClientFeatures(a client)",
            Served::Callers(_) => "ClientFeatures(callers)",
        })
    }
}

impl ClientFeatures {
    /// There will be a client: servers are greeted once it has said what it offers.
    pub fn expected() -> ClientFeatures {
        ClientFeatures(Arc::new(watch::Sender::new(Served::Expected(Instant::now()))))
    }

    /// There is a client, and requests of servers go to it from now on.
    pub fn serve(&self, offered: Offered, client: Arc<dyn ServedClient>) {
        self.0.send_replace(Served::Client(offered, client));
    }

    /// There may be many clients: a server may ask the one whose calls are under way there. It is told that they offer
    /// this, since it is greeted before it is known who will call.
    pub fn serve_callers(&self, declared: Offered) {
        self.0.send_replace(Served::Callers(declared));
    }

    /// There is no client that offers anything, or it has gone.
    pub fn nobody(&self) {
        self.0.send_replace(Served::Nobody);
    }

    /// The client that is expected does not say what it offers.
    pub fn says_nothing(&self) {
        self.0.send_if_modified(|served| {
            let is_expected = matches!(served, Served::Expected(_));
            if is_expected {
                *served = Served::Nobody;
            }
            is_expected
        });
    }

    /// What the client offers, once it has said so.
    pub(super) async fn offered(&self) -> Offered {
        let mut served = self.0.subscribe();
        let since = match &*served.borrow() {
            Served::Expected(since) => *since,
            Served::Nobody => return Offered::default(),
            Served::Client(offered, _) | Served::Callers(offered) => return *offered,
        };
        let said = served.wait_for(|served| !matches!(served, Served::Expected(_)));
        match timeout_at(since + PATIENCE, said).await {
            Ok(Ok(served)) => match &*served {
                Served::Client(offered, _) | Served::Callers(offered) => *offered,
                Served::Expected(_) | Served::Nobody => Offered::default(),
            },
            // The sender is this very value.
            Ok(Err(_)) | Err(_) => Offered::default(),
        }
    }

    /// Whether it matters whose calls are under way.
    pub(super) fn are_callers(&self) -> bool {
        matches!(&*self.0.borrow(), Served::Callers(_))
    }

    /// The client to be asked by a server at which these calls are under way.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn asked(&self, callers: &Callers, asks: Asks) -> Result<Arc<dyn ServedClient>, &'static str> {
        match &*self.0.borrow() {
            Served::Client(_, client) => Ok(client.clone()),
            Served::Callers(_) => callers.asked(asks),
            Served::Expected(_) | Served::Nobody => Err("the client has gone"),
        }
    }
}
