//! Recognizes configuration entries of MCP servers that start `ptc` itself, so that `ptc` is not added as its own
//! upstream server (one that its programs call).

use ptc_upstream::config::ServerEntry;
use serde_json::Value;
use std::path::Path;

/// True for a command that runs this executable, by whatever path.
pub fn is_this_program(command: &str) -> bool {
    ServerEntry::stdio("ptc", command.to_owned(), Vec::new()).is_forbidden_self()
}

/// True for an entry of any host that starts this product. `base` is the folder for its relative paths.
pub fn starts_ptc(entry: &Value, base: Option<&Path>) -> bool {
    let commands = [&entry["command"], &entry["cmd"], &entry["command"][0], &entry["command"]["path"]];
    let Some(command) = commands.iter().find_map(|command| command.as_str()) else { return false };
    let lists = [&entry["args"], &entry["command"], &entry["command"]["args"]];
    let mut words = lists.iter().filter_map(|list| list.as_array()).flatten();
    let is_named_so = Path::new(command).file_stem().is_some_and(|stem| stem == "ptc");
    let is_relative = command.contains('/') && Path::new(command).is_relative();
    let place = base.filter(|_| is_relative).map(|base| base.join(command));
    let place = place.as_deref().and_then(Path::to_str).unwrap_or(command);
    (is_named_so && words.any(|word| word == "serve")) || is_this_program(place)
}
