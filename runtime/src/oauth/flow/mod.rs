//! The ways to a new login.
//!
//! - [`code`]: a person with a browser; [`loopback`]: receives the browser's answer. [`device`]: a person with another
//!   device.
//! - [`unattended`]: the client itself, or an identity provider.

pub(super) mod code;
pub(super) mod device;
pub(super) mod loopback;
pub(super) mod unattended;
