//! Where large results and arguments are: results that are kept, and files of the client's machine.

use super::answer::{ProxyAnswer, estimated_tokens};
use super::call::inline;
use super::fields::Given;
use super::kept::{Caller, ClientResults};
use super::toon;
use crate::edge;
use crate::files::FileRoots;
use ptc_runtime::broker::{CallPayload, PayloadValue};
use ptc_runtime::secrets::Cut;
use ptc_runtime::spill::{SpillStore, Spilled, TopLevel};
use ptc_runtime::tasks::{self, TaskOwner};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a result that are shown of it.
const PREVIEW: usize = 200;

/// What the tool knows beside the servers.
pub struct ProxyPlace {
    /// Where results are kept.
    pub(super) store: SpillStore,
    /// Those of clients.
    pub(super) results: ClientResults,
    /// Files that calls may name.
    roots: Arc<FileRoots>,
    threshold: u64,
    toon: bool,
}

/// What a server says about large results.
#[derive(Clone, Copy, Debug)]
pub struct KeepingRules {
    /// Bytes of a result beyond which it is kept; 0: none is for that.
    pub threshold: u64,
    /// Lists and objects are shown and kept as TOON, where there is a threshold.
    pub toon: bool,
    /// How long a result is kept that nobody looks at; `None`: as long as there is room.
    pub most_age: Option<Duration>,
}

impl ProxyPlace {
    /// No result yet; calls may name files in these folders.
    pub fn new(store: SpillStore, roots: Arc<FileRoots>, rules: KeepingRules) -> ProxyPlace {
        let KeepingRules { threshold, toon, most_age } = rules;
        ProxyPlace { store, results: ClientResults::new(most_age), roots, threshold, toon }
    }

    /// The arguments in a file.
    pub(super) async fn arguments(
        &self,
        caller: Caller,
        name: &str,
        most_bytes: u64,
    ) -> Result<String, String> {
        let (kept, roots, path) = (self.results.find(caller, name), self.roots.clone(), name.to_owned());
        let is_toon = self.toon;
        let read = move || match kept {
            Some(kept) if kept.bytes() > most_bytes => Err(format!("it has more than {most_bytes} bytes")),
            Some(kept) => kept
                .read(usize::MAX)
                .map(|part| is_toon.then(|| toon::to_json(&part.text)).flatten().unwrap_or(part.text))
                .map_err(|error| error.to_string()),
            None => roots.read(&path, most_bytes),
        };
        let read = tasks::blocking(TaskOwner::Run, move |_| read()).await;
        let text = read.unwrap_or_else(|| Err("it could not be read".to_owned()));
        text.map_err(|why| format!("argumentsFile {name:?} cannot be used: {why}"))
    }

    /// The answer to a call that gave this: the result itself, or where it is kept. `about`: a kept result that the
    /// arguments name. What comes of such a call is not kept again unasked, so nobody who reads a kept result by a tool
    /// is given another one to read.
    pub(super) async fn answer(
        &self,
        caller: Caller,
        payload: CallPayload,
        given: &Given,
        about: Option<Arc<Spilled>>,
    ) -> Result<ProxyAnswer, String> {
        let threshold = given.number("resultSizeThreshold").unwrap_or(self.threshold);
        let is_wanted = given.flag("resultToFile").unwrap_or(false);
        let is_toon = self.toon && threshold > 0 && payload.failure().is_none() && payload.blocks().is_none();
        let (payload, toon) = match is_toon {
            false => (payload, None),
            true => {
                let convert = move || {
                    let toon = toon::of(payload.value());
                    (payload, toon)
                };
                let converted = tasks::blocking(TaskOwner::Run, move |_| convert()).await;
                converted.ok_or("the result could not be read")?
            }
        };
        let bytes = toon.as_ref().map_or(payload.bytes(), |toon| toon.len() as u64);
        let exceeded = (threshold > 0 && bytes > threshold).then_some(threshold);
        let is_auto = payload.spilled().is_some() || exceeded.is_some();
        if let Some(about) = about.filter(|_| is_auto && !is_wanted) {
            return Ok(ProxyAnswer::error(format!(
                "the arguments name a kept result, and what the tool gives ({bytes} bytes) would be kept again: look \
                 into it with {{\"action\":\"readresult\",\"resultFile\":{}}}, or say resultToFile",
                serde_json::Value::from(about.path())
            )));
        }
        if let Some(spilled) = payload.spilled().cloned() {
            let failed = payload.failure().is_some();
            self.results.keep(caller, spilled.clone());
            let answer = shown(spilled, Some(exceeded)).await;
            return Ok(if failed { answer.failed() } else { answer });
        }
        if payload.failure().is_some() || !(is_wanted || exceeded.is_some()) {
            return Ok(inline(&payload, toon));
        }
        let store = self.store.clone();
        let keep = move || match (toon, payload.value(), payload.blocks()) {
            (Some(toon), ..) => store.keep(toon.as_bytes()),
            (None, _, Some(blocks)) => store.keep(blocks),
            (None, PayloadValue::Json(json), None) => store.keep(json),
            (None, PayloadValue::Text(text), None) => store.keep(text.as_bytes()),
            (None, PayloadValue::Nothing, None) => store.keep(b""),
        };
        let kept = tasks::blocking(TaskOwner::Run, move |_| keep()).await;
        let spilled = kept.ok_or("the result could not be kept")?;
        let spilled = spilled.map_err(|error| error.to_string())?;
        self.results.keep(caller, spilled.clone());
        Ok(shown(spilled, exceeded.map(Some)).await)
    }
}

/// What is told of a kept result; `auto`: it was too large, for a threshold if there was one.
async fn shown(spilled: Arc<Spilled>, auto: Option<Option<u64>>) -> ProxyAnswer {
    let path = spilled.path().to_owned();
    let bytes = spilled.bytes();
    let what = match auto {
        Some(Some(threshold)) => {
            format!("Result auto-spilled to temporary JSON file (exceeded {threshold} bytes)")
        }
        Some(None) => "Result auto-spilled to temporary JSON file (too large to be carried)".to_owned(),
        None => "Result written to temporary JSON file".to_owned(),
    };
    let tokens = estimated_tokens(bytes);
    let mut text =
        format!("{what}: {path} (auto-deleted at shutdown).\nSize: {bytes} bytes (~{tokens} tokens).");
    let look =
        tasks::blocking(TaskOwner::Run, move |_| (spilled.top_level(), spilled.read(PREVIEW * 2))).await;
    if let Some((top_level, beginning)) = look {
        match top_level {
            TopLevel::Object { keys, more } => {
                let more = if more { ", …" } else { "" };
                text.push_str(&format!("\nTop-level keys: [{}{more}]", keys.join(", ")));
            }
            TopLevel::List => text.push_str("\nTop level: a list"),
            TopLevel::Other => {}
        }
        if let Ok(beginning) = beginning {
            let joined: String = beginning.text.lines().map(|line| line.trim_start_matches(' ')).collect();
            let shown = edge::excerpt(&joined, Cut::Chars(PREVIEW));
            let dots = if shown.len() < joined.len() || beginning.truncated { "..." } else { "" };
            text.push_str(&format!("\nPreview: {shown}{dots}"));
        }
    }
    text.push_str("\nLook into it with {\"action\":\"readresult\",\"resultFile\":…,\"op\":\"stat|head|tail|slice|grep|read\"}.");
    let answer = ProxyAnswer::text(text).with("resultFile", path);
    if auto.is_some() { answer.with("autoSpilled", true) } else { answer }
}
