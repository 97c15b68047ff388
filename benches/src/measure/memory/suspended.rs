//! Measures the memory of suspended programs: isolates, each waiting in a host call inside a callback.

use super::resident::resident;
use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_vm::{Budget, Exit, Isolate};

/// A program that waits for a tool two functions deep, with rows of its own.
const PROGRAM: &str = r#"
(defn fetch [row] (assoc row :answer (tool/call {:server "s" :tool "t" :args {:id (:id row)}})))
(->> (range 10)
     (map (fn [i] {:id i :name (str "row " i)}))
     (map fetch)
     (count))
"#;

/// What was measured.
#[derive(Debug)]
pub struct Footprint {
    /// Programs suspended.
    pub programs: usize,
    /// Resident bytes of the process before and with all of them.
    pub resident: (u64, u64),
    /// Logical bytes of one program.
    pub logical: u64,
}

/// Suspends `programs` programs and holds them all until it has measured.
///
/// # Errors
/// A program that does not suspend; no `/proc`.
pub fn measure(programs: usize) -> Result<Footprint, String> {
    let compiled = compile(PROGRAM, &Externals::default(), &CompileOptions::default())
        .map_err(|errors| format!("{errors:?}"))?;
    let before = resident()?;
    let mut isolates = Vec::with_capacity(programs);
    for _ in 0..programs {
        let mut isolate = Isolate::new(Budget::default());
        let unit = isolate.load(compiled.program.clone()).map_err(|fault| fault.message)?;
        isolate.start(unit);
        match isolate.run(1_000_000) {
            Exit::HostCall(_) => isolates.push(isolate),
            other => return Err(format!("the program did not suspend: {other:?}")),
        }
    }
    let resident = (before, resident()?);
    let logical = isolates.first().map_or(0, Isolate::live_bytes);
    Ok(Footprint { programs, resident, logical })
}
