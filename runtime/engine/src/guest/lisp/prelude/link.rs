//! Links the functions of a prelude (a preloaded Lisp library) that a program names, and what they depend on, into the
//! program's heap.

use super::{LinkedDefinition, Prelude};
use ptc_compiler::ServersUsed;
use ptc_compiler::prelude::DefinitionBody;
use ptc_vm::bytecode::Program;
use ptc_vm::{Fault, Isolate, UnitId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The definitions of a prelude that are in an isolate.
#[derive(Default)]
pub(in crate::guest::lisp) struct Attached {
    definitions: BTreeSet<u32>,
    /// Loaded programs of definitions.
    units: Vec<(UnitId, u32)>,
}

/// Definitions that were linked and are not committed yet.
pub(in crate::guest::lisp) struct Linked(Vec<(u32, Option<UnitId>)>);

impl Linked {
    /// There was nothing to link.
    pub(in crate::guest::lisp) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Attached {
    /// Adds definitions that are now committed.
    pub(in crate::guest::lisp) fn add(&mut self, linked: Linked) {
        for (number, unit) in linked.0 {
            self.definitions.insert(number);
            self.units.extend(unit.map(|unit| (unit, number)));
        }
    }

    /// The definition that a program of the isolate belongs to.
    pub(in crate::guest::lisp) fn definition(&self, unit: UnitId) -> Option<u32> {
        self.units.iter().find(|(known, _)| *known == unit).map(|(_, number)| *number)
    }
}

/// Replaces all linked definitions of one prelude in an isolate by those of the same names in another, with
/// all that they depend on. Names that the other does not have lose their values.
///
/// # Errors
/// The budget does not suffice; then nothing counts as linked.
pub(in crate::guest::lisp) fn relink(
    isolate: &mut Isolate,
    attached: &Attached,
    from: Option<&Arc<Prelude>>,
    to: Option<&Arc<Prelude>>,
) -> Result<Attached, Box<Fault>> {
    let mut needed = BTreeSet::new();
    for definition in
        from.iter().flat_map(|from| attached.definitions.iter().map(|&at| &from.definitions[at as usize]))
    {
        isolate.undefine(Some(&definition.namespace), &definition.compiled.name);
        let same = |other: &&LinkedDefinition| other.reference == definition.reference;
        let found = to.and_then(|to| to.definitions.iter().find(same));
        needed.extend(found.iter().flat_map(|found| &found.reaches).copied());
    }
    // Values that the session still holds of it belong to the session now; the rest is freed.
    attached.units.iter().for_each(|(unit, _)| isolate.detach(*unit));
    let mut relinked = Attached::default();
    if let Some(to) = to {
        let needed: Vec<u32> = needed.into_iter().collect();
        let linked = to.link(isolate, &needed, &relinked)?;
        relinked.add(linked);
    }
    Ok(relinked)
}

impl Prelude {
    /// The definitions that a program needs, sorted.
    pub(in crate::guest::lisp) fn needed_by(&self, program: &Program) -> Box<[u32]> {
        let mut needed = BTreeSet::new();
        for number in self.named_by(program) {
            needed.extend(&self.definitions[number as usize].reaches);
        }
        needed.into_iter().collect()
    }

    /// The exports that a program names.
    fn named_by(&self, program: &Program) -> impl Iterator<Item = u32> {
        let named = program.globals.iter().filter_map(|global| {
            let namespace = program.symbol(global.namespace?);
            self.export(namespace, program.symbol(global.symbol))
        });
        named.collect::<Vec<u32>>().into_iter()
    }

    /// The upstream servers that a program can call through it.
    #[doc(hidden)]
    pub fn servers(&self, program: &Program) -> ServersUsed {
        let mut servers = ServersUsed::default();
        for number in self.named_by(program) {
            let definition = &self.definitions[number as usize].compiled;
            servers.dynamic |= definition.is_dynamic;
            let named = definition.requires.iter().filter_map(|id| id.strip_prefix("upstream:"));
            servers.named.extend(named.filter_map(|id| Some(id.split_once('/')?.0.to_owned())));
        }
        servers
    }

    /// Links definitions that are not linked yet, and returns them: they count as attached once they are
    /// committed.
    ///
    /// # Errors
    /// The budget of the isolate does not suffice.
    pub(in crate::guest::lisp) fn link(
        &self,
        isolate: &mut Isolate,
        needed: &[u32],
        attached: &Attached,
    ) -> Result<Linked, Box<Fault>> {
        let mut linked = Vec::new();
        for &number in needed.iter().filter(|number| !attached.definitions.contains(number)) {
            let LinkedDefinition { namespace, compiled, data, .. } = &self.definitions[number as usize];
            let mut of_unit = None;
            match (compiled.body, data) {
                (DefinitionBody::Function(function), _) => {
                    let program = compiled.program.clone();
                    of_unit = Some(isolate.attach_function(namespace, &compiled.name, program, function)?);
                }
                (DefinitionBody::Constant, Some(data)) => {
                    isolate.attach_data(namespace, &compiled.name, data)?;
                }
                // Every constant was computed when the prelude was compiled.
                (DefinitionBody::Constant, None) => {}
            }
            linked.push((number, of_unit));
        }
        Ok(Linked(linked))
    }

    /// Name and location of a definition, for messages.
    pub(in crate::guest::lisp) fn described(&self, definition: u32, span: ptc_vm::Span) -> String {
        let (place, found) = self.location(definition, span);
        let reference = &self.definitions[definition as usize].reference;
        format!("{reference}, at {place}: {}", found.excerpt)
    }
}
