//! `ptc repl`: `piped`, without a terminal; `typed`, at one; `asked`, its commands and what is pasted there.

mod asked;
mod piped;
mod typed;
