//! Keeps large results of `proxy-dispatch` (one tool that passes calls on to all servers) in files, so that the client
//! gets a path in place of the data, and can pass such a file as the arguments of a later call. A result is kept
//! because of its size or on request.

use super::answer::{ProxyAnswer, estimated_tokens};
use super::call::inline;
use super::fields::CallFields;
use super::retained::{Answers, Caller, ClientResults};
use super::toon;
use crate::answer::RefusalReason;
use crate::files::FileRoots;
use crate::redact;
use ptc_base::secrets::Cut;
use ptc_base::spill::{SpillError, SpillStore, Spilled, TopLevel};
use ptc_base::tasks::{self, TaskOwner};
use ptc_engine::broker::{CallPayload, PayloadValue};
use serde::de::IgnoredAny;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the preview of a spilled result.
const PREVIEW: usize = 200;

/// Storage and settings of the tool.
pub struct ProxyStorage {
    /// Where results are written.
    pub(super) store: SpillStore,
    /// Results that are retained for clients.
    pub(super) results: ClientResults,
    /// Files that calls may name.
    roots: Arc<FileRoots>,
    threshold: u64,
    toon: bool,
    pub(super) shows_arguments: bool,
}

/// Rules for large results.
#[derive(Clone, Copy, Debug)]
pub struct SpillRules {
    /// Results of more bytes than this are spilled; 0 for no threshold.
    pub threshold: u64,
    /// Whether lists and objects are shown and spilled as TOON, where there is a threshold.
    pub toon: bool,
    /// How long an unused result is retained; `None` for as long as there is room.
    pub most_age: Option<Duration>,
    /// Whether lists show the arguments of local commands. Clients over HTTP must not see them.
    pub shows_arguments: bool,
}

impl ProxyStorage {
    /// Makes the storage; calls may name files in `roots`.
    pub fn new(store: SpillStore, roots: Arc<FileRoots>, rules: SpillRules) -> ProxyStorage {
        let SpillRules { threshold, toon, most_age, shows_arguments } = rules;
        ProxyStorage { store, results: ClientResults::new(most_age), roots, threshold, toon, shows_arguments }
    }

    /// Reads the arguments of a call from a file or a retained result.
    pub(super) async fn arguments(
        &self,
        caller: Caller,
        name: &str,
        most_bytes: u64,
    ) -> Result<String, String> {
        let (retained, roots, path) = (self.results.find(caller, name), self.roots.clone(), name.to_owned());
        let is_toon = self.toon;
        let read = move || match retained {
            Some(retained) if retained.bytes() > most_bytes => {
                Err(format!("it has more than {most_bytes} bytes"))
            }
            Some(retained) => retained
                .read(usize::MAX)
                .map(|part| is_toon.then(|| toon::to_json(&part.text)).flatten().unwrap_or(part.text))
                .map_err(|error| error.to_string()),
            None => roots.read(&path, most_bytes),
        };
        let read = tasks::blocking(TaskOwner::Run, move |_| read()).await;
        let text = read.unwrap_or_else(|| Err("it could not be read".to_owned()));
        text.map_err(|why| format!("argumentsFile {name:?} cannot be used: {why}"))
    }

    /// Makes the answer to a call: the result itself, or the path of its file.
    ///
    /// `about` is a retained result that the arguments name. The result of such a call is spilled only on
    /// request, so that reading a retained result by a tool does not lead to another one. `answers` are those that may
    /// be in the result.
    pub(super) async fn answer(
        &self,
        caller: Caller,
        payload: CallPayload,
        given: &CallFields,
        about: Option<Arc<Spilled>>,
        answers: Answers,
    ) -> Result<ProxyAnswer, String> {
        let threshold = given.number("resultSizeThreshold").unwrap_or(self.threshold);
        let is_wanted = given.flag("resultToFile").unwrap_or(false);
        let is_toon = self.toon && threshold > 0 && payload.failure().is_none() && payload.blocks().is_none();
        let (payload, toon) = match is_toon {
            false => (payload, None),
            true => {
                let convert = move || {
                    let toon = toon::to_toon(payload.value());
                    (payload, toon)
                };
                let converted = tasks::blocking(TaskOwner::Run, move |_| convert()).await;
                converted.ok_or("the result could not be read")?
            }
        };
        let (toon, top_level) = toon.map(|toon| (toon.text, toon.top_level)).unzip();
        let bytes = toon.as_ref().map_or(payload.bytes(), |toon| toon.len() as u64);
        let exceeded = (threshold > 0 && bytes > threshold).then_some(threshold);
        let is_auto = payload.spilled().is_some() || exceeded.is_some();
        if let Some(about) = about.filter(|_| is_auto && !is_wanted) {
            let text = format!(
                "the arguments name a kept result, and what the tool gives ({bytes} bytes) would be kept again: look \
                 into it with {{\"action\":\"readresult\",\"resultFile\":{}}}, or say resultToFile",
                serde_json::Value::from(about.path())
            );
            return Ok(ProxyAnswer::error(RefusalReason::ArgsError.name(), text));
        }
        if let Some(spilled) = payload.spilled().cloned() {
            self.results.retain(caller, spilled.clone(), answers);
            let answer = shown(spilled, Some(exceeded), None).await;
            return Ok(match payload.failure() {
                Some((reason, _)) => answer.failed(reason.name()),
                None => answer,
            });
        }
        if payload.failure().is_some() || !(is_wanted || exceeded.is_some()) {
            return Ok(inline(&payload, toon));
        }
        let store = self.store.clone();
        let written = tasks::blocking(TaskOwner::Run, move |_| Stored::write(&store, &payload, toon)).await;
        let Stored { result, blocks } =
            written.ok_or("the result could not be kept")?.map_err(|error| error.to_string())?;
        if let Some(blocks) = &blocks {
            self.results.retain(caller, blocks.clone(), answers.clone());
        }
        self.results.retain(caller, result.clone(), answers);
        let answer = shown(result, exceeded.map(Some), top_level).await;
        Ok(match blocks {
            None => answer,
            Some(blocks) => answer.with_content_file(blocks.path(), blocks.bytes()),
        })
    }
}

/// A result in files.
struct Stored {
    result: Arc<Spilled>,
    /// The content blocks that stand beside structured content and say something else.
    blocks: Option<Arc<Spilled>>,
}

impl Stored {
    fn write(store: &SpillStore, payload: &CallPayload, toon: Option<String>) -> Result<Stored, SpillError> {
        let blocks = payload.blocks();
        let (result, blocks) = match (toon, payload.value()) {
            (Some(toon), _) => (store.keep(toon.as_bytes())?, None),
            (None, PayloadValue::Json(json)) => (store.keep(json)?, blocks),
            (None, PayloadValue::Text(text)) => (store.keep(blocks.unwrap_or(text.as_bytes()))?, None),
            (None, PayloadValue::Nothing) => (store.keep(blocks.unwrap_or_default())?, None),
        };
        // The call was made, so its result counts without its blocks.
        let blocks = blocks.and_then(|blocks| {
            let kept = store.keep(blocks);
            kept.inspect_err(|error| tracing::warn!(%error, "content blocks cannot be kept")).ok()
        });
        Ok(Stored { result, blocks })
    }
}

/// The answer about a spilled result. `auto` is set when it was too large, with the threshold if there was
/// one. `toon` is its top level, if it is written as TOON.
async fn shown(spilled: Arc<Spilled>, auto: Option<Option<u64>>, toon: Option<TopLevel>) -> ProxyAnswer {
    let path = spilled.path().to_owned();
    let bytes = spilled.bytes();
    let is_toon = toon.is_some();
    let look = move || {
        let top_level = toon.unwrap_or_else(|| spilled.top_level());
        (top_level, spilled.read(PREVIEW * 2))
    };
    let look = tasks::blocking(TaskOwner::Run, move |_| look()).await;
    let is_json = match &look {
        Some((TopLevel::Other, Ok(beginning))) => {
            !beginning.truncated && serde_json::from_str::<IgnoredAny>(&beginning.text).is_ok()
        }
        _ => true,
    };
    let kind = match (is_toon, is_json) {
        (true, _) => "TOON",
        (false, true) => "JSON",
        (false, false) => "text",
    };
    let what = match auto {
        Some(Some(threshold)) => {
            format!("Result auto-spilled to temporary {kind} file (exceeded {threshold} bytes)")
        }
        Some(None) => format!("Result auto-spilled to temporary {kind} file (too large to be carried)"),
        None => format!("Result written to temporary {kind} file"),
    };
    let tokens = estimated_tokens(bytes);
    let mut text =
        format!("{what}: {path} (auto-deleted at shutdown).\nSize: {bytes} bytes (~{tokens} tokens).");
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
            // JSON was laid out when it was written, so its indentation goes; in other texts line breaks have
            // a meaning.
            let whole: String = match kind {
                "JSON" => beginning.text.lines().map(|line| line.trim_start_matches(' ')).collect(),
                _ => beginning.text.trim_end_matches('\n').to_owned(),
            };
            let shown = redact::excerpt(&whole, Cut::Chars(PREVIEW));
            let dots = if shown.len() < whole.len() || beginning.truncated { "..." } else { "" };
            text.push_str(&format!("\nPreview: {shown}{dots}"));
        }
    }
    text.push_str("\nLook into it with {\"action\":\"readresult\",\"resultFile\":…,\"op\":\"stat|head|tail|slice|grep|read\"}.");
    let answer = ProxyAnswer::text(text).with("resultFile", path);
    if auto.is_some() { answer.with("autoSpilled", true) } else { answer }
}
