//! Tools of the application whose schemas come from the Rust types of their arguments and results.

use super::{HostTool, NoArguments};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

/// Without a description, which would become that of the tool.
impl JsonSchema for NoArguments {
    fn schema_name() -> Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object", "additionalProperties": false })
    }
}

impl HostTool {
    /// [`HostTool::with_schema`] with the schema of the type of its arguments.
    ///
    /// Fields that are `Option` or have `#[serde(default)]` are optional arguments; the doc comment of a field is its
    /// description. A function without arguments takes [`NoArguments`].
    ///
    /// ```
    /// # use ptc_calls as ptc_runtime;
    /// use ptc_runtime::{Effect, HostTool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Add {
    ///     /// The first number.
    ///     a: i64,
    ///     b: i64,
    /// }
    ///
    /// let add = HostTool::new("add", |Add { a, b }: Add| async move { a.checked_add(b).ok_or("too large") })
    ///     .describe("Adds two numbers.")
    ///     .effect(Effect::Read);
    /// assert_eq!(add.name(), "add");
    /// ```
    pub fn new<A, R, E, F, W>(name: impl Into<Arc<str>>, function: F) -> HostTool
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        E: Display,
        F: Fn(A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, E>> + Send + 'static,
    {
        HostTool::with_schema(name, schema_of::<A>(), function)
    }

    /// The type of its result, for the documentation of the tool.
    #[must_use]
    pub fn returns<R: JsonSchema>(self) -> HostTool {
        self.returns_schema(schema_of::<R>())
    }
}

/// The JSON Schema of a type, without its title.
pub fn schema_of<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Json::Object(members) = &mut schema {
        members.remove("title");
    }
    schema
}
