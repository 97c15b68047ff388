//! Whole conversations of agents with models over HTTP: what each provider is sent, byte for byte but for the texts, which
//! stand beside it, and what comes of it. Each scenario is held with both providers, whole and as a stream;
//! `PTC_BLESS=1 cargo nextest run --workspace --test conversations` writes its file.
//!
//! # Layout
//! - `scenario`: a scripted server and what an agent makes of it; `record`: how that is written down
//! - `working`, `ending`, `faults`: the scenarios: missions that succeed, missions that end otherwise, models that fail
#![cfg(feature = "agent")]

#[path = "../common/mod.rs"]
mod common;
mod ending;
mod faults;
mod record;
mod scenario;
mod working;
