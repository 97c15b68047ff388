//! Namespaces that a host attaches to programs: what a program may call in them, and that it may define nothing there.

/// Numbers of arguments that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallArity {
    /// Fewest.
    pub min: usize,
    /// Most; `None` for any number.
    pub max: Option<usize>,
}

/// A namespace whose names programs refer to as `namespace/name`. It is protected: no program defines a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: Box<str>,
    doc: Option<Box<str>>,
    /// By name.
    exports: Vec<Export>,
}

/// A name that programs may refer to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Export {
    /// The name within its namespace.
    pub name: Box<str>,
    /// What it is for.
    pub doc: Option<Box<str>>,
    /// How many arguments it accepts, if it is a function.
    pub arity: Option<CallArity>,
    /// Its parameters as `[x y]`, one list for each arity; none for a constant.
    pub parameters: Vec<Box<str>>,
}

impl Namespace {
    /// A namespace; of exports of the same name the last counts.
    pub fn new(name: impl Into<Box<str>>, doc: Option<Box<str>>, exports: Vec<Export>) -> Namespace {
        let mut exports = exports;
        exports.reverse();
        exports.sort_by(|a, b| a.name.cmp(&b.name));
        exports.dedup_by(|later, earlier| later.name == earlier.name);
        Namespace { name: name.into(), doc, exports }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for.
    pub fn doc(&self) -> Option<&str> {
        self.doc.as_deref()
    }

    /// What programs may refer to, in the order of names.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The export of a name.
    pub fn export(&self, name: &str) -> Option<&Export> {
        let at = self.exports.binary_search_by(|export| (*export.name).cmp(name)).ok()?;
        self.exports.get(at)
    }
}
