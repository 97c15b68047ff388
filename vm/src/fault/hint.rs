//! Provides the hints that error messages of Lisp programs give on how to correct a value of a wrong type, or a
//! division by zero. Hints are found by the type that was needed and the type that came.

use super::{BoundedText, Fault};

/// The kind of value that a function needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A number.
    Number,
    /// A collection: a list, map, set, string or nil.
    Collection,
    /// A function in call position.
    Function,
    /// A value that the pattern of a binding can destructure.
    Pattern,
}

/// Hints by the needed kind and the actual type.
#[rustfmt::skip]
const MISMATCHES: &[(Wanted, &str, &str)] = &[
    (Wanted::Number, "nil", "nil is often a missing key or an empty result: check the key, or give a default as in (or x 0)."),
    (Wanted::Number, "string", "Make numbers of text with parse-long or parse-double; join text with str."),
    (Wanted::Number, "list", "Work on the items: (reduce + 0 coll) sums a list, (map inc coll) changes each."),
    (Wanted::Number, "map", "Take the number out of the map first, as in (:price m)."),
    (Wanted::Number, "keyword", "A keyword reads a key when it is called: (:price m)."),
    (Wanted::Number, "boolean", "Make a number of a boolean with (if x 1 0)."),
    (Wanted::Number, "function", "Call the function for its result, as in (f x)."),
    (Wanted::Number, "set", "Use (count s), or (reduce + 0 s) for the sum."),
    (Wanted::Number, "LocalDate", "Move a date with (.plusDays d 1); (.toEpochDay d) is its number of days."),
    (Wanted::Number, "DateTime", "Compare instants with .isBefore; (.getTime d) gives milliseconds."),
    (Wanted::Number, "Duration", "(.toMillis d) gives the milliseconds of a duration."),
    (Wanted::Collection, "number", "Use (range n) for the numbers below n, or [n] for a list of one."),
    (Wanted::Collection, "keyword", "Read the key from a map, as in (:items m); the collection comes last."),
    (Wanted::Collection, "boolean", "A predicate tests one item: filter it out with (filter pred coll)."),
    (Wanted::Collection, "function", "The function comes first and the collection last, as in (map f coll)."),
    (Wanted::Collection, "regex", "Text comes second: (re-seq #\"…\" s); for split it comes first."),
    (Wanted::Function, "nil", "The value in call position is nil: check what should give the function. (:k m) reads a key of a map."),
    (Wanted::Function, "number", "A number is no function: the function comes first, as in (+ 1 2); a list of values is written [a b]."),
    (Wanted::Function, "string", "Read a key of a map with (get m \"key\"). A list of values is written [a b]."),
    (Wanted::Function, "boolean", "The function comes first: (and a b). Remove the extra parentheses around a value."),
    (Wanted::Function, "LocalDate", "Call methods as (.method date)."),
    (Wanted::Function, "DateTime", "Call methods as (.method date)."),
    (Wanted::Pattern, "map", "Take a map apart with {:keys [a b]}, its entries with (for [[k v] m] …)."),
    (Wanted::Pattern, "list", "Take a list apart with [a b]; for each map of a list use (map (fn [{:keys [a]}] …) coll)."),
    (Wanted::Pattern, "number", "Bind the value to a plain name; patterns take lists and maps apart."),
    (Wanted::Pattern, "string", "Bind the text to a plain name, or read JSON text with json/parse-string."),
    (Wanted::Pattern, "set", "Make a list of it first with (vec s)."),
];

/// Divisors.
pub(crate) const DIVISION: &str = "Test the divisor first, as in (if (zero? d) nil (/ n d)).";

/// The hint for a value that does not fit.
fn mismatch(wanted: Wanted, got: &str) -> Option<&'static str> {
    MISMATCHES.iter().find(|(need, word, _)| *need == wanted && *word == got).map(|(_, _, hint)| *hint)
}

impl Fault {
    /// Notes the types of the arguments and adds the hint for the first wrong one.
    #[cold]
    #[must_use]
    pub(crate) fn mismatch(mut self: Box<Fault>, wanted: Wanted, types: &[&'static str]) -> Box<Fault> {
        let hint = types.iter().find_map(|word| mismatch(wanted, word));
        self.hints.extend(hint.map(BoundedText::new));
        self.types(types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_in_the_table_is_a_type_and_every_pair_stands_once() {
        for (index, (wanted, word, hint)) in MISMATCHES.iter().enumerate() {
            assert_eq!(mismatch(*wanted, word), Some(*hint), "row {index} repeats an earlier one");
            assert!(hint.len() <= 110, "{hint}");
        }
    }
}
