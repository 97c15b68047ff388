//! Tests that copies of a set that was large get no room of it.

use super::{SCAN, SetNode};
use crate::value::testing::with_store;
use crate::value::{Store, Value};
use std::rc::Rc;

/// A set of the first integers.
fn counted(cx: &mut Store, count: i64) -> Rc<SetNode> {
    (0..count).fold(SetNode::empty(), |set, member| {
        SetNode::insert(set, cx, Value::Int(member)).expect("within limits")
    })
}

fn room(set: &SetNode) -> usize {
    set.extra.get().and_then(|extra| Some(extra.index.as_ref()?.room())).unwrap_or(0)
}

#[test]
fn the_index_shrinks_with_the_set() {
    with_store(|cx| {
        let mut set = counted(cx, 20_000);
        for member in (0..20_000).rev() {
            set = SetNode::remove(set, cx, &Value::Int(member)).expect("within limits");
            assert!(room(&set) <= 4 * set.len().max(SCAN), "{} for {}", room(&set), set.len());
            assert!(room(&set.copy(cx, 1).expect("within limits")) <= room(&set));
            let last = member.checked_sub(1).filter(|&last| last >= 0);
            if let Some(last) = last {
                assert_eq!(set.find(cx, &Value::Int(last)).expect("within limits"), Some(last as usize));
            }
        }
        assert_eq!((set.len(), room(&set)), (0, 0));
        // It grows again like any other.
        for member in 0..100 {
            set = SetNode::insert(set, cx, Value::Int(member)).expect("within limits");
        }
        assert!((0..100).all(|member| set.find(cx, &Value::Int(member)).expect("within limits").is_some()));
    });
}
