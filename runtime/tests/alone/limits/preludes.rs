//! Bounds of preludes: their constants together, and the bytes of a store.

use ptc_engine::prelude_store::PreludeStore;

/// A text of constants that together take much work, or much memory.
fn costly(constant: &str) -> String {
    let constants: String = (0..500).map(|n| format!("(def c{n} {constant}) ")).collect();
    format!("(ns aa) {constants}")
}

#[test]
fn constants_have_bounds_together() {
    for constant in ["(reduce + (range 1900000))", "(reduce (fn [s _] (str s s)) \"x\" (range 22))"] {
        let error = ptc_engine::Prelude::compile("aa", &costly(constant)).expect_err("too much");
        let message = error.to_string();
        assert!(message.contains("prelude evaluation exceeded sandbox limits"), "{message}");
    }
}

#[test]
fn a_store_keeps_so_many_bytes_and_no_more() {
    let store = PreludeStore::in_memory();
    let text = |id: &str| format!("(ns {id})\n;{}\n(defn f [] 1)", "x".repeat(900_000));
    let mut written = 0;
    let refused = loop {
        let id = format!("p{written}");
        match store.write(&id, &text(&id), serde_json::Map::new(), None) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "no bound");
    };
    assert_eq!((refused.reason, written), ("store_full", 74));
}
