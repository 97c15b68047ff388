//! The commands `ptc login`, `ptc logout` and `ptc auth`, which make, delete and list OAuth logins at upstream servers.
//!
//! - `ways`: how a person logs in: a browser, a pasted address, another device. `browser`: opens a browser.
//! - `stored`: `ptc logout` and `ptc auth`. `flags`: what holds for all logins.

mod browser;
mod flags;
mod stored;
mod ways;

pub use flags::LoginFlags;
pub use stored::{AuthArgs, LogoutArgs, auth, logout};

use super::boot::UpstreamFlags;
use ptc_base::oauth::{Grant, LoginOptions, LoginSummary, OAuthFault, Scopes, ServerLogin};
use ptc_calls::tools::nearest;
use ptc_server::console::{self, Abort, Exit};
use ptc_server::redact;
use ways::Way;

/// Arguments of `ptc login`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc login linear
  ptc login linear --no-browser     over ssh: open the address anywhere, paste where it led
  ptc login linear --device         type a short code on another device

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
    /// Show a short code to type on another device, if the server can do that
    #[arg(long, conflicts_with_all = ["no_browser", "paste"])]
    device: bool,
    /// Scopes to ask for, separated by blanks [default: those that the server names]
    #[arg(long, value_name = "SCOPES")]
    scopes: Option<String>,
    /// Log in for this caller of a shared `ptc serve`, by the name of its token, where the entry says "identity": "user"
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// The authorization server to use, if the entry names none. A client that is configured with a secret is used only at
    /// an issuer that is named
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs `ptc login`.
pub async fn run(args: LoginArgs) -> Result<Exit, Abort> {
    let login = find(&args.upstreams, &args.server, args.owner.as_deref()).await?;
    let scopes = args.scopes.as_deref().map(Scopes::parse);
    if let Some(issuer) = &args.issuer {
        login.confirm_issuer(issuer);
    }
    let grant = login.grant();
    if grant.is_unattended() {
        let facts = login.obtain().await.map_err(failed)?;
        report(&args.server, &facts.issuer, &facts.scopes)?;
        return Ok(Exit::Ok);
    }
    let way = match (args.device || grant == Grant::Device, args.paste, args.no_browser) {
        (true, ..) => Way::Device,
        (false, true, _) => Way::Paste,
        (false, false, true) => Way::Either,
        (false, false, false) if browser::is_there() => Way::Browser,
        (false, false, false) => Way::Either,
    };
    let LoginSummary { issuer, scopes, expires_in, is_renewable } =
        ways::log_in(&login, scopes.as_ref(), way).await?;
    report(&args.server, &issuer, &scopes)?;
    if let Some(seconds) = expires_in.filter(|_| !is_renewable) {
        console::write_line(&format!(
            "the login ends in {seconds} s: the server gives nothing to renew it with"
        ))?;
    }
    console::write_line(&format!("next: ptc tools {}", args.server))?;
    Ok(Exit::Ok)
}

fn report(server: &str, issuer: &str, scopes: &str) -> Result<(), Abort> {
    let scopes = if scopes.is_empty() { String::new() } else { format!(", scopes {scopes}") };
    console::write_line(&format!("logged in to {server} at {issuer}{scopes}"))
}

/// The login of a configured server.
async fn find(flags: &UpstreamFlags, server: &str, owner: Option<&str>) -> Result<ServerLogin, Abort> {
    let (servers, _) = flags.entries(&flags.files())?;
    let Some(entry) = servers.iter().find(|entry| *entry.name == *server) else {
        let known: Vec<&str> = servers.iter().map(|entry| &*entry.name).collect();
        let meant = match nearest(server, &known) {
            Some(near) => format!("; did you mean {near}?"),
            None => "; `ptc tools` lists them".to_owned(),
        };
        return Err(Abort::usage(format!("no server {server} is configured{meant}")));
    };
    let options = LoginOptions { owner: owner.map(Into::into), ..flags.logins.options()? };
    let login = entry.transport.login(options, redact::secrets()).await.map_err(Abort::usage)?;
    login.ok_or_else(|| {
        Abort::usage(format!(
            "{server} has no login: it is no server at an address, or its headers say who asks"
        ))
    })
}

fn failed(fault: OAuthFault) -> Abort {
    let exit = if matches!(fault, OAuthFault::Unusable(_)) { Exit::Usage } else { Exit::Upstream };
    Abort { exit, message: format!("no login: {fault}") }
}
