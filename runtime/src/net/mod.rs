//! HTTP as everything in this crate speaks it: one way to make a client, one policy of redirects, one set of errors.
//!
//! - [`HttpClient`] (`client`): connections, and requests that follow redirects without carrying secrets elsewhere. `connector`:
//!   how connections are made.
//!   `address`: where a redirect may lead.
//! - [`TlsOptions`] (`tls`): whom we trust, and who we say that we are.
//! - [`Headers`] (`header`): headers that may hold secrets. [`Payload`] (`payload`): a body in parts.
//! - [`Response`], [`Body`] (`response`): answers, read in chunks, whose decoded bytes are counted.
//! - [`explain_challenges`] (`challenge`): who a server wants us to be, in words.
//! - [`NetError`] (`error`): what went wrong, in words for people, and what to do about it.

mod address;
mod challenge;
mod client;
mod connector;
mod error;
mod header;
mod payload;
mod response;
mod tls;

pub(crate) use challenge::excerpt;
pub use challenge::explain_challenges;
pub use client::{ClientOptions, HttpClient, Request};
pub use error::{NetError, NetFault, remedy};
pub use header::{HeaderError, Headers};
pub use hyper::header::HeaderName;
pub use hyper::{Method, StatusCode};
pub use payload::Payload;
pub use response::{Body, Response};
pub use tls::{ClientCertificate, TlsOptions};
pub use url::Url;
