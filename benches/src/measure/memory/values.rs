//! Measures the memory of values: many of a kind in one vector, by the program's account and by the process.

use super::resident::resident;
use crate::measure::workload::evaluate;
use ptc_vm::{Budget, Isolate};

/// A kind of value.
#[derive(Debug)]
pub struct ValueKind {
    /// What it is called.
    pub name: &'static str,
    /// An expression that makes value number `i` of this kind.
    expression: &'static str,
}

macro_rules! kinds {
    ($($name:literal $expression:literal)*) => {
        /// The kinds.
        pub const KINDS: &[ValueKind] = &[$(ValueKind { name: $name, expression: $expression }),*];
    };
}

kinds! {
    "an integer" "i"
    "a string of 12 characters" "(str \"item-\" (+ 1000000 i))"
    "a string of 40 characters" "(str \"a name of thirty-three characters\" (+ 1000000 i))"
    "a vector of 3 integers" "[i i i]"
    "a map of 4, keys of the program" "{:id i :price i :open true :note nil}"
    "a map of 9, keys of the program" "{:a i :b i :c i :d i :e i :f i :g i :h i :i i}"
    "a map of 2, keys computed" "{i i, (inc i) i}"
    "a set of 3 integers" "#{i (inc i) (+ 2 i)}"
    "a function with a captured value" "(fn [] i)"
}

/// Memory of one value, including its slot in the vector.
#[derive(Debug)]
pub struct ValueSize {
    /// The kind.
    pub kind: &'static ValueKind,
    /// Logical bytes, which count towards the memory limit.
    pub logical: f64,
    /// Resident bytes of the process.
    pub resident: f64,
}

/// Makes `count` values of each kind. All live to the end, so that no kind reuses memory that another one has
/// freed.
///
/// # Errors
/// A program that fails; no `/proc`.
pub fn measure(count: usize) -> Result<Vec<ValueSize>, String> {
    let mut kept = Vec::with_capacity(KINDS.len());
    let mut all = Vec::with_capacity(KINDS.len());
    for kind in KINDS {
        let options = Budget { memory_bytes: 4 << 30, fuel: u64::MAX >> 1, ..Budget::default() };
        let mut isolate = Isolate::new(options);
        let (before, resident_before) = (isolate.live_bytes(), resident()?);
        let source = format!("(def kept (mapv (fn [i] {}) (range {count})))", kind.expression);
        evaluate(&mut isolate, &source, &[])?;
        let each = |bytes: u64| bytes as f64 / count.max(1) as f64;
        all.push(ValueSize {
            kind,
            logical: each(isolate.live_bytes() - before),
            resident: each(resident()?.saturating_sub(resident_before)),
        });
        kept.push(isolate);
    }
    Ok(all)
}
