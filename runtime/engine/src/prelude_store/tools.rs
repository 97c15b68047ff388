//! Defines the namespace `prelude/`, with which programs list, read and write stored preludes (versioned Lisp
//! libraries). It is itself a prelude over private tools.

use super::{PreludeRef, PreludeStore, StoreError, view};
use crate::guest::lisp::prelude::Prelude;
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use ptc_calls::host::HostTool;
use ptc_calls::run::outcome::Effect;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

/// The namespace and its tools, for programs that may edit the store.
pub fn editing(store: &Arc<PreludeStore>) -> (Vec<HostTool>, Arc<Prelude>) {
    static WRAPPER: LazyLock<Arc<Prelude>> = LazyLock::new(|| {
        // The text is part of this program, and a test compiles it.
        Arc::new(Prelude::of_host("prelude", include_str!("prelude.clj")).expect("it compiles"))
    });
    (tools(store), WRAPPER.clone())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoreArguments {
    id: Value,
    source: Value,
    version: Value,
    checksum: Value,
    metadata: Value,
}

impl StoreArguments {
    fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, StoreError> {
        value.as_str().ok_or_else(|| StoreError::new("invalid_argument", format!("{what} must be a string")))
    }

    fn reference(&self) -> Result<PreludeRef, StoreError> {
        StoreArguments::text(&self.id, "id")?.parse()
    }

    /// Stores the part of the metadata that views also show.
    fn metadata(&self) -> Map<String, Value> {
        self.metadata.as_object().map(view::public_metadata).unwrap_or_default()
    }
}

type Work = fn(&PreludeStore, &StoreArguments, &StopFlag) -> Result<Value, StoreError>;

const TOOLS: [(&str, Effect, Work); 5] = [
    ("prelude_store_list", Effect::Read, |store, _, _| {
        Ok(store.list()?.iter().map(|stored| stored.public_view()).collect())
    }),
    ("prelude_store_history", Effect::Read, |store, arguments, _| {
        let history = store.history(&arguments.reference()?.id)?;
        Ok(history.iter().map(|version| version.public_view()).collect())
    }),
    ("prelude_store_read", Effect::Read, |store, arguments, _| {
        let view = store.read(&arguments.reference()?)?.public_view();
        Ok(fine(view))
    }),
    ("prelude_store_write", Effect::Write, |store, arguments, stop| {
        let (id, source) = (StoreArguments::text(&arguments.id, "id")?, &arguments.source);
        let source = StoreArguments::text(source, "source")?;
        let written = store.write_until(id, source, arguments.metadata(), None, stop.interrupt())?;
        Ok(fine(written.public_view()))
    }),
    ("prelude_store_set_default", Effect::Write, |store, arguments, _| {
        let wrong = |what: &str| StoreError::new("invalid_argument", what);
        let version = arguments.version.as_u64().filter(|version| *version > 0);
        let reference = PreludeRef {
            version: Some(version.ok_or_else(|| wrong("version must be a positive integer"))?),
            checksum: arguments.checksum.as_str().map(str::to_owned),
            ..arguments.reference()?
        };
        let selection = store.set_default(&reference, arguments.metadata())?;
        Ok(json!({ "status": "ok", "id": reference.id, "version": selection.version }))
    }),
];

/// Limits operations on stores at once: compiling a text takes memory outside its program.
static PERMITS: Semaphore = Semaphore::const_new(2);

fn fine(mut view: Value) -> Value {
    view["status"] = "ok".into();
    view
}

fn tools(store: &Arc<PreludeStore>) -> Vec<HostTool> {
    let tool = |(name, effect, work): (&'static str, Effect, Work)| {
        let store = store.clone();
        let function = move |arguments: StoreArguments| {
            let store = store.clone();
            // A store may wait for its disk.
            let done = tasks::blocking_in_turn(TaskOwner::Run, &PERMITS, move |stop| {
                work(&store, &arguments, stop).unwrap_or_else(|error| error.public_view())
            });
            async move {
                let lost = || StoreError::broken("the store did not answer").public_view();
                Ok::<Value, Infallible>(done.await.unwrap_or_else(lost))
            }
        };
        HostTool::with_schema(name, json!({ "type": "object" }), function).effect(effect).private()
    };
    TOOLS.into_iter().map(tool).collect()
}
