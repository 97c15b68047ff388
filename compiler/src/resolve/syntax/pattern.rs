//! Translates destructuring, as in `(let [[a b] pair] a)`, into a list of plain bindings.

use crate::diagnostic::{Done, Failed, Fallible, Hint, error};
use crate::form::{Form, FormKind, Forms};
use crate::ir::effects::is_inert;
use crate::ir::{Binding, Kind, Literal, Ref};
use crate::meter::List;
use crate::names::Name;
use crate::resolve::scope::{Bindable, Rest};
use crate::resolve::suggest::nearest;
use crate::resolve::{Bindings, Resolved, Resolver};
use ptc_vm::bytecode::{Const, Known};
use ptc_vm::{Reason, Span};

fn unsupported(span: Span, message: impl std::fmt::Display) -> Failed {
    error(Reason::UnsupportedPattern, span, message)
}

/// The parts of a map pattern.
struct MapPattern<'a> {
    /// Pattern and key.
    entries: List<'a, (Form<'a>, Form<'a>)>,
    defaults: List<'a, (Name, &'a Form<'a>)>,
    whole: Option<Bindable>,
}

impl<'a> Resolver<'a, '_> {
    /// Binds a value to a new slot without a name.
    pub(crate) fn bind_hidden(&mut self, value: Ref<'a>, out: &mut Bindings<'a>) -> Fallible<u8> {
        let slot = self.new_slot(value.span)?;
        out.push(Binding::new(slot, value));
        Ok(slot)
    }

    pub(crate) fn bind_name(
        &mut self,
        name: Bindable,
        value: Ref<'a>,
        out: &mut Bindings<'a>,
    ) -> Fallible<u8> {
        let slot = self.bind_hidden(value, out)?;
        self.scopes.bind(name, slot);
        Ok(slot)
    }

    /// Binds the names of a pattern.
    pub(crate) fn bind_pattern(
        &mut self,
        pattern: &'a Form<'a>,
        value: Ref<'a>,
        out: &mut Bindings<'a>,
    ) -> Done {
        match pattern.kind {
            FormKind::Symbol(name) => {
                let name = self.bindable(name, pattern.span)?;
                self.bind_name(name, value, out).map(|_| ())
            }
            FormKind::Vector(items) => self.bind_vector(pattern.span, items, value, out),
            FormKind::Map(items) => self.bind_map(pattern.span, items, value, out),
            _ => {
                let kind = pattern.kind_name();
                let message =
                    format!("cannot bind to a {kind}; use a symbol, [a b & rest] or {{:keys [a b]}}");
                Err(unsupported(pattern.span, message).hint(match pattern.kind {
                    FormKind::List(_) => "Bindings are pairs in one vector, without parentheses: [a 1 b 2].",
                    FormKind::Keyword(_) => "Names have no colon; {:keys [a]} reads the key :a.",
                    _ => "Names and values alternate in one vector, the name first: [a 1 b 2].",
                }))
            }
        }
    }

    /// A name that a program binds.
    ///
    /// # Errors
    /// It is qualified: programs cannot bind names of a namespace.
    pub(crate) fn bindable(&self, name: Name, span: Span) -> Fallible<Bindable> {
        Bindable::new(&*self.names, name).ok_or_else(|| {
            let text = self.names.text(name);
            unsupported(span, format!("cannot bind the qualified name {text}"))
                .hint("Bind a name without a slash.")
        })
    }

    /// The name after `:as`, which refers to the value from here on.
    fn bind_whole(
        &mut self,
        span: Span,
        name: Option<Bindable>,
        value: Ref<'a>,
        out: &mut Bindings<'a>,
    ) -> Resolved<'a> {
        let Some(name) = name else { return Ok(value) };
        let slot = self.bind_name(name, value, out)?;
        Ok(self.local(span, slot))
    }

    fn bind_vector(&mut self, span: Span, items: Forms<'a>, value: Ref<'a>, out: &mut Bindings<'a>) -> Done {
        let is_symbol =
            |form: &Form<'_>, text: &str| form.symbol().is_some_and(|name| self.names.text(name) == text);
        let (mut items, mut whole) = (items, None);
        if let [before @ .., mark, name] = items
            && mark.keyword().is_some_and(|keyword| self.names.text(keyword) == "as")
        {
            let place = name.span;
            let name = name.symbol().ok_or_else(|| unsupported(place, ":as needs a symbol"))?;
            (items, whole) = (before, Some(self.bindable(name, place)?));
        }
        let mut rest = None;
        if let Some(at) = items.iter().position(|item| is_symbol(item, "&"))
            && at + 1 < items.len()
        {
            let [pattern] = &items[at + 1..] else {
                return Err(unsupported(span, "exactly one pattern may follow & in a vector pattern"));
            };
            rest = Some(pattern);
            items = &items[..at];
        }
        if let Some(keyword) = items.iter().find(|item| item.keyword().is_some()) {
            let message = "only :as may stand in a vector pattern, before its last name";
            return Err(unsupported(keyword.span, message));
        }
        let value = self.bind_whole(span, whole, value, out)?;
        let checked = match self.makes_endless_sequences() {
            true => {
                let named = if rest.is_some() { -1 } else { items.len() as i64 };
                let named = self.literal(span, Literal::Int(named));
                self.internal_call(span, Known::PatternItems, &[value, named])?
            }
            false => self.internal_call(span, Known::VectorPattern, &[value])?,
        };
        let source = self.bind_hidden(checked, out)?;
        for (index, item) in items.iter().enumerate() {
            let (vector, index) = (self.local(span, source), self.literal(span, Literal::Int(index as i64)));
            let element = self.internal_call(item.span, Known::Element, &[vector, index])?;
            self.bind_pattern(item, element, out)?;
        }
        if let Some(rest) = rest {
            let (vector, from) =
                (self.local(span, source), self.literal(span, Literal::Int(items.len() as i64)));
            let value = self.internal_call(rest.span, Known::RestFrom, &[vector, from])?;
            self.bind_rest(rest, value, out)?;
        }
        Ok(())
    }

    /// Binds the rest that `&` collects: a map pattern takes it as keyword arguments.
    pub(crate) fn bind_rest(
        &mut self,
        pattern: &'a Form<'a>,
        value: Ref<'a>,
        out: &mut Bindings<'a>,
    ) -> Done {
        let value = match pattern.kind {
            FormKind::Map(_) => self.internal_call(pattern.span, Known::KeywordArguments, &[value])?,
            _ => value,
        };
        self.bind_pattern(pattern, value, out)?;
        if pattern.symbol().is_some() {
            self.scopes.last_is_rest(Rest::Part);
        }
        Ok(())
    }

    fn bind_map(&mut self, span: Span, items: Forms<'a>, value: Ref<'a>, out: &mut Bindings<'a>) -> Done {
        let parts = self.map_pattern(items)?;
        let value = self.bind_whole(span, parts.whole, value, out)?;
        let checked = self.internal_call(span, Known::MapPattern, &[value])?;
        let source = self.bind_hidden(checked, out)?;
        let entries: &'a [_] = parts.entries.into_bump_slice();
        for (pattern, key) in entries.iter() {
            let default = pattern
                .symbol()
                .and_then(|name| parts.defaults.iter().find(|(known, _)| *known == name))
                .map(|(_, default)| *default);
            let map = self.local(key.span, source);
            let found = self.map_entry(key, map, default)?;
            self.bind_pattern(pattern, found, out)?;
        }
        Ok(())
    }

    /// The value of one key of a map pattern.
    fn map_entry(&mut self, key: &'a Form<'a>, map: Ref<'a>, default: Option<&'a Form<'a>>) -> Resolved<'a> {
        let span = key.span;
        let row = match key.kind {
            FormKind::Keyword(name) | FormKind::Symbol(name) => {
                self.tables.keyword(span, name, self.names.text(name))?
            }
            FormKind::Str(text) => self.tables.constant(span, Const::Str(text.into()))?,
            _ => {
                let key = self.resolve(key, false);
                if !matches!(key.kind, Kind::Literal(_)) {
                    let message = "a key of a map pattern must be a keyword, a string or a symbol";
                    return Err(unsupported(span, message));
                }
                return self.internal_call(span, Known::Entry, &[map, key]);
            }
        };
        let Some(default) = default else { return Ok(self.expr(span, Kind::GetKey(row, map))) };
        let default = self.resolve(default, false);
        if !is_inert(default, 3) {
            return Err(unsupported(default.span, ":or defaults must be literals"));
        }
        let key = self.literal(span, Literal::Row(row));
        self.internal_call(span, Known::EntryOr, &[map, key, default])
    }

    fn map_pattern(&self, items: Forms<'a>) -> Fallible<MapPattern<'a>> {
        let mut parts = MapPattern { entries: self.list(0), defaults: self.list(0), whole: None };
        for pair in items.chunks_exact(2) {
            let (left, right) = (&pair[0], &pair[1]);
            match left.keyword().map(|keyword| self.names.text(keyword)) {
                Some("keys") => self.key_list(right, false, &mut parts)?,
                Some("strs") => self.key_list(right, true, &mut parts)?,
                Some("as") => {
                    let name = right.symbol().ok_or_else(|| unsupported(right.span, ":as needs a symbol"))?;
                    parts.whole = Some(self.bindable(name, right.span)?);
                }
                Some("or") => {
                    let FormKind::Map(defaults) = right.kind else {
                        let message = ":or needs a map of defaults, as in {:or {limit 10}}";
                        return Err(unsupported(right.span, message));
                    };
                    for default in defaults.chunks_exact(2) {
                        let Some(name) = default[0].symbol() else {
                            let message = "the keys of :or must be symbols, as in {:or {limit 10}}";
                            return Err(unsupported(default[0].span, message));
                        };
                        self.meter.step()?;
                        parts.defaults.push((name, &default[1]));
                    }
                }
                Some(other) => {
                    let failed = unsupported(left.span, format!(":{other} has no meaning in a map pattern"));
                    return Err(match nearest(other, &["keys", "strs", "as", "or"]) {
                        Some(near) => failed.hint(format!("Did you mean `:{near}`?")),
                        None => failed.hint(
                            "Known are :keys, :strs, :as and :or; another key is bound as {name :key}.",
                        ),
                    });
                }
                None => parts.entries.push((*left, *right)),
            }
        }
        Ok(parts)
    }

    fn key_list(&self, list: &'a Form<'a>, strings: bool, parts: &mut MapPattern<'a>) -> Done {
        let Some(names) = list.vector() else {
            return Err(unsupported(list.span, ":keys needs a vector of symbols, as in {:keys [a b]}"));
        };
        for form in names {
            let (FormKind::Symbol(name) | FormKind::Keyword(name)) = form.kind else {
                return Err(unsupported(form.span, ":keys needs a vector of symbols, as in {:keys [a b]}"));
            };
            let key = match strings {
                true => FormKind::Str(self.names.text(name)),
                false => FormKind::Keyword(name),
            };
            self.meter.step()?;
            parts.entries.push((Form::new(form.span, FormKind::Symbol(name)), Form::new(form.span, key)));
        }
        Ok(())
    }
}
