//! Lets a tool call go on after the request that began it has ended: as an MCP task, or as a run that the client awaits
//! with the tool `lisp_run`.
//!
//! In 2025-11-25 a client asks for a task, and gets it at once. In the extension of 2026-07-28 the server makes one of
//! a call that takes long, if the client knows tasks. For other clients such a call answers with a `run_id`.
//!
//! # Layout
//!
//! - [`run`]: one such call, its questions and its outcome. [`table`]: all of them, by owner.
//! - [`wire`]: how they are written. [`methods`]: the methods of `tasks/`. [`awaited`]: requests that wait for the end.
//! - [`stored`]: what is stored of them, and how they go on in a later process.

mod awaited;
mod methods;
mod run;
mod stored;
mod table;
mod wire;

pub use awaited::AwaitedTask;
pub use methods::Detach;
pub(super) use methods::{TaskReply, TaskWish};
pub(super) use run::{DetachedRun, End, HandleKind, Watcher};
pub(super) use stored::Elsewhere;
pub use stored::{OwnerRights, TakeEnded, Unfinished};
pub use table::{DetachedLimits, DetachedRuns, Handle};
pub(super) use wire::{capability, created, extension, notification};
