//! Resolves a name as a program writes it, such as `str/join`, to a builtin, by splitting it into namespace and name.

use ptc_vm::builtins;
use ptc_vm::bytecode::BuiltinId;

/// Splits `namespace/name` at the first slash that has text on both sides.
pub(crate) fn split_qualified(text: &str) -> (Option<&str>, &str) {
    // Names are short: a loop over the bytes is faster than starting a search.
    let slash = text.bytes().position(|byte| byte == b'/');
    match slash.map(|at| (&text[..at], &text[at + 1..])) {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => (Some(namespace), name),
        _ => (None, text),
    }
}

/// The builtin with a name as written, qualified or not.
pub(crate) fn find_builtin(text: &str) -> Option<BuiltinId> {
    let text = text.strip_prefix("java.time.").unwrap_or(text);
    let plain = || builtins::lookup(None, text);
    match split_qualified(text) {
        (None, _) => plain(),
        (Some(namespace), name) => builtins::lookup(Some(namespace), name).or_else(plain),
    }
}
