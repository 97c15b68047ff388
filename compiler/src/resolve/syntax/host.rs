//! Translates to IR the special forms that use the host application: calls of granted tools, early exits (`return`,
//! `fail`), and forms that name or report steps of the run (`task`, `step-done`). The latter are for hosts that keep a
//! journal (log of a run).

use crate::diagnostic::{Done, Hint, error};
use crate::form::Forms;
use crate::ir::{Kind, Literal};
use crate::names::{Name, Special, split_qualified};
use crate::resolve::suggest::nearest;
use crate::resolve::{Resolved, Resolver, wrong_shape};
use ptc_vm::builtins::ToolForm;
use ptc_vm::bytecode::instruction::Signal;
use ptc_vm::bytecode::{Const, Known};
use ptc_vm::{Reason, Span};

/// A host operation that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation<'a> {
    /// A tool of an upstream server.
    Upstream { server: &'a str, tool: &'a str },
    /// A tool that the host grants.
    Tool(&'a str),
}

impl<'a> Resolver<'a, '_> {
    #[inline(never)]
    pub(crate) fn exit_form(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let [value] = rest else { return Err(wrong_shape(special, span)) };
        let value = self.resolve(value, false);
        self.may_have_ended = true;
        let signal = if special == Special::Return { Signal::Return } else { Signal::Fail };
        Ok(self.expr(span, Kind::Exit(signal, value)))
    }

    /// `(task id expr)`: without a journal, the expression.
    #[inline(never)]
    pub(crate) fn task_form(&mut self, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let [id, value] = rest else { return Err(wrong_shape(Special::Task, span)) };
        let id = self.resolve(id, false);
        let id = self.internal_call(span, Known::TaskId, &[id])?;
        let value = self.resolve(value, false);
        let items = self.slice([id, value]);
        Ok(self.expr(span, Kind::Do(items)))
    }

    /// `(step-done id summary)`, `(task-reset id)`.
    #[inline(never)]
    pub(crate) fn journal_form(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let (builtin, count) = match special {
            Special::StepDone => (Known::StepDone, 2),
            _ => (Known::TaskReset, 1),
        };
        if rest.len() != count {
            return Err(wrong_shape(special, span));
        }
        let arguments = self.all(rest);
        self.internal_call(span, builtin, arguments)
    }

    /// `tool/name` as a value.
    pub(crate) fn tool_value(&mut self, name: Name, span: Span) -> Resolved<'a> {
        let (_, tool) = split_qualified(self.names.text(name));
        self.check_tool(tool, span)?;
        self.servers.dynamic |= ToolForm::find(tool).is_some();
        let symbol = self.symbol_row(tool);
        self.constant(span, Const::Tool(symbol))
    }

    /// `(tool/name …)`.
    #[inline(never)]
    pub(crate) fn tool_call(&mut self, span: Span, name: Name, head: Span, rest: Forms<'a>) -> Resolved<'a> {
        let (_, tool) = split_qualified(self.names.text(name));
        self.check_tool(tool, head)?;
        let form = ToolForm::find(tool);
        match form {
            Some(form) if form.calls_upstream() => self.look_at_call(span, form, rest),
            Some(_) => self.servers.dynamic = true,
            None => {}
        }
        let mut arguments = self.list(rest.len() + 1);
        if form.is_none() {
            let symbol = self.symbol_row(tool);
            let row = self.tables.constant(head, Const::Symbol(symbol))?;
            arguments.push(self.literal(head, Literal::Row(row)));
        }
        for form in rest {
            arguments.push(self.resolve(form, false));
        }
        let builtin = form.map_or(Known::GrantedTool, ToolForm::builtin);
        self.make_call(span, crate::ir::Callee::Builtin(builtin.id()), arguments.into_bump_slice())
    }

    /// Checks and notes a granted tool, or a form that always exists.
    fn check_tool(&mut self, tool: &'a str, span: Span) -> Done {
        if self.externals.private_tools.contains(&tool) {
            let message = format!("Private tool '{tool}' cannot be called directly");
            return Err(error(Reason::UnknownTool, span, message)
                .hint("A namespace of the host calls it for programs: (all-ns) lists them."));
        }
        let granted = self.externals.tools;
        let is_granted = ToolForm::find(tool).is_none();
        if !is_granted || granted.is_empty() || granted.contains(&tool) {
            if is_granted && self.defines.is_some() {
                self.operations.push(Operation::Tool(tool));
            }
            return Ok(());
        }
        let mut known = granted.to_vec();
        known.sort_unstable();
        let message = format!("Unknown tool: {tool}. Available tools: {}", known.join(", "));
        let failed = error(Reason::UnknownTool, span, message);
        Err(match nearest(tool, &known) {
            Some(near) => failed.hint(format!("Did you mean `tool/{near}`?")),
            None => failed,
        })
    }
}
