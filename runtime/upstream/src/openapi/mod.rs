//! Makes plain JSON services callable: compiles chosen operations of an OpenAPI document to tools, and sends their HTTP
//! requests. Nothing here depends on MCP.
//!
//! - [`spec`]: what a configuration says. [`service`]: requests over HTTP. [`connection`]: its tools, and calls.
//! - [`choose`]: the operations that a configuration names. [`inspect`]: a look at a document before it is configured.
//! - [`document`]: the document, borrowed from its text: references in it, its operations. [`load`]: its bytes.
//! - [`compile`]: from an operation to a tool and a [`plan`] of its requests. [`argument`]: arguments as text,
//!   [`parameter`]: as parts of an address. [`schema`]: JSON Schema from the dialects of OpenAPI. [`name`]: names of tools.
//!   [`media`]: media types of bodies and results.

mod argument;
mod choose;
mod compile;
mod connection;
mod document;
mod inspect;
mod load;
mod media;
mod name;
mod parameter;
mod plan;
mod schema;
mod service;
mod spec;

pub(crate) use choose::is_pattern;
pub use inspect::{OpenApiInspection, inspect_openapi, is_openapi_document};
pub(crate) use spec::DEFAULT_SCHEMA_BYTES;
pub use spec::{OpenApiSpec, OperationOverride, SchemaSource};

/// Texts in errors, and the remedies.
pub(super) const REMEDIES: [(&str, &str); 7] = [
    ("schema_max_bytes", "raise schema_max_bytes, if the document is what it should be"),
    ("include_operations not found", "take operationIds from the document, or \"*\" for all that read"),
    ("collision", "give one of them another name in operation_overrides"),
    ("OpenAPI operation", "leave the operations out that cannot be called"),
    ("decode failed", "check that schema_file or schema_url names an OpenAPI document in JSON or YAML"),
    ("schema_file", "check the path of schema_file; a relative one is looked for beside the configuration"),
    ("schema_url", "check schema_url and auth, or save the document and name it in schema_file"),
];

/// What to do about a start that failed with this error.
fn remedy(error: &str) -> String {
    let known = REMEDIES.iter().find(|(words, _)| error.contains(words)).map(|(_, remedy)| *remedy);
    let known = known.or_else(|| ptc_base::net::remedy(error));
    known.unwrap_or("check that schema_file or schema_url names an OpenAPI 3.0 or 3.1 document").to_owned()
}
