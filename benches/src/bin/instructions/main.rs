//! The program that callgrind runs to count instructions: `instructions NAME [SIZE]` runs one case.
//!
//! It prepares the case, warms it up where that is short, and runs it once inside [`measured`], the only
//! function that the counter observes. `instructions --list` prints the cases, one a line, with the size of
//! each. The script `benches/instructions/run.py` counts them.
//!
//! Nothing here depends on time. The only randomness is the seeds of the compiler's tables, which move a
//! count by less than the tolerance of the script.

#[path = "../../../../mcp/src/bin/ptc/allocator.rs"]
mod allocator;
mod cases;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::Mimalloc = allocator::Mimalloc;

/// Runs the work that is counted: the counter starts when this function is entered and stops when it returns.
#[inline(never)]
fn measured(work: &mut dyn FnMut() -> Result<(), String>) -> Result<(), String> {
    work()
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    if name == "--list" {
        for case in cases::CASES {
            println!("{} {}", case.name, case.size);
        }
        return ExitCode::SUCCESS;
    }
    let Some(case) = cases::CASES.iter().find(|case| case.name == name) else {
        eprintln!("no case {name:?}; --list shows them");
        return ExitCode::from(2);
    };
    let size = arguments.next().and_then(|size| size.parse().ok()).unwrap_or(case.size);
    let done = (case.prepare)(size).and_then(|mut prepared| {
        for _ in 0..case.warm_up {
            (prepared)()?;
        }
        measured(&mut *prepared)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}
