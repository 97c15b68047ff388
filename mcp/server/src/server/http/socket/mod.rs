//! Accepts client connections, plain or over TLS, limits them, and serves the HTTP requests on each.
//!
//! - [`listen`]: accepts and drains connections. [`connection`]: serves one. [`addresses`]: limits them by
//!   address.
//! - [`wire`]: the stream of a connection, plain or over TLS ([`tls`]). [`slow_client`]: timeouts for slow
//!   clients.

mod addresses;
mod connection;
mod listen;
mod slow_client;
mod tls;
mod wire;

pub(super) use connection::RequestOrigin;
pub use listen::HttpListener;
pub use tls::Tls;
