//! Builtins that sort a collection by its items or by a key of each item (`sort`, `sort-by`).

use crate::apply::is_direct;
use crate::builtins::functions::callbacks::{collection, key_function};
use crate::builtins::{Builtin, Category, callback};
use crate::bytecode::{CombinatorKind, Known};
use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::native::each::{Each, Kind};
use crate::native::sort::keys::SortKeys;
use crate::native::sort::{self, Sort};
use crate::native::{Native, Step};
use crate::value::Value;
use std::mem::take;

type Arguments<'a> = &'a mut [Value];

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    callback("sort", Category::Core, "1-2", "(sort comparator? coll)", "The items in order; :asc, :desc or a comparator.", sort),
    callback("sort-by", Category::Core, "2-3", "(sort-by key comparator? coll)", "The items in the order of their keys.", sort_by),
];

/// The order that the comparator argument selects.
enum Order {
    Ascending,
    Descending,
    /// A call of `compare`, which differs from the sort order only for nil.
    Compare(Value),
    By(Value),
}

fn order(cx: &mut Context, name: &str, comparator: Value) -> Result<Order> {
    match &comparator {
        Value::Keyword(symbol) if cx.text(*symbol) == "asc" => Ok(Order::Ascending),
        Value::Keyword(symbol) if cx.text(*symbol) == "desc" => Ok(Order::Descending),
        Value::Nil => Ok(Order::Ascending),
        Value::Closure(closure) => {
            if cx.arities(closure).any(|proto| proto.accepts(2)) {
                return Ok(Order::By(comparator));
            }
            Err(Fault::type_error(format_args!("{name}: the comparator must take 2 arguments"))
                .hint("Use (fn [a b] (compare a b)), > or <, or sort-by with a key function."))
        }
        value if value.is_function() => Ok(match value {
            // The standard comparators need no calls.
            Value::Builtin(builtin) if matches!(builtin.info().known, Some(Known::Less)) => Order::Ascending,
            Value::Builtin(builtin) if builtin.info().known == Some(Known::Greater) => Order::Descending,
            Value::Builtin(builtin) if builtin.info().known == Some(Known::Compare) => {
                Order::Compare(comparator)
            }
            _ => Order::By(comparator),
        }),
        other => {
            Err(other.mistyped(format_args!("{name}: the comparator must be a function, :asc or :desc")))
        }
    }
}

fn sort(cx: &mut Context, arguments: Arguments<'_>) -> Result<Step> {
    let last = arguments.len() - 1;
    let items = collection(cx, "sort", take(&mut arguments[last]))?;
    let order = if last == 1 { order(cx, "sort", take(&mut arguments[0]))? } else { Order::Ascending };
    let order = match order {
        Order::Compare(_) if !items.iter().any(|item| item.is_nil()) => Order::Ascending,
        Order::Compare(comparator) => Order::By(comparator),
        order => order,
    };
    match order {
        Order::By(comparator) => {
            Ok(Step::Enter(Native::Sort(Box::new(Sort::new(cx, comparator, items, None)?))))
        }
        natural => {
            cx.tick(items.len() as u64)?;
            let keys = items.copy_items(cx, 0)?;
            let descending = matches!(natural, Order::Descending);
            sort::by_keys(cx, &items, &keys, descending).map(Step::Return)
        }
    }
}

fn sort_by(cx: &mut Context, arguments: Arguments<'_>) -> Result<Step> {
    let last = arguments.len() - 1;
    if last == 2 && arguments[2].is_function() && matches!(arguments[1], Value::Vector(_)) {
        return Err(Fault::type_error(
            "sort-by expects (key, comparator, collection) but got (key, collection, comparator). \
             Try: (sort-by :a > collection)",
        ));
    }
    let items = collection(cx, "sort-by", take(&mut arguments[last]))?;
    let function = key_function(cx, "sort-by", take(&mut arguments[0]))?;
    let order = if last == 2 { order(cx, "sort-by", take(&mut arguments[1]))? } else { Order::Ascending };
    if let Value::Combinator(functions) = &function
        && functions.kind == CombinatorKind::Juxt
        && !functions.parts().is_empty()
        && is_direct(cx, &function)
        && matches!(order, Order::Ascending | Order::Descending)
    {
        let descending = matches!(order, Order::Descending);
        let machine = SortKeys::new(cx, functions.clone(), items, descending)?;
        return Ok(Step::Enter(Native::SortKeys(Box::new(machine))));
    }
    let (kind, comparator) = match order {
        Order::Ascending => (Kind::SortBy, Value::Nil),
        Order::Descending => (Kind::SortByDescending, Value::Nil),
        Order::Compare(comparator) | Order::By(comparator) => (Kind::SortBy, comparator),
    };
    let machine = Each::new(cx, kind, function, items)?.with_comparator(comparator);
    Ok(Step::Enter(Native::Each(machine)))
}
