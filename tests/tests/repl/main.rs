//! `ptc repl`: `piped`, without a terminal; `typed`, at one.

mod piped;
mod typed;
