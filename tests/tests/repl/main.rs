//! `ptc repl`: `piped`, without a terminal.

mod piped;
