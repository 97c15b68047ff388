//! Namespaces that a host attaches to programs, which may call but not define names there.

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
