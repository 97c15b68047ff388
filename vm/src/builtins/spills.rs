//! Declares the builtins with which a program reads parts of a large result that the host keeps in a file:
//! `spill/head`, `spill/grep`, `spill/json-path` and others. The whole result is too large to be carried.

use crate::builtins::{Builtin, Category, HostFunction, SpillForm, host};

/// One row for each form: form, arities, usage, documentation.
macro_rules! forms {
    ($($form:ident $arity:literal $usage:literal $doc:literal;)+) => {
        &[$(host(
            SpillForm::$form.name(), Category::Interop, $arity, $usage, $doc, HostFunction::Look(SpillForm::$form),
        ),)+]
    };
}

/// The rows of this module.
pub(crate) const TABLE: &[Builtin] = forms! {
    Stat "1" "(spill/stat r)"
        "The size of a kept result: :bytes, :lines, and the :keys of an object. r is the result of the call, or its :spill.";
    Head "1-2" "(spill/head r lines?)"
        "The first lines of a kept result (50), as {:lines [text …] :from_line n :truncated b}. Rows of JSON are lines.";
    Tail "1-2" "(spill/tail r lines?)"
        "The last lines of a kept result (50), as spill/head.";
    Slice "3" "(spill/slice r from to)"
        "The lines from one to another, counted from 1 and both included, as spill/head.";
    Grep "2-3" "(spill/grep r pattern context?)"
        "The lines that match a regular expression, whatever their case, with their numbers: {:text s :matches n :truncated b}.";
    Read "1-2" "(spill/read r bytes?)"
        "The beginning of a kept result: {:text s :truncated b}.";
    JsonPath "2" "(spill/json-path r path)"
        "What a path such as $.items[0].name finds in kept JSON; nil if nothing. With [*] or [from:to] a list.";
};
