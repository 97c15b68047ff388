//! Checks the compiler on arbitrary bytes.

use super::check_diagnostic;
use ptc_compiler::{CompileOptions, Compiled, Externals, Rejection};
use ptc_vm::Reason;

/// Compiling ends with the same result each time. The verifier accepts all emitted code, with last uses and without;
/// diagnostics point into the text.
pub fn compile(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let first = checked(source, true);
    let (again, kept) = (checked(source, true), checked(source, false));
    match (first, again, kept) {
        (Ok(first), Ok(again), kept) => {
            let code = first.program.disassemble();
            assert_eq!(code, again.program.disassemble(), "two compilations of {source:?} differ");
            assert_eq!(first.warnings, again.warnings);
            if let Err(errors) = kept {
                // Without last uses, locals live to the end of their scope and may need too many registers.
                assert_eq!(errors[0].reason, Reason::CompileMemoryExceeded, "{errors:?} in {source:?}");
            }
        }
        (Err(first), Err(again), kept) => {
            assert_eq!(first, again, "two compilations of {source:?} differ");
            assert!(kept.is_err(), "compiles without last uses only: {source:?}");
        }
        _ => panic!("two compilations of {source:?} differ"),
    }
}

fn checked(source: &str, last_uses: bool) -> Result<Compiled, Rejection> {
    let options = CompileOptions { last_uses, ..CompileOptions::default() };
    let result = ptc_compiler::compile(source, &Externals::default(), &options);
    let findings = match &result {
        Ok(compiled) => &compiled.warnings,
        Err(errors) => {
            assert!(!errors.is_empty(), "refused without a reason: {source:?}");
            &errors.errors
        }
    };
    for finding in findings {
        assert!(!finding.message.starts_with("internal:"), "{finding:?} in {source:?}");
        check_diagnostic(source, finding);
    }
    result
}
