//! The command `ptc ui`, which prints a link to a web page of runs, approvals, servers and sessions, and starts a
//! server for that page unless `ptc up` runs one.

use crate::cli::background::page_link;
use crate::cli::boot::UpstreamFlags;
use crate::cli::flags::variables;
use crate::cli::{Cli, Commands, serve};
use clap::{CommandFactory, FromArgMatches};
use ptc_server::console::{self, Abort, Exit};
use ptc_server::server::http::page_line;
use ptc_server::tools::owned_table::random_id;
use std::ffi::OsString;

/// Arguments of `ptc ui`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc ui
  ptc ui --upstreams-config .mcp.json

Prints a link that works once. With `ptc up`, and without flags, the page is that of its process. Otherwise the command
starts the servers, and a server at a free port of this machine, and ends with Ctrl-C: clients that show the token in
PTC_HTTP_AUTH_TOKEN can use it, and without that variable none can. `ptc serve --http --ui` has the page of its own
runs. Exit codes: 0 done, 2 configuration error.")]
pub struct UiArgs {
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Random bytes of a token.
const TOKEN: usize = 32;

/// Runs the command.
pub fn command(_: &UiArgs) -> Result<Exit, Abort> {
    let given: Vec<OsString> = std::env::args_os().skip(1).skip_while(|word| word != "ui").skip(1).collect();
    if given.is_empty()
        && let Some(link) = page_link()?
    {
        console::write_line(&page_line(&link))?;
        return Ok(Exit::Ok);
    }
    let mut words: Vec<OsString> =
        ["ptc", "serve", "--http", "127.0.0.1:0", "--ui"].map(OsString::from).into();
    let has_token = variables::read("http-auth-token", variables::text)?.is_some();
    if !has_token {
        // The page is all that is asked for: its MCP endpoint is closed to other users of this machine.
        let token = random_id::<TOKEN>("").ok_or_else(|| Abort::usage("the system has no random numbers"))?;
        // In one word: a token may begin like a flag.
        words.push(format!("--http-auth-token={token}").into());
    }
    words.extend(given);
    let matches = Cli::command().try_get_matches_from(words);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)).map(|cli| cli.command) {
        Ok(Commands::Serve(mut args)) => {
            args.is_page = true;
            serve::command(*args)
        }
        Ok(_) => Err(Abort::usage("these flags are none of a server")),
        Err(error) => Err(Abort::usage(error.to_string())),
    }
}
