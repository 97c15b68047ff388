//! The results of memoized functions.

use super::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::map::MapNode;
use std::mem::take;
use std::rc::Rc;

/// The tables of an isolate: from the vector of arguments to the result.
#[derive(Default)]
pub struct Memos(pub(crate) List<Rc<MapNode>>);

impl Memos {
    /// True when nothing was memoized.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A new table, and its number.
    ///
    /// # Errors
    /// Memory.
    pub fn add(cx: &mut Context) -> Result<i64> {
        let mut tables = take(&mut cx.memos.0);
        let added = tables.push(cx, MapNode::empty());
        cx.memos.0 = tables;
        added?;
        Ok(i64::try_from(cx.memos.0.len()).unwrap_or(i64::MAX) - 1)
    }
}
