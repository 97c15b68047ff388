//! Benchmark of `ptc serve` over stdio: requests a second of tiny programs, 64 in flight.
//!
//! Measures the binary that `cargo build --profile bench` made: build it first.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Requests in flight.
const DEPTH: usize = 64;

/// Requests of one round.
const REQUESTS: usize = 1_024;

/// Path of the `ptc` binary. The benchmark itself is `target/release/deps/server-…`; the binary is
/// `target/release/ptc`.
fn binary() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.parent()?.join("ptc");
    path.exists().then_some(path)
}

fn server(criterion: &mut Criterion) {
    let Some(binary) = binary() else {
        eprintln!("skipped: build the binary first with `cargo build --profile bench`");
        return;
    };
    let Ok(mut child) = Command::new(binary)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    else {
        panic!("ptc serve does not start");
    };
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        panic!("no pipes")
    };
    let mut output = BufReader::new(output);
    let mut line = String::new();
    let mut send = |from: usize, count: usize| {
        let mut batch = String::new();
        for id in from..from + count {
            let _ = writeln!(
                batch,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"lisp_eval","arguments":{{"program":"(+ 1 2)"}}}}}}"#
            );
        }
        input.write_all(batch.as_bytes()).is_ok()
    };
    let mut id = 0;
    let mut group = criterion.benchmark_group("server");
    group.throughput(Throughput::Elements(REQUESTS as u64)).sample_size(20);
    group.bench_function("lisp_eval (+ 1 2), 64 in flight", |bencher| {
        bencher.iter(|| {
            for _ in 0..REQUESTS / DEPTH {
                assert!(send(id, DEPTH), "the server is gone");
                id += DEPTH;
                for _ in 0..DEPTH {
                    line.clear();
                    assert!(output.read_line(&mut line).is_ok_and(|bytes| bytes > 0), "the server is gone");
                }
            }
        });
    });
    group.finish();
    // The measurement is complete; errors at the end of the server do not matter.
    let _ = child.kill();
    let _ = child.wait();
}

criterion_group!(benches, server);
criterion_main!(benches);
