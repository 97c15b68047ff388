//! Tests of `ptc repl`. `piped`: without a terminal; `typed`: at a terminal; `asked`: its commands and pasted text.

mod asked;
mod piped;
mod typed;
