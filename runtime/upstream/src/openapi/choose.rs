//! Selects the operations of an OpenAPI document that the configuration key `include_operations` names, by id, by
//! pattern with `*`, or by tag (`tag:NAME`).

use super::document::{ListedOperation, Operation, decoded};
use super::spec::OpenApiSpec;
use ptc_base::net::excerpt;
use ptc_calls::tools::glob;
use ptc_vm::fault::nearest;
use std::collections::BTreeSet;

/// How an entry names a tag.
const TAG: &str = "tag:";

/// Length limit of a list of operations in a message, in characters.
const LISTED: usize = 500;

/// True for a word of `include_operations` that may choose several operations.
pub(crate) fn is_pattern(word: &str) -> bool {
    word.contains('*') || word.starts_with(TAG)
}

/// The operations that were chosen.
#[derive(Default)]
pub(super) struct Choice<'c, 'a> {
    /// Those with an id of their own in the configuration. One that cannot be called is an error.
    pub(super) by_id: Vec<&'c ListedOperation<'a>>,
    /// Those that only a pattern names. One that cannot be called is left out.
    pub(super) by_pattern: Vec<&'c ListedOperation<'a>>,
    /// Words that choose nothing, with what they may mean.
    pub(super) missing: Vec<String>,
}

/// Chooses from these operations.
pub(super) fn choose<'c, 'a>(operations: &'c [ListedOperation<'a>], spec: &OpenApiSpec) -> Choice<'c, 'a> {
    let mut choice = Choice::default();
    for word in spec.include.iter().chain(&spec.with_effects).collect::<BTreeSet<_>>() {
        if let Some(entry) = operations.iter().find(|entry| entry.id == *word) {
            choice.by_id.push(entry);
            continue;
        }
        let found: Vec<_> =
            operations.iter().filter(|entry| is_pattern(word) && matches(word, entry)).collect();
        if found.is_empty() {
            choice.missing.push(missing(word, operations));
        }
        choice.by_pattern.extend(found);
    }
    choice.by_pattern.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    choice.by_pattern.dedup_by(|one, other| one.id == other.id);
    let Choice { by_id, by_pattern, .. } = &mut choice;
    by_pattern.retain(|entry| by_id.iter().all(|known| known.id != entry.id));
    choice
}

fn matches(word: &str, entry: &ListedOperation<'_>) -> bool {
    match word.strip_prefix(TAG) {
        None => glob(word, &entry.id),
        Some(tag) => {
            let operation: Result<Operation<'_>, _> = decoded(entry.operation, "");
            operation.is_ok_and(|operation| operation.tags.iter().any(|known| glob(tag, known)))
        }
    }
}

fn missing(word: &str, operations: &[ListedOperation<'_>]) -> String {
    let ids = || operations.iter().map(|entry| &*entry.id);
    match nearest(word, ids()) {
        Some(near) => format!("{word} (did you mean {near}?)"),
        None => {
            let all: Vec<&str> = ids().collect();
            match all.is_empty() {
                true => word.to_owned(),
                false => format!("{word} (there are {})", excerpt(&all.join(", "), LISTED)),
            }
        }
    }
}
