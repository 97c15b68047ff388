//! Runs `walk`, `prewalk` and `postwalk`, as a resumable state machine that takes a collection apart, passes its items
//! through a function, and rebuilds it from the results. The new collection is of the same type.

use super::Action;
use crate::collection::adding::add_entries;
use crate::collection::seq::{check_memory, to_vector};
use crate::context::Context;
use crate::fault::Result;
use crate::memory::{List, items};
use crate::value::Value;
use crate::value::build::Arguments;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

/// How far down, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// One level: `inner` on the items, `outer` on the rebuilt collection.
    Once,
    /// A collection before its items.
    Pre,
    /// A collection after its items.
    Post,
}

/// A collection that is being rebuilt.
struct Level {
    /// Remaining items; those of a map are `[key value]` pairs.
    input: Rc<VectorNode>,
    next: usize,
    output: Output,
}

items!(in_steps: Level);

/// The rebuilt part of a collection.
enum Output {
    Vector(List<Value>),
    Map(Rc<MapNode>),
    Set(Rc<SetNode>),
}

/// The machine.
pub struct Walk {
    direction: Direction,
    /// Called for every item, and with `Pre` and `Post` for every collection.
    inner: Value,
    /// Called last; not used by `Pre` and `Post`.
    outer: Value,
    form: Value,
    /// From the outermost collection to the innermost.
    levels: List<Level>,
}

impl Walk {
    /// `(walk inner outer form)`.
    pub fn once(inner: Value, outer: Value, form: Value) -> Walk {
        Walk { direction: Direction::Once, inner, outer, form, levels: List::default() }
    }

    /// `(prewalk f form)` or `(postwalk f form)`.
    pub fn deep(direction: Direction, function: Value, form: Value) -> Walk {
        Walk { direction, inner: function, outer: Value::Nil, form, levels: List::default() }
    }

    fn name(&self) -> &'static str {
        match self.direction {
            Direction::Once => "walk",
            Direction::Pre => "prewalk",
            Direction::Post => "postwalk",
        }
    }

    pub(super) fn resume(&mut self, cx: &mut Context, returned: Option<Value>) -> Result<Action> {
        cx.tick(1)?;
        match (returned, self.direction) {
            (Some(value), Direction::Pre) if is_collection(&value) => self.open(cx, value)?,
            (Some(value), _) => {
                if let Some(whole) = self.accept(cx, value)? {
                    return Ok(Action::Return(whole));
                }
            }
            (None, Direction::Pre) => {
                let form = take(&mut self.form);
                return Ok(self.call(form));
            }
            (None, direction) => {
                let form = take(&mut self.form);
                if !is_collection(&form) {
                    return Ok(match direction {
                        Direction::Once => self.end(form),
                        _ => self.call(form),
                    });
                }
                self.open(cx, form)?;
            }
        }
        self.step(cx)
    }

    /// Continues until there is a call to make or nothing is left.
    fn step(&mut self, cx: &mut Context) -> Result<Action> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(Action::Return(Value::Nil)) };
            if let Some(item) = level.input.get(level.next) {
                level.next += 1;
                if self.direction == Direction::Post && is_collection(&item) {
                    cx.tick(1)?;
                    self.open(cx, item)?;
                    continue;
                }
                return Ok(self.call(item));
            }
            let Some(done) = self.levels.pop() else { return Ok(Action::Return(Value::Nil)) };
            let whole = done.output.finish();
            match self.direction {
                Direction::Once => return Ok(self.end(whole)),
                Direction::Post => return Ok(self.call(whole)),
                Direction::Pre => {
                    cx.tick(1)?;
                    if let Some(whole) = self.accept(cx, whole)? {
                        return Ok(Action::Return(whole));
                    }
                }
            }
        }
    }

    fn call(&self, item: Value) -> Action {
        Action::Call1(self.inner.clone(), item)
    }

    /// The last call of `walk`.
    fn end(&mut self, whole: Value) -> Action {
        Action::TailCall(take(&mut self.outer), Arguments::from_array([whole]))
    }

    /// Starts on the items of a collection.
    fn open(&mut self, cx: &mut Context, form: Value) -> Result<()> {
        check_memory(cx)?;
        let output = match &form {
            Value::Map(_) => Output::Map(MapNode::empty()),
            Value::Set(_) => Output::Set(SetNode::empty()),
            _ => Output::Vector(List::default()),
        };
        let input = to_vector(cx, form, self.name())?;
        self.levels.push(cx, Level { input, next: 0, output })
    }

    /// Adds a finished value to its collection; gives it back if it is the whole form.
    fn accept(&mut self, cx: &mut Context, value: Value) -> Result<Option<Value>> {
        let name = self.name();
        let Some(level) = self.levels.last_mut() else { return Ok(Some(value)) };
        match &mut level.output {
            Output::Vector(items) => items.push(cx, value)?,
            // Moved out and back in, so that the map is unshared and changes in place.
            Output::Map(map) => {
                let whole = std::mem::replace(map, MapNode::empty());
                *map = add_entries(cx, whole, value, name)?;
            }
            Output::Set(set) => {
                let whole = std::mem::replace(set, SetNode::empty());
                *set = SetNode::insert(whole, cx, value)?;
            }
        }
        Ok(None)
    }
}

impl Output {
    fn finish(self) -> Value {
        match self {
            Output::Vector(items) => items.into_value(),
            Output::Map(map) => Value::Map(map),
            Output::Set(set) => Value::Set(set),
        }
    }
}

/// Strings are walked as a whole.
fn is_collection(value: &Value) -> bool {
    matches!(value, Value::Vector(_) | Value::Map(_) | Value::Set(_))
}
