//! Declares the builtins with which a program looks up names and documentation in the host: `apropos`, `dir`, `doc`,
//! `meta`, `source`, and listings of namespaces. The host knows more names than this table: exports of preludes, tools
//! of upstreams.

use crate::builtins::{Builtin, Category, DiscoveryForm, HostFunction, host};

/// One row for each form: name, arities, usage, documentation, form.
macro_rules! forms {
    ($($name:literal $arity:literal $form:ident $usage:literal $doc:literal;)+) => {
        &[$(host($name, Category::Core, $arity, $usage, $doc, HostFunction::Discover(DiscoveryForm::$form)),)+]
    };
}

/// The rows of this module.
pub(crate) const TABLE: &[Builtin] = forms! {
    "apropos" "1-2" Apropos "(apropos query {:limit 8 :load false})"
        "The names and tools whose name or description matches the words, best first.";
    "dir" "1-2" Dir "(dir 'server {:limit 50 :offset 0}); (tool/servers) lists the servers"
        "The members of a namespace, or the tools of a server, one line each.";
    "doc" "1" Doc "(doc 'ref)"
        "The documentation of a name, or of a tool as server/tool: arguments, call form, result.";
    "meta" "1" Meta "(meta 'ref)"
        "What is known about a name, or a tool as server/tool, as a map.";
    "source" "1" Source "(source 'ref)"
        "Prints the definition of a name that the host attached; nil.";
    "ns-publics" "1" NsPublics "(ns-publics 'ns)"
        "The names of a namespace, each with a map of what is known about it.";
    "all-ns" "0" AllNs "(all-ns)"
        "The names of all namespaces.";
    "ns-name" "1" NsName "(ns-name 'ns)"
        "The name of a namespace as a string.";
};
