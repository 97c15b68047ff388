//! The command `ptc login`, with which a person logs in at a server.
//!
//! - `browser`: whether and how a browser is opened.

mod browser;

use super::boot::UpstreamFlags;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::redact;
use ptc_runtime::files;
use ptc_runtime::oauth::{
    AddressReader, LoginSummary, LoopbackListener, OAuthFault, PendingLogin, Scopes, ServerLogin, TokenStore,
};
use ptc_runtime::tasks::{self, TaskOwner};
use ptc_runtime::tools::nearest;
use std::io::BufRead;
use std::time::Duration;
use tokio::time::timeout;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// Arguments of `ptc login`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc login linear
  ptc login linear --no-browser     over ssh: open the address anywhere, paste where it led

The tokens are stored in ~/.local/state/ptc/tokens, for this user alone. Exit codes: 0 logged in, 2 there is no such
server, or it has no login, 3 the login failed.")]
pub struct LoginArgs {
    /// The server
    server: String,
    /// Print the address instead of opening a browser; the address that the browser ends at can be pasted
    #[arg(long)]
    no_browser: bool,
    /// As --no-browser, and do not listen for the browser: only what is pasted counts
    #[arg(long)]
    paste: bool,
    /// Scopes to ask for, separated by blanks [default: those that the server names]
    #[arg(long, value_name = "SCOPES")]
    scopes: Option<String>,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs the command.
pub async fn run(args: LoginArgs) -> Result<Exit, Abort> {
    let login = find(&args.upstreams, &args.server).await?;
    let scopes = args.scopes.as_deref().map(Scopes::parse);
    let way = match (args.paste, args.no_browser) {
        (true, _) => Way::Paste,
        (false, true) => Way::Either,
        (false, false) => {
            if browser::is_there() {
                Way::Browser
            } else {
                Way::Either
            }
        }
    };
    let summary = log_in(&login, scopes.as_ref(), way).await?;
    report(&args.server, &summary)?;
    Ok(Exit::Ok)
}

/// The login of a configured server.
async fn find(flags: &UpstreamFlags, server: &str) -> Result<ServerLogin, Abort> {
    let (servers, _) = flags.entries(&flags.files())?;
    let Some(entry) = servers.iter().find(|entry| *entry.name == *server) else {
        let known: Vec<&str> = servers.iter().map(|entry| &*entry.name).collect();
        let meant = match nearest(server, &known) {
            Some(near) => format!("; did you mean {near}?"),
            None => "; `ptc tools` lists them".to_owned(),
        };
        return Err(Abort::usage(format!("no server {server} is configured{meant}")));
    };
    let store = files::state_folder().map(|folder| TokenStore::in_state_folder(&folder));
    let login = entry.transport.login(store, redact::secrets()).await.map_err(Abort::usage)?;
    login.ok_or_else(|| {
        Abort::usage(format!(
            "{server} has no login: it is no server at an address, or its headers say who asks"
        ))
    })
}

/// How the answer of the authorization server comes back.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// A browser that is opened on this machine brings it.
    Browser,
    /// A browser on this machine brings it, or a person pastes it.
    Either,
    /// A person pastes it.
    Paste,
}

async fn log_in(login: &ServerLogin, scopes: Option<&Scopes>, way: Way) -> Result<LoginSummary, Abort> {
    let listener = login.listen().await.map_err(|error| Abort {
        exit: Exit::Io,
        message: format!("cannot listen for the browser: {error}"),
    })?;
    let reader = if way == Way::Browser { AddressReader::Browser } else { AddressReader::Person };
    let pending = login.begin(&listener.redirect_uri(), scopes, reader).await.map_err(failed)?;
    let answered = timeout(PATIENCE, answer(login, pending, listener, way)).await;
    let late = || Abort { exit: Exit::Upstream, message: "nobody has logged in".to_owned() };
    answered.map_err(|_| late())?
}

/// Shows the way to the login, waits for its answer, and uses it.
async fn answer(
    login: &ServerLogin,
    pending: PendingLogin,
    listener: LoopbackListener,
    way: Way,
) -> Result<LoginSummary, Abort> {
    if way == Way::Browser {
        let address = listener.start_address();
        console::write_line(&format!("log in at {} in the browser: {address}", pending.issuer()))?;
        browser::open(&address);
    } else {
        console::write_line(&format!(
            "open this address in a browser, anywhere:\n\n  {}\n",
            pending.address()
        ))?;
        console::write_line("then paste the address at which the browser ends, even if it shows an error:")?;
    }
    let pasted = async {
        match way {
            Way::Browser => std::future::pending().await,
            Way::Either => match read_line().await {
                Some(line) => Some(line),
                // Without anything to read, the browser can still come.
                None => std::future::pending().await,
            },
            Way::Paste => read_line().await,
        }
    };
    let arrived = async {
        match way {
            Way::Browser | Way::Either => listener.wait(&pending).await,
            Way::Paste => std::future::pending().await,
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

/// A line of standard input; `None` at its end.
async fn read_line() -> Option<String> {
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

fn failed(fault: OAuthFault) -> Abort {
    let exit = if matches!(fault, OAuthFault::Unusable(_)) { Exit::Usage } else { Exit::Upstream };
    Abort { exit, message: format!("no login: {fault}") }
}

fn report(server: &str, summary: &LoginSummary) -> Result<(), Abort> {
    let LoginSummary { issuer, scopes, expires_in, is_renewable } = summary;
    let scopes = if scopes.is_empty() { String::new() } else { format!(", scopes {scopes}") };
    console::write_line(&format!("logged in to {server} at {issuer}{scopes}"))?;
    match (is_renewable, expires_in) {
        (true, _) | (false, None) => {}
        (false, Some(seconds)) => {
            console::write_line(&format!(
                "the login ends in {seconds} s: the server gives nothing to renew it with"
            ))?;
        }
    }
    console::write_line(&format!("next: ptc tools {server}"))
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
