//! Determines, when a session starts, which versions of stored preludes (Lisp libraries) its programs use until it
//! ends, and whether they may write new ones.

use super::arguments::Fields;
use super::fault::SessionFault;
use ptc_base::tasks::StopFlag;
use ptc_engine::prelude_store::{PreludeRef, PreludeStore, PreludeVersion, StoreError, editing};
use ptc_engine::{Prelude, Runtime, Scope};
use serde_json::{Value, json};
use std::sync::Arc;

/// Access of sessions to the prelude store.
#[derive(Clone, Default)]
pub struct StoreAccess {
    /// The store.
    pub store: Option<Arc<PreludeStore>>,
    /// Whether sessions may start in mode `write_capable`, which have the namespace `prelude/`.
    pub may_write: bool,
    /// Whether all programs have a prelude from a file.
    pub has_prelude: bool,
}

/// The preludes and mode that a session requests.
#[derive(Default)]
pub(super) struct RequestedPreludes {
    pub(super) references: Option<Vec<PreludeRef>>,
    may_write: bool,
}

/// The preludes of a session, for its whole life.
#[derive(Clone, Default)]
pub(super) struct FrozenPreludes {
    /// Whether its programs may write preludes.
    pub(super) may_write: bool,
    /// Requirements of the preludes that were not met when the session started.
    pub(super) missing: Option<String>,
    /// `[{id, version, checksum, origin}]`; `None` when the session requested no preludes.
    pub(super) references: Option<Value>,
    /// `[{namespace, doc, discover, source}]`.
    pub(super) namespaces: Option<Value>,
}

impl RequestedPreludes {
    pub(super) fn read(fields: &Fields) -> Result<RequestedPreludes, SessionFault> {
        let may_write = match fields.get("mode") {
            None | Some(Value::Null) => false,
            Some(mode) => match mode.as_str() {
                Some("read_only") => false,
                Some("write_capable") => true,
                _ => return Err(SessionFault::arguments("mode must be read_only or write_capable")),
            },
        };
        let references = match fields.get("preludes") {
            None => None,
            Some(Value::Array(items)) => {
                let read = |(at, item): (usize, &Value)| reference(at, item).map_err(SessionFault::arguments);
                Some(items.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?)
            }
            Some(_) => return Err(SessionFault::arguments("preludes must be an array when supplied")),
        };
        Ok(RequestedPreludes { references, may_write })
    }
}

impl RequestedPreludes {
    /// The preludes of a stored session, as [`FrozenPreludes::references`] has them.
    pub(super) fn again(references: Option<&Value>) -> Result<RequestedPreludes, SessionFault> {
        let Some(references) = references.and_then(Value::as_array) else {
            return Ok(RequestedPreludes::default());
        };
        let read = |(at, item): (usize, &Value)| {
            let mut item = item.clone();
            item.as_object_mut().map(|members| members.remove("origin"));
            reference(at, &item).map_err(SessionFault::arguments)
        };
        let references = references.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(RequestedPreludes { references: Some(references), may_write: false })
    }
}

fn reference(at: usize, item: &Value) -> Result<PreludeRef, String> {
    let invalid = || format!("preludes[{at}] must be a valid prelude id or id@version ref");
    let Value::Object(members) = item else {
        return item.as_str().and_then(|text| text.parse().ok()).ok_or_else(invalid);
    };
    if members.keys().any(|key| !["id", "version", "checksum"].contains(&key.as_str())) {
        return Err(format!("preludes[{at}] contains an unexpected field"));
    }
    let text = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("preludes[{at}].{key} must be a non-empty string when supplied")),
    };
    let id = text("id")?.ok_or_else(|| format!("preludes[{at}].id must be a non-empty string"))?;
    let version = match members.get("version") {
        None => None,
        Some(version) => match version.as_u64().filter(|version| *version > 0) {
            Some(version) => Some(version),
            None => return Err(format!("preludes[{at}].version must be a positive integer")),
        },
    };
    let plain: PreludeRef = id.parse().map_err(|_| invalid())?;
    if plain.version.is_some() && version.is_some() {
        return Err(invalid());
    }
    Ok(PreludeRef { version: version.or(plain.version), checksum: text("checksum")?, ..plain })
}

impl StoreAccess {
    /// The store, if sessions may write it.
    pub(super) fn writable(&self) -> Option<&Arc<PreludeStore>> {
        self.store.as_ref().filter(|_| self.may_write)
    }

    /// The scope of a session's programs, and its frozen preludes.
    pub(super) fn place(
        &self,
        runtime: &Runtime,
        asked: RequestedPreludes,
        stop: &StopFlag,
    ) -> Result<(Scope, FrozenPreludes), SessionFault> {
        let (mut frozen, mut preludes, mut tools) = (FrozenPreludes::default(), Vec::new(), Vec::new());
        if let Some(references) = asked.references {
            let Some(store) = &self.store else {
                let message = ":prelude_store is required when :preludes is supplied";
                return Err(SessionFault::arguments(message));
            };
            if self.has_prelude {
                let message = "--prelude and preludes are mutually exclusive";
                return Err(SessionFault::arguments(message));
            }
            let (prelude, versions) = store.bundle_until(&references, stop).map_err(refused)?;
            frozen.references = Some(versions.iter().map(reference_view).collect());
            frozen.namespaces = Some(namespaces(&prelude));
            if !versions.is_empty() {
                preludes.push(prelude);
            }
        }
        if asked.may_write {
            let Some(store) = self.writable() else {
                let missing = [
                    (self.store.is_none(), "--prelude-store"),
                    (!self.may_write, "--sessions-allow-prelude-write"),
                ];
                let missing = missing.iter().filter(|(is_missing, _)| *is_missing).map(|(_, flag)| *flag);
                let flags = missing.collect::<Vec<_>>().join(" and ");
                let text =
                    format!("mode write_capable is not available: the server was started without {flags}");
                return Err(SessionFault::arguments(text));
            };
            frozen.may_write = true;
            let (editing_tools, editing) = editing(store);
            tools.extend(editing_tools);
            preludes.push(editing);
        }
        let place = runtime.base();
        if preludes.is_empty() {
            return Ok((place, frozen));
        }
        let place = place.with(tools, &preludes);
        let place = place.map_err(|error| SessionFault::arguments(error.to_string()))?;
        frozen.missing = place.check().err().map(|failure| failure.message);
        Ok((place, frozen))
    }

    /// All preludes of the store.
    pub(super) fn list(&self) -> Result<Value, SessionFault> {
        let Some(store) = &self.store else { return Ok(json!([])) };
        Ok(store.list().map_err(refused)?.iter().map(|stored| stored.public_view()).collect())
    }
}

fn refused(error: StoreError) -> SessionFault {
    let detail = error.compile.map(|failure| failure.compact()).unwrap_or_default();
    let breaks = if detail.is_empty() { "" } else { "\n" };
    SessionFault::arguments(format!("{}: {}{breaks}{detail}", error.reason, error.message))
}

fn reference_view(version: &PreludeVersion) -> Value {
    json!({ "id": version.id, "version": version.version, "checksum": version.checksum, "origin": "store" })
}

fn namespaces(prelude: &Prelude) -> Value {
    let row = |namespace: &ptc_compiler::Namespace| {
        let name = namespace.name();
        let doc = namespace.doc().and_then(|doc| doc.lines().next()).map(str::trim);
        json!({ "namespace": name, "doc": doc, "discover": format!("(ns-publics '{name})"),
            "source": format!("(source {name}/sym)") })
    };
    prelude.namespaces().map(row).collect()
}
