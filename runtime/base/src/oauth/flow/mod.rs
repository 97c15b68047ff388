//! Makes new OAuth logins: a person logs in with a browser, or with another device by a code, or the client logs in by
//! itself.
//!
//! - [`asking`]: a tool call needs a login and waits; the user of the MCP client is asked to log in.
//! - [`code`]: a person with a browser; [`loopback`]: receives the browser's answer. [`device`]: a person with another
//!   device.
//! - [`unattended`]: the client itself, or an identity provider.
//! - `steps`: what all of them begin with.

pub(super) mod asking;
pub(super) mod code;
pub(super) mod device;
pub(super) mod loopback;
mod steps;
pub(super) mod unattended;
