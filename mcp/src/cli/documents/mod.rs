//! Tests that the reference tables in `docs/configuration.md`, `docs/library.md` and `docs/troubleshooting.md` (keys,
//! flags, limits, errors) agree with the code. `PTC_BLESS=1 cargo test -p ptc-mcp --lib documents` rewrites them.

#[path = "../../../../tests/src/document_section.rs"]
mod document_section;

use super::Cli;
use super::doctor::remedy;
use super::flags::limits::ALIASES;
use clap::{Arg, Command, CommandFactory};
use document_section::{assert_section, head, row};
use ptc_calls::RunOptions;
use ptc_calls::limits::{LimitTable as _, Limits};
use ptc_server::answer::RefusalReason;
use ptc_server::console::EXIT_CODES;
use ptc_server::tools::session::fault::SessionReason;
use ptc_upstream::config;
use ptc_vm::Reason;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[test]
fn keys_of_the_file() {
    let schema = config::json_schema();
    let mut text = String::from("At the top of the file:\n\n");
    text += &keys(&schema["properties"], &Value::Null);
    text += "\nOf an entry of a server, in every shape:\n\n";
    let entry = &schema["$defs"]["entry"]["properties"];
    text += &keys(entry, &Value::Null);
    text += "\nAlso of an entry of `mcpServers` and `servers`, as clients write them:\n\n";
    text += &keys(&schema["$defs"]["hostEntry"]["properties"], entry);
    assert_section("configuration.md", "keys", &text);
}

#[test]
fn limits_of_a_run() {
    let typed = RunOptions::typed().limits;
    let mut text = head(&["field of `Limits`", "in `RunOptions::typed()`", ""]);
    for limit in Limits::TABLE {
        text += &row(&[&format!("`{}`", limit.field), &(limit.get)(&typed).to_string(), limit.help]);
    }
    assert_section("library.md", "limits", &text);
}

/// A table of keys, without those in `other`.
fn keys(properties: &Value, other: &Value) -> String {
    let mut text = head(&["key", "value", ""]);
    for (key, value) in properties.as_object().expect("properties") {
        if key.starts_with('$') || other.get(key).is_some() {
            continue;
        }
        let kind = value["type"].as_str().map_or("", |kind| kind);
        text += &row(&[&format!("`{key}`"), kind, value["description"].as_str().unwrap_or_default()]);
    }
    text
}

#[test]
fn flags_of_all_commands() {
    let mut flags = Flags::new();
    let mut root = Cli::command();
    root.build();
    collect(&root, "", &mut flags);
    let read = read_from_variables(&root);
    let mut text = head(&["flag", "of", ""]);
    for ((name, value, _), (help, mut commands)) in flags {
        commands.sort();
        commands.dedup();
        let of = if commands.len() > 8 { "most commands".to_owned() } else { commands.join(", ") };
        let variable = if read.contains(&name) { "" } else { " (no variable)" };
        text +=
            &row(&[&format!("`{}`", format!("--{name} {value}").trim()), &of, &format!("{help}{variable}")]);
    }
    assert_section("configuration.md", "flags", &text);
}

/// Flags with a default that depends on the machine.
const DEPENDS_ON_MACHINE: [&str; 2] = ["max-concurrent", "max-total-memory"];

/// Flags of `serve` that are read from the command line alone.
const ON_THE_LINE: [&str; 8] = [
    "files-root",
    "python",
    "python-engine",
    "python-unsandboxed",
    "startup",
    "stdio",
    "tools",
    "upstreams-config",
];

/// The flags that are also variables: those of `serve`, and those of all commands.
fn read_from_variables(root: &Command) -> BTreeSet<String> {
    let serve = root.find_subcommand("serve").expect("a command");
    let names = serve.get_arguments().filter_map(|arg| arg.get_long());
    names.filter(|name| !ON_THE_LINE.contains(name)).map(str::to_owned).collect()
}

/// Help and commands of flags, by name, value, and, for those that mean something else in other commands, help.
type Flags = BTreeMap<(String, String, String), (String, Vec<String>)>;

/// Flags that mean something else in some commands.
const OF_SEVERAL_MEANINGS: [&str; 1] = ["force"];

fn collect(command: &Command, path: &str, flags: &mut Flags) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        let path = format!("{path} {}", inner.get_name());
        for arg in inner.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else {
                continue;
            };
            let meaning = if OF_SEVERAL_MEANINGS.contains(&long) { help(arg) } else { String::new() };
            let key = (long.to_owned(), value(arg), meaning);
            let known = flags.entry(key).or_insert_with(|| (help(arg), Vec::new()));
            known.1.push(path.trim().to_owned());
        }
        collect(inner, &path, flags);
    }
}

fn value(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    arg.get_value_names().map_or_else(String::new, |names| names.join(" "))
}

fn help(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .map(|value| value.get_name().to_owned())
        .collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        let _ = write!(text, " (`{}`)", values.join("`, `"));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(text, " [default: {}]", defaults.join(","));
    }
    if DEPENDS_ON_MACHINE.contains(&arg.get_long().unwrap_or_default()) {
        text.truncate(text.find(" [default").unwrap_or(text.len()));
    }
    text.replace('<', "&lt;")
}

#[test]
fn older_names_of_flags() {
    let mut text = head(&["flag", "older name"]);
    for (name, alias) in ALIASES {
        text += &row(&[&format!("`--{name}`"), &format!("`--{alias}`")]);
    }
    assert_section("configuration.md", "older-flags", &text);
}

#[test]
fn exit_codes() {
    let mut text = head(&["code", "meaning"]);
    for line in EXIT_CODES.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").expect("code and meaning");
        text += &row(&[code, meaning]);
    }
    assert_section("troubleshooting.md", "exit-codes", &text);
}

#[test]
fn reasons_of_programs() {
    let mut text = head(&["`error_kind`", "`reason` of `lisp_eval`", "what to do"]);
    for reason in Reason::ALL {
        let (raw, class) = (format!("`{}`", reason.raw()), format!("`{}`", reason.class().name()));
        text += &row(&[&raw, &class, reason.hint()]);
    }
    assert_section("troubleshooting.md", "reasons", &text);
}

#[test]
fn reasons_of_requests() {
    let about = |reason: RefusalReason| match reason {
        RefusalReason::ArgsError => "Correct the arguments of the call as the message says.",
        RefusalReason::Busy => {
            "Too many requests wait: ask again later, or raise the limit that the message names."
        }
        RefusalReason::UnknownTool => "The server does not offer this tool: see `--tools`.",
        RefusalReason::ShuttingDown => "The server is ending: connect again when it has started.",
        RefusalReason::Cancelled => "Another request of the client cancelled this one.",
        RefusalReason::Session(reason) => unreachable!("{reason} is a row of the sessions below"),
    };
    let mut text = head(&["`reason`", "what to do"]);
    for reason in [
        RefusalReason::ArgsError,
        RefusalReason::Busy,
        RefusalReason::UnknownTool,
        RefusalReason::ShuttingDown,
        RefusalReason::Cancelled,
    ] {
        text += &row(&[&format!("`{}`", reason.name()), about(reason)]);
    }
    let of_session = |reason: SessionReason| match reason {
        SessionReason::Arguments => "Correct the arguments of the session tool.",
        SessionReason::NotFound => "No session of this client has the id: start one.",
        SessionReason::Closed => {
            "The session ended (closed, `--session-ttl`, `--session-idle-timeout`): start another."
        }
        SessionReason::Busy => "A program of the session is running: wait for it.",
        SessionReason::TooMany => "Close a session, or raise the limit that the message names.",
        SessionReason::Unavailable => {
            "`--state` cannot be read or written, or a program of the session does something else when it runs again; the \
             session is as it was stored last."
        }
    };
    for reason in [
        SessionReason::Arguments,
        SessionReason::NotFound,
        SessionReason::Closed,
        SessionReason::Busy,
        SessionReason::TooMany,
        SessionReason::Unavailable,
    ] {
        text += &row(&[&format!("`{}`", reason.name()), of_session(reason)]);
    }
    assert_section("troubleshooting.md", "requests", &text);
}

#[test]
fn findings_about_the_configuration() {
    let mut text = head(&["the finding says", "what to do"]);
    for (said, remedy) in remedy::CONFIGS.iter().chain(&remedy::WARNINGS) {
        text += &row(&[&format!("`{said}`"), remedy]);
    }
    assert_section("troubleshooting.md", "configuration", &text);
}
