//! Enumerates the kinds of combinators, values that builtins make of functions and other values: combined functions
//! (`comp`, `partial`), endless sequences (`repeat`, `iterate`) and transducers (`map`, `take`).

/// What a combinator is: a function, a sequence without an end, or a transducer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CombinatorKind {
    /// `(comp f g …)`: right to left; none is identity.
    Comp,
    /// `(partial f a …)`.
    Partial,
    /// `(juxt f g …)`.
    Juxt,
    /// `(complement f)`.
    Complement,
    /// `(constantly v)`.
    Constantly,
    /// `(every-pred p …)`.
    EveryPred,
    /// `(some-fn p …)`.
    SomeFn,
    /// `(fnil f default …)`.
    Fnil,
    /// `(reduced x)`: ends a `reduce`. It is not a function.
    Reduced,
    /// A sequence without an end. It is not a function.
    Endless(Endless),
    /// `(map f)`, `(take n)` …: what is done to each item. Called with a reducing function it gives another one.
    Transducer(StageKind),
    /// A transducer that passes its items on to a reducing function: transducer, function.
    Reducer,
    /// `(completing f finish)`: f, finish.
    Completing,
    /// `(memoize f)`: f, the number of its table in the isolate.
    Memoize,
}

/// The sequences without an end: a closed set, so that pulling items is data for a machine. The parts of a combinator
/// of this kind are named in the order in which they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endless {
    /// `(repeat x)`: x.
    Repeat,
    /// `(cycle coll)`: a vector that is not empty.
    Cycle,
    /// `(iterate f x)`: f, x.
    Iterate,
    /// `(repeatedly f)`: f.
    Repeatedly,
    /// `(concat vector sequence)`: a vector, and the endless sequence after it.
    Concat,
    /// An endless sequence behind a transducer: the sequence, the transducer.
    Through,
}

/// What a pipeline stage does to items. A transducer has one part at most: the function, separator, replacements or
/// count that its text names first; `partition` has the size and the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StageKind {
    /// `(map f)`.
    Map,
    /// `(map-indexed f)`.
    MapIndexed,
    /// `(mapcat f)`.
    Mapcat,
    /// `cat`: the items of the items.
    Cat,
    /// `(filter pred)`.
    Filter,
    /// `(remove pred)`.
    Remove,
    /// `(keep f)`.
    Keep,
    /// `(keep-indexed f)`.
    KeepIndexed,
    /// `(take n)`.
    Take,
    /// `(drop n)`.
    Drop,
    /// `(take-while pred)`.
    TakeWhile,
    /// `(drop-while pred)`.
    DropWhile,
    /// `(take-nth n)`.
    TakeNth,
    /// `(distinct)`.
    Distinct,
    /// `(distinct-by f)`.
    DistinctBy,
    /// `(dedupe)`.
    Dedupe,
    /// Parts of n items, starting `step` apart; an incomplete last part is dropped. Only for endless sequences.
    Partition,
    /// `(partition-all n)`, for endless sequences with a step.
    PartitionAll,
    /// `(partition-by f)`.
    PartitionBy,
    /// `(interpose separator)`.
    Interpose,
    /// `(replace replacements)`.
    Replace,
}

impl StageKind {
    /// Its result for an item depends only on that item.
    pub fn is_stateless(self) -> bool {
        use StageKind::{Cat, Filter, Keep, Map, Mapcat, Remove, Replace, TakeWhile};
        matches!(self, Map | Mapcat | Cat | Filter | Remove | Keep | Replace | TakeWhile)
    }

    /// It can end the pipeline.
    pub fn is_bounding(self) -> bool {
        matches!(self, StageKind::Take | StageKind::TakeWhile)
    }
}

impl CombinatorKind {
    /// Its name: that of the builtin that makes it, if there is one.
    pub fn name(self) -> &'static str {
        match self {
            CombinatorKind::Comp => "comp",
            CombinatorKind::Partial => "partial",
            CombinatorKind::Juxt => "juxt",
            CombinatorKind::Complement => "complement",
            CombinatorKind::Constantly => "constantly",
            CombinatorKind::EveryPred => "every-pred",
            CombinatorKind::SomeFn => "some-fn",
            CombinatorKind::Fnil => "fnil",
            CombinatorKind::Reduced => "reduced",
            CombinatorKind::Endless(_) => "endless",
            CombinatorKind::Transducer(_) => "transducer",
            CombinatorKind::Reducer => "reducer",
            CombinatorKind::Completing => "completing",
            CombinatorKind::Memoize => "memoize",
        }
    }
}
