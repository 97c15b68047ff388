//! The commands `ptc add` and `ptc remove`, which change one server of the configuration.

use super::file::EditRight;
use super::service::ServiceToAdd;
use super::target::{Target, path_text, quoted};
use crate::import::convert::set_working_folder;
use crate::import::own::is_this_program;
use clap::Command;
use ptc_base::net::Url;
use ptc_base::secrets::names;
use ptc_server::console::{self, Abort, Exit};
use ptc_server::redact;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `ptc add`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc add fs npx -y @modelcontextprotocol/server-filesystem /tmp
  ptc add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- github-mcp-server stdio
  ptc add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
  ptc add api --openapi http://127.0.0.1:8000/openapi.json

Flags come before the program. Write -- before a program whose arguments have names of these flags.

${VAR} is filled from the environment when servers start. Exit codes: 0 written, 2 wrong arguments or there is such
a server already (see --force), 4 not written.")]
pub struct AddArgs {
    /// What programs call the server
    name: String,
    /// Address of a remote server
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// The OpenAPI document of a JSON service, an address or a file: its operations become tools
    #[arg(long, value_name = "URL|FILE", conflicts_with_all = ["url", "command"])]
    openapi: Option<String>,
    /// The address of that service, if the document does not say it
    #[arg(long, value_name = "URL", requires = "openapi")]
    base_url: Option<String>,
    /// Operations that become tools: operationIds, patterns with *, or tag:NAME; may be given several times [default:
    /// all that read]
    #[arg(long, value_name = "OPERATION", requires = "openapi")]
    include: Vec<String>,
    /// The program that starts a server on this machine, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A variable for the program; may be given several times
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with = "url")]
    env: Vec<String>,
    /// A header for the remote server; may be given several times
    #[arg(long, short = 'H', value_name = "NAME: VALUE", conflicts_with = "command")]
    header: Vec<String>,
    /// The folder to start the program in
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    cwd: Option<String>,
    /// What models read about the server
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Replace a server of this name
    #[arg(long)]
    force: bool,
    /// The file to write [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Arguments of `ptc remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 removed, 2 there is no such server, 4 not written.")]
pub struct RemoveArgs {
    /// The server
    name: String,
    /// The file to change [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Runs `ptc add`.
pub async fn add(args: AddArgs) -> Result<Exit, Abort> {
    let AddArgs { name, url, openapi, base_url, include, command, env, header, cwd, description, force, to } =
        args;
    if name.is_empty() || name.contains(['/', char::from(0)]) {
        return Err(Abort::usage(format!(
            "{name:?} is no name for a server: it has a character at least, and no slash"
        )));
    }
    if openapi.is_none() && (base_url.is_some() || !include.is_empty()) {
        return Err(Abort::usage("--base-url and --include belong to --openapi"));
    }
    let mut entry = Map::new();
    let mut report = Vec::new();
    if let Some(document) = openapi {
        let service = ServiceToAdd { document, base_url, include, headers: &header };
        report = service.describe(&mut entry).await?;
        pairs(&mut entry, "headers", &header, ':')?;
    } else if let Some(url) = url {
        check_address(&name, &url)?;
        entry.insert("url".into(), url.into());
        pairs(&mut entry, "headers", &header, ':')?;
    } else if command.is_empty() {
        let name = quoted(&name);
        return Err(Abort::usage(format!(
            "say what starts the server, or where it is: ptc add {name} -- npx -y PACKAGE, ptc add {name} https://HOST/mcp, or ptc add \
             {name} --openapi URL"
        )));
    } else {
        program(&mut entry, command, &env, cwd)?;
    }
    entry.extend(description.map(|text| ("description".to_owned(), text.into())));
    let secrets: Vec<String> = names::in_entry(&entry).into_iter().map(Cow::into_owned).collect();
    for secret in &secrets {
        // `ptc doctor` reports secrets that cannot be redacted.
        let _ = redact::secrets().register(secret);
    }
    let target = Target::read(&EditRight::wait()?, Target::find(to.as_deref())?, false)?;
    if target.entries().contains_key(&name) && !force {
        let path = target.path().display();
        return Err(Abort::usage(format!("{path} has a server {name} already; --force replaces it")));
    }
    target.set(&name, entry)?;
    target.write()?;
    console::write_line(&format!("added {name} to {}", target.path().display()))?;
    report.iter().try_for_each(|line| console::write_line(line))?;
    if !secrets.is_empty() {
        console::write_line("it holds a secret as it is; ${NAME} would keep that out of the file")?;
    }
    console::write_line(&format!("next: ptc tools {}{}", quoted(&name), target.flag()))?;
    Ok(Exit::Ok)
}

/// Refuses what is no address of a server.
fn check_address(name: &str, url: &str) -> Result<(), Abort> {
    if !is_address(url) {
        return Err(Abort::usage(format!(
            "{url} is no address; a program comes after --: ptc add {} -- {}",
            quoted(name),
            quoted(url)
        )));
    }
    // What is filled in from the environment is read when the server starts.
    if !url.contains("${")
        && let Err(why) = Url::parse(url)
    {
        return Err(Abort::usage(format!("{url} is no address: {why}; write https://host/path")));
    }
    Ok(())
}

/// Adds the program that starts a server, with its variables and its folder.
fn program(
    entry: &mut Map<String, Value>,
    command: Vec<String>,
    env: &[String],
    cwd: Option<String>,
) -> Result<(), Abort> {
    if let Some(address) = command.first().filter(|program| program.contains("://")) {
        return Err(Abort::usage(format!(
            "{address} is no address of a server: it begins with https:// or http://"
        )));
    }
    if command.first().is_some_and(|program| is_this_program(program)) {
        return Err(Abort::usage("the command is ptc itself, which cannot be its own server"));
    }
    let mut words = command.into_iter().map(Value::from);
    entry.extend(words.next().map(|program| ("command".to_owned(), program)));
    entry.insert("args".into(), words.collect());
    pairs(entry, "env", env, '=')?;
    let here = std::env::current_dir()?;
    match cwd {
        Some(folder) => {
            entry.insert("cwd".into(), path_text(&here.join(folder))?.into());
        }
        None => set_working_folder(entry, Some(&here)),
    }
    if entry.contains_key("cwd") {
        path_text(&here)?;
    }
    Ok(())
}

/// Puts `--` before the program in the words of a command line `ptc add NAME PROGRAM ARGUMENT…`. `command` defines the
/// flags of `ptc add`.
pub fn separated(command: &Command, words: Vec<OsString>) -> Result<Vec<OsString>, Abort> {
    let Some(add) = command.find_subcommand("add") else { return Ok(words) };
    let text = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let value_follows = |word: &str| {
        let all = || add.get_arguments().chain(command.get_arguments());
        let found = match word.strip_prefix("--") {
            Some(name) => all().find(|arg| arg.get_long() == Some(name)),
            None => all().find(|arg| arg.get_short().is_some_and(|short| word == format!("-{short}"))),
        };
        found.is_some_and(|arg| arg.get_action().takes_values())
    };
    let next_word = |mut at: usize| {
        while text(at).starts_with('-') && text(at) != "--" {
            at += if value_follows(text(at)) { 2 } else { 1 };
        }
        at
    };
    let at = next_word(1);
    let name = next_word(at + 1);
    let program = next_word(name + 1);
    if text(at) != "add" || program >= words.len() || text(program) == "--" || is_address(text(program)) {
        return Ok(words);
    }
    let (before, after) = words.split_at(program);
    let is_flag = |word: &&OsString| {
        let name = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
        add.get_arguments().any(|arg| arg.get_long() == Some(name))
    };
    if after.iter().take_while(|word| *word != "--").any(|word| is_flag(&word))
        || after.iter().any(|word| word == "--")
    {
        let flags = "write the flags of ptc first, then -- and the program";
        return Err(Abort::usage(format!(
            "which flags belong to the program? {flags}: ptc add {} FLAGS -- {} …",
            quoted(text(name)),
            quoted(text(program))
        )));
    }
    Ok([before, &[OsString::from("--")], after].concat())
}

fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// Runs `ptc remove`.
pub fn remove(args: &RemoveArgs) -> Result<Exit, Abort> {
    let target = Target::read(&EditRight::wait()?, Target::find(args.from.as_deref())?, false)?;
    let path = target.path().display();
    if !target.remove(&args.name) {
        let known: Vec<String> = target.entries().into_iter().map(|(name, _)| name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Abort::usage(format!("{path} has no server {}; it has {known}", args.name)));
    }
    target.write()?;
    console::write_line(&format!("removed {} from {path}", args.name))?;
    Ok(Exit::Ok)
}

/// Adds `NAME=VALUE` texts as an object.
fn pairs(entry: &mut Map<String, Value>, key: &str, texts: &[String], between: char) -> Result<(), Abort> {
    let mut pairs = Map::new();
    for text in texts {
        let Some((name, value)) = text.split_once(between).filter(|(name, _)| !name.trim().is_empty()) else {
            // The message does not repeat the text, which may be a secret without its name.
            return Err(Abort::usage(format!("{key}: expected NAME{between}VALUE")));
        };
        pairs.insert(name.trim().to_owned(), value.trim().into());
    }
    if !pairs.is_empty() {
        entry.insert(key.into(), pairs.into());
    }
    Ok(())
}
