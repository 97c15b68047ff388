//! Shortens the source text of a form for error messages.

use ptc_vm::Span;

/// The source text of a form, shortened for a message.
pub(crate) fn form_text(source: &str, span: Span) -> &str {
    const LONGEST: usize = 60;
    let text = source.get(span.start as usize..span.end as usize).unwrap_or("");
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => &text[..cut],
        None => text,
    }
}
