//! Promises of the language: conformance, limits that hostile programs run into, random programs, preludes and sessions.

mod conformance;
mod determinism;
mod fuzz_regressions;
mod hostile_builtins;
mod hostile_fuel;
mod hostile_hash;
mod hostile_meter;
mod hostile_regex;
mod preludes;
mod properties;
mod reference;
mod session;
mod small_stack;
mod suspension;
