//! Checks the parser on arbitrary bytes.

use super::{check_diagnostic, lex};
use ptc_compiler::inspect::reprint;

/// Far more names than the text can hold, so that only the text decides.
const SYMBOLS: usize = 1 << 20;

/// The tokens satisfy [`lex`]. Forms written as text read as the same forms; an unreadable text is reported at the
/// location of its error.
pub fn parse(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    lex(data);
    match reprint(source, SYMBOLS) {
        Ok((once, warnings)) => {
            warnings.iter().for_each(|warning| check_diagnostic(source, warning));
            let again = reprint(&once, SYMBOLS);
            let (twice, warnings) = again.unwrap_or_else(|error| panic!("{error:?} in {once:?}"));
            assert_eq!(once, twice, "reads otherwise when printed: {source:?}");
            assert!(warnings.is_empty(), "{warnings:?} in {once:?}");
        }
        Err(error) => check_diagnostic(source, &error),
    }
}
