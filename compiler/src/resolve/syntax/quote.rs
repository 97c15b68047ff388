//! Translates `(quote name)` to a constant symbol, and refuses to quote anything else.

use crate::diagnostic::invalid_form;
use crate::form::{Form, FormKind};
use crate::names::Special;
use crate::resolve::{Resolved, Resolver, with_advice, wrong_shape};
use ptc_vm::Span;

impl<'a> Resolver<'a, '_> {
    /// `(quote name)`.
    pub(crate) fn quote_form(&mut self, span: Span, rest: &'a [Form<'a>]) -> Resolved<'a> {
        match rest {
            [form] => match form.kind {
                FormKind::Symbol(name) => {
                    let symbol = self.tables.symbol(name, self.names.text(name));
                    self.constant(span, ptc_vm::bytecode::Const::Symbol(symbol))
                }
                _ => Err(with_advice(
                    invalid_form(span, "only symbols can be quoted, as in 'server/tool"),
                    Special::Quote,
                )),
            },
            _ => Err(wrong_shape(Special::Quote, span)),
        }
    }
}
