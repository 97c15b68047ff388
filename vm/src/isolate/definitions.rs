//! Lets the application that embeds the VM list, read, set and remove the global names that programs of a session have
//! defined.

use super::names::GlobalKey;
use super::{Isolate, World};
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;

/// A name and its value.
pub struct Definition<'w> {
    /// The namespace; `None` for that of the user.
    pub namespace: Option<&'w str>,
    /// The name within it.
    pub name: &'w str,
    /// The value.
    pub value: &'w Value,
    /// Numbers of arguments, for a function of a program.
    pub arity: Option<Arity>,
    /// The current run defined it.
    pub is_new: bool,
}

/// Numbers of arguments that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Fewest.
    pub min: usize,
    /// Most; `None` for any number.
    pub max: Option<usize>,
}

impl Isolate {
    /// Calls `look` for every name that has a value; new names of a program come in the order in which it names them.
    pub fn definitions(&mut self, mut look: impl FnMut(Definition<'_>)) {
        self.scope(|world, _| {
            for (slot, key) in world.slots.names() {
                if let Some(value) = world.globals.get(slot) {
                    let is_new = world.globals.is_changed(slot);
                    let arity = arity_of(&world.cx, value);
                    let text = |symbol| world.cx.symbols.text(symbol);
                    let (namespace, name) = (key.namespace.map(text), text(key.name));
                    look(Definition { namespace, name, value, arity, is_new });
                }
            }
        });
    }

    /// Defines a name of the user namespace for the host. `build` gets the result of the program that ran last.
    ///
    /// # Errors
    /// Those of `build`; memory.
    pub fn define(
        &mut self,
        name: &str,
        build: impl FnOnce(&mut Context, &Value) -> Result<Value>,
    ) -> Result<()> {
        self.scope(|world, _| {
            let value = build(&mut world.cx, &world.result)?;
            world.put(None, name, value);
            Ok(())
        })
    }

    /// The value of a name of the user namespace, for the host.
    pub fn definition<T>(&mut self, name: &str, look: impl FnOnce(&mut Context, &Value) -> T) -> Option<T> {
        self.scope(|world, _| {
            let slot = world.slot_of(None, name)?;
            let value = world.globals.get(slot)?;
            Some(look(&mut world.cx, value))
        })
    }

    /// True if the value of a name of the user namespace is the very node of the last program's result, not only an
    /// equal value.
    pub fn is_result(&mut self, name: &str) -> bool {
        self.scope(|world, _| {
            let value = world.slot_of(None, name).and_then(|slot| world.globals.get(slot));
            value.is_some_and(|value| value.is_node(&world.result))
        })
    }

    /// Removes the value of a name: of the user namespace (`None`) or another. False if it has none.
    pub fn undefine(&mut self, namespace: Option<&str>, name: &str) -> bool {
        self.scope(|world, _| {
            let slot = world.slot_of(namespace, name).filter(|&slot| world.globals.get(slot).is_some());
            let Some(slot) = slot else { return false };
            world.globals.clear(slot);
            true
        })
    }
}

impl World {
    /// Gives a name of a namespace a value; `None` for that of the user.
    pub(super) fn put(&mut self, namespace: Option<&str>, name: &str, value: Value) {
        let symbols = &mut self.cx.symbols;
        let namespace = namespace.map(|namespace| symbols.intern(namespace));
        let slot = self.slots.slot(&mut self.globals, GlobalKey { namespace, name: symbols.intern(name) });
        self.globals.set(slot, value, &self.cx.functions);
    }

    /// The slot of a name of a namespace.
    pub(super) fn slot_of(&self, namespace: Option<&str>, name: &str) -> Option<u32> {
        let namespace = match namespace {
            Some(namespace) => Some(self.cx.symbols.find(namespace)?),
            None => None,
        };
        let name = self.cx.symbols.find(name)?;
        self.slots.find(GlobalKey { namespace, name })
    }
}

fn arity_of(cx: &Context, value: &Value) -> Option<Arity> {
    let Value::Closure(closure) = value else { return None };
    let whole = |arity: Arity, proto: &crate::bytecode::Proto| {
        let fixed = usize::from(proto.shape.fixed);
        let max = if proto.shape.variadic { None } else { arity.max.map(|max| max.max(fixed)) };
        Arity { min: arity.min.min(fixed), max }
    };
    Some(cx.arities(closure).fold(Arity { min: usize::MAX, max: Some(0) }, whole))
}
