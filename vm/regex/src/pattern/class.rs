//! Builds the character classes of a pattern (shorthands, properties, brackets) as sets with a fast membership test.
//!
//! They are built in small steps: folding the case of one large class at once takes milliseconds.

use super::flags::Flags;
use crate::error::PatternError;
use regex_syntax::ast::{self, Ast, ClassSet, ClassSetBinaryOpKind, ClassSetItem};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// A set of characters with fast membership tests.
#[derive(Debug)]
pub(crate) struct Set {
    ascii: u128,
    /// All sorted ranges, including ASCII.
    ranges: Box<[(char, char)]>,
}

impl Set {
    pub(crate) fn new(class: &ClassUnicode) -> Set {
        let ranges: Box<[(char, char)]> =
            class.ranges().iter().map(|range| (range.start(), range.end())).collect();
        let ascii = (0..128u8)
            .filter(|&byte| is_in(&ranges, char::from(byte)))
            .fold(0, |bits, byte| bits | 1 << byte);
        Set { ascii, ranges }
    }

    #[inline]
    pub(crate) fn has(&self, character: char) -> bool {
        let code = u32::from(character);
        if code < 128 { self.ascii >> code & 1 == 1 } else { is_in(&self.ranges, character) }
    }

    pub(crate) fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// The set's bits for the characters below 128.
    pub(crate) fn ascii(&self) -> u128 {
        self.ascii
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Set>() + size_of_val(&*self.ranges)
    }
}

fn is_in(ranges: &[(char, char)], character: char) -> bool {
    let at = ranges.partition_point(|&(_, end)| end < character);
    ranges.get(at).is_some_and(|&(start, _)| start <= character)
}

/// Characters between two payments while the case of a range is folded.
const FOLD_STEP: u32 = 8_192;

/// Builds the character classes of one pattern, each kind once.
pub(crate) struct Classes<'p> {
    pattern: &'p str,
    /// Classes by their notation and the flag that ignores case.
    known: Vec<(&'p str, bool, ClassUnicode)>,
}

impl<'p> Classes<'p> {
    pub(crate) fn new(pattern: &'p str) -> Classes<'p> {
        Classes { pattern, known: Vec::new() }
    }

    /// The class of a leaf of the syntax tree: a shorthand, a property or a bracket.
    pub(crate) fn class<E>(
        &mut self,
        node: &Ast,
        flags: Flags,
        pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
    ) -> Result<ClassUnicode, PatternError<E>> {
        match node {
            // Classes without Unicode contain only 256 bytes.
            _ if !flags.unicode => self.plain(node, flags),
            Ast::ClassBracketed(bracket) => self.bracket(bracket, flags, pay),
            Ast::ClassUnicode(class) => self.item(&ClassSetItem::Unicode((**class).clone()), flags, pay),
            Ast::ClassPerl(class) => self.item(&ClassSetItem::Perl((**class).clone()), flags, pay),
            _ => self.plain(node, flags),
        }
    }

    /// The class as the parser's own translator builds it, in one step.
    fn plain<E>(&self, node: &Ast, flags: Flags) -> Result<ClassUnicode, PatternError<E>> {
        let hir = TranslatorBuilder::new()
            .unicode(flags.unicode)
            .case_insensitive(flags.ignore_case)
            .multi_line(flags.multi_line)
            .dot_matches_new_line(flags.dot_all)
            .crlf(flags.crlf)
            .build()
            .translate(self.pattern, node)
            .map_err(|error| PatternError::invalid(error.kind().to_string()))?;
        Ok(match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => class.clone(),
            HirKind::Class(Class::Bytes(class)) => ClassUnicode::new(
                class
                    .ranges()
                    .iter()
                    .map(|range| ClassUnicodeRange::new(char::from(range.start()), char::from(range.end()))),
            ),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).unwrap_or_default();
                ClassUnicode::new(text.chars().map(|character| ClassUnicodeRange::new(character, character)))
            }
            _ => ClassUnicode::empty(),
        })
    }

    fn bracket<E>(
        &mut self,
        bracket: &ast::ClassBracketed,
        flags: Flags,
        pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
    ) -> Result<ClassUnicode, PatternError<E>> {
        let mut class = self.set(&bracket.kind, flags, pay)?;
        if bracket.negated {
            class.negate();
        }
        pay(class.ranges().len() as u64 / 8 + 1)?;
        Ok(class)
    }

    /// Case is folded at the leaves: folded sets stay folded under union, intersection and negation.
    fn set<E>(
        &mut self,
        set: &ClassSet,
        flags: Flags,
        pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
    ) -> Result<ClassUnicode, PatternError<E>> {
        match set {
            ClassSet::Item(item) => self.item(item, flags, pay),
            ClassSet::BinaryOp(operation) => {
                let mut class = self.set(&operation.lhs, flags, pay)?;
                let right = self.set(&operation.rhs, flags, pay)?;
                pay((class.ranges().len() + right.ranges().len()) as u64 / 8 + 1)?;
                match operation.kind {
                    ClassSetBinaryOpKind::Intersection => class.intersect(&right),
                    ClassSetBinaryOpKind::Difference => class.difference(&right),
                    ClassSetBinaryOpKind::SymmetricDifference => class.symmetric_difference(&right),
                }
                Ok(class)
            }
        }
    }

    fn item<E>(
        &mut self,
        item: &ClassSetItem,
        flags: Flags,
        pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
    ) -> Result<ClassUnicode, PatternError<E>> {
        let negated = match item {
            ClassSetItem::Empty(_) => return Ok(ClassUnicode::empty()),
            ClassSetItem::Bracketed(bracket) => return self.bracket(bracket, flags, pay),
            ClassSetItem::Union(union) => {
                let mut class = ClassUnicode::empty();
                for item in &union.items {
                    let more = self.item(item, flags, pay)?;
                    pay((class.ranges().len() + more.ranges().len()) as u64 / 8 + 1)?;
                    class.union(&more);
                }
                return Ok(class);
            }
            ClassSetItem::Ascii(class) => class.negated,
            ClassSetItem::Unicode(class) => class.is_negated(),
            ClassSetItem::Perl(class) => class.negated,
            ClassSetItem::Literal(_) | ClassSetItem::Range(_) => false,
        };
        let span = item.span();
        let text = self.pattern.get(span.start.offset..span.end.offset).unwrap_or_default();
        // Literals and ranges never have the notation of a shorthand or a property.
        let known = self.known.iter().find(|known| known.0 == text && known.1 == flags.ignore_case);
        if let Some((_, _, class)) = known {
            return Ok(class.clone());
        }
        let alone = Ast::class_bracketed(ast::ClassBracketed {
            span: *span,
            negated: false,
            kind: ClassSet::Item(item.clone()),
        });
        let mut class = self.plain(&alone, Flags { ignore_case: false, ..flags })?;
        pay(class.ranges().len() as u64 / 8 + 1)?;
        // The shorthands contain every case of their letters.
        if flags.ignore_case && !matches!(item, ClassSetItem::Perl(_)) {
            if negated {
                class.negate();
            }
            class = folded(&class, pay)?;
            if negated {
                class.negate();
            }
        }
        self.known.push((text, flags.ignore_case, class.clone()));
        Ok(class)
    }
}

/// The class together with the other cases of its characters.
fn folded<E>(
    class: &ClassUnicode,
    pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
) -> Result<ClassUnicode, PatternError<E>> {
    let mut all = class.clone();
    let mut some: Vec<ClassUnicodeRange> = Vec::new();
    let mut size = 0;
    for range in class.ranges() {
        let (mut start, end) = (u32::from(range.start()), u32::from(range.end()));
        while start <= end {
            let last = end.min(start + FOLD_STEP - 1);
            // A piece that begins or ends among the surrogates can be shortened without loss.
            if let (Some(first), Some(last)) = (at_least(start), at_most(last))
                && first <= last
            {
                some.push(ClassUnicodeRange::new(first, last));
            }
            size += last - start + 1;
            start = last + 1;
            if size >= FOLD_STEP {
                fold_some(&mut all, &mut some);
                pay(u64::from(size) / 4 + 1)?;
                size = 0;
            }
        }
    }
    fold_some(&mut all, &mut some);
    pay(u64::from(size) / 4 + 1)?;
    Ok(all)
}

fn fold_some(all: &mut ClassUnicode, some: &mut Vec<ClassUnicodeRange>) {
    let mut more = ClassUnicode::new(some.drain(..));
    // Fails only if the parser is built without case tables, which this one is not.
    if more.try_case_fold_simple().is_ok() {
        all.union(&more);
    }
}

fn at_least(code: u32) -> Option<char> {
    char::from_u32(code).or((0xD800..0xE000).contains(&code).then_some('\u{E000}'))
}

fn at_most(code: u32) -> Option<char> {
    char::from_u32(code).or((0xD800..0xE000).contains(&code).then_some('\u{D7FF}'))
}
