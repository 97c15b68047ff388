//! Tracks the global names of a program while it is resolved: where each is defined (program, session or library),
//! whether it is visible yet, and which function it is bound to, if that is known.

use crate::externals::Externals;
use crate::ir::Function;
use crate::names::{Name, Names, split_qualified};
use crate::namespace::{CallArity, Namespace};

/// One name of the user namespace.
#[derive(Clone, Copy, Debug, Default)]
struct Global<'a> {
    /// Number of definitions in this program.
    definitions: u32,
    /// Defined by an earlier program of the session, or exported by a namespace.
    in_session: bool,
    /// `namespace/name`.
    is_export: bool,
    /// Number of definitions that precede the current form on every path to it.
    visible: u32,
    /// Its value, if it has only one definition.
    value: KnownValue<'a>,
}

/// Known facts about the value of a name.
#[derive(Clone, Copy, Debug, Default)]
enum KnownValue<'a> {
    #[default]
    Unknown,
    /// A function of this program.
    Function(&'a Function<'a>),
    /// A function of an earlier program, or of a namespace, with its accepted numbers of arguments.
    Session(CallArity),
    /// A constant of a namespace.
    Constant,
}

/// All names of the user namespace.
#[derive(Debug, Default)]
pub(crate) struct Globals<'a> {
    known: Vec<(Name, Global<'a>)>,
    /// By the number of a name: its index in `known`, counted from 1; 0 for none.
    indexes: Vec<u32>,
    visible: Vec<Name>,
    /// Names with a definition in progress, and how many functions enclose the definition: functions inside the value
    /// may refer to the name.
    defining: Vec<(Name, usize)>,
}

impl<'a> Globals<'a> {
    fn get(&self, name: Name) -> Option<&Global<'a>> {
        let index = *self.indexes.get(name.number() as usize)?;
        Some(&self.known.get((index as usize).checked_sub(1)?)?.1)
    }

    fn get_mut(&mut self, name: Name) -> Option<&mut Global<'a>> {
        let index = *self.indexes.get(name.number() as usize)?;
        Some(&mut self.known.get_mut((index as usize).checked_sub(1)?)?.1)
    }

    fn entry(&mut self, name: Name) -> &mut Global<'a> {
        let number = name.number() as usize;
        if number >= self.indexes.len() {
            self.indexes.resize(number + 1, 0);
        }
        let index = &mut self.indexes[number];
        if *index == 0 {
            self.known.push((name, Global::default()));
            *index = self.known.len() as u32;
        }
        let index = *index as usize - 1;
        &mut self.known[index].1
    }

    /// The names of a namespace, which see each other in any order.
    pub(crate) fn for_namespace(defined: &[Name], names: &Names<'a>) -> Globals<'a> {
        let mut globals = Globals { indexes: vec![0; names.len()], ..Globals::default() };
        for &name in defined {
            let global = globals.entry(name);
            (global.definitions, global.visible) = (1, 1);
        }
        globals
    }

    /// The names that some `def` of the program can define, one for each, and those of the session.
    pub(crate) fn for_program(defined: &[Name], names: &Names<'a>, externals: &Externals<'_>) -> Globals<'a> {
        let mut globals = Globals::default();
        if !defined.is_empty() || !externals.session.is_empty() {
            globals.indexes = vec![0; names.len()];
            globals.known.reserve(defined.len() + externals.session.len().min(names.len()));
        }
        for &name in defined {
            globals.entry(name).definitions += 1;
        }
        if !externals.namespaces.is_empty() {
            globals.add_exports(names, externals.namespaces);
        }
        for session in externals.session {
            if let Some(name) = names.find(session.name) {
                let global = globals.entry(name);
                global.in_session = true;
                if let (0, Some(arity)) = (global.definitions, session.arity) {
                    global.value = KnownValue::Session(arity);
                }
            }
        }
        globals
    }

    /// Adds the exports that the program mentions: an unused export costs nothing.
    fn add_exports(&mut self, names: &Names<'a>, namespaces: &[&Namespace]) {
        for name in names.all() {
            let (Some(qualifier), member) = split_qualified(names.text(name)) else { continue };
            let namespace = namespaces.iter().find(|namespace| namespace.name() == qualifier);
            if let Some(export) = namespace.and_then(|namespace| namespace.export(member)) {
                let global = self.entry(name);
                (global.in_session, global.is_export) = (true, true);
                global.value = export.arity.map_or(KnownValue::Constant, KnownValue::Session);
            }
        }
    }

    /// Whether it is an export of an attached namespace.
    pub(crate) fn is_export(&self, name: Name) -> bool {
        self.get(name).is_some_and(|global| global.is_export)
    }

    /// Whether some definition in the program or the session can give the name a value.
    pub(crate) fn is_definable(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// Whether the name has a value wherever the current form runs.
    pub(crate) fn is_visible(&self, name: Name) -> bool {
        self.get(name).is_some_and(|global| global.in_session || global.visible > 0)
    }

    pub(crate) fn is_from_session(&self, name: Name) -> bool {
        self.get(name).is_some_and(|global| global.in_session)
    }

    pub(crate) fn begin_definition(&mut self, name: Name, functions: usize) {
        self.defining.push((name, functions));
    }

    pub(crate) fn end_definition(&mut self) {
        self.defining.pop();
    }

    /// Whether the reference is inside a function in the name's own definition.
    pub(crate) fn is_in_own_definition(&self, name: Name, functions: usize) -> bool {
        self.defining.iter().any(|&(defined, depth)| defined == name && functions > depth)
    }

    /// Whether no later definition changes the name's value.
    pub(crate) fn is_defined_once(&self, name: Name) -> bool {
        self.get(name).is_some_and(|global| global.definitions + u32::from(global.in_session) == 1)
    }

    pub(crate) fn arity(&self, name: Name) -> Option<CallArity> {
        match self.get(name)?.value {
            KnownValue::Unknown | KnownValue::Constant => None,
            KnownValue::Function(function) => Some(function.arity()),
            KnownValue::Session(arity) => Some(arity),
        }
    }

    /// The function that the name holds, if this program defines it.
    pub(crate) fn function(&self, name: Name) -> Option<&'a Function<'a>> {
        match self.get(name)?.value {
            KnownValue::Function(function) => Some(function),
            KnownValue::Unknown | KnownValue::Session(_) | KnownValue::Constant => None,
        }
    }

    /// Whether it is a constant of an attached namespace.
    pub(crate) fn is_constant(&self, name: Name) -> bool {
        self.get(name).is_some_and(|global| matches!(global.value, KnownValue::Constant))
    }

    /// Notes that the namespace defines the name as a function.
    pub(crate) fn set_arity(&mut self, name: Name, arity: CallArity) {
        self.entry(name).value = KnownValue::Session(arity);
    }

    pub(crate) fn set_function(&mut self, name: Name, function: &'a Function<'a>) {
        if let Some(global) = self.get_mut(name)
            && global.definitions == 1
            && !global.in_session
        {
            global.value = KnownValue::Function(function);
        }
    }

    pub(crate) fn make_visible(&mut self, name: Name) {
        self.entry(name).visible += 1;
        self.visible.push(name);
    }

    pub(crate) fn visible_mark(&self) -> usize {
        self.visible.len()
    }

    pub(crate) fn release_visible(&mut self, mark: usize) {
        while self.visible.len() > mark {
            if let Some(global) = self.visible.pop().and_then(|name| self.get_mut(name)) {
                global.visible -= 1;
            }
        }
    }

    /// Names with a value at the current form.
    pub(crate) fn visible_names(&self) -> impl Iterator<Item = Name> {
        self.known.iter().filter(|(_, global)| global.in_session || global.visible > 0).map(|(name, _)| *name)
    }
}
