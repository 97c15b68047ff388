//! Lets the host define functions and data under names that programs can use, without running a program to define them.
//! Attaching costs only linking.

use super::Isolate;
use super::link::constant_value;
use crate::bytecode::{PlainData, Program, ProtoIndex};
use crate::fault::{Fault, Result, UnitId};
use crate::value::symbol::Symbol;
use crate::value::{Closure, Value};
use std::sync::Arc;

impl Isolate {
    /// Defines a name of a namespace as a function of a program. The program stays like an attached one
    /// ([`Isolate::attach`]).
    ///
    /// # Errors
    /// As [`Isolate::load`]; a function with captures, since those are made by running the program.
    pub fn attach_function(
        &mut self,
        namespace: &str,
        name: &str,
        program: Arc<Program>,
        function: ProtoIndex,
    ) -> Result<UnitId> {
        self.scope(|world, _| {
            if program.protos.get(usize::from(function.0)).is_none_or(|proto| proto.captures > 0) {
                return Err(Fault::runtime("only a function without captures can be attached"));
            }
            let unit = world.load(program)?;
            let loaded = world.attached(unit);
            let closure = Closure::new(&loaded.code, function, Default::default());
            world.put(Some(namespace), name, Value::Closure(closure));
            Ok(unit)
        })
    }

    /// From now on the program stays only while something retained reaches it, and counts on the account, like other
    /// programs.
    pub fn detach(&mut self, unit: UnitId) {
        self.scope(|world, _| {
            if let Some(loaded) = world.cx.unit(unit) {
                loaded.is_attached.set(false);
                world.units.check_at_commit(unit);
            }
        });
    }

    /// Puts data under a name of a namespace.
    ///
    /// # Errors
    /// Memory; fuel for regular expressions.
    pub fn attach_data(&mut self, namespace: &str, name: &str, data: &PlainData) -> Result<()> {
        self.scope(|world, _| {
            let cx = &mut world.cx;
            cx.reserve(data.symbols.len() * 64 + data.rows.len() * size_of::<Value>() + data.text_bytes)?;
            let symbols: Vec<Symbol> = data.symbols.iter().map(|text| cx.symbols.intern(text)).collect();
            let mut values: Vec<Value> = Vec::with_capacity(data.rows.len());
            for row in &data.rows {
                cx.fuel.poll()?;
                let value = constant_value(cx, &symbols, &values, row)?;
                values.push(value);
            }
            let value = values.pop().unwrap_or_default();
            world.put(Some(namespace), name, value);
            Ok(())
        })
    }
}
