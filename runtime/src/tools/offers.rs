//! Resources and prompts that a server lists next to its tools, for discovery.

use super::target::ListKind;
use super::text::one_line;
use super::visible::visible_line;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Limit of entries of one list.
const MOST: usize = 200;

/// Limit of entries of one list that are shown with their server.
pub(super) const MOST_SHOWN: usize = 10;

/// Length limit of an address or a name, in bytes. A longer one is left out, because a cut one is of no use.
const LONGEST: usize = 512;

/// Length limit of a description, in characters.
const DESCRIPTION: usize = 200;

/// The lists of a server, apart from tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    lists: Vec<OfferList>,
}

/// One list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfferList {
    pub(crate) kind: ListKind,
    /// Entries, as far as they are known.
    pub(crate) entries: Vec<Offer>,
    /// True if the server has more of them, or could not list them.
    pub(crate) is_partial: bool,
}

/// A resource, a template or a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The URI, or the name of a prompt.
    pub(crate) address: String,
    /// What it is, on one line; may be empty.
    pub(crate) about: String,
    /// Arguments of a prompt, as a signature.
    pub(crate) arguments: String,
}

impl Offers {
    /// Adds the first page of a list, `None` if the server did not give it. Its text is free of secrets.
    pub(crate) fn add(&mut self, kind: ListKind, page: Option<&Json>) {
        let (_, member) = kind.parts();
        let items = page.and_then(|page| page[member].as_array());
        let entries: Vec<Offer> =
            items.into_iter().flatten().filter_map(|item| Offer::read(kind, item)).take(MOST).collect();
        let has_more = page.is_none_or(|page| page["nextCursor"].is_string());
        let is_partial = has_more || items.is_some_and(|items| items.len() > entries.len());
        if is_partial || !entries.is_empty() {
            self.lists.push(OfferList { kind, entries, is_partial });
        }
    }

    /// The lists that are not empty.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &OfferList> {
        self.lists.iter()
    }

    /// Removes the lists that may not be requested.
    pub(super) fn retain(&mut self, may: impl Fn(ListKind) -> bool) {
        self.lists.retain(|list| may(list.kind));
    }

    /// The text of each entry, with the word for its kind and its address.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &str, String)> {
        self.lists.iter().flat_map(|list| {
            let entry = move |entry| (list.kind.words().0, Offer::address(entry), Offer::line(entry));
            list.entries.iter().map(entry)
        })
    }

    /// Removes the entries that are not meant.
    pub(crate) fn retain_texts(&mut self, is_meant: impl Fn(&str, &str) -> bool) {
        for list in &mut self.lists {
            let kind = list.kind.words().0;
            list.entries.retain(|entry| is_meant(kind, &entry.address));
        }
    }

    /// What there is, with the first entries: `2 resources: memo://notes, memo://dot`.
    pub(crate) fn note(&self) -> Option<String> {
        let lists = self.lists.iter().map(|list| {
            let shown = list.entries.iter().take(MOST_SHOWN).map(|entry| entry.address.as_str());
            let shown = shown.collect::<Vec<_>>().join(", ");
            if shown.is_empty() { list.count() } else { format!("{}: {shown}", list.count()) }
        });
        let lists: Vec<String> = lists.collect();
        (!lists.is_empty()).then(|| lists.join("; "))
    }

    /// `2 resources, 1 prompt`; empty if there is nothing.
    pub fn counts(&self) -> String {
        let counts: Vec<String> = self.lists.iter().map(OfferList::count).collect();
        counts.join(", ")
    }
}

impl OfferList {
    /// `2 resources`.
    pub(crate) fn count(&self) -> String {
        let (one, many) = self.kind.words();
        match self.entries.len() {
            0 => many.to_owned(),
            1 if !self.is_partial => format!("1 {one}"),
            count => format!("{count}{} {many}", if self.is_partial { "+" } else { "" }),
        }
    }
}

impl Offer {
    fn read(kind: ListKind, item: &Json) -> Option<Offer> {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        let address = visible_line(text(kind.address())).into_owned();
        if address.is_empty() || address.len() > LONGEST {
            return None;
        }
        let name = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or(text("name"));
        let parts = [name, text("description")];
        let parts = parts.into_iter().filter(|part| !part.is_empty() && *part != address);
        let about = one_line(&parts.collect::<Vec<_>>().join(": "), DESCRIPTION);
        let arguments = item["arguments"].as_array().into_iter().flatten().filter_map(|argument| {
            let mark = if argument["required"] == Json::Bool(true) { "" } else { "?" };
            let name = argument["name"].as_str().filter(|name| name.len() <= LONGEST)?;
            Some(format!("{} string{mark}", super::schema::key(name)))
        });
        let arguments = arguments.take(MOST).collect::<Vec<_>>().join(" ");
        let arguments = if arguments.is_empty() { arguments } else { format!("{{{arguments}}}") };
        Some(Offer { address, about, arguments: visible_line(&arguments).into_owned() })
    }

    fn address(&self) -> &str {
        &self.address
    }

    /// The form of PTC-Lisp that uses it.
    pub(crate) fn form(&self, kind: ListKind, server: &str) -> String {
        let (server, address) = (Json::from(server), Json::from(&*self.address));
        match kind {
            ListKind::Resources | ListKind::Templates => {
                format!("(resource/read {{:server {server} :uri {address}}})")
            }
            ListKind::Prompts => {
                let arguments = if self.arguments.is_empty() { "" } else { " :args " };
                format!("(prompt/get {{:server {server} :name {address}{arguments}{}}})", self.arguments)
            }
        }
    }

    /// `memo://notes - Notes of the day`, `greet {:who string} - A greeting`.
    pub(crate) fn line(&self) -> String {
        let arguments = if self.arguments.is_empty() { "" } else { " " };
        let about = if self.about.is_empty() { "" } else { " - " };
        format!("{}{arguments}{}{about}{}", self.address, self.arguments, self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_there_is_listed() {
        let mut offers = Offers::default();
        offers.add(
            ListKind::Resources,
            Some(&json!({"resources": [
            {"uri": "memo://a", "name": "a", "description": "The\nfirst"}, {"name": "without address"},
            {"uri": "x".repeat(LONGEST + 1)}]})),
        );
        offers.add(ListKind::Templates, Some(&json!({"resourceTemplates": []})));
        offers.add(
            ListKind::Prompts,
            Some(&json!({"nextCursor": "2", "prompts": [
            {"name": "greet", "arguments": [{"name": "who", "required": true}, {"name": "odd one"}]}]})),
        );
        assert_eq!(offers.counts(), "1+ resources, 1+ prompts");
        let lines: Vec<String> =
            offers.lists().flat_map(|list| &list.entries).map(|entry| entry.line()).collect();
        assert_eq!(lines, ["memo://a - a: The first", "greet {:who string \"odd one\" string?}"]);
        let mut unknown = Offers::default();
        unknown.add(ListKind::Prompts, None);
        assert_eq!(unknown.counts(), "prompts");
        unknown.retain(|_| false);
        assert_eq!((unknown.counts().as_str(), Offers::default().counts().as_str()), ("", ""));
    }
}
