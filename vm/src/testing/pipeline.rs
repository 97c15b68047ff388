//! Tests that the remains of a pipeline are freed in steps.

use super::with_context;
use crate::bytecode::{CombinatorKind, StageKind};
use crate::native::pipeline::stage::Stage;
use crate::value::Value;
use crate::value::combinator::Combinator;
use crate::value::garbage::drain;

#[test]
fn the_stages_of_a_long_pipeline_are_freed_in_steps() {
    const MANY: usize = 100_000;
    with_context(|cx| {
        let stage = Combinator::from_parts(CombinatorKind::Transducer(StageKind::Map), [Value::Nil]);
        let parts = cx.collect((0..MANY).map(|_| Value::Combinator(stage.clone()))).expect("room");
        let all = Combinator::new(cx, CombinatorKind::Comp, parts).expect("no limits");
        let stages = Stage::from_transducer(cx, &Value::Combinator(all)).expect("no limits").expect("stages");
        assert_eq!(stages.len(), MANY);
        drop(stages);
        let steps = std::iter::from_fn(|| drain(4_096).then_some(())).count();
        assert!(steps > MANY / 4_096 / 2, "{steps} steps");
    });
}
