//! Finds a member of a set, or a key of a map (a map keeps its keys in a set): by equality, or by the flexible rule, by
//! which the keyword `:name` and the string `"name"` match. By that rule, `-` in a name also matches `_`.
//!
//! Comparing names and other short texts costs no fuel, so looking them up cannot fail. The time is bounded, since an
//! index bounds the number of comparisons.

use super::SetNode;
use crate::fault::Result;
use crate::value::index::Index;
use crate::value::relation::equal::{same_key, same_text};
use crate::value::relation::hash::hash_value;
use crate::value::relation::order::{
    compare_keys, compare_text, compare_with_keyword, compare_with_text, pay_bytes,
};
use crate::value::relation::text_hash::hash_text;
use crate::value::string::{SHORT_TEXT, StringNode};
use crate::value::symbol::Symbol;
use crate::value::{Store, Value};
use std::convert::Infallible;
use std::rc::Rc;

impl SetNode {
    /// Position of a keyword.
    #[inline]
    pub fn find_keyword(&self, cx: &Store, symbol: Symbol) -> Option<usize> {
        let is_same = |member: &Value| matches!(member, Value::Keyword(key) if *key == symbol);
        let members = self.members();
        let Some(index) = self.index() else { return members.iter().position(is_same) };
        let Ok(found) = index.find(
            &mut (),
            cx.symbols.hash(symbol),
            |_, row| Ok::<_, Infallible>(is_same(&members[row])),
            |_, row| Ok(compare_with_keyword(cx, &members[row], symbol)),
        );
        found
    }

    /// Position of a string of this text, which has `hash` and possibly a symbol.
    ///
    /// # Errors
    /// Comparing long texts pays fuel.
    #[inline]
    pub fn find_text(
        &self,
        cx: &mut Store,
        text: &str,
        hash: u32,
        symbol: Option<Symbol>,
    ) -> Result<Option<usize>> {
        if text.len() > SHORT_TEXT {
            self.find_long(cx, text, hash)
        } else {
            Ok(self.find_short(text, hash, symbol))
        }
    }

    /// [`SetNode::find_text`] for a short text, without payment.
    fn find_short(&self, text: &str, hash: u32, symbol: Option<Symbol>) -> Option<usize> {
        let is_same = |member: &Value| match member {
            Value::Str(node) => match (node.symbol(), symbol) {
                (Some(key), Some(symbol)) => key == symbol,
                _ => node.hash() == hash && node.as_str() == text,
            },
            _ => false,
        };
        let members = self.members();
        let Some(index) = self.index() else { return members.iter().position(is_same) };
        let Ok(found) = index.find(
            &mut (),
            hash,
            |_, row| Ok::<_, Infallible>(is_same(&members[row])),
            |_, row| Ok(compare_with_text(&members[row], text)),
        );
        found
    }

    /// [`SetNode::find_text`] for a long text, which is no name.
    #[cold]
    fn find_long(&self, cx: &mut Store, text: &str, hash: u32) -> Result<Option<usize>> {
        let members = self.members();
        let is_same = |cx: &mut Store, row: usize| match &members[row] {
            Value::Str(node) if node.hash() == hash => same_text(cx, node.as_str(), text),
            _ => Ok(false),
        };
        let Some(index) = self.index() else {
            for row in 0..members.len() {
                if is_same(cx, row)? {
                    return Ok(Some(row));
                }
            }
            return Ok(None);
        };
        index.find(cx, hash, is_same, |cx, row| match &members[row] {
            Value::Str(node) => compare_text(cx, node.as_str(), text),
            other => Ok(compare_with_text(other, text)),
        })
    }

    /// Position of a string.
    #[inline]
    fn find_string(&self, cx: &mut Store, node: &Rc<StringNode>) -> Result<Option<usize>> {
        let text = node.as_str();
        if let Some(Index::Hashed(slots)) = self.index()
            && text.len() <= SHORT_TEXT
        {
            let members = self.members();
            let is_same = |&row: &usize| matches!(&members[row], Value::Str(key) if Rc::ptr_eq(key, node) || key.as_str() == text);
            return Ok(slots.candidates(node.hash()).find(is_same));
        }
        self.find_node(cx, node)
    }

    /// [`SetNode::find_string`] among few members, in a sorted index, or for a long string.
    #[inline(never)]
    fn find_node(&self, cx: &mut Store, node: &Rc<StringNode>) -> Result<Option<usize>> {
        if self.index().is_none() {
            let is_node = |member: &Value| matches!(member, Value::Str(key) if Rc::ptr_eq(key, node));
            if let Some(row) = self.members().iter().position(is_node) {
                return Ok(Some(row));
            }
        }
        self.find_text(cx, node.as_str(), node.hash(), node.symbol())
    }

    /// Position of exactly this member: numbers by type, keywords and strings apart.
    ///
    /// # Errors
    /// Comparing collections and long texts pays fuel.
    #[inline]
    pub fn find(&self, cx: &mut Store, member: &Value) -> Result<Option<usize>> {
        match member {
            Value::Keyword(symbol) => Ok(self.find_keyword(cx, *symbol)),
            Value::Str(node) => self.find_string(cx, node),
            other => self.find_value(cx, other),
        }
    }

    #[inline(never)]
    fn find_value(&self, cx: &mut Store, member: &Value) -> Result<Option<usize>> {
        let members = self.members();
        let Some(index) = self.index() else {
            for (row, other) in members.iter().enumerate() {
                if same_key(cx, other, member)? {
                    return Ok(Some(row));
                }
            }
            return Ok(None);
        };
        let hash = hash_value(cx, member)?;
        index.find(
            cx,
            hash,
            |cx, row| same_key(cx, &members[row], member),
            |cx, row| compare_keys(cx, &members[row], member),
        )
    }

    /// Position of a key by the flexible rule: the exact key, then its counterpart of keyword and string, then the
    /// name with `-` replaced by `_`.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    #[inline]
    pub fn find_flexible(&self, cx: &mut Store, key: &Value) -> Result<Option<usize>> {
        match key {
            Value::Keyword(symbol) => Ok(self.find_named(cx, *symbol)),
            Value::Str(node) => {
                if let Some(symbol) = node.symbol() {
                    let position = cx.symbols.last_position(symbol);
                    if let Some(Value::Str(key)) = self.members.get(position)
                        && key.symbol() == Some(symbol)
                    {
                        return Ok(Some(position));
                    }
                }
                self.search_text(cx, node)
            }
            other => self.find(cx, other),
        }
    }

    #[inline(never)]
    fn search_text(&self, cx: &mut Store, node: &Rc<StringNode>) -> Result<Option<usize>> {
        let (text, symbol) = (node.as_str(), node.symbol());
        if let Some(row) = self.find_text(cx, text, node.hash(), symbol)? {
            if let Some(symbol) = symbol {
                cx.symbols.set_last_position(symbol, row);
            }
            return Ok(Some(row));
        }
        let keyword = symbol.or_else(|| cx.symbols.find(text));
        if let Some(row) = keyword.and_then(|symbol| self.find_keyword(cx, symbol)) {
            return Ok(Some(row));
        }
        if text.len() > SHORT_TEXT {
            // Searched, copied and hashed below.
            pay_bytes(cx, text.len())?;
            cx.reserve(text.len())?;
        }
        if !text.contains('-') {
            return Ok(None);
        }
        let text = text.replace('-', "_");
        let (hash, symbol) = (hash_text(&text), cx.symbols.find(&text));
        Ok(match self.find_text(cx, &text, hash, symbol)? {
            None => symbol.and_then(|symbol| self.find_keyword(cx, symbol)),
            found => found,
        })
    }

    /// [`SetNode::find_flexible`] for a keyword: tries first where the name was found last.
    #[inline]
    pub fn find_named(&self, cx: &Store, symbol: Symbol) -> Option<usize> {
        let position = cx.symbols.last_position(symbol);
        let found = match self.members.get(position) {
            Some(Value::Keyword(key)) => *key == symbol,
            // The exact key would take precedence.
            Some(Value::Str(node)) => !self.has_keyword && node.symbol() == Some(symbol),
            _ => false,
        };
        if found { Some(position) } else { self.search_named(cx, symbol) }
    }

    /// Position of the key that a write to `key` replaces: the exact key; else, for a keyword, the string key that a
    /// read finds. A keyword so changes rows of JSON, which have string keys, as it reads them.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    #[inline]
    pub fn find_written(&self, cx: &mut Store, key: &Value) -> Result<Option<usize>> {
        match key {
            Value::Keyword(symbol) if self.has_text => Ok(self.find_named(cx, *symbol).filter(|&row| {
                // Names with `-` and `_` are the same for a read; as keywords they stay two keys.
                !matches!(self.members.get(row), Some(Value::Keyword(other)) if other != symbol)
            })),
            other => self.find(cx, other),
        }
    }

    #[inline(never)]
    fn search_named(&self, cx: &Store, symbol: Symbol) -> Option<usize> {
        let (text, hash) = (cx.symbols.text(symbol), cx.symbols.hash(symbol));
        let exact = if self.has_keyword { self.find_keyword(cx, symbol) } else { None };
        let found = exact.or_else(|| self.find_short(text, hash, Some(symbol)));
        match found {
            Some(row) => cx.symbols.set_last_position(symbol, row),
            None => return self.find_underscored(cx, symbol),
        }
        found
    }

    #[inline(never)]
    fn find_underscored(&self, cx: &Store, symbol: Symbol) -> Option<usize> {
        let text = cx.symbols.text(symbol);
        if !text.contains('-') {
            return None;
        }
        let text = text.replace('-', "_");
        let symbol = cx.symbols.find(&text);
        symbol
            .and_then(|symbol| self.find_keyword(cx, symbol))
            .or_else(|| self.find_short(&text, hash_text(&text), symbol))
    }
}
