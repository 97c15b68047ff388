//! Renders the JSON Schemas of a tool as short typed signatures, which suffice to write a valid call. An example:
//!
//! ```text
//! {:path string :mode "text"|"base64"? = "text" :lines [integer<1..>]<..10>? :filter {:since string<date>|null?}?}
//! ```
//!
//! Required members come first, `?` marks the others, `= value` is a default. `<…>` holds the constraints of
//! a value other than its type: bounds of a number, of the length of a text or list or of the number of
//! members, a format, a pattern, excluded values. An enumeration is written out, of a long one the first values:
//! `"a"|"b"|…14 more`. A single allowed value is `const<"x">`. `null` as an alternative says that null
//! is allowed. `{* T}` is a map with any keys. Alternatives are separated by `|`. If they differ only in
//! their required members, these names follow the map: `{:a string? :b string?}<with :a|with :b>`.
//! A type that contains itself, or that is used repeatedly, is written once, by
//! name: `{:filter Filter?} where Filter = {:and [Filter]? :field string?}`.
//!
//! `…` behind a type marks what is left out: members of `object…`, constraints or the default of `string…`. Members
//! that are not shown stand by name at the end of the map: `{:id string … (status tags)}`.

use super::alternative::{Constraint, Plain, PlainMember};
use super::detail::{Content, Detail, FEWER_LEVELS, REQUIRED, SHORTER};
use super::facts::{Facts, enumeration, is_name, range, refused, union, within};
use super::said;
use super::type_uses::{TypeUses, whole_type};
use super::types::TypeId;
use super::variants::{MOST_LOOKED_AT, Variants};
use crate::tools::key::key;
use crate::tools::tool::is_text;
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::HashMap;

/// Size limit of a signature; a longer one is written with fewer levels.
pub(super) const LONGEST: usize = 8_000;

/// Size limit of a line with a signature.
const LONGEST_LINE: usize = 2_000;

/// Size of a line with optional members that are written whole: their types may be large.
const WHOLE_LINE: usize = 300;

/// Size of a line with shortened optional members.
const SHORT_LINE: usize = 400;

/// Size that optional members have at least.
const OPTIONAL: usize = 100;

/// Size limit of the names of members that are not shown.
const LONGEST_NAMES: usize = 300;

/// Size of a repeated type that is not named.
const SHORT_TYPE: usize = 40;

/// Limit of schemas that are examined for one line.
const MOST_FOR_LINE: usize = 4_000;

/// Limit of members of one map.
const MOST_MEMBERS: usize = 60;

/// A signature with the types that it names.
pub struct Signature<'s> {
    pub(crate) text: String,
    /// Names and definitions, in the order of their first use.
    pub(crate) types: Vec<(String, String)>,
    /// True if further types are not shown.
    pub(crate) is_cut: bool,
    named: Vec<TypeId>,
    writer: SignatureWriter<'s>,
}

impl<'s> Signature<'s> {
    /// The signature with its types on one line.
    pub fn on_one_line(self) -> String {
        let types: Vec<String> = self.types.iter().map(|(name, text)| format!("{name} = {text}")).collect();
        if types.is_empty() { self.text } else { format!("{} where {}", self.text, types.join("; ")) }
    }

    /// The schemas behind the signature.
    pub(crate) fn variants(&self) -> &Variants<'s> {
        &self.writer.variants
    }

    /// The types that are shown: their names and alternatives.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (String, Vec<Plain<'s>>)> {
        let shown = self.types.iter().zip(&self.named);
        shown.map(|((name, _), id)| (name.clone(), self.writer.variants.definition(*id)))
    }

    /// True when the signature shows these alternatives by name.
    pub(crate) fn is_named(&self, all: &[Plain<'s>]) -> bool {
        all.iter().any(|plain| self.writer.type_of(plain, all).is_some())
    }
}

/// The signature of a schema; `root` is the document that contains it.
pub fn typed<'s>(root: &'s Json, schema: &'s Json) -> Signature<'s> {
    let mut writer = SignatureWriter::new(root, schema, MOST_LOOKED_AT);
    loop {
        let (text, types) = writer.write(MOST_LOOKED_AT);
        let is_used_up = writer.variants.is_used_up();
        let levels = writer.detail.levels;
        if levels == 1 || (text.len() <= LONGEST && !is_used_up) {
            return Signature::new(writer, text, types);
        }
        // If the budget of examined schemas is used up, the number of levels drops faster, to keep retries
        // few.
        writer.detail.levels = if is_used_up { levels / 2 } else { levels - 1 };
    }
}

/// The signature of a document on one line, with as much as there is room for: all required members, then the types
/// and short constraints of optional ones, then the rest of what the schema says of them. The first optional members
/// of the schema are written in more detail than the last.
pub(crate) fn compact(root: &Json) -> String {
    let mut writer = SignatureWriter::new(root, root, MOST_FOR_LINE);
    let whole = writer.line(Detail::LINE);
    if whole.text == "any" {
        return "{* any}".to_owned();
    }
    let is_short = whole.size <= WHOLE_LINE && !whole.is_used_up;
    match if is_short { Some(whole) } else { writer.shorter_line() } {
        Some(line) => Signature::new(writer, line.text, line.types).on_one_line(),
        None => "{…}".to_owned(),
    }
}

/// A signature as it would stand on one line.
struct Line {
    text: String,
    types: Vec<(TypeId, String)>,
    /// With its types.
    size: usize,
    levels: usize,
    /// The limit of examined schemas was reached.
    is_used_up: bool,
}

impl<'s> Signature<'s> {
    /// The signature with as many types as there is room for.
    fn new(writer: SignatureWriter<'s>, text: String, types: Vec<(TypeId, String)>) -> Signature<'s> {
        let (mut size, all) = (text.len(), types.len());
        let fits = |(_, text): &(TypeId, String)| {
            size += text.len();
            size <= LONGEST
        };
        let shown: Vec<(TypeId, String)> = types.into_iter().take_while(fits).collect();
        let named = shown.iter().map(|(id, _)| *id).collect();
        let name = |id: TypeId| writer.variants.types.name(id).to_owned();
        let types: Vec<(String, String)> = shown.into_iter().map(|(id, text)| (name(id), text)).collect();
        Signature { text, is_cut: types.len() < all, types, named, writer }
    }
}

/// The signature of a call's result: `Result<{:rows [string] :next string?}>`. If the tool wraps its result
/// in a member, the signature is that of the content; a text that is JSON counts as data.
pub(crate) fn result<'s>(
    output_schema: Option<&'s Json>,
    wrapped_in: Option<&str>,
) -> (String, Option<Signature<'s>>) {
    let inner =
        output_schema.and_then(|schema| wrapped_in.and_then(|name| schema.get("properties")?.get(name)));
    let signature = output_schema.map(|schema| typed(schema, inner.unwrap_or(schema)));
    let said = signature.as_ref().map_or("any", |signature| &signature.text);
    let or_data = if inner.is_some_and(is_text) { ", or data where the text is JSON" } else { "" };
    (format!("Result<{said}{or_data}>"), signature)
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    content: Content,
}

impl Place {
    const TOP: Place = Place { depth: 0, content: Content::Whole };

    fn inside(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }
}

struct SignatureWriter<'s> {
    variants: Variants<'s>,
    detail: Detail,
    /// The alternatives of the whole.
    main: Vec<Plain<'s>>,
    /// For types that are written by name: how many alternatives they have.
    named: HashMap<TypeId, usize>,
    /// The named types in the order of their first use.
    used: RefCell<Vec<TypeId>>,
}

impl<'s> SignatureWriter<'s> {
    /// Decides which types are named: those that contain themselves, and repeated ones that are not short.
    /// At most `budget` schemas are examined.
    fn new(root: &'s Json, schema: &'s Json, budget: usize) -> SignatureWriter<'s> {
        let variants = Variants::with_types(root);
        variants.allow(budget);
        let mut main = variants.alternatives(&[Constraint::Is(schema)]);
        let own = variants.types.id(schema);
        main.iter_mut().for_each(|plain| plain.types.retain(|id| Some(*id) != own));
        let uses = TypeUses::find(&variants, &main, own);
        let used = RefCell::new(Vec::new());
        let mut writer = SignatureWriter { variants, detail: Detail::FULL, main, named: uses.repeated, used };
        if writer.named.len() > uses.recursive.len() {
            let (_, types) = writer.write(budget);
            for (id, text) in types {
                if text.chars().count() <= SHORT_TYPE && !uses.recursive.contains(&id) {
                    writer.named.remove(&id);
                }
            }
        }
        writer
    }

    /// Writes the whole and the types that it names.
    fn write(&self, budget: usize) -> (String, Vec<(TypeId, String)>) {
        self.variants.allow(budget);
        self.used.borrow_mut().clear();
        let text = self.side_by_side(&self.main, Place::TOP);
        let mut types = Vec::new();
        let next = |at: usize| self.used.borrow().get(at).copied();
        while let Some(id) = next(types.len()) {
            types.push((id, self.side_by_side(&self.variants.definition(id), Place::TOP)));
        }
        (text, types)
    }

    fn line(&mut self, detail: Detail) -> Line {
        self.detail = detail;
        let (text, types) = self.write(MOST_FOR_LINE);
        let names = types.iter().map(|(id, text)| self.variants.types.name(*id).len() + text.len() + 8);
        let size = text.len() + names.sum::<usize>();
        Line { text, types, size, levels: detail.levels, is_used_up: self.variants.is_used_up() }
    }

    /// The most precise line that fits; `None` if not even one level does.
    fn shorter_line(&mut self) -> Option<Line> {
        let required = self.line(REQUIRED);
        if required.is_used_up || required.size > LONGEST_LINE {
            let mut fewer = FEWER_LEVELS.iter().map(|detail| self.line(*detail));
            return fewer.find(|line| line.size <= LONGEST_LINE && (line.levels == 1 || !line.is_used_up));
        }
        let room = (required.size + OPTIONAL).clamp(SHORT_LINE, LONGEST_LINE);
        let fits = |(detail, line): &(&Detail, Line)| {
            line.size <= if detail.has_whole() { WHOLE_LINE } else { room }
        };
        SHORTER.iter().map(|detail| (detail, self.line(*detail))).find(fits).map(|(_, line)| line)
    }

    fn type_of(&self, plain: &Plain<'s>, all: &[Plain<'s>]) -> Option<TypeId> {
        whole_type(&self.named, plain, all)
    }

    fn render(&self, demand: &[Constraint<'s>], place: Place) -> String {
        self.side_by_side(&self.variants.alternatives(demand), place)
    }

    fn side_by_side(&self, all: &[Plain<'s>], place: Place) -> String {
        if all.is_empty() {
            return "nothing".to_owned();
        }
        let types: Vec<Option<TypeId>> = all
            .iter()
            .map(|plain| self.type_of(plain, all).filter(|_| place.content == Content::Whole))
            .collect();
        if types.iter().all(Option::is_none)
            && let Some(map) = self.one_map(all, place)
        {
            return map;
        }
        // Alternatives that are values, such as several constants, are one enumeration.
        let mut values: Vec<&Json> = Vec::new();
        for value in
            all.iter().zip(&types).filter(|(_, id)| id.is_none()).flat_map(|(plain, _)| plain.values())
        {
            if !values.contains(value) {
                values.push(value);
            }
        }
        union(all.iter().zip(types).map(|(plain, id)| match id {
            Some(id) => {
                let mut used = self.used.borrow_mut();
                if !used.contains(&id) {
                    used.push(id);
                }
                self.variants.types.name(id).to_owned()
            }
            // The same text each time; it is written once.
            None if plain.values.is_some() => enumeration(&values, place.content),
            None => self.plain(plain, place),
        }))
    }

    fn plain(&self, plain: &Plain<'s>, place: Place) -> String {
        let kinds = plain.kinds();
        if kinds.is_empty() {
            let mut facts = Facts::default();
            refused(plain, None).for_each(|fact| facts.push_short(fact, place.content));
            return facts.after("any");
        }
        union(kinds.iter().map(|kind| self.kind(kind, plain, place)))
    }

    /// Alternatives that differ only in which members are required, as one map.
    fn one_map(&self, all: &[Plain<'s>], place: Place) -> Option<String> {
        let [first, others @ ..] = all else { return None };
        let is_map = |plain: &Plain<'_>| {
            plain.kinds() == ["object"]
                && plain.values.is_none()
                && plain.refused.is_empty()
                && !plain.leaves_out()
        };
        if others.is_empty() || self.is_deepest(place) || !all.iter().all(is_map) {
            return None;
        }
        let common: Vec<&str> = first
            .required()
            .iter()
            .filter(|name| others.iter().all(|other| other.requires(name)))
            .copied()
            .collect();
        let rows = |plain: &Plain<'s>| {
            let mut rows = self.rows(plain, &common, place);
            rows.shown.sort_unstable();
            rows.left_out.sort_unstable();
            rows
        };
        let told = rows(first);
        if others.iter().any(|other| rows(other) != told || other.closed != first.closed) {
            return None;
        }
        let sets: Vec<String> = all
            .iter()
            .map(|plain| {
                let more: Vec<String> = plain
                    .required()
                    .iter()
                    .filter(|name| !others.iter().chain([first]).all(|other| other.requires(name)))
                    .map(|name| key(name))
                    .collect();
                if more.is_empty() { String::new() } else { format!("with {}", more.join(" ")) }
            })
            .collect();
        let map = self.object(first, &common, place);
        Some(if sets.iter().any(String::is_empty) {
            map
        } else {
            format!("{map}<{}>", union(sets.into_iter()))
        })
    }

    fn kind(&self, kind: &str, plain: &Plain<'s>, place: Place) -> String {
        let range = |least: &str, most: &str| range(plain, least, most);
        let content = place.content;
        let mut facts = Facts::default();
        match kind {
            "object" | "array" if self.is_deepest(place) => return format!("{kind}…"),
            "object" if hides_members(plain, content) => return "object…".to_owned(),
            "object" => return self.object(plain, plain.required(), place),
            "array" => {
                facts.push(range("minItems", "maxItems"));
                return facts.after(&format!("[{}]", self.items(plain, place)));
            }
            "string" => {
                let format = plain.limit("format").and_then(Json::as_str);
                match format.filter(|format| is_name(format)) {
                    Some(name) => facts.push(name.to_owned()),
                    // Some documents have a sentence instead of a name.
                    None if format.is_some() => facts.cut(),
                    None => {}
                }
                facts.push(range("minLength", "maxLength"));
                let pattern = plain.limit("pattern").filter(|pattern| pattern.is_string());
                facts.push_short(pattern.map(Json::to_string), content);
            }
            "integer" | "number" => {
                facts.push(range("minimum", "maximum"));
                let limits =
                    [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "times")];
                for (name, word) in limits {
                    let limit = plain.limit(name).filter(|limit| limit.is_number());
                    facts.push(limit.map(|limit| format!("{word} {limit}")));
                }
            }
            _ => {}
        }
        refused(plain, Some(kind)).for_each(|fact| facts.push_short(fact, content));
        let about = plain.about.filter(|_| {
            kind == "string" && facts.is_empty() && content == Content::Whole && self.detail.has_hints
        });
        let about = about.unwrap_or_default();
        if let Some(values) = said::values(about) {
            return union(values.iter().map(|value| format!("\"{value}\"")).chain([kind.to_owned()]));
        }
        facts.push(said::is_json(about).then(|| "json".to_owned()));
        facts.after(kind)
    }

    /// The items of a list, all of one type or each of its own.
    fn items(&self, plain: &Plain<'s>, place: Place) -> String {
        let item = |demand: &[Constraint<'s>]| self.render(demand, place.inside());
        match plain.first_items {
            Some(items) => {
                let items: Vec<String> = items.iter().map(|schema| item(&[Constraint::Is(schema)])).collect();
                items.join(", ")
            }
            None if plain.items.is_empty() => "any".to_owned(),
            None => item(&plain.items),
        }
    }

    fn is_deepest(&self, place: Place) -> bool {
        place.depth >= self.detail.levels
    }

    /// The members of a map, each with its mark and its default.
    fn rows(&self, plain: &Plain<'s>, required: &[&str], place: Place) -> Rows<'s> {
        let is_required = |name: &str| required.contains(&name);
        let mut optional: Vec<(usize, &str)> = plain
            .members()
            .filter(|(name, _)| !is_required(name))
            .map(|(name, member)| (member.position, name))
            .collect();
        optional.sort_unstable();
        let mut rows = Rows::default();
        for (name, member) in plain.members() {
            let content = match place.content {
                // Of the members that stand in an optional one, only the required are written.
                Content::Brief if is_required(name) => Content::Bare,
                Content::Whole if is_required(name) => Content::Whole,
                Content::Whole => {
                    let at = optional.iter().position(|(_, other)| *other == name);
                    self.detail.content(at.unwrap_or_default())
                }
                _ => Content::Named,
            };
            if content == Content::Named || rows.shown.len() == MOST_MEMBERS {
                rows.left_out.push(name);
            } else {
                rows.shown.push(self.row(name, member, is_required(name), Place { content, ..place }));
            }
        }
        rows
    }

    fn row(&self, name: &str, member: &PlainMember<'s>, is_required: bool, place: Place) -> String {
        let all = self.variants.alternatives(&member.demand);
        let default = all.iter().find_map(|plain| plain.default).filter(|value| !value.is_null());
        let default = default.map(Json::to_string);
        let is_short = |text: &String| text.len() <= place.content.fact_room();
        let mut of = self.side_by_side(&all, place.inside());
        if default.as_ref().is_some_and(|text| !is_short(text)) && !of.ends_with('…') {
            of.push('…');
        }
        let mark = if is_required { "" } else { "?" };
        let default = default.filter(is_short).map(|text| format!(" = {text}")).unwrap_or_default();
        format!("{} {of}{mark}{default}", key(name))
    }

    fn object(&self, plain: &Plain<'s>, required: &[&str], place: Place) -> String {
        let Rows { shown: mut members, left_out } = self.rows(plain, required, place);
        if !left_out.is_empty() {
            members.push(if place.depth == 0 { names(&left_out) } else { "…".to_owned() });
        }
        if !plain.others.is_empty() {
            members.push(format!("* {}", self.render(&plain.others, place.inside())));
        } else if members.is_empty() && (plain.open || (!plain.closed && place.depth > 0)) {
            members.push("* any".to_owned());
        }
        let facts: Vec<String> = range(plain, "minProperties", "maxProperties").into_iter().collect();
        format!("{{{}}}{}", members.join(" "), within(&facts))
    }
}

/// The members of a map.
#[derive(Default, PartialEq)]
struct Rows<'s> {
    shown: Vec<String>,
    left_out: Vec<&'s str>,
}

/// True for a map of which no member is shown.
fn hides_members(plain: &Plain<'_>, content: Content) -> bool {
    let has_members = plain.members().next().is_some();
    has_members && (content < Content::Brief || content == Content::Brief && plain.required().is_empty())
}

/// The names of members that are not shown: `… (status tags)`, with another `…` if there are more.
fn names(members: &[&str]) -> String {
    let mut text = "… (".to_owned();
    for (at, name) in members.iter().enumerate() {
        let name = key(name);
        let name = name.strip_prefix(':').unwrap_or(&name);
        let separator = if at == 0 { "" } else { " " };
        if text.len() + name.len() > LONGEST_NAMES {
            text.push_str(separator);
            text.push('…');
            break;
        }
        text.push_str(separator);
        text.push_str(name);
    }
    text.push(')');
    text
}
