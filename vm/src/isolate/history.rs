//! Makes the results of a session's latest programs available under history names (`*1`, `*2`), shifting older results
//! by one name.

use super::Isolate;
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;

impl Isolate {
    /// Shifts the values of `names` (of the user namespace, newest first) by one, and gives the first of them what
    /// `build` makes of the result of the program that ran last. The value of the last name is dropped.
    ///
    /// # Errors
    /// Those of `build`, before anything is shifted; memory.
    pub fn push_history(
        &mut self,
        names: &[&str],
        build: impl FnOnce(&mut Context, &Value) -> Result<Value>,
    ) -> Result<()> {
        self.scope(|world, _| {
            let mut pushed = build(&mut world.cx, &world.result)?;
            for name in names {
                let slot = world.slot_of(None, name);
                let old = slot.and_then(|slot| world.globals.get(slot)).cloned();
                world.put(None, name, pushed);
                let Some(old) = old else { break };
                pushed = old;
            }
            Ok(())
        })
    }
}
