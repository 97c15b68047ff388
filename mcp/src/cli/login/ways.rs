//! Performs the OAuth login at an upstream server in one of three ways: by a browser on this machine, a pasted redirect
//! address, or a code typed on another device.

use super::{browser, failed};
use ptc_base::oauth::{AddressReader, LoginSummary, LoopbackListener, PendingLogin, Scopes, ServerLogin};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::tools::visible::visible_line;
use ptc_server::console::{self, Abort, Exit};
use std::io::BufRead;
use std::time::Duration;
use tokio::time::timeout;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// How the answer of the authorization server comes back.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// A browser that is opened on this machine brings it.
    Browser,
    /// A browser on this machine brings it, or a person pastes it.
    Either,
    /// A person pastes it.
    Paste,
    /// The server is asked until a person has typed a code on another device.
    Device,
}

/// Logs a person in.
pub(super) async fn log_in(
    login: &ServerLogin,
    scopes: Option<&Scopes>,
    way: Way,
) -> Result<LoginSummary, Abort> {
    let work = async {
        match way {
            Way::Device => on_device(login, scopes).await,
            Way::Browser | Way::Either | Way::Paste => with_browser(login, scopes, way).await,
        }
    };
    let late = || Abort { exit: Exit::Upstream, message: "there was no answer to the login".to_owned() };
    timeout(PATIENCE, work).await.map_err(|_| late())?
}

async fn on_device(login: &ServerLogin, scopes: Option<&Scopes>) -> Result<LoginSummary, Abort> {
    let pending = login.begin_device(scopes).await.map_err(failed)?;
    console::write_line(&format!(
        "open {} and type the code {}",
        visible_line(pending.address()),
        visible_line(pending.user_code())
    ))?;
    if let Some(address) = pending.complete_address() {
        console::write_line(&format!("or open {}", visible_line(address)))?;
    }
    login.finish_device(pending).await.map_err(failed)
}

async fn with_browser(login: &ServerLogin, scopes: Option<&Scopes>, way: Way) -> Result<LoginSummary, Abort> {
    let listener = login.listen().await.map_err(|error| Abort {
        exit: Exit::Io,
        message: format!("cannot listen for the browser: {error}"),
    })?;
    let reader = if way == Way::Browser { AddressReader::Browser } else { AddressReader::Person };
    let pending = login.begin(&listener.redirect_uri(), scopes, reader).await.map_err(failed)?;
    if way == Way::Browser {
        let address = listener.start_address();
        console::write_line(&format!("log in at {} in the browser: {address}", pending.issuer()))?;
        browser::open(&address);
    } else {
        let address = pending.address();
        console::write_line(&format!("open this address in a browser, anywhere:\n\n  {address}\n"))?;
        console::write_line("then paste the address at which the browser ends, even if it shows an error:")?;
    }
    answered(login, pending, listener, way).await
}

/// Waits for the answer, and uses it.
async fn answered(
    login: &ServerLogin,
    pending: PendingLogin,
    listener: LoopbackListener,
    way: Way,
) -> Result<LoginSummary, Abort> {
    let pasted = async {
        match (way, read_line(way).await) {
            (_, Some(line)) => Some(line),
            (Way::Paste, None) => None,
            // Without anything to read, the browser can still come.
            (Way::Browser | Way::Either | Way::Device, None) => std::future::pending().await,
        }
    };
    let arrived = async {
        match way {
            Way::Browser | Way::Either => listener.wait(&pending).await,
            Way::Paste | Way::Device => std::future::pending().await,
        }
    };
    tokio::select! {
        line = pasted => {
            let line = line.ok_or_else(|| Abort::usage("no address was pasted"))?;
            login.finish(pending, query_of(&line)).await.map_err(failed)
        }
        arrived = arrived => {
            let arrived = arrived?;
            let finished = login.finish(pending, arrived.query()).await;
            arrived.answer(finished.is_ok()).await;
            finished.map_err(failed)
        }
    }
}

/// A line of standard input, where a person may paste; `None` at its end.
async fn read_line(way: Way) -> Option<String> {
    if !matches!(way, Way::Either | Way::Paste) {
        return None;
    }
    let read = tasks::blocking(TaskOwner::Process, |_| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).ok().filter(|bytes| *bytes > 0).map(|_| line)
    });
    read.await.flatten()
}

/// The query of a pasted address, or the text itself.
fn query_of(line: &str) -> &str {
    let line = line.trim();
    let query = line.split_once('?').map_or(line, |(_, query)| query);
    query.split('#').next().unwrap_or(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pasted_may_be_an_address_or_its_query() {
        for text in ["http://127.0.0.1:1/callback?code=a&state=b\n", " code=a&state=b ", "x?code=a&state=b#y"]
        {
            assert_eq!(query_of(text), "code=a&state=b");
        }
    }
}
