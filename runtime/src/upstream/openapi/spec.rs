//! What a configuration says about a service.

use crate::net::{ClientOptions, Headers, Url};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Most bytes of a document when the entry does not say.
pub(crate) const DEFAULT_SCHEMA_BYTES: usize = 2 << 20;

/// How to reach a service, and what of it becomes tools. Holds resolved secrets, so it implements neither `Debug` nor
/// `Serialize`.
#[derive(Clone)]
pub struct OpenApiSpec {
    /// Paths of the document are below it. Without query, fragment and password.
    pub base_url: Url,
    /// Where the document is.
    pub schema: SchemaSource,
    /// Most bytes of the document, before it is decoded.
    pub schema_max_bytes: usize,
    /// Sent with each request, and with the one for the document.
    pub headers: Headers,
    /// How connections are made.
    pub client: ClientOptions,
    /// `operationId`s that become tools; an operation without one is named as `GET /path`.
    pub include: Vec<String>,
    /// Those of them that may change something: other methods than GET, and bodies.
    pub with_effects: Vec<String>,
    /// What is told about operations otherwise than their document does.
    pub overrides: BTreeMap<String, OperationOverride>,
}

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaSource {
    /// A file.
    File(PathBuf),
    /// An address; it is sent the same headers as the service.
    Url(Url),
}

/// What an entry says about one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationOverride {
    /// Another name for the tool; it is normalised as an `operationId` is.
    pub name: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Arguments that a call has unless it gives others.
    pub default_args: Map<String, Value>,
}
