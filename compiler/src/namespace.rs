//! Describes to the compiler the namespaces that its host application adds for programs: the exported names, how many
//! arguments each function takes, and which effects a call may have. Programs may call but not define names there.

/// Numbers of arguments that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallArity {
    /// Fewest.
    pub min: usize,
    /// Most; `None` for any number.
    pub max: Option<usize>,
}

impl CallArity {
    /// Whether a call with this many arguments fits.
    pub fn accepts(self, count: usize) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    /// The numbers in words: `2`, `1 to 3`, `at least 1`.
    pub fn words(self) -> String {
        match self.max {
            None => format!("at least {}", self.min),
            Some(max) if max == self.min => max.to_string(),
            Some(max) => format!("{} to {max}", self.min),
        }
    }
}

/// A namespace; programs refer to its names as `namespace/name`. It is protected: no program can define a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: Box<str>,
    doc: Option<Box<str>>,
    /// Sorted by name.
    exports: Vec<Export>,
}

/// A name that programs may refer to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Export {
    /// The name within its namespace.
    pub name: Box<str>,
    /// How many arguments it accepts; `None` for a constant.
    pub arity: Option<CallArity>,
    /// Its parameters as `x y`, one text for each arity; none for a constant.
    pub parameters: Vec<Box<str>>,
    /// What a call of it may do.
    pub effects: ExportEffects,
}

/// What the code of an export, and everything that it reaches, may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExportEffects {
    /// Call the host, or read the input data.
    pub may_call: bool,
    /// End the program by `return` or `fail`.
    pub may_end: bool,
    /// Print.
    pub may_print: bool,
    /// Call functions at another time: endless sequences and memoized functions.
    pub may_defer: bool,
}

impl ExportEffects {
    /// Anything.
    pub const ANY: ExportEffects =
        ExportEffects { may_call: true, may_end: true, may_print: true, may_defer: true };

    /// What one of two may do.
    #[must_use]
    pub fn union(self, other: ExportEffects) -> ExportEffects {
        ExportEffects {
            may_call: self.may_call || other.may_call,
            may_end: self.may_end || other.may_end,
            may_print: self.may_print || other.may_print,
            may_defer: self.may_defer || other.may_defer,
        }
    }
}

impl Export {
    /// Its usages under a name, one for each arity: `(crm/get-user id)`; for a constant the name.
    pub fn usages(&self, name: &str) -> Vec<String> {
        let call = |parameters: &str| {
            let blank = if parameters.is_empty() { "" } else { " " };
            format!("({name}{blank}{parameters})")
        };
        match self.arity {
            Some(_) => self.parameters.iter().map(|parameters| call(parameters)).collect(),
            None => vec![name.to_owned()],
        }
    }
}

impl Namespace {
    /// A namespace; the last of several exports with the same name counts.
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

    /// Its documentation.
    pub fn doc(&self) -> Option<&str> {
        self.doc.as_deref()
    }

    /// Its exports, sorted by name.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The export of a name.
    pub fn export(&self, name: &str) -> Option<&Export> {
        let at = self.exports.binary_search_by(|export| (*export.name).cmp(name)).ok()?;
        self.exports.get(at)
    }
}
