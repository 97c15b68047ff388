//! Derives topics such as `issues` from the names of a server's tools, to describe a server that has no description.
//! Topics are the most frequent words that are not verbs.

use super::search::split;
use std::collections::BTreeMap;

/// Words of tool names that are actions, not subjects.
const VERBS: &[&str] = &[
    "add", "all", "and", "apply", "archive", "batch", "by", "call", "cancel", "check", "clear", "close",
    "copy", "count", "create", "delete", "describe", "disable", "do", "download", "edit", "enable",
    "execute", "exists", "export", "fetch", "find", "for", "from", "generate", "get", "import", "in", "info",
    "insert", "is", "list", "load", "lookup", "make", "merge", "move", "multiple", "new", "of", "on", "open",
    "patch", "post", "put", "query", "read", "remove", "rename", "replace", "request", "reset", "run",
    "save", "search", "send", "set", "show", "start", "stop", "submit", "sync", "text", "the", "to",
    "toggle", "tool", "update", "upload", "upsert", "validate", "view", "with", "write",
];

/// Topics of tools, from their names: the most frequent words that are not verbs, in alphabetical order.
/// Singular and plural count as one word.
pub fn topics<'t>(names: impl Iterator<Item = &'t str>, most: usize) -> Vec<String> {
    let mut counts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for word in names.flat_map(split) {
        let word = word.to_lowercase();
        if word.len() < 2 || VERBS.contains(&word.as_str()) || word.starts_with(|c: char| c.is_ascii_digit())
        {
            continue;
        }
        let stem = word.strip_suffix('s').unwrap_or(&word).to_owned();
        let (count, longest) = counts.entry(stem).or_default();
        *count += 1;
        if word.len() > longest.len() {
            *longest = word;
        }
    }
    let mut ranked: Vec<(usize, String)> = counts.into_values().collect();
    ranked.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.cmp(other)));
    let mut topics: Vec<String> = ranked.into_iter().take(most).map(|(_, word)| word).collect();
    topics.sort();
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_the_frequent_words_that_are_no_verbs() {
        let names = ["search_issues", "getIssue", "list-pulls", "get_pull", "create_repo", "add_label"];
        assert_eq!(topics(names.into_iter(), 3), ["issues", "label", "pulls"]);
        assert!(topics(["get", "run_all"].into_iter(), 3).is_empty());
    }
}
