//! Builtins that build, search, split, change and print strings: their table is in this file, their functions in
//! submodules. Indexes count graphemes; ASCII text is indexed by byte.

mod change;
mod format;
pub(crate) mod interop;
mod output;
mod parts;
mod replace;
mod search;

pub(crate) use parts::split_by;

use crate::arith::invalid_types_of;
use crate::builtins::{Builtin, Category, callback, direct};
use crate::fault::Result;
use crate::value::Value;
use crate::value::string::StringNode;
use std::rc::Rc;

const CORE: Category = Category::Core;
const STRING: Category = Category::String;

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    direct("str", STRING, "0+", "(str x …)", "The texts of the arguments joined; nil is empty.", output::str),
    direct("pr-str", STRING, "0+", "(pr-str x …)", "The arguments as program text, separated by spaces.", output::pr_str),
    direct("println", CORE, "0+", "(println x …)", "Prints a line; returns nil.", output::println).effect(),
    direct("prn", CORE, "0+", "(prn x …)", "Prints a line of the arguments as program text; returns nil.", output::prn).effect(),
    direct("join", STRING, "1-2", "(join coll), (join separator coll)", "The texts of the items, with the separator between them.", output::join),
    direct("format", STRING, "0+", "(format template x …)", "Fills in %s %d %f %.2f %5d %-8s %05d %,d %e %x %o %b %c %n %%.", format::format),
    direct("subs", STRING, "2-3", "(subs s start end?)", "The part of a string; indexes beyond the ends are clamped.", search::subs),
    direct("includes?", STRING, "2", "(includes? s part)", "Whether the part occurs in the string.", |cx, a| search::includes(cx, a, "includes?")),
    direct("starts-with?", STRING, "2", "(starts-with? s part)", "Whether the string begins with the part.", |cx, a| search::related(cx, a, "starts-with?", StringNode::starts_with)),
    direct("ends-with?", STRING, "2", "(ends-with? s part)", "Whether the string ends with the part.", |cx, a| search::related(cx, a, "ends-with?", StringNode::ends_with)),
    direct("index-of", STRING, "2-3", "(index-of s part from?)", "Where the part first occurs, or nil.", |cx, a| search::index_of(cx, a, "index-of", Value::Nil)),
    direct("last-index-of", STRING, "2-3", "(last-index-of s part from?)", "Where the part last occurs, or nil.", |cx, a| search::last_index_of(cx, a, "last-index-of", Value::Nil)),
    direct("split", STRING, "2-3", "(split s separator limit?)", "The pieces between matches of a regex or one character; without a limit, empty ones at the end are dropped.", parts::split),
    direct("split-lines", STRING, "1", "(split-lines s)", "The lines of a string.", parts::split_lines),
    callback("replace", STRING, "1-3", "(replace s pattern with), (replace replacements coll?)", "Replaces all matches of a text or regex by a text ($1 is a group) or by what a function makes of the match; with two arguments, replaces items by their values in a map.", replace::replace),
    callback("replace-first", STRING, "3", "(replace-first s pattern with)", "Replaces the first match of a text or regex.", replace::replace_first),
    direct("upcase", STRING, "1", "(upcase s)", "In upper case.", |cx, a| change::map_text(cx, a, "upcase", change::upper)),
    direct("upper-case", STRING, "1", "(upper-case s)", "In upper case.", |cx, a| change::map_text(cx, a, "upper-case", change::upper)),
    direct("downcase", STRING, "1", "(downcase s)", "In lower case.", |cx, a| change::map_text(cx, a, "downcase", change::lower)),
    direct("lower-case", STRING, "1", "(lower-case s)", "In lower case.", |cx, a| change::map_text(cx, a, "lower-case", change::lower)),
    direct("capitalize", STRING, "1", "(capitalize s)", "The first character in upper case, the others in lower case.", |cx, a| change::map_text(cx, a, "capitalize", change::capitalize)),
    direct("reverse", STRING, "1", "(str/reverse s)", "The characters in the opposite order.", |cx, a| change::map_text(cx, a, "reverse", change::reverse)),
    direct("escape", STRING, "2", "(escape s replacements)", "Replaces each character that is a key of the map.", change::escape),
    direct("trim", STRING, "1", "(trim s)", "Without blanks at both ends.", |cx, a| change::part(cx, a, "trim", str::trim)),
    direct("triml", STRING, "1", "(triml s)", "Without blanks at the start.", |cx, a| change::part(cx, a, "triml", str::trim_start)),
    direct("trimr", STRING, "1", "(trimr s)", "Without blanks at the end.", |cx, a| change::part(cx, a, "trimr", str::trim_end)),
    direct("trim-newline", STRING, "1", "(trim-newline s)", "Without line ends at the end.", |cx, a| change::part(cx, a, "trim-newline", |text| text.trim_end_matches(['\n', '\r']))),
    direct("blank?", STRING, "1", "(blank? s)", "Whether the string is nil, empty or blank.", search::blank),
];

/// The string of an argument.
fn string_argument<'v>(arguments: &'v [Value], index: usize, name: &str) -> Result<&'v Rc<StringNode>> {
    match &arguments[index] {
        Value::Str(node) => Ok(node),
        _ => Err(invalid_types_of(name, arguments)),
    }
}
