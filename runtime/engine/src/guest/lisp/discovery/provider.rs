//! Defines `Provider`, a source of documented names for `apropos`, `dir` and `doc` that needs no server, such as the
//! language itself or a preloaded library. Providers are asked in order: preludes, tools of the host, the language; the
//! first that knows a name wins.

use super::record::NameRecord;
use super::search::Query;

/// A source of names.
pub(crate) trait Provider: Sync {
    /// Namespaces that `all-ns` lists.
    fn namespaces(&self) -> Vec<String>;

    /// The full name of a namespace or class, if it has that.
    fn namespace(&self, name: &str) -> Option<String>;

    /// The members of a namespace or class, in name order.
    fn members(&self, namespace: &str) -> Option<Vec<NameRecord>>;

    /// The documentation of a namespace.
    fn about(&self, _namespace: &str) -> Option<String> {
        None
    }

    /// The names that a reference can mean, the likeliest first.
    fn find(&self, reference: &str) -> Vec<NameRecord>;

    /// Every name with a positive score.
    fn search(&self, query: &Query) -> Vec<(u32, NameRecord)>;

    /// Every reference, for suggestions.
    fn references(&self) -> Vec<String>;

    /// The definition of a reference, with notes about it.
    fn source(&self, _reference: &str) -> Option<String> {
        None
    }
}

/// The answer of the first provider that has one.
pub(crate) fn first<T>(providers: &[&dyn Provider], ask: impl Fn(&dyn Provider) -> Option<T>) -> Option<T> {
    providers.iter().find_map(|provider| ask(*provider))
}

/// The records that a reference can mean, from the first provider that knows it.
pub(crate) fn find(providers: &[&dyn Provider], reference: &str) -> Vec<NameRecord> {
    let found = |provider: &dyn Provider| Some(provider.find(reference)).filter(|found| !found.is_empty());
    first(providers, found).unwrap_or_default()
}
