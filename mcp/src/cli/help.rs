//! Rearranges the `--help` text of every command: groups its flags, describes only the common ones, and joins the lines
//! of paragraphs so that the terminal wraps them.
//!
//! The manual pages come from the same definitions before they are shaped, so they describe every flag.

use clap::{Arg, ArgAction, Command};

/// The heading of flags by the beginnings of their names; the first row that fits counts.
const GROUPS: &[(&str, &str)] = &[
    ("HTTP", "http tls-"),
    ("Python", "python"),
    ("Rules and approvals", "policy pin approval"),
    ("Preludes", "prelude expose sessions-allow-prelude-write"),
    ("Sessions", "session max-session"),
    ("Tasks in words", "agentic"),
    ("Records of calls", "debug trace turn-log max-debug record otlp"),
    ("Runs that outlive the process", "state lease resume"),
    ("proxy-dispatch", "proxy"),
    ("Large results and files", "files utils max-spill"),
    ("Lists of tools in descriptions", "catalog-mode catalog-inline"),
    (
        "Servers",
        "upstreams-config stdio handshake-timeout tool- catalog-snapshot aggregator token-store client-metadata \
         learn-shapes startup",
    ),
    (
        "Load",
        "max-concurrent max-suspended max-total-memory max-parked max-tasks detach-after max-frame-bytes",
    ),
];

/// The flags of groups and limits that `--help` describes. It names the others.
const COMMON: &str = "http http-tokens http-auth-token policy prelude sessions agentic debug-tool trace-dir \
    upstreams-config stdio timeout memory fuel upstream-call-timeout max-upstream-response-bytes";

/// The heading of limits that are in no group.
const LIMITS: &str = "Limits";

/// The whole command line, with the help that users see.
pub(super) fn shaped(command: Command) -> Command {
    let name = command.get_name().to_owned();
    shape(command, &name)
}

fn shape(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    for name in names {
        let below = format!("{path} {name}");
        command = command.mut_subcommand(name, |inner| shape(inner, &below));
    }
    let rare = rare(&command);
    let units = units(&command);
    let after =
        command.get_after_long_help().or(command.get_after_help()).map(|text| reflow(&text.to_string()));
    let texts: Vec<String> = [after, units, more(&rare, path)].into_iter().flatten().collect();
    let command = command.mut_args(move |arg| grouped(arg, &rare)).disable_help_flag(true).arg(
        Arg::new("help")
            .short('h')
            .long("help")
            .action(ArgAction::HelpShort)
            .help("Print help")
            .help_heading(None),
    );
    if texts.is_empty() { command } else { command.after_help(texts.join("\n\n")).after_long_help(None) }
}

/// The group of a flag.
fn group(arg: &Arg) -> Option<&'static str> {
    let name = arg.get_long()?;
    let fits = |(_, beginnings): &&(_, &str)| beginnings.split(' ').any(|start| name.starts_with(start));
    GROUPS.iter().find(fits).map(|(heading, _)| *heading)
}

/// The heading of a flag, if it belongs to a group or is a limit.
fn heading(arg: &Arg) -> Option<&str> {
    group(arg).or(arg.get_help_heading())
}

fn grouped(arg: Arg, rare: &[(String, Vec<String>)]) -> Arg {
    let named = |name: &str| rare.iter().any(|(_, names)| names.iter().any(|rare| rare == name));
    let hidden = arg.is_hide_set() || arg.get_long().is_some_and(named);
    match group(&arg) {
        Some(heading) => arg.help_heading(heading).hide(hidden),
        None => arg.hide(hidden),
    }
}

/// Headings and names of the flags that are only named.
fn rare(command: &Command) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let (Some(heading), Some(name)) = (heading(arg), arg.get_long()) else { continue };
        if COMMON.split(' ').any(|common| common == name) {
            continue;
        }
        match groups.iter_mut().find(|(known, _)| known == heading) {
            Some((_, names)) => names.push(name.to_owned()),
            None => groups.push((heading.to_owned(), vec![name.to_owned()])),
        }
    }
    groups.sort_by_key(|(heading, _)| heading == LIMITS);
    groups
}

/// The paragraph that names rare flags.
fn more(rare: &[(String, Vec<String>)], path: &str) -> Option<String> {
    let group = |(heading, names): &(String, Vec<String>)| {
        let names: Vec<String> = names.iter().map(|name| format!("--{name}")).collect();
        format!("{heading}: {}", names.join(" "))
    };
    let groups: Vec<String> = rare.iter().map(group).collect();
    let page = path.split(' ').skip(1).collect::<Vec<_>>().join(" ");
    (!rare.is_empty())
        .then(|| format!("More flags, described by `ptc man {page} | man -l -`:\n{}", groups.join("\n")))
}

/// How values with units are written, if the command takes any.
fn units(command: &Command) -> Option<String> {
    let takes = |name: &str| {
        let mut values = command.get_arguments().filter_map(|arg| arg.get_value_names());
        values.any(|names| names.iter().any(|known| known.as_str() == name))
    };
    let units =
        [("TIME", "TIME is written 500ms, 10s or 1m"), ("BYTES", "BYTES is written 4096, 64k, 10M or 1G")];
    let said: Vec<&str> = units.iter().filter(|(name, _)| takes(name)).map(|(_, text)| *text).collect();
    (!said.is_empty()).then(|| format!("{}.", said.join("; ")))
}

/// Joins the lines of each paragraph, because the terminal's width decides where lines end. Indented lines, headings and
/// what follows them stay as they are.
fn reflow(text: &str) -> String {
    let mut out = String::new();
    let mut may_join = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !out.is_empty() {
            out.push(if may_join && is_prose { ' ' } else { '\n' });
        }
        out.push_str(line);
        may_join = is_prose && !line.ends_with(':');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_become_one_line_and_examples_stay() {
        let text = "Examples:\n  a\n  b\n\nOne\ntwo.\n\nThree:\n  four";
        assert_eq!(reflow(text), "Examples:\n  a\n  b\n\nOne two.\n\nThree:\n  four");
    }
}
