//! Whole conversations of agents with models over HTTP: the bytes that each provider receives, with the prompt texts
//! listed separately, and the outcome. Each scenario runs with both providers, whole and as a stream;
//! `PTC_BLESS=1 cargo test --workspace --test runtime conversations` writes its file.
//!
//! # Layout
//! - `scenario`: a scripted server and an agent's run with it; `record`: the format of the files
//! - `working`, `ending`, `faults`: missions that succeed, missions that end otherwise, models that fail
#![cfg(feature = "agent")]

mod ending;
mod faults;
mod record;
mod scenario;
mod working;
