//! OAuth 2.1 as a client of servers: finds the authorization server, logs in, stores and renews tokens.
//!
//! # Layout
//!
//! - [`ServerLogin`] (`login`): the login at one server. It gives the token of each request, and renews it under a lock
//!   between processes.
//! - `code`: a person logs in with a browser. [`LoopbackListener`] (`loopback`): receives the answer of the browser.
//! - `discovery`: finds the authorization server. `metadata`: the documents of servers. `client`: which client `ptc` is
//!   there, and its registration. `token`: requests for tokens.
//! - [`TokenStore`] (`store`): files and locks. `stored`: one login as it is stored.
//! - [`OAuthSettings`] (`settings`): what is configured. [`Scopes`] (`scopes`): sets of scopes.
//! - `http`: requests to addresses that servers name. `random`: states and verifiers. [`OAuthFault`] (`fault`): why there
//!   is no token.
//!
//! Invariant: each token, code, verifier, state and client secret is registered in the
//! [`SecretRegistry`](crate::secrets::SecretRegistry) when it is made or read.

mod client;
mod code;
mod discovery;
mod fault;
mod http;
mod login;
mod loopback;
mod metadata;
mod random;
mod scopes;
mod settings;
mod store;
mod stored;
mod token;

pub use code::{AddressReader, LoginSummary, PendingLogin};
pub use fault::OAuthFault;
pub use login::{AccessToken, ServerLogin};
pub use loopback::{Arrived, LoopbackListener};
pub use metadata::{AuthorizationServer, ProtectedResource};
pub use scopes::Scopes;
pub use settings::{ConfiguredClient, Grant, OAuthSettings};
pub use store::TokenStore;
