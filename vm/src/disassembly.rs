//! Writes a compiled program as text, one instruction a line, for `ptc disasm` and the golden tests.

use crate::builtins::name_of;
use crate::bytecode::instruction::{Effect, Instruction, Reference};
use crate::bytecode::{Const, Program, Proto};
use std::fmt::Write as _;

impl Program {
    /// Every function with its instructions, one a line, constants and targets spelled out.
    pub fn disassemble(&self) -> String {
        let mut out = String::new();
        for (index, proto) in self.protos.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            self.disassemble_proto(&mut out, index, proto);
        }
        out
    }

    fn disassemble_proto(&self, out: &mut String, index: usize, proto: &Proto) {
        let name = if proto.name.is_empty() { "fn" } else { &proto.name };
        let _ = write!(out, "fn{index} {name} [{}] registers {}", proto.parameters, proto.registers);
        if proto.captures > 0 {
            let _ = write!(out, " captures {}", proto.captures);
        }
        if let Some(next) = proto.next_arity {
            let _ = write!(out, " next fn{}", next.0);
        }
        out.push('\n');
        for (at, instruction) in proto.code.iter().enumerate() {
            let _ = write!(out, "{at:>4}  {}", instruction.text(name_of));
            self.annotate(out, at, instruction);
            out.push('\n');
        }
    }

    fn annotate(&self, out: &mut String, at: usize, instruction: &Instruction) {
        match instruction.reference() {
            Some(
                Reference::Constant(constant) | Reference::Key(constant) | Reference::Keys { constant, .. },
            ) => {
                let _ = write!(out, "  ; {}", self.constant_text(constant, 0));
            }
            Some(Reference::Global(global)) => {
                let _ = write!(out, "  ; {}", self.global(global));
            }
            Some(Reference::Capture(_) | Reference::Function { .. } | Reference::Builtin(_)) | None => {}
        }
        instruction.effects(&mut |effect| {
            if let Effect::Jump(distance) = effect {
                let _ = write!(out, "  ; to {}", at as i64 + 1 + i64::from(distance));
            }
        });
    }

    /// The text of a constant, cut at three levels: constants nest only as deep as source text.
    fn constant_text(&self, index: u16, depth: usize) -> String {
        let Some(constant) = self.constants.get(usize::from(index)) else { return "?".into() };
        let list = |items: &[u16]| -> String {
            if depth > 2 {
                return "…".into();
            }
            items.iter().map(|&item| self.constant_text(item, depth + 1)).collect::<Vec<_>>().join(" ")
        };
        match constant {
            Const::Nil => "nil".into(),
            Const::Bool(value) => value.to_string(),
            Const::Int(value) => value.to_string(),
            Const::BigInt(digits) => digits.to_string(),
            Const::Float(value) => format!("{value:?}"),
            Const::Str(text) => format!("{text:?}"),
            Const::Keyword(symbol) => format!(":{}", self.symbol(*symbol)),
            Const::Symbol(symbol) => format!("'{}", self.symbol(*symbol)),
            Const::Var(symbol) => format!("#'{}", self.symbol(*symbol)),
            Const::Builtin(builtin) => name_of(*builtin).into(),
            Const::Tool(symbol) => format!("tool/{}", self.symbol(*symbol)),
            Const::Regex(pattern) => format!("#{:?}", pattern.text()),
            Const::Vector(items) => format!("[{}]", list(items)),
            Const::Map(items) => format!("{{{}}}", list(items)),
            Const::Set(items) => format!("#{{{}}}", list(items)),
            Const::Combinator(kind, items) => format!("({} {})", kind.name(), list(items)),
        }
    }
}
