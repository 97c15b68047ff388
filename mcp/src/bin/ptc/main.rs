//! Starts the command line of `ptc`, with mimalloc as the global allocator.

mod allocator;
mod collector;
mod streams;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::Mimalloc = allocator::Mimalloc;

fn main() -> ExitCode {
    ptc_base::memory::set_collector(collector::collect);
    ptc_mcp::cli::main(streams::output_is_closed())
}
