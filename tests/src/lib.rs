//! Shared helpers of the tests of the whole product. The tests are in `tests/tests/`: a folder is a binary,
//! a file is a family of promises. They drive the real `ptc` binary, and third-party servers and clients.
//!
//! # Layout
//! - [`binary`]: finds the `ptc` binary and runs its commands to the end
//! - [`serve`]: a running `ptc serve` and the client side of its connection; [`web`]: the same over HTTP
//! - [`scripts`]: runs Python scripts on such a server
//! - [`terminal`]: a program at a terminal, and its screen
//! - [`upstreams`]: configuration files that name upstream servers, our own `probe-server` among them; [`bridge`]: the
//!   same server over HTTP
//! - [`tasking`]: a server that answers calls with tasks
//! - [`leaks`]: secrets, and the forms in which they may leak
//! - [`leaky_service`]: a JSON service that leaks them in all forms
//! - [`model`]: a model with scripted replies; [`tasks`]: a server that such a model plans for
//! - [`third_party`]: installs MCP servers and clients from npm and PyPI (`tests/third_party/install.sh`)
//! - [`oauth`]: an MCP server with its own authorization server
//! - [`signature`]: makes arguments from the signature that `doc` shows; [`documented`]: validates them against the
//!   schema
//! - [`processes`]: which processes live, for the promises about orphans and crashes
//! - [`small_stack`]: runs work on a native stack too small for recursion over values
//! - [`collisions`]: keys with equal hashes; [`cost`]: processor time and resident memory
//! - [`properties`]: checks properties of random inputs; [`checks`]: properties of any input; [`grammar`]: random
//!   programs; [`variants`]: runs programs with optimisations on and off; [`guest`]: preempts them half-way
//! - [`pr_text`], [`conformance`]: reads printed values as data, and judges answers by them
//!
//! # The binary under test
//! `cargo test --workspace` builds `ptc` next to the tests. When only this package is tested, the binary may
//! be absent or older than its sources; then [`binary::path`] builds it. `PTC_BIN` names another binary.
//!
//! # Time
//! No test asserts how long something took. [`PATIENCE`] bounds each wait, so that a hang fails.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

pub mod binary;
pub mod bridge;
pub mod checks;
pub mod collector;
pub mod collisions;
pub mod conformance;
pub mod cost;
pub mod documented;
pub mod grammar;
pub mod guest;
pub mod leaks;
pub mod leaky_service;
pub mod model;
pub mod oauth;
pub mod postgres;
pub mod pr_text;
pub mod processes;
pub mod properties;
pub mod remote;
pub mod scripts;
pub mod serve;
pub mod signature;
pub mod small_stack;
pub mod tasking;
pub mod tasks;
pub mod terminal;
pub mod third_party;
pub mod upstreams;
pub mod variants;
pub mod web;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
