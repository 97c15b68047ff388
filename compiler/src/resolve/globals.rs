//! What is known about names of the user namespace before and while the program is resolved.

use crate::externals::{CallArity, Externals};
use crate::form::{Form, FormKind};
use crate::names::NameMap;
use crate::names::{Name, Names};

/// One name of the user namespace.
#[derive(Clone, Debug, Default)]
struct Global {
    /// Definitions in this program.
    definitions: u32,
    /// Defined by an earlier program of the session.
    in_session: bool,
    /// Definitions that precede the current form on every way to it.
    visible: u32,
    /// Arguments it accepts, while it has one definition only.
    arity: Option<CallArity>,
    /// Its parameters as written, with the arity.
    parameters: Option<String>,
}

/// All names of the user namespace.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    known: NameMap<Name, Global>,
    visible: Vec<Name>,
    /// Names whose value is being resolved, and how many functions enclose the definition: functions
    /// inside the value may refer to the name.
    defining: Vec<(Name, usize)>,
}

impl Globals {
    /// Collects the names that any `def` of the program can define.
    pub(crate) fn scan<'a>(forms: &[Form<'a>], names: &Names<'a>, externals: &Externals<'_>) -> Globals {
        let mut globals = Globals::default();
        let mut waiting: Vec<&Form<'a>> = forms.iter().collect();
        while let Some(form) = waiting.pop() {
            if let FormKind::List([head, name, ..]) = form.kind
                && let (Some(head), Some(name)) = (head.symbol(), name.symbol())
                && matches!(names.text(head), "def" | "defn" | "defn-" | "defonce")
            {
                globals.known.entry(name).or_default().definitions += 1;
            }
            // `(-> 1 (def x))` and `(->> 1 (def x))` define x too: the list above covers both.
            waiting.extend(form.children());
        }
        for session in externals.session {
            if let Some(name) = names.find(session.name) {
                let global = globals.known.entry(name).or_default();
                global.in_session = true;
                if global.definitions == 0 {
                    global.arity = session.arity;
                }
            }
        }
        globals
    }

    /// Some definition in the program or the session can give the name a value.
    pub(crate) fn is_definable(&self, name: Name) -> bool {
        self.known.contains_key(&name)
    }

    /// The name has a value wherever the current form runs.
    pub(crate) fn is_visible(&self, name: Name) -> bool {
        self.known.get(&name).is_some_and(|global| global.in_session || global.visible > 0)
    }

    pub(crate) fn is_from_session(&self, name: Name) -> bool {
        self.known.get(&name).is_some_and(|global| global.in_session)
    }

    pub(crate) fn begin_definition(&mut self, name: Name, functions: usize) {
        self.defining.push((name, functions));
    }

    pub(crate) fn end_definition(&mut self) {
        self.defining.pop();
    }

    /// The reference is inside a function in the value of the name's own definition.
    pub(crate) fn is_in_own_definition(&self, name: Name, functions: usize) -> bool {
        self.defining.iter().any(|&(defined, depth)| defined == name && functions > depth)
    }

    /// Nothing gives the name another value later.
    pub(crate) fn is_defined_once(&self, name: Name) -> bool {
        self.known.get(&name).is_some_and(|global| global.definitions + u32::from(global.in_session) == 1)
    }

    pub(crate) fn arity(&self, name: Name) -> Option<CallArity> {
        self.known.get(&name).and_then(|global| global.arity)
    }

    pub(crate) fn parameters(&self, name: Name) -> Option<String> {
        self.known.get(&name).and_then(|global| global.parameters.clone())
    }

    pub(crate) fn set_arity(&mut self, name: Name, arity: CallArity, parameters: String) {
        if let Some(global) = self.known.get_mut(&name)
            && global.definitions == 1
            && !global.in_session
        {
            global.arity = Some(arity);
            global.parameters = Some(parameters);
        }
    }

    pub(crate) fn make_visible(&mut self, name: Name) {
        self.known.entry(name).or_default().visible += 1;
        self.visible.push(name);
    }

    pub(crate) fn visible_mark(&self) -> usize {
        self.visible.len()
    }

    pub(crate) fn release_visible(&mut self, mark: usize) {
        for name in self.visible.drain(mark.min(self.visible.len())..) {
            if let Some(global) = self.known.get_mut(&name) {
                global.visible -= 1;
            }
        }
    }

    /// Names with a value at the current form.
    pub(crate) fn visible_names(&self) -> impl Iterator<Item = Name> {
        self.known.iter().filter(|(_, global)| global.in_session || global.visible > 0).map(|(name, _)| *name)
    }
}
