//! Unit tests across several modules, and their shared helpers: a context without an isolate, on a small native
//! stack.

mod arith;
mod collections;
mod json;
mod maps;
mod pipeline;
mod regex;
mod strings;
mod temporal;

use crate::builtins::{DIRECT, FACTS, Implementation, lookup};
use crate::context::{Context, Prints};
use crate::fault::Result;
use crate::native::Step;
use crate::value::Value;
use crate::value::testing::on_heap;

/// Runs `work` with plenty of fuel and memory.
pub(crate) fn with_context<T: Send + 'static>(work: impl FnOnce(&mut Context) -> T + Send + 'static) -> T {
    with_limits(1_000_000_000, 1 << 30, work)
}

/// Runs `work` under these limits, and checks that it leaves no bytes behind.
pub(crate) fn with_limits<T: Send + 'static>(
    fuel: u64,
    bytes: u64,
    work: impl FnOnce(&mut Context) -> T + Send + 'static,
) -> T {
    on_heap(fuel, bytes, &FACTS, |store| work(&mut Context::new(store, &DIRECT, Prints::new(1 << 20))))
}

/// Calls a builtin that calls neither functions nor the host, through its row.
pub(crate) fn call(
    cx: &mut Context,
    namespace: Option<&str>,
    name: &str,
    mut arguments: Vec<Value>,
) -> Result<Value> {
    let builtin = lookup(namespace, name).expect("a builtin of this name").info();
    assert!(builtin.arity.accepts(arguments.len()), "{name} takes other arguments");
    match builtin.implementation {
        Implementation::Direct(run) => run(cx, &mut arguments),
        Implementation::Callback(run) => match run(cx, &mut arguments)? {
            Step::Return(value) => Ok(value),
            _ => panic!("{name} calls a function"),
        },
        Implementation::Host(_) => panic!("{name} asks the host"),
    }
}
