//! Why a program was rejected or ended: one closed table for compiler, VM and runtime.
//!
//! Every reason has two names. The *raw* one is what `eval`, `check`, `batch` and the library
//! report; the *class* is the small set that `lisp_eval` promises its clients as `reason` (the raw
//! one travels beside it as `error_kind`).

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $raw:literal, $class:ident;)+) => {
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
    ProgramTooLarge = "program_too_large", ParseError;
    /// The reader cannot make forms of the text.
    ParseError = "parse_error", ParseError;
    /// A special form is written in a way that has no meaning.
    InvalidForm = "invalid_form", RuntimeError;
    /// A special form has too many or too few parts.
    InvalidArity = "invalid_arity", RuntimeError;
    /// `cond` and friends need pairs.
    InvalidCondForm = "invalid_cond_form", RuntimeError;
    /// A threading form has a step that cannot be threaded.
    InvalidThreadForm = "invalid_thread_form", RuntimeError;
    /// A destructuring pattern that the language does not have.
    UnsupportedPattern = "unsupported_pattern", RuntimeError;
    /// `%` outside `#()`.
    InvalidPlaceholder = "invalid_placeholder", RuntimeError;
    /// A literal map or set repeats a key.
    DuplicateKey = "duplicate_key", RuntimeError;
    /// More distinct names and keywords than the limit.
    SymbolLimitExceeded = "symbol_limit_exceeded", RuntimeError;
    /// A name that nothing defines.
    UnboundVar = "unbound_var", RuntimeError;
    /// A tool that the host did not grant.
    UnknownTool = "unknown_tool", RuntimeError;
    /// Compilation took too long.
    CompileTimeout = "compile_timeout", Timeout;
    /// Compilation needed too much memory, or a function needs too many registers.
    CompileMemoryExceeded = "compile_memory_exceeded", MemoryLimit;
    /// The compiler refused the program for another reason.
    CompileError = "compile_error", RuntimeError;

    /// A value has the wrong type.
    TypeError = "type_error", RuntimeError;
    /// Division by zero and the like.
    ArithmeticError = "arithmetic_error", RuntimeError;
    /// A builtin got the wrong number of arguments.
    ArityError = "arity_error", RuntimeError;
    /// A closure or `recur` got the wrong number of arguments.
    ArityMismatch = "arity_mismatch", RuntimeError;
    /// The value in call position cannot be called.
    NotCallable = "not_callable", RuntimeError;
    /// A keyword was called with the wrong number of arguments.
    InvalidKeywordCall = "invalid_keyword_call", RuntimeError;
    /// A map was called with the wrong number of arguments.
    InvalidMapCall = "invalid_map_call", RuntimeError;
    /// A `.method` that does not exist.
    UnsupportedMethod = "unsupported_method", RuntimeError;
    /// A value does not fit its destructuring pattern.
    DestructureError = "destructure_error", RuntimeError;
    /// Any other fault of a running program.
    RuntimeError = "runtime_error", RuntimeError;
    /// A `loop` went round more often than `--loop-limit` allows.
    LoopLimitExceeded = "loop_limit_exceeded", RuntimeError;
    /// The fuel budget ran out.
    FuelExceeded = "fuel_exceeded", Timeout;
    /// The memory budget ran out (infinite recursion ends here too).
    MemoryExceeded = "memory_exceeded", MemoryLimit;
    /// The wall-clock budget ran out.
    Timeout = "timeout", Timeout;
    /// The caller gave up.
    Cancelled = "cancelled", Cancelled;
    /// The program called `(fail v)`.
    Fail = "fail", Fail;

    /// A host tool reported an error.
    ToolError = "tool_error", RuntimeError;
    /// A tool was called with arguments that it does not take.
    InvalidToolArgs = "invalid_tool_args", RuntimeError;
    /// More tool calls than the limit.
    ToolCallLimitExceeded = "tool_call_limit_exceeded", RuntimeError;
    /// A branch of `pmap` failed.
    PmapError = "pmap_error", RuntimeError;
    /// A branch of `pcalls` failed.
    PcallsError = "pcalls_error", RuntimeError;
    /// The result does not match the requested output schema.
    ValidationError = "validation_error", ValidationError;
    /// A defect of this implementation, reported instead of a panic.
    ExecutionError = "execution_error", RuntimeError;
}
