//! The commands `ptc auth`, which shows the stored logins, and `ptc logout`, which forgets one.

use super::{failed, find};
use crate::cli::boot::UpstreamFlags;
use ptc_base::oauth::{Forgotten, Grant, LoginFacts};
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact;
use serde_json::{Value, json};

/// Arguments of `ptc logout`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 there is no login any more, 2 there is no such server, or it revokes nothing, 3 it
does not answer."
)]
pub struct LogoutArgs {
    /// The server
    server: String,
    /// Let the server revoke the tokens first; when it does not, the login stays
    #[arg(long)]
    revoke: bool,
    /// The login of this caller of a shared `ptc serve`, by the name of its token
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Arguments of `ptc auth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Shows no token, and asks no server. Exit codes: 0 shown, 2 configuration error.")]
pub struct AuthArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs `ptc logout`.
pub async fn logout(args: LogoutArgs) -> Result<Exit, Abort> {
    let LogoutArgs { server, revoke, owner, upstreams } = args;
    let login = find(&upstreams, &server, owner.as_deref()).await?;
    let forgotten = login.forget(revoke).await.map_err(failed)?;
    console::write_line(&match (forgotten, revoke) {
        (Forgotten::Nothing, _) => format!("there was no login at {server}"),
        (Forgotten::Login, _) => format!("logged out of {server}"),
        (Forgotten::Revoked, _) => format!("logged out of {server}; its tokens are revoked"),
        (Forgotten::Unreadable, false) => {
            format!("logged out of {server}; the stored login could not be read")
        }
        (Forgotten::Unreadable, true) => {
            format!("logged out of {server}; the stored login could not be read, so no token was revoked")
        }
    })?;
    Ok(Exit::Ok)
}

/// A login, and the name of its server if it is configured.
struct Row {
    server: Option<String>,
    address: String,
    grant: Option<Grant>,
    login: Option<LoginFacts>,
}

/// Runs `ptc auth`.
pub async fn auth(args: AuthArgs) -> Result<Exit, Abort> {
    let options = args.upstreams.logins.options()?;
    let (servers, _) = args.upstreams.entries(&args.upstreams.files())?;
    let mut rows = Vec::new();
    for entry in &servers {
        let made = entry.transport.login(options.clone(), redact::secrets()).await;
        let Some(login) = made.map_err(Abort::usage)? else { continue };
        rows.push(Row {
            server: Some(entry.name.to_string()),
            address: entry.transport.describe(),
            grant: Some(login.grant()),
            login: login.facts().await.map_err(failed)?,
        });
    }
    let store = options.store.as_ref();
    if let Some(store) = store {
        // Logins of servers that are not configured any more, or in another file.
        for facts in store.all(redact::secrets()).await.map_err(failed)? {
            if !rows.iter().any(|row| row.login.as_ref() == Some(&facts)) {
                rows.push(Row {
                    server: None,
                    address: facts.server.clone(),
                    grant: None,
                    login: Some(facts),
                });
            }
        }
    }
    let place = store.map_or_else(|| "nowhere".to_owned(), |store| store.describe());
    match args.json {
        true => console::write_json(&json!({
            "store": place, "logins": rows.iter().map(json_row).collect::<Vec<_>>(),
        }))?,
        false => console::write(&text_report(&rows, &place))?,
    }
    Ok(Exit::Ok)
}

fn grant_name(grant: Option<Grant>) -> Option<&'static str> {
    grant.map(Grant::name)
}

fn json_row(row: &Row) -> Value {
    let mut json = json!({
        "server": row.server, "address": row.address, "grant": grant_name(row.grant),
        "logged_in": row.login.is_some(),
    });
    if let Some(login) = &row.login {
        json["owner"] = login.owner.as_deref().into();
        json["issuer"] = login.issuer.as_str().into();
        json["scopes"] = login.scopes.as_str().into();
        json["missing_scopes"] = login.missing.as_str().into();
        json["expires_in"] = login.expires_in.into();
        json["renewable"] = login.is_renewable.into();
        json["refreshed_at"] = login.refreshed_at.into();
    }
    json
}

fn text_report(rows: &[Row], place: &str) -> String {
    let style = Style::stdout();
    let mut report = String::new();
    for row in rows {
        let name = row.server.as_deref().unwrap_or(&row.address);
        report.push_str(&format!("{}: ", style.bold(name)));
        let Some(login) = &row.login else {
            report.push_str("no login\n");
            continue;
        };
        if let Some(owner) = &login.owner {
            report.push_str(&format!("{owner} at "));
        }
        report.push_str(&format!("{}, {}", login.issuer, end(login)));
        if !login.scopes.is_empty() {
            report.push_str(&format!(", scopes {}", login.scopes));
        }
        if !login.missing.is_empty() {
            report.push_str(&format!("; a call needs the scopes {}: ptc login {name}", login.missing));
        }
        report.push('\n');
    }
    if rows.is_empty() {
        report.push_str("no server with a login is configured\n");
    }
    report.push_str(&format!("stored in {place}\n"));
    report
}

/// When the access token ends, and what then.
fn end(login: &LoginFacts) -> String {
    let then = if login.is_renewable { ", renewed by itself" } else { "" };
    match login.expires_in {
        None => format!("no known end{then}"),
        Some(seconds) if seconds > 0 => format!("ends in {seconds} s{then}"),
        Some(_) if login.is_renewable => "renewed with the next call".to_owned(),
        Some(_) => "ended".to_owned(),
    }
}
