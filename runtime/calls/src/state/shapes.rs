//! Remembers the shapes (keys and types) of results that tools without an output schema have given, to describe these
//! tools.
//!
//! They are known in this process at once. With a store they are also written to it, in the background; no call waits
//! for that. What is written holds no value, and of the keys that look like names of fields those that were in several
//! different results or that the tool itself names.

use super::{Kind, ServerKey, StateStore, digest};
use crate::tools::shape::{Given, Learned, observe};
use crate::tools::{SeenResults, UpstreamTool};
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Size limit of a result that is examined.
const LARGEST: usize = 256 << 10;

/// Limit of remembered tools per server.
const MOST_TOOLS: usize = 512;

/// Size limit of the shapes of one server, in bytes.
const SERVER_BYTES: usize = 1 << 20;

/// The first results of a tool in a process are all examined, later ones ever more rarely: reading takes time.
const EXAMINED: u64 = 16;

/// How long new shapes wait for more before they are written.
const WRITE_PAUSE: Duration = Duration::from_secs(2);

/// How far shapes are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LearnedShapes {
    /// For later runs of the program too, if there is a folder for state.
    #[default]
    Kept,
    /// In this process.
    Run,
    /// Not at all.
    Off,
}

/// The shapes of all tools.
pub struct ShapeMemory {
    mode: LearnedShapes,
    secrets: SecretRegistry,
    store: Option<Arc<StateStore>>,
    by_server: Mutex<HashMap<Arc<str>, ServerShapes>>,
    /// Counts results that are not written yet.
    unwritten: watch::Sender<u64>,
}

#[derive(Default)]
struct ServerShapes {
    key: Option<ServerKey>,
    tools: HashMap<Arc<str>, ToolShapes>,
    is_unwritten: bool,
}

struct ToolShapes {
    /// Digest of what the tool says about itself. Another text means another tool.
    digest: String,
    /// The tool that has this digest.
    tool: Weak<UpstreamTool>,
    /// Results in this process.
    here: u64,
    /// Results that are not written yet.
    unwritten: u64,
    /// All results that are known of.
    seen: u64,
    learned: Learned,
}

/// The shapes of a server in the store, by tool.
#[derive(Default, Serialize, Deserialize)]
struct StoredShapes {
    tools: BTreeMap<Arc<str>, StoredTool>,
}

#[derive(Serialize, Deserialize)]
struct StoredTool {
    digest: String,
    seen: u64,
    learned: Learned,
}

impl ShapeMemory {
    /// A memory with nothing in it.
    pub fn new(mode: LearnedShapes, store: Option<Arc<StateStore>>, secrets: SecretRegistry) -> ShapeMemory {
        let store = store.filter(|_| mode == LearnedShapes::Kept);
        ShapeMemory { mode, secrets, store, by_server: Mutex::default(), unwritten: watch::Sender::new(0) }
    }

    /// Begins with what the store knows about this server. A server that had the name before is forgotten.
    pub fn add_server(&self, server: &Arc<str>, identity: &serde_json::Value) {
        let Some(store) = &self.store else {
            self.by_server.locked().remove(server);
            return;
        };
        let key = store.key(server, identity);
        let stored: StoredShapes = store.read(Kind::Shapes, &key).unwrap_or_default();
        let tools = stored.tools.into_iter().map(|(name, StoredTool { digest, seen, learned })| {
            let learned = learned.join(Learned::default());
            (name, ToolShapes { digest, tool: Weak::new(), here: 0, unwritten: 0, seen, learned })
        });
        let shapes = ServerShapes { key: Some(key), tools: tools.collect(), is_unwritten: false };
        self.by_server.locked().insert(server.clone(), shapes);
    }

    /// Records a result of so many bytes; `given` reads it.
    pub fn note<'g>(
        &self,
        server: &Arc<str>,
        tool: &Arc<UpstreamTool>,
        bytes: u64,
        given: impl FnOnce() -> Given<'g>,
    ) {
        if self.mode == LearnedShapes::Off {
            return;
        }
        let is_examined = {
            let mut by_server = self.by_server.locked();
            let shapes = by_server.entry(server.clone()).or_default();
            let Some(known) = shapes.tool(tool) else { return };
            known.here += 1;
            known.seen = known.seen.saturating_add(1);
            known.unwritten += 1;
            let is_turn = known.here <= EXAMINED || known.here.is_power_of_two();
            shapes.is_unwritten |= is_turn;
            is_turn
        };
        if !is_examined {
            return;
        }
        if bytes <= LARGEST as u64 {
            let fresh = observe(&given(), &self.secrets);
            let mut by_server = self.by_server.locked();
            if let Some(known) = by_server.get_mut(server).and_then(|shapes| shapes.tool(tool)) {
                let learned = std::mem::take(&mut known.learned);
                known.learned = learned.join(fresh);
            }
        }
        if self.store.is_some() {
            self.unwritten.send_modify(|count| *count += 1);
        }
    }

    /// What is known about the results of a tool.
    pub fn seen(&self, server: &str, tool: &UpstreamTool) -> Option<SeenResults> {
        let digest = digest_of(tool);
        let (seen, learned) = {
            let by_server = self.by_server.locked();
            let known =
                by_server.get(server)?.tools.get(&tool.name).filter(|known| known.digest == digest)?;
            (known.seen, known.learned.clone())
        };
        Some(SeenResults { times: seen, size: learned.size(), shape: learned.rendered()? })
    }

    /// Writes new shapes to the store whenever there are some, until the memory is dropped.
    pub async fn keep_writing(memory: Weak<ShapeMemory>) {
        let Some(mut unwritten) = memory.upgrade().map(|memory| memory.unwritten.subscribe()) else { return };
        while unwritten.changed().await.is_ok() {
            tokio::time::sleep(WRITE_PAUSE).await;
            unwritten.mark_unchanged();
            let Some(memory) = memory.upgrade() else { return };
            let _ = tasks::blocking(TaskOwner::Process, move |_| memory.write()).await;
        }
    }

    /// Writes what is not written yet. It blocks.
    pub fn write(&self) {
        let Some(store) = &self.store else { return };
        let servers: Vec<(Arc<str>, ServerKey)> = {
            let by_server = self.by_server.locked();
            let unwritten = by_server.iter().filter(|(_, shapes)| shapes.is_unwritten);
            unwritten.filter_map(|(name, shapes)| Some((name.clone(), shapes.key.clone()?))).collect()
        };
        for (server, key) in servers {
            if let Err(error) = self.write_server(store, &server, &key) {
                tracing::debug!(upstream = %server, %error, "the shapes of results are not remembered");
            }
        }
    }

    /// Joins the shapes of one server with those in the store, where other processes may have written.
    fn write_server(&self, store: &StateStore, server: &str, key: &ServerKey) -> io::Result<()> {
        let _lock = store.lock(Kind::Shapes)?;
        let mut stored: StoredShapes = store.read(Kind::Shapes, key).unwrap_or_default();
        {
            let mut by_server = self.by_server.locked();
            let Some(shapes) = by_server.get_mut(server).filter(|shapes| shapes.key.as_ref() == Some(key))
            else {
                return Ok(());
            };
            shapes.is_unwritten = false;
            for (name, known) in &mut shapes.tools {
                known.join_with(stored.tools.remove(name));
                let words = known.tool.upgrade().map(|tool| words_of(&tool)).unwrap_or_default();
                let learned = known.learned.clone().confirmed(&|key| words.contains(key));
                let tool = StoredTool { digest: known.digest.clone(), seen: known.seen, learned };
                stored.tools.insert(name.clone(), tool);
            }
        }
        stored.fit();
        store.write(Kind::Shapes, key, &stored)
    }
}

impl ServerShapes {
    /// The shapes of this tool. `None` when there are too many tools.
    fn tool(&mut self, tool: &Arc<UpstreamTool>) -> Option<&mut ToolShapes> {
        let is_known = self.tools.get(&tool.name).is_some_and(|known| known.is_of(tool));
        if !is_known {
            let (digest, has_room) = (digest_of(tool), self.tools.len() < MOST_TOOLS);
            match self.tools.get_mut(&tool.name) {
                Some(known) if known.digest == digest => known.tool = Arc::downgrade(tool),
                Some(known) => *known = ToolShapes::new(digest, tool),
                None if has_room => drop(self.tools.insert(tool.name.clone(), ToolShapes::new(digest, tool))),
                None => return None,
            }
        }
        self.tools.get_mut(&tool.name)
    }
}

impl ToolShapes {
    fn new(digest: String, tool: &Arc<UpstreamTool>) -> ToolShapes {
        let (tool, learned) = (Arc::downgrade(tool), Learned::default());
        ToolShapes { digest, tool, here: 0, unwritten: 0, seen: 0, learned }
    }

    fn is_of(&self, tool: &Arc<UpstreamTool>) -> bool {
        std::ptr::eq(self.tool.as_ptr(), Arc::as_ptr(tool))
    }

    /// Adds what is stored about the same tool. Of another tool of this name nothing is kept.
    fn join_with(&mut self, stored: Option<StoredTool>) {
        let unwritten = std::mem::take(&mut self.unwritten);
        if let Some(stored) = stored.filter(|stored| stored.digest == self.digest) {
            self.seen = stored.seen.saturating_add(unwritten);
            let learned = std::mem::take(&mut self.learned);
            self.learned = learned.join(stored.learned);
        }
    }
}

impl StoredShapes {
    /// Drops the tools that gave the fewest results until the rest fits.
    fn fit(&mut self) {
        let bytes = |tool: &StoredTool| serde_json::to_vec(tool).map_or(0, |text| text.len());
        let mut sizes: Vec<(u64, usize, Arc<str>)> = self
            .tools
            .iter()
            .map(|(name, tool)| (tool.seen, bytes(tool) + name.len() + 8, name.clone()))
            .collect();
        sizes.sort();
        let mut total: usize = sizes.iter().map(|(_, bytes, _)| bytes).sum();
        let mut left = sizes.len();
        for (_, bytes, name) in sizes {
            if total <= SERVER_BYTES && left <= MOST_TOOLS {
                break;
            }
            self.tools.remove(&name);
            (total, left) = (total - bytes, left - 1);
        }
    }
}

/// The words that a tool says about itself, among which may be names of fields.
fn words_of(tool: &UpstreamTool) -> HashSet<String> {
    let schemas = serde_json::to_string(&(&tool.input_schema, &tool.output_schema)).unwrap_or_default();
    let is_end = |mark: char| !mark.is_alphanumeric() && !matches!(mark, '_' | '-' | '$' | '@');
    let said = [tool.description.as_deref().unwrap_or_default(), &schemas];
    said.into_iter().flat_map(|text| text.split(is_end)).map(str::to_owned).collect()
}

/// The digest of what a tool says about itself.
fn digest_of(tool: &UpstreamTool) -> String {
    let said = (&tool.description, &tool.input_schema, &tool.output_schema);
    digest(&serde_json::to_vec(&said).unwrap_or_default())
}
