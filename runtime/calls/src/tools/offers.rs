//! Holds what an MCP server offers besides tools (resources, resource templates and prompts): parses the lists,
//! describes the entries, and decides which may be requested.

use super::target::{CallTarget, ListKind};
use super::text::one_line;
use super::visible::visible_line;
use ptc_base::digest::sha256_hex;
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
    /// Only what is listed may be read: the rest is not as it was reviewed.
    #[serde(skip)]
    is_closed: bool,
    /// The lists that cannot be requested: they have entries that were not reviewed.
    #[serde(skip)]
    unreviewed: Vec<ListKind>,
}

/// One list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferList {
    pub kind: ListKind,
    /// Entries, as far as they are known.
    pub entries: Vec<Offer>,
    /// True if the server has more of them, or could not list them.
    pub(crate) is_partial: bool,
}

/// A resource, a template or a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The URI, or the name of a prompt.
    pub address: String,
    /// What it is, on one line; may be empty.
    pub about: String,
    /// Arguments of a prompt, as a signature.
    pub(crate) arguments: String,
    /// SHA-256 of the whole entry: the other texts are cut.
    #[serde(default)]
    digest: String,
}

impl Offers {
    /// Adds the first page of a list, `None` if the server did not give it. Its text is free of secrets.
    pub fn add(&mut self, kind: ListKind, page: Option<&Json>) {
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
    pub fn lists(&self) -> impl Iterator<Item = &OfferList> {
        self.lists.iter()
    }

    /// Removes the lists that may not be requested.
    pub(super) fn retain(&mut self, may: impl Fn(ListKind) -> bool) {
        self.lists.retain(|list| may(list.kind));
    }

    /// The text of each entry with its digest, with the word for its kind and its address.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &str, String)> {
        self.lists.iter().flat_map(|list| {
            let text = |entry: &Offer| format!("{} [sha256:{}]", entry.line(), entry.digest);
            list.entries.iter().map(move |entry| (list.kind.words().0, &*entry.address, text(entry)))
        })
    }

    /// Removes the entries that are not meant, and lets nothing be read that is not listed then. A list that has such
    /// entries, or more than are known, cannot be requested. `is_other`: the server is another one, nothing of it is meant.
    pub(crate) fn close(&mut self, is_other: bool, is_meant: impl Fn(&str, &str) -> bool) {
        self.is_closed = true;
        self.unreviewed = if is_other { ListKind::ALL.to_vec() } else { Vec::new() };
        for list in &mut self.lists {
            let (kind, before) = (list.kind.words().0, list.entries.len());
            list.entries.retain(|entry| !is_other && is_meant(kind, &entry.address));
            if list.entries.len() < before || list.is_partial {
                self.unreviewed.push(list.kind);
            }
        }
    }

    /// True if this may be asked for. A resource may also be one of a template.
    pub fn admits(&self, target: &CallTarget) -> bool {
        let lists = |kind: ListKind| {
            let lists = self.lists.iter().filter(move |list| list.kind == kind);
            lists.flat_map(|list| list.entries.iter().map(|entry| &*entry.address))
        };
        match target {
            _ if !self.is_closed => true,
            CallTarget::Resource(uri) => {
                lists(ListKind::Resources).any(|known| known == &**uri)
                    || lists(ListKind::Templates).any(|template| is_made_from(template, uri))
            }
            CallTarget::Prompt(name) => lists(ListKind::Prompts).any(|known| known == &**name),
            CallTarget::List(kind) => !self.unreviewed.contains(kind),
            CallTarget::Tool(_) | CallTarget::Protocol(_) | CallTarget::Task(..) => true,
        }
    }

    /// What there is, with the first entries: `2 resources: memo://notes, memo://dot`.
    pub fn note(&self) -> Option<String> {
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

/// True if a URI can be an expansion of a template (RFC 6570). A simple expression stands for text without `/`, `?` and
/// `#`, which its expansion would encode (section 3.2.2); one with an operator for any. Segments that lead upwards are no
/// expansion: the server may resolve them.
fn is_made_from(template: &str, uri: &str) -> bool {
    let is_dots = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        !plain.is_empty() && plain.len() <= 2 && plain.bytes().all(|byte| byte == b'.')
    };
    if uri
        .to_ascii_lowercase()
        .replace("%2f", "/")
        .replace("%5c", "/")
        .split(['/', '\\', '?', '#'])
        .any(is_dots)
    {
        return false;
    }
    let mut parts = template.split('{');
    let Some(rest) = parts.next().and_then(|first| uri.strip_prefix(first)) else { return false };
    // The offsets where what follows may begin.
    let mut begins = vec![false; rest.len() + 1];
    begins[0] = true;
    for part in parts {
        let (expression, literal) = part.split_once('}').unwrap_or(("", part));
        let is_simple = expression.starts_with(|first: char| first.is_alphanumeric() || first == '_');
        let mut next = vec![false; rest.len() + 1];
        let mut is_open = false;
        for at in 0..=rest.len() {
            is_open |= begins[at];
            if is_open && rest.is_char_boundary(at) && rest[at..].starts_with(literal) {
                next[at + literal.len()] = true;
            }
            let ends = rest.as_bytes().get(at).is_some_and(|byte| matches!(byte, b'/' | b'?' | b'#'));
            is_open &= !(is_simple && ends);
        }
        begins = next;
    }
    begins[rest.len()]
}

/// SHA-256 of a value, with sorted keys.
fn digest_of(item: &Json) -> String {
    let mut sorted = item.clone();
    sorted.sort_all_objects();
    sha256_hex(sorted.to_string().as_bytes())
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
            Some(format!("{} string{mark}", super::key::key(name)))
        });
        let arguments = arguments.take(MOST).collect::<Vec<_>>().join(" ");
        let arguments = if arguments.is_empty() { arguments } else { format!("{{{arguments}}}") };
        let arguments = visible_line(&arguments).into_owned();
        Some(Offer { address, about, arguments, digest: digest_of(item) })
    }

    /// The form of PTC-Lisp that uses it.
    pub fn form(&self, kind: ListKind, server: &str) -> String {
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
        assert!(unknown.admits(&CallTarget::Prompt("new".into())));
        unknown.retain(|_| false);
        assert_eq!((unknown.counts().as_str(), Offers::default().counts().as_str()), ("", ""));
    }

    #[test]
    fn only_what_is_listed_is_admitted_once_it_is_closed() {
        let mut offers = Offers::default();
        offers.add(
            ListKind::Resources,
            Some(&json!({"resources": [{"uri": "memo://a"}, {"uri": "memo://b"}]})),
        );
        let templates = json!({"resourceTemplates": [{"uriTemplate": "day://{year}/{month}.txt"}]});
        offers.add(ListKind::Templates, Some(&templates));
        offers.add(ListKind::Prompts, Some(&json!({"prompts": [{"name": "greet"}]})));
        offers.close(false, |_, address| address != "memo://b");
        let resource = |uri: &str| offers.admits(&CallTarget::Resource(uri.into()));
        assert!(resource("memo://a") && resource("day://2026/11.txt"));
        for uri in [
            "memo://b",
            "memo://c",
            "day://2026",
            "day://2026/11.txt?all",
            "xday://2026/11.txt",
            "day://2026/../11.txt",
            "day://2026/x/11.txt",
            "day://../11.txt",
            "day://2026/%2e%2E%2F11.txt",
            "day://2026/?.txt",
            "day://2026/#.txt",
        ] {
            assert!(!resource(uri), "{uri}");
        }
        // A list with an entry that is not meant shows it.
        assert!(!offers.admits(&CallTarget::List(ListKind::Resources)));
        assert!(offers.admits(&CallTarget::List(ListKind::Templates)));
        assert!(offers.admits(&CallTarget::Prompt("greet".into())));
        assert!(!offers.admits(&CallTarget::Prompt("Greet".into())));
    }

    #[test]
    fn the_digest_is_of_all_of_an_entry() {
        let text = |item: Json| {
            let mut offers = Offers::default();
            offers.add(ListKind::Prompts, Some(&json!({ "prompts": [item] })));
            offers.texts().next().unwrap().2
        };
        let long = "x".repeat(300);
        let before = json!({"name": "a", "description": long, "arguments": [{"name": "who"}]});
        let turned = json!({"arguments": [{"name": "who"}], "description": long, "name": "a"});
        assert_eq!(text(before.clone()), text(turned));
        let mut other = before.clone();
        other["description"] = json!(long + " and send it to me");
        assert_ne!(text(before.clone()), text(other));
        let mut other = before.clone();
        other["arguments"][0]["description"] = json!("The password");
        assert_ne!(text(before), text(other));
    }
}
