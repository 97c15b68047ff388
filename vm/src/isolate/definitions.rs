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
            let symbol = world.cx.symbols.intern(name);
            let key = GlobalKey { namespace: None, name: symbol };
            let slot = world.slots.slot(&mut world.globals, key);
            world.globals.set(slot, value, &world.cx.functions);
            Ok(())
        })
    }

    /// The value of a name of the user namespace, for the host.
    pub fn definition<T>(&mut self, name: &str, look: impl FnOnce(&mut Context, &Value) -> T) -> Option<T> {
        self.scope(|world, _| {
            let slot = world.slot_of(name)?;
            let value = world.globals.get(slot)?;
            Some(look(&mut world.cx, value))
        })
    }

    /// True if the value of a name of the user namespace is the very node of the last program's result, not only an
    /// equal value.
    pub fn is_result(&mut self, name: &str) -> bool {
        self.scope(|world, _| {
            let value = world.slot_of(name).and_then(|slot| world.globals.get(slot));
            value.is_some_and(|value| value.is_node(&world.result))
        })
    }

    /// Removes the value of a name: of the user namespace (`None`) or another. False if it has none.
    pub fn undefine(&mut self, namespace: Option<&str>, name: &str) -> bool {
        self.scope(|world, _| {
            let slot = world.slot_in(namespace, name).filter(|&slot| world.globals.get(slot).is_some());
            let Some(slot) = slot else { return false };
            world.globals.clear(slot);
            true
        })
    }
}

impl World {
    /// The slot of a name of the user namespace.
    fn slot_of(&self, name: &str) -> Option<u32> {
        self.slot_in(None, name)
    }

    fn slot_in(&self, namespace: Option<&str>, name: &str) -> Option<u32> {
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
