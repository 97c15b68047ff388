//! Data-flow analysis of builtin calls: on which data a result depends, for the rules of policies about data flows, by
//! exact rules for common builtins and one safe rule for all others.

use super::node::{NEVER, Node, Rest, Text, Val};
use super::set::{Callables, SourceSet};
use super::walk::{ANYTHING, LITERAL, Walk};
use crate::ir::{Expr, Kind, Literal, Ref, Refs};
use ptc_vm::Span;
use ptc_vm::builtins::{Builtin, Category, Implementation, Purity};
use ptc_vm::bytecode::{BuiltinId, Const};

/// The rules that are more exact than the general one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// `(get coll key default?)`.
    Get,
    /// `(get-in coll path default?)`.
    GetIn,
    /// `(assoc map key value …)`.
    Assoc,
    /// `(dissoc map key …)`.
    Dissoc,
    /// `(merge map …)`.
    Merge,
    /// `(select-keys map keys)`.
    SelectKeys,
    /// `(update map key f argument …)`.
    Update,
    /// The values of a map.
    Values,
    /// Its first argument.
    Same,
    /// A list of its arguments.
    List,
    /// One item of a collection, the first argument; other arguments choose it.
    Item,
    /// Items of a collection, the last argument; the others choose them.
    Some,
    /// The same; which ones depends on what the items are.
    SomeByContent,
    /// Items of collections one after another.
    Concat,
    /// A list and further items.
    Conj,
    /// Something about a value that does not depend on its parts: whether it is nil, of a kind, how many parts it has.
    Shape,
    /// `(data key)`.
    Context,
    /// The items of results of a function for all items.
    Map,
    /// The items for which a function holds.
    Filter,
    /// One result, or one item, that depends on the results so far.
    Search,
    /// The items in the order of the results of a function.
    SortBy,
    /// The items by the results of a function.
    GroupBy,
    /// `(reduce f init? coll)`.
    Reduce,
    /// Calls a function for all items: nil.
    Run,
}

/// The rule of a builtin that has one of its own, for this number of arguments.
fn rule(info: &Builtin, count: usize) -> Option<Rule> {
    if !matches!(info.category, Category::Core | Category::Internal | Category::Set) {
        return None;
    }
    Some(match (info.name, count) {
        ("get" | "%get" | "%get-or" | "%lookup", 2 | 3) => Rule::Get,
        ("%nth" | "nth" | "%nth-item", 2) => Rule::Get,
        ("get-in", 2 | 3) => Rule::GetIn,
        ("assoc", _) if count % 2 == 1 => Rule::Assoc,
        ("dissoc", _) => Rule::Dissoc,
        ("merge", _) => Rule::Merge,
        ("select-keys", 2) => Rule::SelectKeys,
        ("update", 3) => Rule::Update,
        ("vals", 1) => Rule::Values,
        ("identity" | "%map-pattern" | "%vector-pattern" | "doall", 1) => Rule::Same,
        ("vector" | "list", _) => Rule::List,
        ("first" | "second" | "last" | "peek" | "%first" | "%second" | "fnext", 1) => Rule::Item,
        ("rest" | "next" | "butlast" | "pop" | "rseq" | "reverse" | "nnext" | "seq" | "vec" | "%seq", 1) => {
            Rule::Some
        }
        ("take" | "drop" | "take-last" | "drop-last" | "take-nth", 2) => Rule::Some,
        ("sort" | "distinct" | "dedupe", 1) => Rule::SomeByContent,
        ("concat", _) => Rule::Concat,
        ("conj", 2..) => Rule::Conj,
        (
            "count" | "empty?" | "nil?" | "some?" | "not" | "boolean" | "map?" | "vector?" | "string?"
            | "number?",
            1,
        )
        | (
            "coll?" | "sequential?" | "seq?" | "fn?" | "keyword?" | "set?" | "boolean?" | "true?" | "false?",
            1,
        ) => Rule::Shape,
        ("%data", 1) => Rule::Context,
        ("map" | "mapv" | "pmap", 2..) | ("map-indexed", 2) => Rule::Map,
        ("filter" | "filterv" | "remove" | "keep" | "keep-indexed", 2) => Rule::Filter,
        ("some" | "every?" | "not-any?" | "not-every?", 2) => Rule::Search,
        ("sort-by", 2) => Rule::SortBy,
        ("group-by", 2) => Rule::GroupBy,
        ("reduce", 2 | 3) => Rule::Reduce,
        ("run!", 2) => Rule::Run,
        _ => return None,
    })
}

impl<'a> Walk<'a, '_> {
    #[inline(never)]
    pub(super) fn call_builtin(
        &mut self,
        expr: &'a Expr<'a>,
        builtin: BuiltinId,
        arguments: Refs<'a>,
    ) -> Val<'a> {
        let info = builtin.info();
        if let Implementation::Host(function) = info.implementation {
            return self.host_call(expr, function, arguments);
        }
        let values = self.values(arguments);
        if let Some(rule) = rule(info, values.len())
            && let Some(value) = self.by_rule(rule, info, expr.span, arguments, &values)
        {
            return value;
        }
        self.by_general_rule(info, expr.span, &values)
    }

    /// A builtin without a rule of its own: its value depends on everything that it got.
    fn by_general_rule(&mut self, info: &Builtin, span: Span, values: &[Val<'a>]) -> Val<'a> {
        if info.purity == Purity::Effect {
            let all = self.merged(values, SourceSet::EMPTY);
            self.print(all);
        }
        if super::apply::is_deferring(info, Some(values.len())) {
            let all = self.merged(values, LITERAL);
            let all = self.new_node(Node::opaque(all.deep, all.deep_calls.union(Callables::ELSEWHERE)));
            return self.unknown_use(&[all], span, None);
        }
        let all = match info.implementation {
            // It calls no function.
            Implementation::Direct(_) => self.merged(values, LITERAL),
            _ => self.unknown_use(values, span, None),
        };
        self.marked(all, LITERAL)
    }

    fn by_rule(
        &mut self,
        rule: Rule,
        info: &Builtin,
        span: Span,
        written: &[Ref<'a>],
        values: &[Val<'a>],
    ) -> Option<Val<'a>> {
        Some(match (rule, values) {
            (Rule::Get, [from, key]) => self.found(written[1], from, key),
            (Rule::Get, [from, key, default]) => {
                let found = self.found(written[1], from, key);
                let value = self.join(found, default);
                self.marked(value, found.own)
            }
            (Rule::GetIn, [from, _, defaults @ ..]) => {
                let found = self.found_in(written[1], from)?;
                let value = defaults.iter().fold(found, |value, default| self.join(value, default));
                self.marked(value, found.own)
            }
            (Rule::Assoc, [map, pairs @ ..]) => self.assoc(map, &written[1..], pairs),
            (Rule::Dissoc, [map, keys @ ..]) => {
                let keys = self.merged(keys, SourceSet::EMPTY);
                self.marked(map, keys.deep)
            }
            (Rule::Merge, maps) => self.merge(maps),
            (Rule::SelectKeys, [map, _]) => self.select_keys(map, written[1])?,
            (Rule::Update, [map, key, function]) => {
                let before = self.found(written[1], map, key);
                let after = self.apply(function, &[before], span, None);
                self.assoc(map, &written[1..2], &[key, after])
            }
            (Rule::Values, [map]) if !matches!(map.rest, Rest::Same) => {
                let parts = map.fields.iter().map(|(_, part)| *part).chain(map.rest());
                let item = parts.reduce(|a, b| self.join(a, b));
                self.list(map.shape(), item)
            }
            (Rule::Same, [value]) => value,
            (Rule::List, items) => self.list_of(items, LITERAL),
            (Rule::Item, [collection]) => self.item(collection),
            (Rule::Some, [choice @ .., collection]) => self.some_items(choice, collection, false),
            (Rule::SomeByContent, [collection]) => self.some_items(&[], collection, true),
            (Rule::Concat, collections) => self.concat(collections),
            (Rule::Conj, [list, items @ ..]) if list.is_list => {
                let items = self.list_of(items, LITERAL);
                self.concat(&[list, items])
            }
            (Rule::Shape, [value]) => self.scalar(value.shape().union(LITERAL)),
            (Rule::Context, [_]) => self.context(written[0]),
            _ => return self.by_rule_with_function(rule, info, span, values),
        })
    }

    fn by_rule_with_function(
        &mut self,
        rule: Rule,
        info: &Builtin,
        span: Span,
        values: &[Val<'a>],
    ) -> Option<Val<'a>> {
        let (function, collections) = values.split_first()?;
        // The number of calls depends on the number of items.
        let mut own = collections.iter().fold(SourceSet::EMPTY, |own, value| own.union(value.shape()));
        let elsewhere = Callables::ELSEWHERE.union(Callables::UNKNOWN);
        if collections.iter().any(|collection| collection.deep_calls.has(elsewhere)) {
            // The collection may be endless: the function is called where the result is read.
            own = own.union(ANYTHING);
        }
        if rule == Rule::Reduce {
            return Some(self.reduce(function, collections, span));
        }
        let mut items: Vec<Val<'a>> = collections.iter().map(|collection| self.item(collection)).collect();
        if info.name.ends_with("-indexed") {
            items.insert(0, self.scalar(LITERAL));
        }
        let mut result = self.under(own, |this| this.apply(function, &items, span, None));
        let by = own.union(function.own);
        Some(match rule {
            Rule::Map => self.list(by, Some(result)),
            Rule::Filter => {
                let is_keep = info.name.starts_with("keep");
                self.list(by.union(result.own), Some(if is_keep { result } else { items[0] }))
            }
            Rule::Search => {
                // A result decides whether there is a next call.
                let mut control = own;
                while !result.own.is_within(control) && !self.failed {
                    control = control.union(result.own);
                    result = self.under(control, |this| this.apply(function, &items, span, None));
                }
                match info.name {
                    "some" => self.marked(result, by),
                    _ => self.scalar(by.union(result.own)),
                }
            }
            Rule::SortBy => self.list(by.union(result.deep), Some(items[0])),
            Rule::GroupBy => {
                let group = self.list(by, Some(items[0]));
                let map = self.new_node(Node::with_parts(by, &[], None));
                let map = self.with_unknown_entry(map, result, group);
                self.marked(map, result.deep)
            }
            Rule::Run => self.nil(),
            _ => return None,
        })
    }

    fn reduce(&mut self, function: Val<'a>, arguments: &[Val<'a>], span: Span) -> Val<'a> {
        let (mut value, collection) = match arguments {
            [initial, collection] => (*initial, *collection),
            [collection] => {
                // Without items it is called without arguments.
                let control = collection.shape();
                let none = self.under(control, |this| this.apply(function, &[], span, None));
                let first = self.item(collection);
                (self.join(first, none), *collection)
            }
            _ => return &NEVER,
        };
        let item = self.item(collection);
        let mut control = collection.shape().union(function.own);
        for look in 0.. {
            let result = self.under(control, |this| this.apply(function, &[value, item], span, None));
            // A result may be the last one (`reduced`).
            let is_stable = result.own.is_within(control);
            control = control.union(result.own);
            if is_stable && value.covers(&self.nodes, result) || self.failed {
                break;
            }
            value = self.join(value, result);
            if look > 6 {
                value = self.new_node(value.flat());
            }
        }
        self.marked(value, control)
    }

    /// What a written key finds.
    fn found(&mut self, written: Ref<'a>, from: Val<'a>, key: Val<'a>) -> Val<'a> {
        if let Kind::Literal(literal) = &written.kind
            && let Some(known) = self.literal_key(*literal)
        {
            return self.get(from, Some(known));
        }
        let found = self.get(from, None);
        self.marked(found, key.deep)
    }

    /// What a written path finds; `None`: the path is not constant.
    fn found_in(&mut self, path: Ref<'a>, from: Val<'a>) -> Option<Val<'a>> {
        let keys = self.literal_keys(path)?;
        let mut value = from;
        for key in keys {
            let key = self.literal_key(key)?;
            value = self.get(value, Some(key));
        }
        Some(value)
    }

    /// The keys of a vector that is written in the program.
    fn literal_keys(&self, written: Ref<'a>) -> Option<Vec<Literal>> {
        match &written.kind {
            Kind::Literal(Literal::Row(row)) => match self.tables.constants.get(usize::from(*row))? {
                Const::Vector(items) => Some(items.iter().map(|item| self.small(*item)).collect()),
                _ => None,
            },
            Kind::Vector(items) => {
                let keys = items.iter().map(|item| match &item.kind {
                    Kind::Literal(literal) => Some(*literal),
                    _ => None,
                });
                keys.collect()
            }
            _ => None,
        }
    }

    /// A row as the literal that it is.
    fn small(&self, row: u16) -> Literal {
        match self.tables.constants.get(usize::from(row)) {
            Some(Const::Int(value)) => Literal::Int(*value),
            _ => Literal::Row(row),
        }
    }

    fn assoc(&mut self, map: Val<'a>, written: &[Ref<'a>], pairs: &[Val<'a>]) -> Val<'a> {
        let mut map = map;
        if let Rest::Same = map.rest {
            // Nothing of it is known: its parts are together.
            let own = map.own;
            map = self.new_node(Node { is_list: map.is_list, ..Node::with_parts(own, &[], Some(map)) });
        }
        for (index, pair) in pairs.chunks_exact(2).enumerate() {
            let key = written.get(index * 2).map(|written| &written.kind);
            map = match key {
                Some(Kind::Literal(literal)) => self.with_entry(map, *literal, pair[1]),
                _ => self.with_unknown_entry(map, pair[0], pair[1]),
            };
        }
        // From nil it makes a map.
        if map.is_list { self.new_node(Node { is_list: false, ..*map }) } else { map }
    }

    fn merge(&mut self, maps: &[Val<'a>]) -> Val<'a> {
        let merged = maps.iter().copied().reduce(|a, b| {
            let value = self.join(a, b);
            self.marked(value, a.own.union(b.own))
        });
        merged.unwrap_or_else(|| self.nil())
    }

    fn select_keys(&mut self, map: Val<'a>, written: Ref<'a>) -> Option<Val<'a>> {
        let keys = self.literal_keys(written)?;
        let mut selected = self.new_node(Node::with_parts(map.shape(), &[], None));
        for key in keys {
            let known = self.literal_key(key)?;
            let value = self.get(map, Some(known));
            selected = self.with_field(selected, known, value);
        }
        Some(selected)
    }

    fn list_of(&self, items: &[Val<'a>], own: SourceSet) -> Val<'a> {
        let item = items.iter().copied().reduce(|a, b| self.join(a, b));
        self.list(own, item)
    }

    /// A list of some items of a collection.
    fn some_items(&mut self, choice: &[Val<'a>], collection: Val<'a>, by_content: bool) -> Val<'a> {
        let item = self.item(collection);
        let mut own = choice.iter().fold(collection.shape(), |own, value| own.union(value.deep));
        if by_content {
            own = own.union(item.deep);
        }
        // The characters of a text tell as much as the text.
        self.list(own, Some(item))
    }

    fn concat(&mut self, collections: &[Val<'a>]) -> Val<'a> {
        let mut own = LITERAL;
        let mut item: Option<Val<'a>> = None;
        for collection in collections {
            own = own.union(collection.shape());
            let is_empty = collection.fields.is_empty() && matches!(collection.rest, Rest::Nothing);
            if !is_empty || !collection.is_list {
                let next = self.item(collection);
                item = Some(item.map_or(next, |item| self.join(item, next)));
            }
        }
        self.list(own, item)
    }

    fn context(&mut self, written: Ref<'a>) -> Val<'a> {
        let name = match &written.kind {
            Kind::Literal(Literal::Row(row)) => self.constant_text(*row).map(Into::into),
            _ => None,
        };
        let source = self.source(super::plan::FlowSource::Context(name));
        let mut node = Node::opaque(source, Callables::DATA);
        node.text = Text::Other;
        self.new_node(node)
    }
}
