//! Sockets of clients, from accepting them to requests.
//!
//! - [`listen`]: accepting and draining connections. [`connection`]: one of them. [`addresses`]: how many of one address
//!   there are.
//! - [`wire`]: the stream of one, plain or over TLS ([`tls`]). [`patience`]: clients that read or write too slowly.

mod addresses;
mod connection;
mod listen;
mod patience;
mod tls;
mod wire;

pub(super) use connection::Asking;
pub use listen::HttpListener;
pub use tls::Tls;
