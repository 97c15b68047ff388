//! Runs `tree-seq`, which lists the nodes of a tree, parents first, as a resumable state machine that calls the
//! program's functions for children.

use super::Action;
use crate::collection::seq::to_vector;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// The call that the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// The test whether the node may have children.
    Branch,
    /// Its children.
    Children,
}

/// The machine.
pub struct Tree {
    branch: Value,
    children: Value,
    /// The node of the running call.
    node: Value,
    waiting: Waiting,
    /// Remaining children, each list with the index of the next, from the root down.
    levels: List<(Rc<VectorNode>, usize)>,
    out: List<Value>,
}

impl Tree {
    /// `(tree-seq branch? children root)`.
    pub fn new(branch: Value, children: Value, root: Value) -> Tree {
        let (levels, out) = (List::default(), List::default());
        Tree { branch, children, node: root, waiting: Waiting::Branch, levels, out }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        cx.tick(1)?;
        match (returned, self.waiting) {
            (None, _) => {
                let root = take(&mut self.node);
                return self.visit(cx, root);
            }
            (Some(value), Waiting::Branch) => {
                if value.is_truthy() {
                    self.waiting = Waiting::Children;
                    return Ok(Action::Call1(self.children.clone(), take(&mut self.node)));
                }
            }
            (Some(value), Waiting::Children) => {
                let children = to_vector(cx, value, "tree-seq")?;
                self.levels.push(cx, (children, 0))?;
            }
        }
        while let Some((children, next)) = self.levels.last_mut() {
            if let Some(node) = children.get(*next) {
                *next += 1;
                return self.visit(cx, node);
            }
            cx.tick(1)?;
            self.levels.pop();
        }
        Ok(Action::Return(self.out.take_vector()))
    }

    fn visit(&mut self, cx: &mut Context, node: Value) -> Result<Action> {
        self.out.push(cx, node.clone())?;
        self.node = node.clone();
        self.waiting = Waiting::Branch;
        Ok(Action::Call1(self.branch.clone(), node))
    }
}
