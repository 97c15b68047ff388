//! Writes versions of preludes into a store until it is killed: `store-writer FILE SEED`. Two threads write at once.
//! A line on standard output, `id version checksum`, acknowledges a version.
#![expect(clippy::unwrap_used, reason = "a test helper: what is broken should be loud")]

use ptc_engine::prelude_store::PreludeStore;
use serde_json::Map;
use std::io::Write;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (store, seed) = (PreludeStore::open(Path::new(&arguments[1])).unwrap(), &arguments[2]);
    std::thread::scope(|scope| {
        for id in ["alpha", "beta"] {
            let store = &store;
            scope.spawn(move || {
                for n in 0.. {
                    let padding = "x".repeat(n * 37 % 5_000);
                    let text = format!("(ns {id}) (def made \"{seed}-{n}\") (def padding \"{padding}\")");
                    let version = store.write(id, &text, Map::new(), None).unwrap();
                    let mut out = std::io::stdout().lock();
                    // A failed write means that the test is gone; then the input has ended too.
                    let _ = writeln!(out, "{id} {} {}", version.version, version.checksum);
                    let _ = out.flush();
                }
            });
        }
    });
}
