//! Helps the user to type in the REPL: completes names, tools and keys of arguments, and shows the usage of a function
//! as soon as its name is written.

use super::commands::COMMANDS;
use ptc_server::redact;
use ptc_vm::builtins;
use std::collections::HashMap;

/// The words that can be completed, collected before each input.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Names of the session, and exports of preludes.
    pub(super) names: Vec<String>,
    /// Usage of the functions among them.
    pub(super) usages: HashMap<String, String>,
    /// Each `server/tool` with the keys of its arguments.
    pub(super) tools: Vec<(String, Vec<String>)>,
    /// Servers.
    pub(super) servers: Vec<String>,
}

/// Most candidates.
const MOST: usize = 200;

/// Characters of a function's name with its bracket. A search for more would read the whole input at each key.
const LONGEST_NAME: usize = 200;

/// The start of the word at the end of the text.
fn word_start(text: &str) -> usize {
    text.rfind(ends_word).map_or(0, |at| at + 1)
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "()[]{}\"',;`@#^~".contains(c)
}

/// Names in the text, including those that it binds.
fn written(text: &str) -> impl Iterator<Item = String> {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_alphabetic() || "*!?<>=_-+%".contains(c));
    text.split(ends_word).filter(is_name).map(str::to_owned)
}

impl Words {
    /// Removes words with control characters, because the editor prints words without escaping them.
    pub(super) fn keep_shown(&mut self) {
        let is_shown = |text: &str| text.chars().all(|c| redact::is_shown(c) && c != '\n' && c != '\t');
        self.names.retain(|name| is_shown(name));
        self.usages.retain(|_, usage| is_shown(usage));
        self.servers.retain(|name| is_shown(name));
        self.tools.retain(|(name, _)| is_shown(name));
        self.tools.iter_mut().for_each(|(_, keys)| keys.retain(|key| is_shown(key)));
    }

    /// The start of the word at the end of the text, and its completions.
    pub(super) fn complete(&self, text: &str) -> (usize, Vec<String>) {
        let start = word_start(text);
        let word = &text[start..];
        let mut found: Vec<String> = if start == 0 && word.starts_with(':') {
            COMMANDS.iter().map(|(name, _)| format!(":{name}")).collect()
        } else if word.starts_with(':') {
            self.keys(&text[..start]).iter().map(|key| format!(":{key}")).collect()
        } else {
            let tools = self.tools.iter().map(|(name, _)| name.clone());
            let builtins = builtins::all().map(|(_, builtin)| builtin.name.to_owned());
            self.names
                .iter()
                .cloned()
                .chain(self.servers.iter().cloned())
                .chain(tools)
                .chain(builtins)
                .chain(written(&text[..start]))
                .collect()
        };
        found.retain(|candidate| candidate.starts_with(word));
        found.sort();
        found.dedup();
        // A word that is a name already stays among its continuations, so that none of them replaces it unasked.
        if found == [word] {
            found.clear();
        }
        found.truncate(if word.is_empty() && found.len() > MOST { 0 } else { MOST });
        (start, found)
    }

    /// The argument keys of the tool that was named last.
    fn keys(&self, before: &str) -> Vec<String> {
        let last = self.tools.iter().filter_map(|(name, keys)| Some((before.rfind(name.as_str())?, keys)));
        let keys = last.max_by_key(|(at, _)| *at).map(|(_, keys)| keys.clone()).unwrap_or_default();
        let form = ["server", "tool", "args"].map(str::to_owned);
        keys.into_iter().chain(form).collect()
    }

    /// The usage of the function in the innermost open form, right after its name.
    pub(super) fn usage(&self, text: &str) -> Option<String> {
        let text = text.strip_suffix(' ')?;
        let (start, _) = text.char_indices().rev().take(LONGEST_NAME).last()?;
        let name = text[start..].rsplit_once('(')?.1;
        if name.contains(|c: char| c.is_whitespace() || ")]}".contains(c)) {
            return None;
        }
        if let Some(usage) = self.usages.get(name) {
            return Some(usage.clone());
        }
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) if !name.is_empty() => (Some(namespace), name),
            _ => (None, name),
        };
        builtins::lookup(namespace, name).map(|id| id.info().usage.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_where_they_stand() {
        let words = Words {
            names: vec!["rows".into(), "row-count".into(), "crm/get-user".into()],
            usages: [("crm/get-user".to_owned(), "(crm/get-user id)".to_owned())].into(),
            tools: vec![
                ("fs/read_text_file".into(), vec!["path".into(), "head".into()]),
                ("fs/list".into(), vec!["dir".into()]),
            ],
            servers: vec!["fs".into()],
        };
        let complete = |text: &str| words.complete(text).1;
        assert_eq!(words.complete("(count row"), (7, vec!["row-count".to_owned(), "rows".to_owned()]));
        assert_eq!(complete("(count ro"), ["round", "row-count", "rows"]);
        assert_eq!(complete("(tool/call 'fs/r"), ["fs/read_text_file"]);
        assert_eq!(complete("(tool/call 'fs/list {:d"), [":dir"]);
        assert_eq!(complete("(tool/call 'fs/read_text_file {:h"), [":head"]);
        assert!(complete("(redu").contains(&"reduce".to_owned()));
        assert_eq!(complete(":ti"), [":time"]);
        assert_eq!(complete("(let [sq 1] (map sq"), ["sq", "sqrt"]);
        assert!(complete("(map crm/get-user").is_empty());
        assert_eq!(complete("(crm/g"), ["crm/get-user"]);
        assert_eq!(complete("(let [rowing 1] (inc row"), ["row-count", "rowing", "rows"]);
        let usage = |text: &str| words.usage(text);
        assert_eq!(usage("(map (nth ").as_deref(), Some("(nth coll index default?)"));
        assert_eq!(usage("(crm/get-user ").as_deref(), Some("(crm/get-user id)"));
        assert_eq!(usage("(nth x "), None);
    }
}
