//! Parses inputs of the REPL that are commands, such as `:help`, and defines their names and help texts.

/// All commands, with their help.
pub(super) const COMMANDS: [(&str, &str); 11] = [
    ("help", "what there is"),
    ("doc", "documentation of a name or a tool: :doc map, :doc fs/read_text_file"),
    ("dir", "names of a namespace, tools of a server: :dir str"),
    ("tools", "configured servers and their tools"),
    ("calls", "upstream calls of the last program"),
    ("trace", "the last program as a picture: when its upstream calls ran"),
    ("table", "the last result as a table, if it is a list of maps"),
    ("time", "say what each program costs; once more: do not"),
    ("limits", "what a program may use"),
    ("prelude", "namespaces of preludes; :prelude reload reads their files again"),
    ("quit", "leave (Ctrl-D does as well)"),
];

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplCommand<'t> {
    Help,
    Doc(&'t str),
    Dir(&'t str),
    Tools,
    Calls,
    Trace,
    Table,
    Time,
    Limits,
    Prelude,
    Reload,
    Quit,
    /// An unknown command, or one without its argument. Holds the message.
    Wrong(String),
}

/// Words that mean a command to people who do not know the commands yet.
const WORDS: [(&str, &str); 4] =
    [("exit", ":quit"), ("quit", ":quit"), ("(exit)", ":quit"), ("help", ":help")];

/// The command that a word alone means, unless the session has that name.
pub(super) fn meant(text: &str, is_bound: impl FnOnce(&str) -> bool) -> &str {
    let word = text.trim();
    match WORDS.iter().find(|(known, _)| *known == word) {
        Some((_, command)) if !is_bound(word.trim_matches(['(', ')'])) => command,
        _ => text,
    }
}

/// Parses a command; `None` for a program. A keyword alone counts as a command, since it is useless as a
/// program.
pub(super) fn read(text: &str) -> Option<ReplCommand<'_>> {
    let text = text.trim();
    let rest = text.strip_prefix(':')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let argument = argument.trim();
    let is_reference = !argument.is_empty()
        && !argument.contains(|c: char| c.is_whitespace() || "()[]{}\"';,@^`~\\".contains(c));
    Some(match name {
        "help" | "h" | "?" => ReplCommand::Help,
        "doc" if is_reference => ReplCommand::Doc(argument),
        "dir" if is_reference => ReplCommand::Dir(argument),
        "doc" | "dir" => ReplCommand::Wrong(format!(":{name} needs a name, as in :{name} str")),
        "tools" => ReplCommand::Tools,
        "calls" => ReplCommand::Calls,
        "trace" => ReplCommand::Trace,
        "table" => ReplCommand::Table,
        "time" => ReplCommand::Time,
        "limits" => ReplCommand::Limits,
        "prelude" if argument.is_empty() => ReplCommand::Prelude,
        "prelude" if argument == "reload" => ReplCommand::Reload,
        "prelude" => ReplCommand::Wrong("write :prelude or :prelude reload".to_owned()),
        "quit" | "q" | "exit" => ReplCommand::Quit,
        _ => ReplCommand::Wrong(format!("there is no command :{name}; :help lists them")),
    })
}
