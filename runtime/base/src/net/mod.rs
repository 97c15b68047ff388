//! The HTTP client of the runtime: pooled connections, TLS, proxies, redirects to allowed addresses, and errors that
//! say how to mend them.
//!
//! - [`HttpClient`] (`client`): requests that follow redirects without carrying secrets elsewhere. `connector`: makes
//!   connections. [`AddressClass`] (`address`): where a redirect may lead.
//! - [`TlsOptions`] (`tls`): trusted certificates, and the client certificate.
//! - [`Headers`] (`header`): headers that may hold secrets. [`Payload`] (`payload`): a body in parts.
//! - [`Response`], [`Body`] (`response`): responses, read in chunks; decoded bytes are counted.
//! - [`Challenge`] (`challenge`): the authentication that a server asks for, as data and in words.
//! - `peer`: the user who has opened a local connection.
//! - [`NetError`] (`error`): failures in words for people, and what to do about them.

mod address;
mod challenge;
mod client;
mod connector;
pub mod error;
mod header;
mod payload;
pub(crate) mod peer;
mod response;
mod tls;

pub use address::{AddressClass, is_loopback};
pub use challenge::excerpt;
pub use challenge::{Challenge, explain_challenges};
pub(crate) use client::shown;
pub use client::{ClientOptions, HttpClient};
pub use error::{NetError, NetFault, remedy};
pub use header::{HeaderError, Headers};
pub use hyper::header::HeaderName;
pub use hyper::{Method, StatusCode};
pub use payload::Payload;
pub use response::{Body, Response};
pub use tls::{ClientCertificate, TlsOptions};
pub use url::Url;
