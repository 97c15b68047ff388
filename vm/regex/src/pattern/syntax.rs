//! Builds the syntax tree of a regular expression, with flags and group names resolved and character classes as sets.

use super::class::{Classes, Set};
use super::flags::Flags;
use super::look::Look;
use super::translate::{Kind, Reference, Translated};
use crate::error::PatternError;
use regex_syntax::ast::{Ast, GroupKind, RepetitionKind, RepetitionRange};

/// A part of a pattern.
#[derive(Debug)]
pub(crate) enum Node {
    Empty,
    /// Never matches.
    Fail,
    Char(char),
    /// A character of a set, by the set's number.
    Set(u16),
    Look(Look),
    Concat(Vec<Node>),
    Alternation(Vec<Node>),
    Repeat {
        min: u32,
        /// `None`: unbounded.
        max: Option<u32>,
        greedy: bool,
        /// The body can match the empty text.
        may_be_empty: bool,
        body: Box<Node>,
    },
    Group(u16, Box<Node>),
    /// Only the backtracking search supports everything below.
    Ahead {
        negative: bool,
        body: Box<Node>,
    },
    Behind {
        negative: bool,
        /// Minimal and maximal length of the body, in characters.
        lengths: (u32, u32),
        body: Box<Node>,
    },
    Atomic(Box<Node>),
    /// The text of a group, cases ignored or not.
    Backreference(u16, bool),
    /// `\K`: the match begins here.
    Keep,
    /// `\G`: the position where the search began.
    Continue,
    Condition {
        test: Test,
        yes: Box<Node>,
        no: Box<Node>,
    },
}

/// The condition of a conditional.
#[derive(Debug)]
pub(crate) enum Test {
    /// The group has matched.
    Group(u16),
    Node(Box<Node>),
}

/// The length of a part's matches in characters; the maximum is `None` if unbounded.
#[derive(Clone, Copy, Debug)]
struct Length {
    min: u32,
    max: Option<u32>,
}

impl Length {
    const ZERO: Length = Length { min: 0, max: Some(0) };
    const ONE: Length = Length { min: 1, max: Some(1) };

    fn then(self, next: Length) -> Length {
        Length {
            min: self.min.saturating_add(next.min),
            max: self.max.zip(next.max).and_then(|(a, b)| a.checked_add(b)),
        }
    }

    fn or(self, other: Length) -> Length {
        Length { min: self.min.min(other.min), max: self.max.zip(other.max).map(|(a, b)| a.max(b)) }
    }

    fn times(self, min: u32, max: Option<u32>) -> Length {
        let most = match (self.max, max) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (Some(each), Some(times)) => each.checked_mul(times),
            _ => None,
        };
        Length { min: self.min.saturating_mul(min), max: most }
    }
}

/// The tree of a pattern.
#[derive(Debug)]
pub(crate) struct Syntax {
    pub(crate) root: Node,
    pub(crate) sets: Vec<Set>,
    /// Names of groups and their numbers.
    pub(crate) names: Vec<(Box<str>, u16)>,
    /// Number of capturing groups.
    pub(crate) groups: u16,
    /// Only the backtracking search supports all of its parts.
    pub(crate) backtracking: bool,
}

struct Lowering<'p, 'm, P> {
    pattern: &'p str,
    kinds: &'p [Kind],
    /// The program's group numbers, by the parser's.
    numbers: Vec<u16>,
    classes: Classes<'p>,
    sets: Vec<Set>,
    /// Sets by their notation.
    written: Vec<(&'p str, Flags, u16)>,
    names: Vec<(Box<str>, u16)>,
    /// Lengths of the groups before this position.
    lengths: Vec<Option<Length>>,
    groups_seen: usize,
    pay: &'m mut P,
}

/// Builds the tree of a translated pattern.
///
/// # Errors
/// A malformed pattern; the error of `pay`.
pub(crate) fn parse<E>(
    translated: &Translated,
    most_nested: u32,
    pay: &mut impl FnMut(u64) -> Result<(), PatternError<E>>,
) -> Result<Syntax, PatternError<E>> {
    let pattern = &*translated.pattern;
    pay(4 * pattern.len() as u64)?;
    let ast = regex_syntax::ast::parse::ParserBuilder::new()
        .nest_limit(most_nested)
        .build()
        .parse(pattern)
        .map_err(|error| PatternError::invalid(error.kind()))?;
    let mut numbers = Vec::with_capacity(translated.kinds.len());
    let mut groups = 0;
    for kind in &translated.kinds {
        groups += u16::from(matches!(kind, Kind::Capture));
        numbers.push(groups);
    }
    let mut lowering = Lowering {
        pattern,
        kinds: &translated.kinds,
        numbers,
        classes: Classes::new(pattern),
        sets: Vec::new(),
        written: Vec::new(),
        names: Vec::new(),
        lengths: vec![None; usize::from(groups) + 1],
        groups_seen: 0,
        pay,
    };
    let (root, _) = lowering.node(&ast, &mut Flags::DEFAULT.clone())?;
    if lowering.groups_seen != translated.kinds.len() {
        return Err(PatternError::invalid("a comment with parentheses or back-references"));
    }
    let Lowering { sets, names, .. } = lowering;
    let backtracking = translated.kinds.iter().any(|kind| !matches!(kind, Kind::Capture));
    Ok(Syntax { root, sets, names, groups, backtracking })
}

impl<'p, P, E> Lowering<'p, '_, P>
where
    P: FnMut(u64) -> Result<(), PatternError<E>>,
{
    /// Recursion is bounded by the nesting limit of the parser.
    fn node(&mut self, ast: &'p Ast, flags: &mut Flags) -> Result<(Node, Length), PatternError<E>> {
        (self.pay)(1)?;
        Ok(match ast {
            Ast::Empty(_) => (Node::Empty, Length::ZERO),
            Ast::Flags(set) => {
                flags.change(&set.flags);
                (Node::Empty, Length::ZERO)
            }
            Ast::Literal(literal) if !flags.ignore_case && (flags.unicode || literal.c.is_ascii()) => {
                (Node::Char(literal.c), Length::ONE)
            }
            Ast::Literal(_)
            | Ast::Dot(_)
            | Ast::ClassUnicode(_)
            | Ast::ClassPerl(_)
            | Ast::ClassBracketed(_) => (self.class(ast, *flags)?, Length::ONE),
            Ast::Assertion(assertion) => {
                let look = Look::new(&assertion.kind, flags.multi_line, flags.crlf, flags.unicode);
                (Node::Look(look), Length::ZERO)
            }
            Ast::Concat(concat) => self.concat(&concat.asts, flags)?,
            Ast::Alternation(alternation) => self.alternation(&alternation.asts, flags)?,
            Ast::Repetition(repetition) => {
                let (min, max) = match repetition.op.kind {
                    RepetitionKind::ZeroOrOne => (0, Some(1)),
                    RepetitionKind::ZeroOrMore => (0, None),
                    RepetitionKind::OneOrMore => (1, None),
                    RepetitionKind::Range(RepetitionRange::Exactly(count)) => (count, Some(count)),
                    RepetitionKind::Range(RepetitionRange::AtLeast(least)) => (least, None),
                    RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => (least, Some(most)),
                };
                let (body, length) = self.node(&repetition.ast, flags)?;
                let node = Node::Repeat {
                    min,
                    max,
                    greedy: repetition.greedy != flags.swap_greed,
                    may_be_empty: length.min == 0,
                    body: Box::new(body),
                };
                (node, length.times(min, max))
            }
            Ast::Group(group) => {
                let mut inner = *flags;
                match &group.kind {
                    GroupKind::NonCapturing(set) => {
                        inner.change(set);
                        self.node(&group.ast, &mut inner)?
                    }
                    GroupKind::CaptureIndex(index) => self.captured(*index, None, &group.ast, &mut inner)?,
                    GroupKind::CaptureName { name, .. } => {
                        self.captured(name.index, Some(&name.name), &group.ast, &mut inner)?
                    }
                }
            }
        })
    }

    fn concat(&mut self, parts: &'p [Ast], flags: &mut Flags) -> Result<(Node, Length), PatternError<E>> {
        let mut nodes = Vec::with_capacity(parts.len());
        let mut length = Length::ZERO;
        for part in parts {
            let (node, more) = self.node(part, flags)?;
            length = length.then(more);
            nodes.push(node);
        }
        Ok((Node::Concat(nodes), length))
    }

    fn alternation(
        &mut self,
        parts: &'p [Ast],
        flags: &mut Flags,
    ) -> Result<(Node, Length), PatternError<E>> {
        let mut nodes = Vec::with_capacity(parts.len());
        let mut length: Option<Length> = None;
        for part in parts {
            let (node, other) = self.node(part, flags)?;
            length = Some(length.map_or(other, |length| length.or(other)));
            nodes.push(node);
        }
        Ok((Node::Alternation(nodes), length.unwrap_or(Length::ZERO)))
    }

    /// A set, or its only character.
    fn class(&mut self, ast: &'p Ast, flags: Flags) -> Result<Node, PatternError<E>> {
        let span = ast.span();
        let text = self.pattern.get(span.start.offset..span.end.offset).unwrap_or_default();
        let known = self.written.iter().find(|(written, with, _)| *written == text && with.same(flags));
        if let Some(&(_, _, set)) = known {
            return Ok(Node::Set(set));
        }
        let class = self.classes.class(ast, flags, self.pay)?;
        match class.ranges() {
            [] => Ok(Node::Fail),
            [range] if range.start() == range.end() => Ok(Node::Char(range.start())),
            ranges => {
                (self.pay)(ranges.len() as u64 / 4 + 16)?;
                let set = self.sets.len() as u16;
                self.sets.push(Set::new(&class));
                self.written.push((text, flags, set));
                Ok(Node::Set(set))
            }
        }
    }

    /// A group that the parser takes for a capturing group.
    fn captured(
        &mut self,
        index: u32,
        name: Option<&str>,
        body: &'p Ast,
        flags: &mut Flags,
    ) -> Result<(Node, Length), PatternError<E>> {
        self.groups_seen += 1;
        let at = index as usize - 1;
        let kinds = self.kinds;
        let (Some(kind), Some(&number)) = (kinds.get(at), self.numbers.get(at)) else {
            return Err(PatternError::invalid("a comment with parentheses or back-references"));
        };
        match kind {
            Kind::Capture => {
                if let Some(name) = name {
                    self.names.push((name.into(), number));
                }
                let (body, length) = self.node(body, flags)?;
                self.lengths[usize::from(number)] = Some(length);
                Ok((Node::Group(number, Box::new(body)), length))
            }
            Kind::Around { ahead, negative } => {
                let (body, length) = self.node(body, flags)?;
                let (negative, body) = (*negative, Box::new(body));
                let node = match length.max {
                    _ if *ahead => Node::Ahead { negative, body },
                    Some(most) => Node::Behind { negative, lengths: (length.min, most), body },
                    None => return Err(PatternError::invalid("look-behind without a bound on its length")),
                };
                Ok((node, Length::ZERO))
            }
            Kind::Atomic => {
                let (body, length) = self.node(body, flags)?;
                Ok((Node::Atomic(Box::new(body)), length))
            }
            Kind::Backreference(reference) => {
                self.node(body, flags)?;
                let group = self.group_of(reference)?;
                let length = self.lengths[usize::from(group)].unwrap_or(Length { min: 0, max: None });
                Ok((Node::Backreference(group, flags.ignore_case), length))
            }
            Kind::Keep => {
                self.node(body, flags)?;
                Ok((Node::Keep, Length::ZERO))
            }
            Kind::Continue => {
                self.node(body, flags)?;
                Ok((Node::Continue, Length::ZERO))
            }
            Kind::IfGroup(reference) => {
                let test = Test::Group(self.group_of(reference)?);
                let empty = matches!(body, Ast::Empty(_));
                let (body, length) = self.node(body, flags)?;
                Ok(condition(test, body, length, empty))
            }
            Kind::IfMatches => {
                // The condition is the first part of the first alternative.
                let (mut body, length) = self.node(body, flags)?;
                let first = match &mut body {
                    Node::Alternation(parts) => parts.first_mut(),
                    other => Some(other),
                };
                let test = match first {
                    Some(Node::Concat(parts)) if !parts.is_empty() => parts.remove(0),
                    Some(first) => std::mem::replace(first, Node::Empty),
                    None => Node::Empty,
                };
                Ok(condition(Test::Node(Box::new(test)), body, length, false))
            }
        }
    }

    fn group_of(&self, reference: &Reference) -> Result<u16, PatternError<E>> {
        let group = match reference {
            Reference::Number(number) => Some(*number),
            Reference::Name(name) => {
                self.names.iter().find(|(known, _)| **known == **name).map(|&(_, number)| number)
            }
        };
        match group {
            Some(group) if group > 0 && usize::from(group) < self.lengths.len() => Ok(group),
            _ => Err(PatternError::invalid(format_args!("no group {reference} to refer back to"))),
        }
    }
}

/// A conditional with two branches, written as alternatives.
fn condition(test: Test, body: Node, length: Length, empty: bool) -> (Node, Length) {
    let (yes, no) = match body {
        // `(?(1))` only tests.
        _ if empty => (Node::Empty, Node::Fail),
        Node::Alternation(mut parts) if !parts.is_empty() => {
            let yes = parts.remove(0);
            (yes, Node::Alternation(parts))
        }
        other => {
            return (
                Node::Condition { test, yes: Box::new(other), no: Box::new(Node::Empty) },
                Length { min: 0, max: length.max },
            );
        }
    };
    (Node::Condition { test, yes: Box::new(yes), no: Box::new(no) }, length)
}
