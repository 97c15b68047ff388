//! Tests that count child processes and tasks of the whole process, and so run one at a time, in a binary of their own.

#[path = "../common/mod.rs"]
mod common;
mod fault_matrix;
mod limits;

/// Held by a test while it counts.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
