//! The reasons why a program is rejected or fails: one closed table for compiler, VM and runtime.
//!
//! Every reason has two names. The *raw* name is reported by `eval`, `check`, `batch` and the library. The *class* is
//! one of the few values of `reason` that `lisp_eval` promises its clients (the raw name is added as `error_kind`).

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $raw:literal, $class:ident, $hint:literal;)+) => {
        /// The raw reason of a rejected or failed program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            /// Every reason, in table order.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)+];

            /// The name users see, for example `unbound_var`.
            pub const fn raw(self) -> &'static str {
                match self { $(Reason::$name => $raw,)+ }
            }

            /// The class `lisp_eval` reports.
            pub const fn class(self) -> Class {
                match self { $(Reason::$name => Class::$class,)+ }
            }

            /// The general hint, for errors without a more specific one.
            pub const fn hint(self) -> &'static str {
                match self { $(Reason::$name => $hint,)+ }
            }
        }
    };
}

/// The reasons that `lisp_eval` promises its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The source text does not parse.
    ParseError,
    /// Any other failure of the program.
    RuntimeError,
    /// Wall clock or fuel ran out.
    Timeout,
    /// The memory budget ran out.
    MemoryLimit,
    /// The program called `(fail v)`.
    Fail,
    /// The result does not match the requested output schema.
    ValidationError,
    /// The request was cancelled.
    Cancelled,
}

impl Class {
    /// The name users see, for example `runtime_error`.
    pub const fn name(self) -> &'static str {
        match self {
            Class::ParseError => "parse_error",
            Class::RuntimeError => "runtime_error",
            Class::Timeout => "timeout",
            Class::MemoryLimit => "memory_limit",
            Class::Fail => "fail",
            Class::ValidationError => "validation_error",
            Class::Cancelled => "cancelled",
        }
    }
}

reasons! {
    /// The source text is longer than the limit.
    ProgramTooLarge = "program_too_large", ParseError, "Pass the data as context and read it with data/key.";
    /// The reader cannot make forms of the text.
    ParseError = "parse_error", ParseError, "Check brackets and quotes at this place.";
    /// A special form has an invalid shape.
    InvalidForm = "invalid_form", RuntimeError, "Write the form as its documentation shows it: (doc name).";
    /// A special form has too many or too few parts.
    InvalidArity = "invalid_arity", RuntimeError, "Give the form the parts it expects.";
    /// `cond` and friends need pairs.
    InvalidCondForm = "invalid_cond_form", RuntimeError,
        "Tests and results stand in pairs; the default is :else result.";
    /// A threading form has a step that cannot be threaded.
    InvalidThreadForm = "invalid_thread_form", RuntimeError,
        "The value comes first, then the steps: (->> coll (map inc)).";
    /// A destructuring pattern that the language does not support.
    UnsupportedPattern = "unsupported_pattern", RuntimeError,
        "Patterns are a name, [a b & rest] and {:keys [a b]}.";
    /// `%` outside `#()`.
    InvalidPlaceholder = "invalid_placeholder", RuntimeError,
        "Write % inside #(…), or name the parameter: (fn [x] …).";
    /// A literal map or set repeats a key.
    DuplicateKey = "duplicate_key", RuntimeError,
        "Keep one of them; (assoc m k v) or (merge a b) lets the later value win.";
    /// More distinct names and keywords than the limit.
    SymbolLimitExceeded = "symbol_limit_exceeded", RuntimeError,
        "Pass the data as context and read it with data/key.";
    /// A test that is always true. Only a warning.
    AlwaysTrue = "always_true", RuntimeError, "Test (seq coll), which is nil without items.";
    /// An undefined name.
    UnboundVar = "unbound_var", RuntimeError, "Its `def` has not run yet: move the definition before this.";
    /// A tool that the host did not grant.
    UnknownTool = "unknown_tool", RuntimeError,
        "(tool/servers) lists the servers; their tools are called as (tool/call {:server \"name\" :tool \"name\" :args {…}}).";
    /// Compilation took too long.
    CompileTimeout = "compile_timeout", Timeout,
        "Make the program shorter: pass data as context, and write a function for what is repeated.";
    /// Compilation needed too much memory, or a function needs too many registers.
    CompileMemoryExceeded = "compile_memory_exceeded", MemoryLimit,
        "Split it into functions with `defn`, or pass data as context.";
    /// The compiler refused the program for another reason.
    CompileError = "compile_error", RuntimeError,
        "This is a defect of ptc: write the program in another way, and report it.";

    /// A prelude has a definition before its namespace.
    MissingNamespace = "missing_namespace", RuntimeError, "Begin the file with (ns name \"what it is for\").";
    /// A prelude declares a namespace of the language or of the host.
    ReservedNamespace = "reserved_namespace", RuntimeError, "Choose another name for the namespace.";
    /// A prelude declares a namespace wrongly or twice.
    InvalidNamespace = "invalid_namespace", RuntimeError, "Write (ns name \"doc\" {:visibility :prompt}), once for each namespace.";
    /// Two definitions of a prelude have one name.
    DuplicateRef = "duplicate_ref", RuntimeError, "Give one of them another name.";
    /// The visibility of an export is invalid.
    InvalidVisibility = "invalid_visibility", RuntimeError, "Write {:visibility :prompt} or {:visibility :discoverable}.";
    /// The `requires` of an export is not a list of operations.
    InvalidRequires = "invalid_requires", RuntimeError, "Write {:requires [\"upstream:server/tool\"]}.";
    /// The metadata of a prelude is invalid.
    InvalidMetadata = "invalid_metadata", RuntimeError, "Metadata is a map of keywords, as in {:effect :read}.";
    /// A definition of a prelude has an invalid shape.
    InvalidSignature = "invalid_signature", RuntimeError, "Write (defn name \"doc\" {meta} [params] body ...) or (def name \"doc\" value).";
    /// A prelude qualifies one of its own names with its namespace.
    QualifiedSelfReference = "qualified_self_reference", RuntimeError, "Call the sibling by its bare name.";
    /// A requirement of an export is missing.
    PreludeAttachFailed = "prelude_attach_failed", RuntimeError, "Configure the server, or start without the prelude.";

    /// A value has the wrong type.
    TypeError = "type_error", RuntimeError, "Look at the value with (describe x) or (type x).";
    /// Division by zero and the like.
    ArithmeticError = "arithmetic_error", RuntimeError,
        "Test the numbers before, as in (if (zero? d) nil (/ n d)).";
    /// A builtin got the wrong number of arguments.
    ArityError = "arity_error", RuntimeError, "(doc name) shows the arguments of a function.";
    /// A closure or `recur` got the wrong number of arguments.
    ArityMismatch = "arity_mismatch", RuntimeError, "Pass as many arguments as the function has parameters.";
    /// The value in call position cannot be called.
    NotCallable = "not_callable", RuntimeError,
        "Only functions, keywords, maps, sets and vectors can stand after (.";
    /// A keyword was called with the wrong number of arguments.
    InvalidKeywordCall = "invalid_keyword_call", RuntimeError,
        "A keyword takes a map and a default: (:key m) or (:key m default).";
    /// A map was called with the wrong number of arguments.
    InvalidMapCall = "invalid_map_call", RuntimeError,
        "A map takes a key and a default: (m :key) or (m :key default).";
    /// A `.method` that does not exist.
    UnsupportedMethod = "unsupported_method", RuntimeError,
        "Use a function of the language instead: (apropos \"word\") finds them.";
    /// A value does not fit its destructuring pattern.
    DestructureError = "destructure_error", RuntimeError,
        "[a b] takes lists apart, {:keys [a b]} maps; look at the value with (describe x).";
    /// Any other fault of a running program.
    RuntimeError = "runtime_error", RuntimeError, "Look at the values with (describe x).";
    /// A `loop` made more rounds than `--loop-limit` allows.
    LoopLimitExceeded = "loop_limit_exceeded", RuntimeError,
        "Check that every round comes nearer to the end; for long work use reduce or map over (range n).";
    /// The fuel budget ran out.
    FuelExceeded = "fuel_exceeded", Timeout,
        "Check for endless loops; otherwise process less data, or ask for more fuel.";
    /// The memory budget ran out (infinite recursion ends here too).
    MemoryExceeded = "memory_exceeded", MemoryLimit,
        "Keep only the fields and rows you need, or reduce step by step instead of building collections.";
    /// The wall-clock budget ran out.
    Timeout = "timeout", Timeout,
        "Do less work, call tools in parallel with pmap, or ask for a higher time limit.";
    /// The caller gave up.
    Cancelled = "cancelled", Cancelled, "The caller gave up; nothing is wrong with the program.";
    /// The program called `(fail v)`.
    Fail = "fail", Fail, "The program itself called `fail` here: change what it tests, or return the value.";

    /// A tool was called with arguments that it does not accept.
    InvalidToolArgs = "invalid_tool_args", RuntimeError, "(doc 'server/tool) shows the arguments of a tool.";
    /// A tool of the host failed, or one that `tool/call!` calls.
    ToolError = "tool_error", RuntimeError, "Change the arguments as the message says, or do without this tool.";
    /// A tool of the host, or one that `tool/call!` calls, was called more often than the budget of calls allows.
    ToolCallLimitExceeded = "tool_call_limit_exceeded", RuntimeError,
        "Make fewer calls: ask for many items at once and keep results under a name.";
    /// A branch of `pmap` failed.
    PmapError = "pmap_error", RuntimeError,
        "Make the branch return a value such as {:ok false} instead of faulting.";
    /// A branch of `pcalls` failed.
    PcallsError = "pcalls_error", RuntimeError,
        "Make the function return a value such as {:ok false} instead of faulting.";
    /// The result does not match the requested output schema.
    ValidationError = "validation_error", ValidationError, "Return a value that matches the output schema.";
    /// A defect of this implementation, reported instead of a panic.
    ExecutionError = "execution_error", RuntimeError,
        "This is a defect of ptc: write the expression in another way, and report it.";
}
