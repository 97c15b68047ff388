//! Entries of the language reference for the names that have no table of their own: constants, the input (`data/key`),
//! and the forms that call tools, such as `tool/call`.

use super::EntryKind::{Constant, HostForm};

/// Namespace, name, kind, signature and documentation.
type Row = (&'static str, &'static str, super::EntryKind, &'static str, &'static str);

#[rustfmt::skip]
pub(super) const OTHERS: &[Row] = &[
    ("tool", "tool/call", HostForm, "(tool/call {:server s :tool t :args {…}}), (tool/call 'server/tool {…})", "Calls a tool of an upstream: {:ok true :value v :value_kind k} or {:ok false :reason r :message text}."),
    ("tool", "tool/call!", HostForm, "(tool/call! 'server/tool {…}), (tool/call! {:server s :tool t :args {…}})", "The value of a tool of an upstream; a failed call ends the program with its reason and message. tool/call gives them as a value instead."),
    ("tool", "tool/servers", HostForm, "(tool/servers)", "The configured upstream servers."),
    ("tool", "tool/name", HostForm, "(tool/name {…}), (tool/name :key value …)", "Calls a tool that the host granted under this name."),
    ("data", "data/key", HostForm, "data/key", "One entry of the program's input; nil when it has none."),
    ("clojure.core", "*1", Constant, "*1", "The result of the program before this one in the session; nil when there was none."),
    ("clojure.core", "*2", Constant, "*2", "The result before `*1`."),
    ("clojure.core", "*3", Constant, "*3", "The result before `*2`."),
    ("clojure.core", "*e", Constant, "*e", "How the last program of the session failed, where its host keeps that: {:reason r :message text :line n :column n}; nil when none has."),
    ("Math", "Math/PI", Constant, "Math/PI", "The ratio of a circle's circumference to its diameter."),
    ("Math", "Math/E", Constant, "Math/E", "The base of natural logarithms."),
    ("java", "NaN", Constant, "NaN", "The float that is no number, also ##NaN and Double/NaN."),
    ("java", "POSITIVE_INFINITY", Constant, "POSITIVE_INFINITY", "The largest float, also ##Inf and Double/POSITIVE_INFINITY."),
    ("java", "NEGATIVE_INFINITY", Constant, "NEGATIVE_INFINITY", "The smallest float, also ##-Inf and Double/NEGATIVE_INFINITY."),
];
