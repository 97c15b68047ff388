//! Warns of Unicode escapes such as `\u00e9`, which the language does not decode.

use super::Reader;
use crate::diagnostic::{Diagnostic, MAX_WARNINGS};
use ptc_vm::{Reason, Span};

/// Bytes of `\u` and four digits.
const CODE: usize = 6;

/// The code unit at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..CODE - 2)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

impl Reader<'_, '_> {
    /// Warns if the text at a backslash is the code of a character.
    #[cold]
    #[inline(never)]
    pub(super) fn note_code(&mut self, start: u32, is_in_text: bool) {
        // The second code of a character was reported with the first.
        if self.findings.warnings.last().is_some_and(|last| last.span.end > start) {
            return;
        }
        let rest = self.source.get(start as usize..).unwrap_or_default();
        let Some(first) = unit(rest).filter(|_| self.findings.warnings.len() < MAX_WARNINGS) else { return };
        // A character beyond 16 bits is written as two codes.
        let second = rest.get(CODE..).and_then(unit).filter(|_| (0xD800..0xDC00).contains(&first));
        let code = &rest[..CODE * (1 + usize::from(second.is_some()))];
        let decoded = char::decode_utf16([first].into_iter().chain(second)).next().and_then(Result::ok);
        let hint = match decoded {
            Some(character) if character.is_control() => {
                format!("Write (char {}), and join texts with (str a b).", u32::from(character))
            }
            Some(character) => format!("Write the character itself: {character}"),
            None => "Write the character itself.".to_owned(),
        };
        let message = match is_in_text {
            true => format!("{code} is not decoded: the backslash, the u and the digits stay as they are"),
            false => format!("{code} is not decoded: it is the character u, and what follows is read apart"),
        };
        let span = Span::new(start, start + code.len() as u32);
        self.findings.warnings.push(Diagnostic::warning(Reason::ParseError, span, message).hint(hint));
    }
}
