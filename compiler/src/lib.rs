//! Compiles PTC-Lisp, the small Lisp of `ptc`, from source text to verified register bytecode.
//!
//! # Layout
//! The data flows from top to bottom.
//!
//! - `lexer`: source text to tokens; `names`: interned names, the table of special forms; `reader`: tokens to
//!   forms (`form`)
//! - `resolve`: names to slots, captures, globals, builtins, with one module for each family of special forms;
//!   it makes the IR
//! - `ir`: the IR, its last uses (`ir::liveness`), the tables of the program (`ir::tables`)
//! - [`flows`]: which data may reach which argument of which call, from the IR
//! - `codegen`: IR to instructions; `pipeline`: runs all passes
//! - [`prelude`]: texts that define namespaces, each definition a program of its own
//! - [`meter`]: the budget of a compilation, which every pass pays from
//! - `scratch`: memory that consecutive compilations reuse
//! - [`tool_catalog`]: literal tool calls, for a host that can check them
//! - [`externals`]: inputs of a compilation other than the text, and its result; [`namespace`]: names that a host
//!   attaches
//! - [`diagnostic`]: findings and their rendering; `inspect`: tokens and forms for tests
//! - [`mod@reference`]: all names of the language, with documentation and examples

#![forbid(unsafe_code)]

mod codegen;
pub mod diagnostic;
pub mod externals;
pub mod flows;
mod form;
#[doc(hidden)]
pub mod inspect;
mod ir;
mod lexer;
pub mod meter;
mod names;
pub mod namespace;
mod pipeline;
pub mod prelude;
mod reader;
pub mod reference;
mod resolve;
mod scratch;
#[cfg(test)]
mod testing;
pub mod tool_catalog;

pub use diagnostic::{Diagnostic, Severity};
pub use externals::{CompileOptions, Compiled, Externals, Rejection, ServersUsed, SessionName};
pub use meter::CompileBudget;
pub use namespace::{CallArity, Export, ExportEffects, Namespace};
pub use pipeline::compile;
pub use reader::{MAX_DIGITS, MAX_NESTING};
pub use resolve::symbol::is_reserved_namespace;
pub use resolve::syntax::function::MAX_PLACEHOLDER;
