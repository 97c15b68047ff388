//! Defines the id by which bytecode refers to a builtin function, and the metadata of an id (name, usage, arity), so
//! that code that handles bytecode does not depend on the implementations of builtins. [`Known`] marks the builtins
//! that such code treats specially.

use super::arity::Arity;

/// Number of a builtin: its row in the table of builtins. Only the table makes numbers, so each has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BuiltinId(u16);

impl BuiltinId {
    /// The builtin of a row that is there.
    pub(crate) const fn new(row: u16) -> BuiltinId {
        BuiltinId(row)
    }

    /// Position in the table.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of builtins, for the text form of programs.
pub type Names = fn(BuiltinId) -> &'static str;

macro_rules! known {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {
        /// Builtins that other code treats specially. Their rows carry this mark, so that no code compares names. The
        /// table of builtins checks at compile time that each has a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Known { $($(#[doc = $doc])+ $name,)+ }

        impl Known {
            /// How many there are.
            pub(crate) const COUNT: usize = [$(Known::$name),+].len();
        }
    };
}

known! {
    /// `+`.
    Add;
    /// `apply`.
    Apply;
    /// `budget/remaining`.
    Budget;
    /// `cat`.
    Cat;
    /// `compare`.
    Compare;
    /// `conj`.
    Conj;
    /// `cycle`.
    Cycle;
    /// `dec`.
    Decrement;
    /// `ensure-reduced`.
    EnsureReduced;
    /// `=`.
    Equal;
    /// `first`.
    First;
    /// `>`.
    Greater;
    /// `>=`.
    GreaterEqual;
    /// `identity`.
    Identity;
    /// `inc`.
    Increment;
    /// `interleave`.
    Interleave;
    /// `nil?`.
    IsNil;
    /// `some?`.
    IsSome;
    /// `iterate`.
    Iterate;
    /// `<`.
    Less;
    /// `<=`.
    LessEqual;
    /// `map`.
    Map;
    /// `mapcat`.
    Mapcat;
    /// `mapv`.
    Mapv;
    /// `re-seq`.
    Matches;
    /// `mod`.
    Modulo;
    /// `*`.
    Multiply;
    /// `not`.
    Not;
    /// `not=`.
    NotEqual;
    /// `currentTimeMillis`.
    Now;
    /// `nth`.
    Nth;
    /// `pmap`.
    Pmap;
    /// `quot`.
    Quotient;
    /// `range`.
    Range;
    /// `reduced`.
    Reduced;
    /// `rem`.
    Remainder;
    /// `repeat`.
    Repeat;
    /// `repeatedly`.
    Repeatedly;
    /// `rest`.
    Rest;
    /// `second`.
    Second;
    /// `seq`.
    Seq;
    /// `-`.
    Subtract;
    /// `take`.
    Take;
    /// `.toLocalDate`.
    ToLocalDate;
    /// `update`.
    Update;
    /// `zip`.
    Zip;
    /// `zipmap`.
    Zipmap;
    /// `%data`: one entry of the input data.
    DataEntry;
    /// `%date-time`: the date of the clock's answer.
    DateOfClock;
    /// `%nth`: an item of a sequential pattern.
    Element;
    /// `%first`: `first` where sequences may be endless.
    EndlessFirst;
    /// `%nth-item`: `nth` where sequences may be endless.
    EndlessNth;
    /// `%second`: `second` where sequences may be endless.
    EndlessSecond;
    /// `%get`: the value of a key in a map pattern.
    Entry;
    /// `%get-or`: the same, with a default.
    EntryOr;
    /// `%endless?`.
    IsEndless;
    /// `%seq`: the vector that `for` and `doseq` go through.
    Items;
    /// `%kwargs`: the map that keyword arguments make.
    KeywordArguments;
    /// `%keyword-keys`: one map of `keywordize-keys`.
    KeywordKeys;
    /// `%lookup`: a keyword with a default, in call position.
    LookUp;
    /// `%map-pattern`: the source of a map pattern.
    MapPattern;
    /// `%get-path`: the value at a path of keys.
    Path;
    /// `%pattern-items`: the source of a sequential pattern where sequences may be endless.
    PatternItems;
    /// `%rest-from`: the items that `&` of a pattern collects.
    RestFrom;
    /// `%step-done`.
    StepDone;
    /// `%string-keys`: one map of `stringify-keys`.
    StringKeys;
    /// `%take-range`: a range inside `take`, which may have step 0.
    TakeRange;
    /// `%task-id`.
    TaskId;
    /// `%task-reset`.
    TaskReset;
    /// `%times`: the integers of `dotimes`.
    Times;
    /// `%tool-call`: a tool of an upstream.
    ToolCall;
    /// `%tool-call!`: the value of such a tool.
    ToolCallValue;
    /// `%tool-servers`: the upstreams.
    ToolServers;
    /// `%tool`: a tool that the host granted.
    GrantedTool;
    /// `%vector-pattern`: the source of a sequential pattern.
    VectorPattern;
    /// `%while-items`: the items before the first that fails `:while`.
    WhileItems;
}

/// Facts about a builtin without its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Name without namespace.
    pub(crate) name: &'static str,
    /// An example call.
    pub(crate) usage: &'static str,
    /// Numbers of arguments.
    pub(crate) arity: Arity,
    /// It computes its value at once.
    pub(crate) is_direct: bool,
    /// Its identity, if other code treats it specially.
    pub(crate) known: Option<Known>,
}

/// The facts of all builtins. Passed down from their table, which is in a layer above all users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtins(&'static [Facts]);

impl Builtins {
    /// The facts by number.
    pub(crate) const fn new(rows: &'static [Facts]) -> Builtins {
        Builtins(rows)
    }

    /// The facts of one.
    #[inline]
    pub(crate) fn facts(self, builtin: BuiltinId) -> &'static Facts {
        &self.0[builtin.index()]
    }
}
