//! Translates `(quote name)` to a constant symbol, and refuses to quote anything else.

use crate::diagnostic::invalid_form;
use crate::form::Forms;
use crate::names::Special;
use crate::resolve::{Resolved, Resolver, with_advice, wrong_shape};
use ptc_vm::Span;

impl<'a> Resolver<'a, '_> {
    /// `(quote name)`.
    pub(crate) fn quote_form(&mut self, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let [form] = rest else { return Err(wrong_shape(Special::Quote, span)) };
        let Some(name) = form.symbol() else {
            let failed = invalid_form(span, "only symbols can be quoted, as in 'server/tool");
            return Err(with_advice(failed, Special::Quote));
        };
        let symbol = self.tables.symbol(name, self.names.text(name));
        self.constant(span, ptc_vm::bytecode::Const::Symbol(symbol))
    }
}
