//! Talks to OAuth authorization servers: discovers them, registers `ptc` as a client, and requests tokens.
//!
//! - [`discovery`]: from a resource to its authorization server. [`metadata`]: the documents of both.
//! - [`client`]: the client at one server, and its registration. [`assertion`]: how it signs.
//! - [`token`]: requests for tokens. [`http`]: requests to addresses that servers name.

pub(super) mod assertion;
pub(super) mod client;
pub(super) mod discovery;
pub(super) mod http;
pub(super) mod metadata;
pub(super) mod token;
