//! Compiled programs as immutable data: functions with their instructions, constants, symbols and global names.
//! Threads share them by `Arc`.

use super::builtin::BuiltinId;
use super::combinator::CombinatorKind;
use super::instruction::{Instruction, ProtoIndex};
use crate::fault::Span;
use compact_str::CompactString;
use ptc_regex::Pattern;
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled program. Symbols, globals and constants are numbered per program; an isolate links
/// them to its own when it loads the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Length of the source text in bytes.
    pub source_bytes: u32,
    /// Functions; the entry has no parameters and no captures.
    pub protos: Vec<Proto>,
    /// The function that runs first.
    pub entry: ProtoIndex,
    /// Constant values. A collection refers to earlier rows only.
    pub constants: Vec<Const>,
    /// Texts of keywords, quoted symbols and var names.
    pub symbols: Vec<CompactString>,
    /// Names that the program reads or defines.
    pub globals: Vec<GlobalName>,
}

/// A name of the user namespace or another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalName {
    /// The namespace, an index into `Program::symbols`; `None` for that of the user.
    pub namespace: Option<u32>,
    /// The name within it, an index into `Program::symbols`.
    pub symbol: u32,
    /// The meaning of the name while nothing has been defined under it.
    pub builtin: Option<BuiltinId>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    /// nil.
    Nil,
    /// true or false.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A larger integer, in decimal digits.
    BigInt(Box<str>),
    /// A float.
    Float(f64),
    /// A string.
    Str(CompactString),
    /// A keyword: index into `Program::symbols`.
    Keyword(u32),
    /// A quoted symbol, the namespace included (`server/tool`).
    Symbol(u32),
    /// The result of `def`.
    Var(u32),
    /// A builtin as a value.
    Builtin(BuiltinId),
    /// A host tool as a value: `tool/name` (the symbol holds the name without `tool/`).
    Tool(u32),
    /// A regular expression, compiled.
    Regex(Arc<Pattern>),
    /// A vector of earlier constants.
    Vector(Vec<u16>),
    /// A map of earlier constants, key and value alternating; keys differ.
    Map(Vec<u16>),
    /// A set of earlier constants.
    Set(Vec<u16>),
    /// A function made of earlier constants.
    Combinator(CombinatorKind, Vec<u16>),
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Parameters before `&`.
    pub fixed: u8,
    /// Further arguments are collected into a vector in the register after the fixed ones.
    pub variadic: bool,
}

/// One function of a program (one arity; a function of several arities is a chain).
#[derive(Clone, Debug, PartialEq)]
pub struct Proto {
    /// Name for diagnostics, empty for anonymous functions.
    pub name: Box<str>,
    /// Parameters.
    pub shape: Shape,
    /// Parameter names as `#fn[x y]` shows them (`_` for a pattern, `& rest` for the rest).
    pub parameters: Box<str>,
    /// Number of registers, including arguments and register 0: no instruction uses a higher one.
    pub registers: u16,
    /// Values a closure of this function holds. All arities of a chain share them.
    pub captures: u16,
    /// Next arity of the same function, tried when the number of arguments does not fit.
    pub next_arity: Option<ProtoIndex>,
    /// Instructions; an isolate that loads the program shares them in its own table.
    pub code: Arc<[Instruction]>,
    /// Source span of each instruction.
    pub spans: Vec<Span>,
}

impl Proto {
    /// True when a call with `count` arguments fits this arity.
    pub fn accepts(&self, count: usize) -> bool {
        let fixed = usize::from(self.shape.fixed);
        if self.shape.variadic { count >= fixed } else { count == fixed }
    }
}

impl Program {
    /// Bytes of the heap that this program holds, roughly; used to bound the program cache.
    pub fn heap_bytes(&self) -> usize {
        let code: usize = self.protos.iter().map(|proto| proto.code.len() * 16 + 128).sum();
        let symbols: usize = self.symbols.iter().map(|symbol| symbol.len() + 16).sum();
        let patterns = self.constants.iter().map(|constant| match constant {
            Const::Regex(pattern) => pattern.bytes(),
            _ => 0,
        });
        code + symbols
            + patterns.sum::<usize>()
            + self.constants.len() * 40
            + self.globals.len() * size_of::<GlobalName>()
            + size_of::<Program>()
    }

    /// Whether the program calls a builtin by name or holds it as a value.
    pub fn mentions(&self, wanted: BuiltinId) -> bool {
        let calls = |instruction: &Instruction| match *instruction {
            Instruction::CallBuiltin { builtin, .. }
            | Instruction::Call1 { builtin, .. }
            | Instruction::Call2 { builtin, .. } => builtin == wanted,
            _ => false,
        };
        self.constants.contains(&Const::Builtin(wanted))
            || self.globals.iter().any(|global| global.builtin == Some(wanted))
            || self.protos.iter().any(|proto| proto.code.iter().any(calls))
    }

    /// Number of instructions.
    pub fn instructions(&self) -> usize {
        self.protos.iter().map(|proto| proto.code.len()).sum()
    }

    /// A global name as programs write it.
    pub fn global(&self, index: u16) -> Cow<'_, str> {
        match self.globals.get(usize::from(index)) {
            None => "?".into(),
            Some(GlobalName { namespace: None, symbol, .. }) => self.symbol(*symbol).into(),
            Some(GlobalName { namespace: Some(namespace), symbol, .. }) => {
                format!("{}/{}", self.symbol(*namespace), self.symbol(*symbol)).into()
            }
        }
    }

    /// The text of a symbol of this program.
    pub fn symbol(&self, index: u32) -> &str {
        self.symbols.get(index as usize).map_or("?", CompactString::as_str)
    }
}
