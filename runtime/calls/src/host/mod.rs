//! Lets programs call async functions of the embedding application as tools: `(tool/name {…})`.
//!
//! A [`HostTool`] is a function with a name, a schema of its arguments and an effect. Its calls are handled
//! like every tool call: arguments are checked against the schema and encoded under the program's own budget,
//! and the call counts against the call budget, has a deadline and a ledger entry, and is dropped with its
//! program.
//!
//! # Layout
//! - this file: one tool; `typed`: its schemas from Rust types; `granted`: the tools of a runtime

mod granted;
#[cfg(feature = "schemars")]
mod typed;

pub use granted::{GrantedTool, GrantedTools};
#[cfg(feature = "schemars")]
pub use typed::schema_of;

use crate::run::outcome::Effect;
use crate::tools::{Annotations, TaskSupport, UpstreamTool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Future of a result: JSON text, or an error.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>;

/// A function that takes the text of a JSON object.
pub(crate) type Function = dyn Fn(&str) -> Answering + Send + Sync;

/// An async function of the application as a tool.
///
/// A program calls it by map, by keywords, or by position, in the order in which the schema declares its
/// properties: `(tool/add {:a 1 :b 2})`, `(tool/add :a 1 :b 2)`, `(tool/add 1 2)`. It gets the result of the
/// function as data. An error of the function ends the program with `tool_error`. A function
/// that lets programs handle its failures returns them as data.
#[derive(Clone)]
pub struct HostTool {
    listing: UpstreamTool,
    timeout: Option<Duration>,
    is_private: bool,
    function: Arc<Function>,
}

/// Arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

impl HostTool {
    /// A tool with an explicit JSON Schema: an object; its properties are the arguments. Its effect is unknown unless
    /// [`HostTool::effect`] sets it.
    ///
    /// The function may fail with every error that has a text: `&str`, `String`, an error type. It runs many times, also at
    /// the same time, so it is `Fn`: state that it shares is an `Arc`, cloned before the `async move` of each call. One that
    /// cannot fail returns `Ok::<_, String>(…)`.
    ///
    /// The name is a letter and then letters, digits, `_` and `-`, is neither `call` nor `servers`, and stands once in a
    /// runtime; otherwise the runtime does not start (`StartError::Tool`).
    pub fn with_schema<A, R, E, F, W>(name: impl Into<Arc<str>>, schema: Json, function: F) -> HostTool
    where
        A: DeserializeOwned,
        R: Serialize,
        E: Display,
        F: Fn(A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, E>> + Send + 'static,
    {
        let description = schema.get("description").and_then(Json::as_str).map(str::to_owned);
        let listing = UpstreamTool {
            name: name.into(),
            title: None,
            description,
            input_schema: schema,
            output_schema: None,
            annotations: Annotations::default(),
            meta: None,
            tasks: TaskSupport::Forbidden,
        };
        HostTool {
            listing,
            timeout: None,
            is_private: false,
            function: Arc::new(move |text| answering(&function, text)),
        }
    }

    /// What it does, for authors of programs. Default: the description of its schema.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> HostTool {
        self.listing.description = Some(description.into());
        self
    }

    /// The effect of a call. An agent does not go on after a failed program that made a call other than
    /// [`Effect::Read`].
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> HostTool {
        let (read, write) = match effect {
            Effect::Read => (Some(true), None),
            Effect::Write => (Some(false), Some(true)),
            Effect::Unknown => (None, None),
        };
        self.listing.annotations.read_only_hint = read;
        self.listing.annotations.destructive_hint = write;
        self
    }

    /// JSON Schema of its result, for the documentation of the tool.
    #[must_use]
    pub fn returns_schema(mut self, schema: Json) -> HostTool {
        self.listing.output_schema = Some(schema);
        self
    }

    /// Time limit of one call. Default: the program's
    /// [`Limits::upstream_call_timeout_ms`](crate::limits::Limits). A call never outlives its program.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> HostTool {
        HostTool { timeout: Some(timeout), ..self }
    }

    /// Makes it callable from preludes only: programs can neither call nor find it.
    #[must_use]
    pub fn private(self) -> HostTool {
        HostTool { is_private: true, ..self }
    }

    /// Whether the tool exists for programs that only read (`read_only`).
    #[doc(hidden)]
    pub fn is_admitted(&self, read_only: bool) -> bool {
        !read_only || self.is_private || self.listing.effect() == Effect::Read
    }

    /// Whether both have the same function: clones of one tool do.
    #[doc(hidden)]
    pub fn is_same_function(&self, other: &HostTool) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }

    /// Its name, without `tool/`.
    pub fn name(&self) -> &str {
        &self.listing.name
    }

    /// Name, description, schemas and annotations, as a server would list them.
    #[doc(hidden)]
    pub fn listing(&self) -> &UpstreamTool {
        &self.listing
    }
}

impl std::fmt::Debug for HostTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostTool").field("listing", &self.listing).finish_non_exhaustive()
    }
}

fn answering<A, R, E, W>(function: &impl Fn(A) -> W, text: &str) -> Answering
where
    A: DeserializeOwned,
    R: Serialize,
    E: Display,
    W: Future<Output = Result<R, E>> + Send + 'static,
{
    match serde_json::from_str(text) {
        Ok(arguments) => {
            let work = function(arguments);
            Box::pin(async move {
                let result = work.await.map_err(|error| error.to_string())?;
                serde_json::to_vec(&result).map_err(|error| format!("its result is no JSON: {error}"))
            })
        }
        Err(error) => Box::pin(std::future::ready(Err(format!("arguments do not fit: {error}")))),
    }
}
