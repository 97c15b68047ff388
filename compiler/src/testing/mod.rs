//! Unit tests across modules.

mod flows;
