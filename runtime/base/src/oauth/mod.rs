//! Acts as an OAuth 2.1 client towards upstream servers: finds the authorization server, logs in, stores and renews
//! tokens.
//!
//! # Layout
//!
//! - [`ServerLogin`] (`login`): the login at one server. It gives the token of each request, and renews it under a lock
//!   between processes.
//! - `flow`: the ways to a new login: a browser, another device, no person at all. [`LoopbackListener`] receives the
//!   answer of a browser.
//! - `server`: finds authorization servers, registers there, asks for tokens.
//! - [`TokenStore`] (`store`): files and locks.
//! - [`OAuthSettings`] (`settings`): what is configured. [`Scopes`] (`scopes`): sets of scopes. `account`: whose
//!   tokens they are. `random`: states and verifiers. `changes`: what is under way when the process wants to end. [`OAuthFault`] (`fault`): why there is no token.
//!
//! Invariant: each token, code, verifier, state and client secret is registered in the
//! [`SecretRegistry`](crate::secrets::SecretRegistry) when it is made or read.

mod account;
mod changes;
mod fault;
mod flow;
mod login;
mod random;
mod scopes;
mod server;
mod settings;
mod store;

pub use account::LoginId;
pub use changes::{ProcessHold, hold_process, settle_for_good, settled};
pub use fault::OAuthFault;
use fault::Result;
pub use flow::code::{AddressReader, LoginSummary, PendingLogin};
pub use flow::device::PendingDevice;
pub use flow::loopback::{Arrived, LoopbackListener};
pub use login::{AccessToken, Forgotten, ServerLogin};
pub use scopes::Scopes;
pub use server::assertion::SigningKey;
pub(crate) use server::discovery::metadata_addresses;
pub(crate) use server::http::{Document, exchange, json_accepted, place};
pub use server::metadata::{AuthorizationServer, ProtectedResource};
pub use settings::{ConfiguredClient, Grant, IdentityProvider, LoginIdentity, LoginOptions, OAuthSettings};
pub use store::TokenStore;
pub use store::stored::LoginFacts;
