//! Defines the tool catalog, an immutable snapshot of the tools of all servers, for front ends, the compiler, and
//! programs that look tools up.
//!
//! Readers take a snapshot; writers (the owners of the upstreams) publish the next one. Names are sorted, so
//! everything rendered from a snapshot is the same in every run.

mod view;

pub use view::ServerNames;

use super::sentence;
use super::text::one_line;
use super::tool::Refusal;
use super::tool::{ToolList, UpstreamTool};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;
use view::RestrictedCatalog;

/// How long a tool list is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotMode {
    /// The first list is valid for the lifetime of the process.
    Frozen,
    /// A list is valid until the server reports a change, or is started again.
    Live,
}

/// The tools of all configured servers at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    version: u64,
    surface: u64,
    servers: BTreeMap<Arc<str>, CatalogServer>,
}

/// One configured server.
#[derive(Clone, Debug)]
pub struct CatalogServer {
    /// Configured name.
    pub name: Arc<str>,
    /// Configured description, with secrets redacted.
    pub description: Option<Arc<str>>,
    /// The last list; `None` until one was loaded.
    pub tools: Option<Arc<ToolList>>,
    /// The list of an earlier run of the program, until the server has given one. It describes the server and proves
    /// nothing.
    pub remembered: Option<Arc<ToolList>>,
    /// False once the server that had this list has stopped. The list is still good for descriptions, but
    /// proves nothing about the server after its next start.
    pub is_current: bool,
    /// When its server last gave a list, even an unchanged one.
    pub listed_at: Option<SystemTime>,
    /// Distinguishes the servers that were configured under this name one after another.
    era: u64,
}

/// Length limit, in characters, of a server's text about itself.
const OWN_WORDS: usize = 200;

impl CatalogServer {
    /// One line about the server: the configured description, or else the server's text about itself.
    pub fn about(&self) -> Option<Cow<'_, str>> {
        let own = || Some(Cow::Owned(one_line(self.tools.as_ref()?.instructions()?, OWN_WORDS)));
        self.description.as_deref().map(Cow::Borrowed).or_else(own)
    }

    /// What the server is for, in one line: the configured description, or else what the server's text
    /// about itself says first of that.
    pub fn purpose(&self) -> Option<String> {
        let described = self.description.as_deref().filter(|text| !text.trim().is_empty());
        let purpose = described.or_else(|| self.described()?.instructions().and_then(sentence::purpose));
        purpose.map(|text| one_line(text, OWN_WORDS)).filter(|line| !line.is_empty())
    }

    /// The list for descriptions: the last one, or else that of an earlier run of the program.
    pub fn described(&self) -> Option<&Arc<ToolList>> {
        self.tools.as_ref().or(self.remembered.as_ref())
    }

    /// The list, if it is current.
    pub fn proven(&self) -> Option<&Arc<ToolList>> {
        self.tools.as_ref().filter(|_| self.is_current)
    }
}

impl Catalog {
    /// Grows with every change; caches of derived data compare it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Grows only when the contents of a list change; then descriptions that clients have are out of date. A
    /// crash and a restart with the same tools do not change it.
    pub fn surface(&self) -> u64 {
        self.surface
    }

    /// The same catalog without some servers, with this version.
    pub(super) fn restricted_to(&self, version: u64, is_there: impl Fn(&str) -> bool) -> Catalog {
        let servers = self.servers.iter().filter(|(name, _)| is_there(name));
        let servers = servers.map(|(name, server)| (name.clone(), server.clone())).collect();
        Catalog { version, surface: self.surface, servers }
    }

    /// Every configured server, in name order.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &CatalogServer> {
        self.servers.values()
    }

    /// The server of this name.
    pub fn server(&self, name: &str) -> Option<&CatalogServer> {
        self.servers.get(name)
    }

    /// The tool of this name in the last list of a server.
    pub fn tool(&self, server: &str, tool: &str) -> Option<&Arc<UpstreamTool>> {
        self.server(server)?.tools.as_ref()?.get(tool)
    }

    /// Looks a tool up in the current list of a server.
    pub fn look_up(&self, server: &str, tool: &str) -> LookUp {
        match self.server(server) {
            Some(server) => LookUp::within(server.proven(), tool),
            None => LookUp::NoServer,
        }
    }

    /// Looks a tool up in the last list of a server, even if it is not current: for descriptions.
    pub fn look_up_last(&self, server: &str, tool: &str) -> LookUp {
        match self.server(server) {
            Some(server) => LookUp::within(server.tools.as_ref(), tool),
            None => LookUp::NoServer,
        }
    }
}

/// The result of looking up a tool.
#[derive(Clone, Debug)]
pub enum LookUp {
    /// No server of this name is configured.
    NoServer,
    /// The server is configured, and has no current list.
    NotLoaded,
    /// The server has the tool, and a policy refuses it.
    Refused(Refusal),
    /// The server has no such tool; its list.
    NoTool(Arc<ToolList>),
    /// The tool.
    Ready(Arc<UpstreamTool>),
}

impl LookUp {
    fn within(tools: Option<&Arc<ToolList>>, name: &str) -> LookUp {
        let Some(tools) = tools else { return LookUp::NotLoaded };
        match (tools.get(name), tools.refusal(name)) {
            (Some(tool), _) => LookUp::Ready(tool.clone()),
            (None, Some(refusal)) => LookUp::Refused(refusal),
            (None, None) => LookUp::NoTool(tools.clone()),
        }
    }
}

/// The current catalog. Clones share it.
#[derive(Clone)]
pub struct SharedCatalog {
    current: Arc<watch::Sender<Arc<Catalog>>>,
    /// Writes concern the servers of this era: those of a replaced server's owner have no effect.
    era: u64,
    /// The restricted view of servers that it shows, if any.
    view: Option<Arc<RestrictedCatalog>>,
}

impl SharedCatalog {
    /// A catalog of servers with names and descriptions, before their tools are known.
    pub fn new(servers: impl IntoIterator<Item = (Arc<str>, Option<Arc<str>>)>) -> SharedCatalog {
        let entry = |(name, description): (Arc<str>, _)| (name.clone(), unknown(name, description, 0));
        let catalog = Catalog { servers: servers.into_iter().map(entry).collect(), ..Catalog::default() };
        SharedCatalog { current: Arc::new(watch::Sender::new(Arc::new(catalog))), era: 0, view: None }
    }

    /// Changes the configured servers: `gone` are removed, `new` are added and replace servers of the same
    /// names. The returned catalog accepts the lists of the new ones.
    pub fn reconfigure(
        &self,
        gone: &[Arc<str>],
        new: impl IntoIterator<Item = (Arc<str>, Option<Arc<str>>)>,
    ) -> SharedCatalog {
        let mut era = 0;
        self.current.send_modify(|current| {
            let mut next = Catalog::clone(current);
            next.version += 1;
            next.surface += 1;
            era = next.version;
            gone.iter().for_each(|name| drop(next.servers.remove(name)));
            for (name, description) in new {
                next.servers.insert(name.clone(), unknown(name, description, era));
            }
            *current = Arc::new(next);
        });
        SharedCatalog { current: self.current.clone(), era, view: None }
    }

    /// The catalog at this moment.
    pub fn snapshot(&self) -> Arc<Catalog> {
        let whole = self.current.borrow().clone();
        match &self.view {
            None => whole,
            Some(part) => part.filter(&whole),
        }
    }

    /// A restricted view of the same catalog.
    pub fn restricted_to(&self, servers: ServerNames) -> SharedCatalog {
        let servers = match &self.view {
            None => servers,
            Some(part) => part.servers.and(&servers),
        };
        SharedCatalog { view: Some(Arc::new(RestrictedCatalog::new(servers))), ..self.clone() }
    }

    /// True for a server that this view may show, if it is configured.
    pub fn admits(&self, server: &str) -> bool {
        self.view.as_ref().is_none_or(|part| part.servers.contains(server))
    }

    /// Number of its restricted view; 0 for all servers.
    pub fn view(&self) -> u64 {
        self.view.as_ref().map_or(0, |part| part.number)
    }

    /// The servers that it may show; `None`: all.
    pub fn shown_names(&self) -> Option<&ServerNames> {
        self.view.as_ref().map(|part| &part.servers)
    }

    /// A receiver of every version of the whole catalog; a restricted view filters each.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Catalog>> {
        self.current.subscribe()
    }

    /// Publishes a list of a server. A frozen server keeps its first list.
    pub fn publish(&self, server: &str, tools: ToolList, mode: SnapshotMode) {
        self.change(server, |entry| {
            entry.listed_at = Some(SystemTime::now());
            let became_current = !std::mem::replace(&mut entry.is_current, true);
            entry.remembered = None;
            let keeps =
                entry.tools.as_ref().is_some_and(|old| mode == SnapshotMode::Frozen || **old == tools);
            if keeps {
                return if became_current { Change::Version } else { Change::None };
            }
            entry.tools = Some(Arc::new(tools));
            Change::Surface
        });
    }

    /// Describes a server that has given no list yet with the list of an earlier run.
    pub fn remember(&self, server: &str, tools: ToolList) {
        self.change(server, |entry| {
            entry.remembered = entry.tools.is_none().then(|| Arc::new(tools));
            Change::Surface
        });
    }

    /// Marks the last list of a server as no longer current.
    pub fn outdate(&self, server: &str) {
        self.change(server, |entry| match std::mem::replace(&mut entry.is_current, false) {
            true => Change::Version,
            false => Change::None,
        });
    }

    fn change(&self, server: &str, work: impl FnOnce(&mut CatalogServer) -> Change) {
        self.current.send_if_modified(|current| {
            let mut next = Catalog::clone(current);
            let entry = next.servers.get_mut(server).filter(|entry| entry.era == self.era);
            let Some(entry) = entry else { return false };
            let change = work(entry);
            next.version += u64::from(change != Change::None);
            next.surface += u64::from(change == Change::Surface);
            *current = Arc::new(next);
            change != Change::None
        });
    }
}

/// A server without a tool list yet.
fn unknown(name: Arc<str>, description: Option<Arc<str>>, era: u64) -> CatalogServer {
    CatalogServer {
        name,
        description,
        tools: None,
        remembered: None,
        is_current: false,
        listed_at: None,
        era,
    }
}

/// The effect of a write.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    None,
    Version,
    Surface,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(names: &[&str]) -> ToolList {
        let tools = names.iter().map(|name| serde_json::from_value(json!({ "name": name })).unwrap());
        ToolList::new(tools.collect::<Vec<UpstreamTool>>())
    }

    fn catalog() -> SharedCatalog {
        SharedCatalog::new([("fs".into(), Some("files".into())), ("db".into(), None)])
    }

    #[test]
    fn a_snapshot_stays_as_it_was_taken() {
        let catalog = catalog();
        let before = catalog.snapshot();
        catalog.publish("fs", list(&["b", "a"]), SnapshotMode::Live);
        let after = catalog.snapshot();
        assert!(before.server("fs").unwrap().tools.is_none());
        let names: Vec<&str> =
            after.server("fs").unwrap().tools.as_ref().unwrap().iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b"]);
        let servers: Vec<&str> = after.servers().map(|server| &*server.name).collect();
        assert_eq!(servers, ["db", "fs"]);
        assert_eq!((before.version(), after.version()), (0, 1));
    }

    #[test]
    fn the_surface_changes_only_with_contents() {
        let catalog = catalog();
        let mut watching = catalog.subscribe();
        let mut steps = Vec::new();
        let mut step = |proven: bool| {
            let now = catalog.snapshot();
            assert_eq!(now.server("fs").unwrap().proven().is_some(), proven);
            steps.push((now.version(), now.surface(), watching.has_changed().unwrap()));
            watching.mark_unchanged();
        };
        catalog.publish("fs", list(&["a"]), SnapshotMode::Live);
        step(true);
        catalog.publish("fs", list(&["a"]), SnapshotMode::Live);
        step(true);
        catalog.outdate("fs");
        step(false);
        catalog.outdate("fs");
        step(false);
        catalog.publish("fs", list(&["a"]), SnapshotMode::Live);
        step(true);
        catalog.publish("fs", list(&["a", "b"]), SnapshotMode::Live);
        step(true);
        let want = [(1, 1, true), (1, 1, false), (2, 1, true), (2, 1, false), (3, 1, true), (4, 2, true)];
        assert_eq!(steps, want);
    }

    #[test]
    fn what_a_replaced_server_says_is_void() {
        let old = catalog();
        old.publish("fs", list(&["a"]), SnapshotMode::Live);
        let new = old.reconfigure(&["db".into()], [("fs".into(), None), ("web".into(), None)]);
        old.publish("fs", list(&["b"]), SnapshotMode::Live);
        new.publish("fs", list(&["c"]), SnapshotMode::Live);
        old.outdate("fs");
        let now = old.snapshot();
        let servers: Vec<&str> = now.servers().map(|server| &*server.name).collect();
        assert_eq!(servers, ["fs", "web"]);
        let tools: Vec<&str> =
            now.server("fs").unwrap().proven().unwrap().iter().map(|tool| &*tool.name).collect();
        assert_eq!(tools, ["c"]);
        assert_eq!((now.version(), now.surface()), (3, 3));
    }

    #[test]
    fn a_frozen_server_keeps_its_first_list() {
        let catalog = catalog();
        catalog.publish("fs", list(&["a"]), SnapshotMode::Frozen);
        catalog.publish("fs", list(&["b"]), SnapshotMode::Frozen);
        let now = catalog.snapshot();
        assert!(now.tool("fs", "a").is_some() && now.tool("fs", "b").is_none());
        assert_eq!((now.version(), now.surface()), (1, 1));
    }
}
