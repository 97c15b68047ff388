//! Builtins that call functions of the program: `map`, `filter`, `reduce`, `update`, `pmap` and others. A builtin
//! checks its arguments and starts a machine of [`crate::native`].

use crate::builtins::functions::endless::{bounded, stage_of};
use crate::builtins::functions::transducers::transducer;
use crate::builtins::{Builtin, Category, callback, direct};
use crate::bytecode::{Arity, CombinatorKind, Known};
use crate::collection::seq::to_vector;
use crate::context::{Context, Function};
use crate::fault::{Fault, Result};
use crate::memory::List;
use crate::native::each::{Each, Kind};
use crate::native::map_many::MapMany;
use crate::native::merge::Merge;
use crate::native::parallel::Parallel;
use crate::native::reduce::Reduce;
use crate::native::update::{update, update_in};
use crate::native::{Native, Step};
use crate::value::Value;
use crate::value::combinator::Combinator;
use crate::value::map::MapNode;
use crate::value::vector::VectorNode;
use std::mem::take;
use std::rc::Rc;

type Arguments<'a> = &'a mut [Value];

/// A row for the machine [`Each`] over one collection.
macro_rules! each {
    ($($name:literal $arity:literal $kind:ident $usage:literal $doc:literal;)+) => {
        &[$(callback($name, Category::Core, $arity, $usage, $doc, |cx, arguments| {
            each(cx, $name, Kind::$kind, const { Arity::parse($arity).accepts(1) }, arguments)
        }),)+]
    };
}

/// The rows of this module.
#[rustfmt::skip]
pub(crate) const TABLE: &[Builtin] = &[
    callback("map", Category::Core, "1+", "(map f coll …)", "The results of f for every item; several collections give f an item each.", |cx, a| map(cx, Known::Map, a)).known(Known::Map),
    callback("mapv", Category::Core, "2+", "(mapv f coll …)", "The results of f for every item.", |cx, a| map(cx, Known::Mapv, a)).known(Known::Mapv),
    callback("mapcat", Category::Core, "1+", "(mapcat f coll …)", "The results of f, which are collections, joined.", |cx, a| map(cx, Known::Mapcat, a)).known(Known::Mapcat),
    callback("reduce", Category::Core, "2-3", "(reduce f init? coll)", "Folds the items with f.", |cx, a| reduce(cx, "reduce", false, a)),
    callback("reductions", Category::Core, "2-3", "(reductions f init? coll)", "What reduce has after every item, first to last.", |cx, a| reduce(cx, "reductions", true, a)),
    callback("reduce-kv", Category::Core, "3", "(reduce-kv f init map)", "Folds keys and values with f.", reduce_kv),
    callback("update", Category::Core, "3+", "(update m key f arg …)", "m with the value at key changed by f.", update).known(Known::Update),
    callback("update-in", Category::Core, "3+", "(update-in m path f arg …)", "m with the value at path changed by f.", update_in),
    callback("merge-with", Category::Core, "1+", "(merge-with f map …)", "The maps merged, f joins values of one key.", merge_with),
    callback("update-vals", Category::Core, "2", "(update-vals m f)", "m with every value changed by f.", |cx, a| update_entries(cx, "update-vals", Kind::UpdateVals, a)),
    callback("update-keys", Category::Core, "2", "(update-keys m f)", "m with every key changed by f.", |cx, a| update_entries(cx, "update-keys", Kind::UpdateKeys, a)),
    callback("min-by", Category::Core, "2+", "(min-by f coll)", "The item with the smallest (f item).", |cx, a| extreme(cx, "min-by", Kind::MinBy, a)),
    callback("max-by", Category::Core, "2+", "(max-by f coll)", "The item with the largest (f item).", |cx, a| extreme(cx, "max-by", Kind::MaxBy, a)),
    callback("min-key", Category::Core, "2+", "(min-key f item …)", "The item with the smallest (f item).", |cx, a| extreme_of(cx, "min-key", Kind::MinKey, a)),
    callback("max-key", Category::Core, "2+", "(max-key f item …)", "The item with the largest (f item).", |cx, a| extreme_of(cx, "max-key", Kind::MaxKey, a)),
    callback("pmap", Category::Core, "2+", "(pmap f coll …)", "map, with the tool calls of all items at the same time.", pmap).form("(pmap f coll) or (pmap f c1 c2 ...)").known(Known::Pmap),
    callback("pcalls", Category::Core, "0+", "(pcalls f …)", "The results of functions without arguments, called at the same time.", pcalls),
    direct("%get-path", Category::Internal, "2", "(%get-path path x)", "What a path of keys finds.", get_path).known(Known::Path),
];

/// The rows of functions over one collection.
pub(crate) const EACH: &[Builtin] = each! {
    "filter" "1-2" Filter "(filter pred coll?)" "The items for which pred holds.";
    "filterv" "2" Filter "(filterv pred coll)" "The items for which pred holds.";
    "remove" "1-2" Remove "(remove pred coll?)" "The items for which pred does not hold.";
    "keep" "1-2" Keep "(keep f coll?)" "The results of f that are not nil.";
    "map-indexed" "1-2" MapIndexed "(map-indexed f coll?)" "The results of (f index item).";
    "keep-indexed" "1-2" KeepIndexed "(keep-indexed f coll?)" "The results of (f index item) that are not nil.";
    "some" "2" Some "(some pred coll)" "The first truthy (pred item), else nil.";
    "every?" "2" Every "(every? pred coll)" "Whether pred holds for all items.";
    "not-any?" "2" NotAny "(not-any? pred coll)" "Whether pred holds for no item.";
    "not-every?" "2" NotEvery "(not-every? pred coll)" "Whether pred fails for some item.";
    "take-while" "1-2" TakeWhile "(take-while pred coll?)" "The items before the first for which pred fails.";
    "drop-while" "1-2" DropWhile "(drop-while pred coll?)" "The items from the first for which pred fails on.";
    "split-with" "2" SplitWith "(split-with pred coll)" "take-while and drop-while as a pair.";
    "partition-by" "1-2" PartitionBy "(partition-by f coll?)" "Runs of items with equal (f item).";
    "group-by" "2" GroupBy "(group-by f coll)" "A map from (f item) to the items.";
    "distinct-by" "1-2" DistinctBy "(distinct-by f coll?)" "The first item for each (f item).";
    "sum-by" "2" SumBy "(sum-by f coll)" "The sum of (f item), nil left out.";
    "avg-by" "2" AvgBy "(avg-by f coll)" "The mean of (f item), nil left out; nil when there is none.";
    "run!" "2" Run "(run! f coll)" "Calls f for every item; nil.";
};

/// Checks that a value can be called as a callback.
pub(crate) fn callable(_cx: &mut Context, name: &str, function: Value) -> Result<Value> {
    match &function {
        Value::Vector(_) => Ok(function),
        value if is_callable(value) => Ok(function),
        other => Err(not_a_function(name, "keyfn", other)),
    }
}

/// Checks a function that gives each item a key. A string or a vector means access by that key or path: a path reads
/// like get-in, a string like get.
pub(crate) fn key_function(cx: &mut Context, name: &str, function: Value) -> Result<Value> {
    let path = match function {
        Value::Str(text) => List::from_array([Value::Str(text)]).into_vector(),
        Value::Vector(path) => path,
        function if is_callable(&function) => return Ok(function),
        other => return Err(not_a_function(name, "keyfn", &other)),
    };
    let parts = [Value::Builtin(Known::Path.id()), Value::Vector(path)];
    Ok(Value::Combinator(Combinator::new(cx, CombinatorKind::Partial, List::from_array(parts))?))
}

/// Checks a function that folds; a vector is not accepted.
fn folding(name: &str, function: Value) -> Result<Value> {
    if is_callable(&function) { Ok(function) } else { Err(not_a_function(name, "callable", &function)) }
}

/// Checks the function of [`Each`].
pub(crate) fn function_of(cx: &mut Context, name: &str, kind: Kind, function: Value) -> Result<Value> {
    match kind.takes_key() {
        true => key_function(cx, name, function),
        false => callable(cx, name, function),
    }
}

/// True for values that may stand in place of a callback, except paths.
pub(crate) fn is_callable(value: &Value) -> bool {
    value.is_function() || matches!(value, Value::Keyword(_) | Value::Set(_) | Value::Map(_))
}

fn not_a_function(name: &str, wanted: &str, got: &Value) -> Box<Fault> {
    got.mistyped(format_args!("{name}: arg 1 expected {wanted}"))
}

/// Checks the collection; a function in its place means swapped arguments.
pub(crate) fn collection(cx: &mut Context, name: &'static str, value: Value) -> Result<Rc<VectorNode>> {
    if value.is_function() {
        return Err(Fault::type_error(
            "expected a collection, got a function — collection operations like filter/map/reduce take the \
             collection last; arguments may be swapped",
        ));
    }
    to_vector(cx, value, name)
}

/// A function over one collection. One that has a transducer leaves an endless sequence endless.
pub(crate) fn each(
    cx: &mut Context,
    name: &'static str,
    kind: Kind,
    has_transducer: bool,
    arguments: Arguments<'_>,
) -> Result<Step> {
    if let ([function], Some(stage)) = (&mut *arguments, stage_of(kind)) {
        return transducer(cx, name, stage, Some(function)).map(Step::Return);
    }
    if arguments[1].endless().is_some() {
        return crate::builtins::functions::endless::each(cx, name, kind, has_transducer, arguments);
    }
    let items = collection(cx, name, take(&mut arguments[1]))?;
    let function = function_of(cx, name, kind, take(&mut arguments[0]))?;
    Ok(Step::Enter(Native::Each(Each::new(cx, kind, function, items)?)))
}

fn inputs(cx: &mut Context, name: &'static str, arguments: Arguments<'_>) -> Result<List<Rc<VectorNode>>> {
    let mut inputs = List::with_capacity(cx, arguments.len())?;
    for argument in arguments {
        let input = collection(cx, name, take(argument))?;
        inputs.push(cx, input)?;
    }
    Ok(inputs)
}

/// `map`, `mapv`, and `mapcat`, which joins the results.
fn map(cx: &mut Context, which: Known, arguments: Arguments<'_>) -> Result<Step> {
    let (name, joins) = (which.name(), which == Known::Mapcat);
    if arguments.len() <= 2 {
        let kind = if joins { Kind::Mapcat } else { Kind::Map };
        return each(cx, name, kind, which != Known::Mapv, arguments);
    }
    if let Some(step) = bounded(cx, which, arguments, 1)? {
        return Ok(step);
    }
    let function = callable(cx, name, take(&mut arguments[0]))?;
    let inputs = inputs(cx, name, &mut arguments[1..])?;
    Ok(Step::Enter(Native::MapMany(MapMany::new(function, inputs, joins))))
}

/// `reduce`, and `reductions`, which collects every intermediate accumulator.
fn reduce(cx: &mut Context, name: &'static str, keeps_trail: bool, arguments: Arguments<'_>) -> Result<Step> {
    let last = arguments.len() - 1;
    if !keeps_trail && arguments[last].endless().is_some() {
        let function = folding(name, take(&mut arguments[0]))?;
        let init = (last == 2).then(|| take(&mut arguments[1]));
        return crate::builtins::functions::endless::reduce(cx, function, init, take(&mut arguments[last]));
    }
    let items = collection(cx, name, take(&mut arguments[last]))?;
    let function = take(&mut arguments[0]);
    let function = if keeps_trail { callable(cx, name, function)? } else { folding(name, function)? };
    let (first, next) = match (last, items.get(0)) {
        (2, _) => (take(&mut arguments[1]), 0),
        (_, Some(first)) => (first, 1),
        _ if keeps_trail => {
            let only = Combinator::new(cx, CombinatorKind::Juxt, List::from_array([function]))?;
            return Ok(Step::TailCall(Value::Combinator(only), crate::builtins::Arguments::new()));
        }
        _ => return Ok(Step::TailCall(function, crate::builtins::Arguments::new())),
    };
    let machine = Reduce::new(cx, function, items, next, first, false);
    Ok(Step::Enter(Native::Reduce(if keeps_trail { machine.with_trail() } else { machine })))
}

fn reduce_kv(cx: &mut Context, arguments: Arguments<'_>) -> Result<Step> {
    let items = match take(&mut arguments[2]) {
        Value::Vector(vector) => indexed(cx, &vector)?,
        value @ (Value::Map(_) | Value::Nil) => to_vector(cx, value, "reduce-kv")?,
        other => return Err(other.mistyped("reduce-kv: arg 3 expected map")),
    };
    let function = folding("reduce-kv", take(&mut arguments[0]))?;
    let init = take(&mut arguments[1]);
    Ok(Step::Enter(Native::Reduce(Reduce::new(cx, function, items, 0, init, true))))
}

/// The items of a vector, each paired with its index.
fn indexed(cx: &mut Context, vector: &VectorNode) -> Result<Rc<VectorNode>> {
    const PAIR_BYTES: usize = crate::value::vector::VECTOR_BYTES + 2 * size_of::<Value>();
    cx.reserve(vector.len().saturating_mul(PAIR_BYTES + size_of::<Value>()))?;
    let pair = |(index, item)| Value::row([Value::Int(index as i64), item]);
    Ok(cx.collect(vector.iter().enumerate().map(pair))?.into_vector())
}

fn merge_with(cx: &mut Context, arguments: Arguments<'_>) -> Result<Step> {
    let function = take(&mut arguments[0]);
    if arguments.len() == 2 && !arguments[1].is_nil() {
        // A single collection is the result, whatever its type.
        return Ok(Step::Return(take(&mut arguments[1])));
    }
    let mut merged = None;
    let mut entries = List::default();
    for argument in &mut arguments[1..] {
        match take(argument) {
            Value::Nil => {}
            Value::Map(map) => {
                if merged.is_none() {
                    merged = Some(map);
                    continue;
                }
                let order = map.order(cx)?;
                let entry = |&row: &u32| map.entry(row as usize);
                let pairs =
                    order.iter().map(entry).flat_map(|entry| [entry.key.clone(), entry.value.clone()]);
                entries.extend(cx, pairs)?;
            }
            other => return Err(other.mistyped("merge-with: expected map")),
        }
    }
    Ok(match merged {
        None => Step::Return(Value::Map(MapNode::empty())),
        Some(map) if entries.is_empty() => Step::Return(Value::Map(map)),
        Some(map) => Step::Enter(Native::Merge(Merge::new(function, map, entries))),
    })
}

fn update_entries(
    cx: &mut Context,
    name: &'static str,
    kind: Kind,
    arguments: Arguments<'_>,
) -> Result<Step> {
    if arguments[0].is_function() {
        return Err(Fault::type_error(format_args!(
            "{name} expects (map, function) but got (function, {}). Use -> (thread-first) instead of ->> \
             (thread-last) with {name}",
            arguments[1].type_word()
        )));
    }
    let pairs = match take(&mut arguments[0]) {
        Value::Nil => return Ok(Step::Return(Value::Map(MapNode::empty()))),
        value @ Value::Map(_) => to_vector(cx, value, name)?,
        // A vector acts as a map from its indexes: values change in place, changed keys give a map.
        value @ Value::Vector(_) if kind == Kind::UpdateVals => {
            arguments.swap(0, 1);
            arguments[1] = value;
            return each(cx, name, Kind::Map, true, arguments);
        }
        Value::Vector(vector) => indexed(cx, &vector)?,
        other => return Err(other.mistyped(format_args!("{name}: arg 1 expected map"))),
    };
    let function = callable(cx, name, take(&mut arguments[1]))?;
    Ok(Step::Enter(Native::Each(Each::new(cx, kind, function, pairs)?)))
}

/// `(min-by f coll)`, or the items given one by one.
fn extreme(cx: &mut Context, name: &'static str, kind: Kind, arguments: Arguments<'_>) -> Result<Step> {
    if arguments.len() == 2 {
        return each(cx, name, kind, false, arguments);
    }
    extreme_of(cx, name, kind, arguments)
}

fn extreme_of(cx: &mut Context, name: &'static str, kind: Kind, arguments: Arguments<'_>) -> Result<Step> {
    if arguments.len() == 2 {
        // As in Clojure, a single item is the result without a call of the function.
        return Ok(Step::Return(take(&mut arguments[1])));
    }
    let function = function_of(cx, name, kind, take(&mut arguments[0]))?;
    let items = List::taken(cx, &mut arguments[1..])?.into_vector();
    Ok(Step::Enter(Native::Each(Each::new(cx, kind, function, items)?)))
}

fn pmap(cx: &mut Context, arguments: Arguments<'_>) -> Result<Step> {
    if matches!(arguments[0], Value::Keyword(_)) && matches!(arguments[1], Value::Map(_)) {
        return Err(Fault::type_error("pmap: keyword accessor requires a list of maps, got a single map"));
    }
    if let Some(step) = bounded(cx, Known::Pmap, arguments, 1)? {
        return Ok(step);
    }
    let function = callable(cx, "pmap", take(&mut arguments[0]))?;
    let inputs = inputs(cx, "pmap", &mut arguments[1..])?;
    Ok(Step::Enter(Native::Parallel(Parallel::new(Some(function), inputs))))
}

fn pcalls(cx: &mut Context, arguments: Arguments<'_>) -> Result<Step> {
    for argument in arguments.iter() {
        if let Value::Closure(closure) = argument {
            let proto = cx.function(closure).and_then(Function::compiled);
            if let Some(proto) = proto.filter(|proto| proto.next_arity.is_none() && !proto.accepts(0)) {
                return Err(Fault::type_error(format_args!(
                    "pcalls requires zero-arity thunks, got function with arity {}",
                    proto.shape.fixed
                )));
            }
        } else if !argument.is_function() {
            return Err(argument.mistyped("pcalls requires zero-arity thunks"));
        }
    }
    let functions = List::taken(cx, arguments)?.into_vector();
    Ok(Step::Enter(Native::Parallel(Parallel::new(None, List::from_array([functions])))))
}

/// Follows a path of keys, which a vector or a string as key function means.
fn get_path(cx: &mut Context, arguments: Arguments<'_>) -> Result<Value> {
    let Value::Vector(path) = take(&mut arguments[0]) else { return Ok(Value::Nil) };
    let mut here = take(&mut arguments[1]);
    if let Value::Int(index) = here {
        // An integer has no keys: here the vector is a function of its indexes.
        return Ok(usize::try_from(index).ok().and_then(|index| path.get(index)).unwrap_or_default());
    }
    for key in path.iter() {
        cx.tick(1)?;
        here = match (&here, &key) {
            (Value::Map(map), key) => map.get(cx, key)?.cloned().unwrap_or_default(),
            (Value::Vector(vector), Value::Int(index)) => {
                usize::try_from(*index).ok().and_then(|index| vector.get(index)).unwrap_or_default()
            }
            _ => Value::Nil,
        };
    }
    Ok(here)
}
