//! Declares the limits of a run, adjustable by flags or fixed, each with its value or default and with what happens
//! beyond it. A limit that a lower crate enforces takes its default from there.

mod table;

use crate::limit_table;
use ptc_compiler::CompileOptions;
use ptc_vm::Budget;
use std::time::Duration;
pub use table::{LimitRow, LimitTable, Unit};

const MIB: u64 = 1 << 20;

limit_table! {
    /// The hard budgets of one program: bytes, milliseconds (`_ms`) or counts. Calls of servers and of functions of the
    /// application are both upstream calls. docs/library.md lists the defaults.
    Limits;
    /// Wall clock of one program, waiting for tools included, starts of servers excluded.
    timeout_ms: Millis = 1_000, "timeout", "timeout";
    /// Live logical bytes of one program.
    memory_bytes: Bytes = Budget::MEMORY_BYTES, "memory", "memory_exceeded";
    /// Fuel: calls, loop rounds, elements and bytes produced.
    fuel: Count = Budget::FUEL, "fuel", "fuel_exceeded";
    /// Rounds of one loop activation; 0 means no limit.
    loop_limit: Count = 0, "loop-limit", "loop_limit_exceeded";
    /// Upstream calls of one program, pmap branches included.
    max_upstream_calls: Count = 50, "max-upstream-calls", "cap_exhausted";
    /// Wall clock of one upstream call.
    upstream_call_timeout_ms: Millis = 30_000, "upstream-call-timeout", "timeout";
    /// Time that a call waits for the start of its server. It is not part of the program's time.
    upstream_start_timeout_ms: Millis = 45_000, "upstream-start-timeout", "starting";
    /// Bytes of one upstream answer, refused before decoding.
    max_upstream_response_bytes: Bytes = 2 * MIB, "max-upstream-response-bytes", "response_too_large";
    /// Looks of one program at the tools of upstreams: apropos, dir, doc, meta, tool/servers.
    /// The first dir of each server is not counted.
    max_catalog_ops: Count = 25, "max-catalog-ops", "gives nil";
    /// Bytes of JSON of one answer about names and tools; longer lists are cut.
    max_catalog_result_bytes: Bytes = 256 << 10, "max-catalog-result-bytes", "cut, or nil";
    /// Branches of pmap and pcalls alive at once; the rest wait.
    parallel_width: Count = Budget::PARALLEL_WIDTH as u64, "parallel-width", "waits";
    /// Bytes of source text.
    max_program_bytes: Bytes = CompileOptions::MAX_PROGRAM_BYTES as u64, "max-program-bytes", "program_too_large";
    /// Distinct symbols and keywords of the source text.
    max_symbols: Count = CompileOptions::MAX_SYMBOLS as u64, "max-symbols", "symbol_limit_exceeded";
    /// Bytes of context JSON.
    max_context_bytes: Bytes = 4 * MIB, "max-context-bytes", "args_error";
    /// Bytes of all printed lines together.
    print_bytes: Bytes = Budget::PRINT_BYTES as u64, "max-print-bytes", "prints are cut";
}

impl Limits {
    /// Defaults for programs that may call upstreams: 60 s, which is what hosts give a tool call, and 100 MiB.
    /// Computing stays bounded by fuel.
    pub fn with_upstreams() -> Limits {
        Limits { timeout_ms: 60_000, memory_bytes: 100 * MIB, ..Limits::default() }
    }

    /// Wall clock of one program.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Wall clock of one upstream call.
    pub fn upstream_call_timeout(&self) -> Duration {
        Duration::from_millis(self.upstream_call_timeout_ms)
    }

    /// Time that a call waits for the start of its server.
    pub fn upstream_start_timeout(&self) -> Duration {
        Duration::from_millis(self.upstream_start_timeout_ms)
    }
}

/// A limit that no flag changes, because the implementation or the language depends on it.
#[derive(Clone, Copy, Debug)]
pub struct FixedLimit {
    /// What is counted.
    pub name: &'static str,
    /// The limit.
    pub most: u64,
    /// What the user sees beyond it.
    pub reason: &'static str,
}

/// Every fixed limit.
pub const FIXED: &[FixedLimit] = &[
    FixedLimit {
        name: "brackets inside brackets",
        most: ptc_compiler::MAX_NESTING as u64,
        reason: "parse_error",
    },
    FixedLimit {
        name: "digits of an integer literal",
        most: ptc_compiler::MAX_DIGITS as u64,
        reason: "parse_error",
    },
    FixedLimit {
        name: "placeholders of #()",
        most: ptc_compiler::MAX_PLACEHOLDER as u64,
        reason: "invalid_form",
    },
    FixedLimit { name: "bits of an integer", most: ptc_vm::arith::MOST_BITS, reason: "arithmetic_error" },
    FixedLimit {
        name: "bytes of text for a regex that backtracks",
        most: ptc_regex::LONGEST_BACKTRACKED as u64,
        reason: "type_error",
    },
];
