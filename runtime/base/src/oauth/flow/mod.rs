//! The OAuth flows that make a new login: in a browser, on another device, on request while a call waits, or without a
//! person.
//!
//! - [`asking`]: a person is asked while a call waits.
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
