//! Computes the constants of a prelude (a preloaded Lisp library) once, when it is compiled, and stores them as data.
//!
//! Their cost is counted and not timed, so a text compiles on every machine or on none.

use ptc_calls::run::outcome::{Failure, Report};
use ptc_compiler::prelude::{CompiledPrelude, DefinitionBody, PreludeDefinition};
use ptc_vm::bytecode::PlainData;
use ptc_vm::{Budget, Exit, Fault, Interrupt, InterruptKind, Isolate, NotData, Reason, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// Fuel limit of one constant.
const FUEL: u64 = 20_000_000;

/// Memory limit of one constant and its computation.
const MEMORY_BYTES: u64 = 10 << 20;

/// Fuel limit of all constants that are compiled together.
const FUEL_TOGETHER: u64 = 5 * FUEL;

/// Size limit of the values of all constants that are compiled together.
const BYTES_TOGETHER: usize = 32 << 20;

/// Fuel between two checks of the interrupt.
const SLICE: u64 = 1_000_000;

/// What the constants that are compiled together may still cost, and the interrupt of their compilation.
pub(super) struct ConstantAllowance {
    fuel: u64,
    bytes: usize,
    interrupt: Interrupt,
}

impl ConstantAllowance {
    pub(super) fn new(interrupt: &Interrupt) -> ConstantAllowance {
        ConstantAllowance { fuel: FUEL_TOGETHER, bytes: BYTES_TOGETHER, interrupt: interrupt.clone() }
    }

    /// The interrupt of the compilation.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }
}

/// The values of constants, by definition; functions have none.
pub(super) fn evaluate(
    prelude: &CompiledPrelude,
    text: &str,
    allowance: &mut ConstantAllowance,
) -> Result<Vec<Option<Arc<PlainData>>>, Box<Failure>> {
    let mut evaluation = Evaluation {
        prelude,
        text,
        allowance,
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
    allowance: &'p mut ConstantAllowance,
    values: Vec<Option<Arc<PlainData>>>,
    under_way: HashSet<usize>,
}

impl Evaluation<'_> {
    fn definition(&self, number: usize) -> &PreludeDefinition {
        &self.prelude.definitions[number]
    }

    /// Computes a constant after those that it depends on. The pending ones are in a list, not on the stack.
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

    fn compute(&mut self, number: usize) -> Result<PlainData, Box<Failure>> {
        let fuel = FUEL.min(self.allowance.fuel);
        let interrupt = self.allowance.interrupt.clone();
        let budget = Budget { fuel, memory_bytes: MEMORY_BYTES, interrupt, ..Budget::default() };
        let mut isolate = Isolate::new(budget);
        let definition = self.definition(number);
        let computed = self.link(&mut isolate, number).and_then(|()| {
            let unit = isolate.load(definition.program.clone())?;
            isolate.start(unit);
            let ended = loop {
                match isolate.run(SLICE) {
                    Exit::SliceEnd if isolate.fuel_used() < fuel && self.interrupted().is_none() => {}
                    ended => break ended,
                }
            };
            match ended {
                Exit::Done => Ok(()),
                Exit::Fault(fault) => Err(fault),
                Exit::SliceEnd => match self.interrupted() {
                    Some(_) => Err(Fault::new(Reason::Cancelled, "the compilation was stopped")),
                    None => Err(Fault::new(Reason::FuelExceeded, "fuel exceeded")),
                },
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
        let used = isolate.fuel_used();
        let leaked = isolate.close();
        debug_assert_eq!(leaked, 0, "a constant left bytes on its account");
        self.allowance.fuel = self.allowance.fuel.saturating_sub(used);
        let data = data?;
        match self.allowance.bytes.checked_sub(data.bytes()) {
            Some(left) => self.allowance.bytes = left,
            None => {
                let fault = Fault::new(Reason::MemoryExceeded, "all constants together take too much memory");
                return Err(self.fault(self.definition(number), &fault));
            }
        }
        Ok(data)
    }

    fn interrupted(&self) -> Option<InterruptKind> {
        self.allowance.interrupt.get()
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
        Box::new(Failure::from(Report::from_diagnostic(&finding, self.text)))
    }

    fn fault(&self, definition: &PreludeDefinition, fault: &Fault) -> Box<Failure> {
        // Locations in all programs of a text refer to that text.
        let span = fault.location.map_or(definition.span, |(_, span)| span);
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
                "A constant is computed when the prelude is compiled, with 10 MiB and as much work as a fifth of a second takes; \
                 all constants together have 32 MiB and five times that work: make them cheaper, or write functions."
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
