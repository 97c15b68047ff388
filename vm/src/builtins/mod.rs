//! Defines the functions built into the language: a table with the name, arities, documentation, purity and
//! implementation of each. Everything else (lookup by the compiler, arity checks, documentation) comes from the rows.
//!
//! To add a builtin, add its row to the `TABLE` of the module it belongs to.

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

mod calendar;
mod collections;
mod data;
mod dates;
mod describe;
pub(crate) mod functions;
mod host_calls;
mod host_forms;
mod internal;
mod json;
mod names;
mod numbers;
mod predicates;
mod regexes;
mod strings;
mod tool_calls;
mod tool_forms;

pub use self::host_calls::{DiscoveryForm, HostFunction, ServerForm, SpillForm};
pub use self::tool_forms::ToolForm;
use crate::bytecode::{Arity, BuiltinId, CombinatorKind, Facts, Known};
use crate::context::{Context, Direct, DirectFunction};
use crate::fault::Result;
use crate::native::Step;
use crate::value::Value;
pub use crate::value::build::Arguments;
use collections::{construction, maps, partitions, relations, sequences, sets, sorting};
use functions::{callbacks, combinators, endless, transducers, walks};
use numbers::{bits, comparison, convert, java_math, math};
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a builtin does when it is called. `arguments` are the registers of the call: a builtin may take
/// values out of them, and what it leaves is dropped.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// Computes its value at once.
    Direct(DirectFunction),
    /// May call functions of the program.
    Callback(fn(&mut Context, &mut [Value]) -> Result<Step>),
    /// Suspends the program until the host answers.
    Host(HostFunction),
}

/// Effects of a builtin other than computing its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purity {
    /// Nothing, and it cannot fault with the right number of arguments.
    Total,
    /// Nothing but fault.
    Pure,
    /// It may call functions of the program.
    Calls,
    /// It prints or asks the host.
    Effect,
}

/// The part of the language a builtin belongs to; qualified names resolve through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// `clojure.core`.
    Core,
    /// `clojure.string`.
    String,
    /// `clojure.set`.
    Set,
    /// `clojure.walk`.
    Walk,
    /// Regular expressions.
    Regex,
    /// `Math`.
    Math,
    /// `json`, available qualified only.
    Json,
    /// Java interop.
    Interop,
    /// Not reachable by name: the compiler emits it.
    Internal,
}

/// Prefixes of qualified names, and the category each means.
pub const NAMESPACES: &[(&str, Category)] = &[
    ("clojure.core", Category::Core),
    ("core", Category::Core),
    ("clojure.string", Category::String),
    ("string", Category::String),
    ("str", Category::String),
    ("clojure.set", Category::Set),
    ("set", Category::Set),
    ("clojure.walk", Category::Walk),
    ("walk", Category::Walk),
    ("regex", Category::Regex),
    ("Math", Category::Math),
    ("json", Category::Json),
];

/// Prefixes of names that reach the host and have no category of their own.
pub const HOST_NAMESPACES: &[&str] = &["budget", "prompt", "resource", "spill"];

/// One row of the builtin table.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Name without namespace.
    pub name: &'static str,
    /// Part of the language.
    pub category: Category,
    /// How it is called, for example `(nth coll index default?)`.
    pub usage: &'static str,
    /// Numbers of arguments.
    pub arity: Arity,
    /// What it may do.
    pub purity: Purity,
    /// One line of documentation.
    pub doc: &'static str,
    /// What it runs.
    pub implementation: Implementation,
    /// Its identity, if other code treats it specially.
    pub known: Option<Known>,
    /// The combinator that a call makes, whatever its arguments. With constant arguments the combinator is a
    /// constant.
    pub combinator: Option<CombinatorKind>,
    /// The builtin that replaces it in programs that make endless sequences.
    pub endless: Option<Known>,
    /// An example call, shown in the error for too few arguments.
    pub form: Option<&'static str>,
}

type Callback = fn(&mut Context, &mut [Value]) -> Result<Step>;

/// The defaults of a row.
const BARE: Builtin = Builtin {
    name: "",
    category: Category::Internal,
    usage: "",
    arity: Arity::parse("0"),
    purity: Purity::Pure,
    doc: "",
    implementation: Implementation::Direct(|_, _| Ok(Value::Nil)),
    known: None,
    combinator: None,
    endless: None,
    form: None,
};

/// A row that computes its value at once. Arities: see [`Arity::parse`].
const fn direct(
    name: &'static str,
    category: Category,
    arity: &str,
    usage: &'static str,
    doc: &'static str,
    run: DirectFunction,
) -> Builtin {
    let (arity, implementation) = (Arity::parse(arity), Implementation::Direct(run));
    Builtin { name, category, usage, arity, purity: Purity::Pure, doc, implementation, ..BARE }
}

/// A row that may call functions of the program.
const fn callback(
    name: &'static str,
    category: Category,
    arity: &str,
    usage: &'static str,
    doc: &'static str,
    run: Callback,
) -> Builtin {
    let (arity, implementation) = (Arity::parse(arity), Implementation::Callback(run));
    Builtin { name, category, usage, arity, purity: Purity::Calls, doc, implementation, ..BARE }
}

/// A row that suspends until the host answers.
const fn host(
    name: &'static str,
    category: Category,
    arity: &str,
    usage: &'static str,
    doc: &'static str,
    function: HostFunction,
) -> Builtin {
    let (arity, implementation) = (Arity::parse(arity), Implementation::Host(function));
    Builtin { name, category, usage, arity, purity: Purity::Effect, doc, implementation, ..BARE }
}

impl Builtin {
    /// The same row, marked as one that cannot fault.
    const fn total(mut self) -> Builtin {
        self.purity = Purity::Total;
        self
    }

    /// The same row with an identity, for code that treats it specially.
    const fn known(mut self, known: Known) -> Builtin {
        self.known = Some(known);
        self
    }

    /// The same row, marked as a maker of combinators.
    const fn makes(mut self, kind: CombinatorKind) -> Builtin {
        self.combinator = Some(kind);
        self
    }

    /// The same row with its replacement in programs that make endless sequences.
    const fn where_endless(mut self, twin: Known) -> Builtin {
        self.endless = Some(twin);
        self
    }

    /// The same row with an example call.
    const fn form(mut self, form: &'static str) -> Builtin {
        self.form = Some(form);
        self
    }

    /// The same row, marked as one with an effect.
    const fn effect(mut self) -> Builtin {
        self.purity = Purity::Effect;
        self
    }
}

/// The tables of all modules.
const TABLES: &[&[Builtin]] = &[
    sequences::TABLE,
    construction::TABLE,
    partitions::TABLE,
    collections::TABLE,
    maps::TABLE,
    sets::TABLE,
    callbacks::TABLE,
    tool_calls::TABLE,
    callbacks::EACH,
    sorting::TABLE,
    walks::TABLE,
    describe::TABLE,
    host_forms::DISCOVERY,
    host_forms::SERVERS,
    host_forms::SPILLS,
    endless::TABLE,
    transducers::TABLE,
    combinators::TABLE,
    predicates::TABLE,
    names::TABLE,
    comparison::TABLE,
    math::TABLE,
    java_math::TABLE,
    bits::TABLE,
    convert::TABLE,
    strings::TABLE,
    strings::interop::TABLE,
    dates::TABLE,
    calendar::TABLE,
    regexes::TABLE,
    relations::TABLE,
    json::TABLE,
    internal::TABLE,
    data::TABLE,
];

const COUNT: usize = {
    let (mut total, mut table) = (0, 0);
    while table < TABLES.len() {
        total += TABLES[table].len();
        table += 1;
    }
    total
};

/// Every builtin, by number.
static BUILTINS: [Builtin; COUNT] = {
    let mut all = [TABLES[0][0]; COUNT];
    let (mut at, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut row = 0;
        while row < TABLES[table].len() {
            all[at] = TABLES[table][row];
            at += 1;
            row += 1;
        }
        table += 1;
    }
    all
};

/// The facts about builtins for code that does not have their functions.
pub(crate) static FACTS: [Facts; COUNT] = {
    let row = &BUILTINS[0];
    let mut all = [facts(row); COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = facts(&BUILTINS[at]);
        at += 1;
    }
    all
};

const fn facts(row: &Builtin) -> Facts {
    let Builtin { name, usage, arity, known, .. } = *row;
    Facts { name, usage, arity, is_direct: matches!(row.implementation, Implementation::Direct(_)), known }
}

/// The builtins that can be called without a frame.
pub(crate) static DIRECT: [Direct; COUNT] = {
    let mut all = [Direct { arity: BUILTINS[0].arity, run: None }; COUNT];
    let mut at = 0;
    while at < COUNT {
        let run = match BUILTINS[at].implementation {
            Implementation::Direct(run) => Some(run),
            _ => None,
        };
        all[at] = Direct { arity: BUILTINS[at].arity, run };
        at += 1;
    }
    all
};

/// The rows of the known builtins. A constant evaluation checks that each has exactly one.
static KNOWN: [BuiltinId; Known::COUNT] = {
    let mut ids = [BuiltinId::new(0); Known::COUNT];
    let mut is_there = [false; Known::COUNT];
    let mut at = 0;
    while at < COUNT {
        if let Some(known) = BUILTINS[at].known {
            assert!(!is_there[known as usize], "two rows are the same known builtin");
            is_there[known as usize] = true;
            ids[known as usize] = BuiltinId::new(at as u16);
        }
        at += 1;
    }
    let mut known = 0;
    while known < Known::COUNT {
        assert!(is_there[known], "a known builtin has no row");
        known += 1;
    }
    ids
};

impl Known {
    /// Its number.
    pub fn id(self) -> BuiltinId {
        KNOWN[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.id().info().name
    }
}

/// Numbers by name.
#[derive(Default)]
struct ByName {
    /// Names as they are written without a namespace.
    unqualified: HashMap<&'static str, BuiltinId, foldhash::fast::RandomState>,
    qualified: HashMap<(Category, &'static str), BuiltinId, foldhash::fast::RandomState>,
}

static BY_NAME: LazyLock<ByName> = LazyLock::new(|| {
    let mut names = ByName::default();
    for (row, builtin) in BUILTINS.iter().enumerate() {
        let id = BuiltinId::new(row as u16);
        names.qualified.insert((builtin.category, builtin.name), id);
        if !matches!(builtin.category, Category::Internal | Category::Json) {
            names.unqualified.entry(builtin.name).or_insert(id);
        }
    }
    names
});

impl BuiltinId {
    /// The row of the table.
    pub fn info(self) -> &'static Builtin {
        // Only this module makes builtin numbers, from its own rows.
        BUILTINS.get(self.index()).unwrap_or(&BUILTINS[0])
    }
}

/// The name of a builtin.
pub(crate) fn name_of(builtin: BuiltinId) -> &'static str {
    builtin.info().name
}

/// Every builtin with its number.
pub fn all() -> impl Iterator<Item = (BuiltinId, &'static Builtin)> {
    BUILTINS.iter().enumerate().map(|(row, builtin)| (BuiltinId::new(row as u16), builtin))
}

/// The builtin of a name: unqualified, or qualified by one of [`NAMESPACES`].
pub fn lookup(namespace: Option<&str>, name: &str) -> Option<BuiltinId> {
    let Some(namespace) = namespace else { return BY_NAME.unqualified.get(name).copied() };
    let (_, category) = NAMESPACES.iter().find(|(prefix, _)| *prefix == namespace)?;
    let qualified = BY_NAME.qualified.get(&(*category, name));
    // `core/x` means the same as plain `x`: in Clojure too, most functions on strings and numbers are there.
    let found = match category {
        Category::Core => qualified.or_else(|| BY_NAME.unqualified.get(name)),
        _ => qualified,
    };
    found.copied()
}
