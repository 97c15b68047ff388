//! Namespaces that a host attaches to programs: what a program may call in them, and that it may define nothing there.

/// Numbers of arguments that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallArity {
    /// Fewest.
    pub min: usize,
    /// Most; `None` for any number.
    pub max: Option<usize>,
}

impl CallArity {
    /// A call with so many arguments fits.
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
    /// How many arguments it accepts; `None` for a constant.
    pub arity: Option<CallArity>,
    /// Its parameters as `x y`, one text for each arity; none for a constant.
    pub parameters: Vec<Box<str>>,
}

impl Export {
    /// How it is called under a name, once for each arity: `(crm/get-user id)`; a constant is its name.
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
