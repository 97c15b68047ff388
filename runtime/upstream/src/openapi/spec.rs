//! Defines the configuration of an OpenAPI service (not its document): its address, where its document is, and the
//! operations that become tools.

use ptc_base::net::{ClientOptions, Headers, Url};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Default size limit of a document.
pub(crate) const DEFAULT_SCHEMA_BYTES: usize = 2 << 20;

/// How to reach a service, and which of its operations become tools. Holds resolved secrets, so it implements
/// neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct OpenApiSpec {
    /// Base of the document's paths. Without query, fragment and password.
    pub base_url: Url,
    /// Source of the document.
    pub schema: SchemaSource,
    /// Size limit of the document before it is decoded.
    pub schema_max_bytes: usize,
    /// Headers of each request, including the one for the document.
    pub headers: Headers,
    /// Options of connections.
    pub client: ClientOptions,
    /// `operationId`s that become tools; an operation without one is named as `GET /path`.
    pub include: Vec<String>,
    /// Those of them that may change something: operations with other methods than GET, or with bodies.
    pub with_effects: Vec<String>,
    /// Overrides of the document, by operation.
    pub overrides: BTreeMap<String, OperationOverride>,
}

/// Source of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaSource {
    /// A file.
    File(PathBuf),
    /// An address; it gets the same headers as the service.
    Url(Url),
}

/// Overrides of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationOverride {
    /// Another name for the tool; it is normalized like an `operationId`.
    pub name: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Default arguments, which a call can override.
    pub default_args: Map<String, Value>,
}
