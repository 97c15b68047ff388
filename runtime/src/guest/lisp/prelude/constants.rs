//! Constants: computed once, when a prelude is compiled, and kept as data.
//!
//! What a constant may cost is counted and not timed, so that a text compiles on every machine or on none.

use crate::run::outcome::{Failure, Report};
use ptc_compiler::prelude::{CompiledPrelude, DefinitionBody, PreludeDefinition};
use ptc_vm::bytecode::PlainData;
use ptc_vm::{Budget, Exit, Fault, Isolate, NotData, Reason, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// Fuel of one constant.
const FUEL: u64 = 20_000_000;

/// Bytes of one constant and of what computes it.
const MEMORY_BYTES: u64 = 10 << 20;

/// The values of constants, by their definitions; nothing for functions.
pub(super) fn evaluate(
    prelude: &CompiledPrelude,
    text: &str,
) -> Result<Vec<Option<Arc<PlainData>>>, Box<Failure>> {
    let mut evaluation = Evaluation {
        prelude,
        text,
        values: vec![None; prelude.definitions.len()],
        under_way: HashSet::new(),
    };
    for number in 0..prelude.definitions.len() {
        if prelude.definitions[number].body == DefinitionBody::Constant {
            evaluation.constant(number)?;
        }
    }
    Ok(evaluation.values)
}

struct Evaluation<'p> {
    prelude: &'p CompiledPrelude,
    text: &'p str,
    values: Vec<Option<Arc<PlainData>>>,
    under_way: HashSet<usize>,
}

impl Evaluation<'_> {
    fn definition(&self, number: usize) -> &PreludeDefinition {
        &self.prelude.definitions[number]
    }

    /// Computes a constant after those that it reaches. Definitions that a constant reaches are few, and one after the
    /// other: what is waited for is on a list, not on the stack.
    fn constant(&mut self, number: usize) -> Result<(), Box<Failure>> {
        let mut waiting = vec![number];
        self.under_way.insert(number);
        while let Some(&next) = waiting.last() {
            if self.values[next].is_some() {
                waiting.pop();
                continue;
            }
            let prelude = self.prelude;
            let missing = prelude.definitions[next].reaches.iter().copied().find(|&other| {
                other != next
                    && prelude.definitions[other].body == DefinitionBody::Constant
                    && self.values[other].is_none()
            });
            match missing {
                None => {
                    let value = self.compute(next)?;
                    self.values[next] = Some(Arc::new(value));
                }
                Some(other) if self.under_way.insert(other) => waiting.push(other),
                Some(other) => return Err(self.circle(next, other)),
            }
        }
        Ok(())
    }

    fn compute(&self, number: usize) -> Result<PlainData, Box<Failure>> {
        let definition = self.definition(number);
        let mut isolate =
            Isolate::new(Budget { fuel: FUEL, memory_bytes: MEMORY_BYTES, ..Budget::default() });
        let computed = self.link(&mut isolate, number).and_then(|()| {
            let unit = isolate.load(definition.program.clone())?;
            isolate.start(unit);
            match isolate.run(FUEL) {
                Exit::Done => Ok(()),
                Exit::Fault(fault) => Err(fault),
                Exit::SliceEnd => Err(Fault::new(Reason::FuelExceeded, "fuel exceeded")),
                Exit::HostCall(_) | Exit::Blocked => {
                    Err(Fault::runtime("a constant can ask nothing of the host"))
                }
                Exit::Return | Exit::Fail(_) => Err(Fault::runtime("a constant can end no program")),
            }
        });
        let data = match computed {
            Ok(()) => isolate.result_data().map_err(|refusal| self.no_data(definition, refusal)),
            Err(fault) => Err(self.fault(definition, &fault)),
        };
        let leaked = isolate.close();
        debug_assert_eq!(leaked, 0, "a constant left bytes on its account");
        data
    }

    fn link(&self, isolate: &mut Isolate, number: usize) -> Result<(), Box<Fault>> {
        for &other in self.definition(number).reaches.iter().filter(|&&other| other != number) {
            let reached = self.definition(other);
            let namespace = &self.prelude.namespaces[reached.namespace].name;
            match (reached.body, &self.values[other]) {
                (DefinitionBody::Function(function), _) => {
                    isolate.attach_function(namespace, &reached.name, reached.program.clone(), function)?;
                }
                (DefinitionBody::Constant, Some(data)) => {
                    isolate.attach_data(namespace, &reached.name, data)?
                }
                (DefinitionBody::Constant, None) => {}
            }
        }
        Ok(())
    }

    fn failure(&self, span: Span, message: String, hint: &str) -> Box<Failure> {
        let finding = ptc_compiler::Diagnostic::error(Reason::CompileError, span, message).hint(hint);
        Box::new(Failure::from(Report::of_diagnostic(&finding, self.text)))
    }

    fn fault(&self, definition: &PreludeDefinition, fault: &Fault) -> Box<Failure> {
        // All programs of a text have their places in it.
        let span = fault.place.map_or(definition.span, |(_, span)| span);
        let is_limit = matches!(
            fault.reason,
            Reason::FuelExceeded | Reason::MemoryExceeded | Reason::Timeout | Reason::LoopLimitExceeded
        );
        let message = match is_limit {
            true => format!("prelude evaluation exceeded sandbox limits: {}", fault.message),
            false => format!("prelude evaluation failed: {}", fault.message),
        };
        let hint = match (is_limit, fault.hints.first()) {
            (true, _) => {
                "A constant is computed when the prelude is compiled, with 10 MiB and as much work as a fifth of a second takes: \
                 make it cheaper, or write a function."
                    .to_owned()
            }
            (false, Some(hint)) => hint.to_string(),
            (false, None) => "A constant is computed when the prelude is compiled; what has to ask the host is a \
                              function: (defn name [] …)."
                .to_owned(),
        };
        self.failure(span, message, &hint)
    }

    fn no_data(&self, definition: &PreludeDefinition, refusal: NotData) -> Box<Failure> {
        let name = &definition.name;
        match refusal {
            NotData::Holds(word) => self.failure(
                definition.span,
                format!("prelude evaluation failed: the constant `{name}` holds a {word}, which is no data"),
                "A constant is data: write (defn name [params] …), or make the value where it is used.",
            ),
            NotData::TooLarge => self.failure(
                definition.span,
                format!("prelude evaluation exceeded sandbox limits: the constant `{name}` has more than 65,536 parts or 10 MiB of text"),
                "Use a cheaper constant, or compute it in a function.",
            ),
        }
    }

    fn circle(&self, number: usize, other: usize) -> Box<Failure> {
        let (definition, other) = (self.definition(number), self.definition(other));
        let message = format!(
            "prelude evaluation failed: the constants `{}` and `{}` need each other",
            definition.name, other.name
        );
        self.failure(definition.span, message, "Make one of them a function: (defn name [] …).")
    }
}
