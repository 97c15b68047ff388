//! Opens the input from which `ptc serve` receives MCP messages: standard input or an HTTP listener. It also listens
//! for the signals that stop the server, and announces to the user that the input is open.

use crate::cli::flags::http::HttpPlan;
use crate::cli::stop::Stop;
use ptc_server::console::{self, Abort};
use ptc_server::observe::counts::CallCounts;
use ptc_server::server::http::{Access, HttpListener};
use std::io::IsTerminal;
use std::sync::Arc;

/// Shown to a person who runs `ptc serve` at a terminal.
const AT_A_TERMINAL: &str = "ptc is an MCP server now: it waits for a client's messages on standard input, JSON, one a \
    line (Ctrl-D ends it)";

/// The entrance of a server, and what closes it.
pub(super) struct Entrance {
    /// Over HTTP: the listener, and who may use it.
    pub(super) http: Option<(HttpListener, Access)>,
    /// Counts calls for metrics over HTTP.
    pub(super) counts: Option<CallCounts>,
    pub(super) stop: Stop,
}

impl Entrance {
    /// Binds the address, if the server is one over HTTP, and listens for signals.
    pub(super) async fn open(plan: Option<HttpPlan>) -> Result<Entrance, Abort> {
        let Some(HttpPlan { settings, access, tls }) = plan else {
            return Ok(Entrance { http: None, counts: None, stop: Stop::listen(false) });
        };
        let counts = settings.metrics.as_ref().map(|metrics| metrics.calls.clone());
        let address = settings.address;
        let mut listener = HttpListener::bind(settings)
            .await
            .map_err(|error| Abort::usage(format!("cannot listen at {address}: {error}")))?;
        let stop = Stop::listen(true);
        listener.tls = tls.map(Arc::new);
        listener.reloads = Some(stop.reloads.clone());
        Ok(Entrance { http: Some((listener, access)), counts, stop })
    }

    /// True when callers have different tokens.
    pub(super) fn serves_many(&self) -> bool {
        self.http.as_ref().is_some_and(|(_, access)| access.has_many_holders())
    }

    /// True if there is a page for people.
    pub(super) fn has_page(&self) -> bool {
        self.http.as_ref().is_some_and(|(listener, _)| listener.has_page())
    }

    pub(super) fn is_http(&self) -> bool {
        self.http.is_some()
    }

    /// Clients have to show a token.
    pub(super) fn asks_for_tokens(&self) -> bool {
        self.http.as_ref().is_some_and(|(_, access)| access.asks_for_tokens())
    }

    /// Tells a person that the server is there. With `is_page` the link to the page goes to standard output.
    pub(super) fn announce(&self, is_page: bool) -> Result<(), Abort> {
        if let Some((listener, access)) = &self.http {
            console::complain(&format!("listening at {}", listener.url()));
            match listener.page_line(access) {
                Some(line) if is_page => console::write_line(&line)?,
                Some(line) => console::complain(&line),
                None => {}
            }
        } else if std::io::stdin().is_terminal() {
            console::complain(AT_A_TERMINAL);
        }
        Ok(())
    }
}
