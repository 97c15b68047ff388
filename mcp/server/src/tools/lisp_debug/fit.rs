//! Cuts answers of `lisp_debug` to the limit of a message, which contains each answer twice: as data and as
//! text.

use serde_json::{Map, Value, json};

pub(super) type Answer = Map<String, Value>;

/// Bytes of a message around the answer, without the JSON-RPC frame.
const AROUND: usize = br#"{"content":[{"type":"text","text":}],"structuredContent":,"isError":false}"#.len();

/// Parts of `stats` that are removed, in this order, when it is too large.
const REMOVABLE: [&[&str]; 6] = [
    &["payload_reduction", "top_reducers"],
    &["payload_reduction"],
    &["upstream_calls", "by_server"],
    &["by_tool", "*", "duration_ms"],
    &["by_tool"],
    &["upstream_calls"],
];

/// Whether a message with this answer fits into `room` bytes.
pub(super) fn fits(answer: &Answer, room: usize) -> bool {
    let text = Value::from(answer.clone()).to_string();
    // Serializing a string cannot fail.
    let quoted = serde_json::to_string(&text).unwrap_or_default();
    text.len() + quoted.len() + AROUND <= room
}

/// Removes parts until the answer fits.
pub(super) fn stats(mut answer: Answer, room: usize) -> Answer {
    for part in REMOVABLE {
        if fits(&answer, room) {
            break;
        }
        if remove(&mut answer, part) {
            answer.insert("truncated".into(), true.into());
        }
    }
    answer
}

fn remove(map: &mut Map<String, Value>, path: &[&str]) -> bool {
    match path {
        [] => false,
        [last] => map.remove(*last).is_some(),
        ["*", rest @ ..] => {
            let inner = map.values_mut().filter_map(Value::as_object_mut);
            inner.fold(false, |any, inner| remove(inner, rest) | any)
        }
        [first, rest @ ..] => {
            map.get_mut(*first).and_then(Value::as_object_mut).is_some_and(|inner| remove(inner, rest))
        }
    }
}

/// Adds as many calls as fit, the newest first.
pub(super) fn recent(answer: Answer, calls: Vec<Value>, room: usize) -> Answer {
    let with = |count: usize| {
        let mut answer = answer.clone();
        answer.insert("count".into(), count.into());
        answer.insert("calls".into(), json!(calls[..count]));
        if count < calls.len() {
            answer.insert("truncated".into(), true.into());
        }
        answer
    };
    let all = with(calls.len());
    if fits(&all, room) {
        return all;
    }
    // Binary search for the largest number that fits. An answer without calls is returned even if it does not
    // fit.
    let (mut fitting, mut too_many) = (0, calls.len());
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        match fits(&with(middle), room) {
            true => fitting = middle,
            false => too_many = middle,
        }
    }
    with(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Answer {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn the_oldest_calls_go_first() {
        let calls: Vec<Value> = (0..50).map(|n| json!({ "n": n, "text": "\"x\"".repeat(20) })).collect();
        let answer = object(json!({ "op": "recent" }));
        for room in [0, 500, 2_000, 5_000, 100_000] {
            let shown = recent(answer.clone(), calls.clone(), room);
            let count = shown["calls"].as_array().map_or(0, Vec::len);
            assert_eq!(shown["count"], count);
            assert_eq!(shown["calls"], json!(calls[..count]));
            assert_eq!(shown.contains_key("truncated"), count < 50);
            assert!(count == 0 || fits(&shown, room), "{room}");
            if count < 50 {
                let mut one_more = shown.clone();
                one_more.insert("count".into(), (count + 1).into());
                one_more.insert("calls".into(), json!(calls[..=count]));
                assert!(!fits(&one_more, room), "{room}: {count} could be more");
            }
        }
    }

    #[test]
    fn parts_of_stats_go_in_their_order() {
        let full = object(json!({
            "op": "stats",
            "by_tool": { "t": { "calls": 1, "duration_ms": { "p50": "x".repeat(100) } } },
            "upstream_calls": { "total": 1, "by_server": { "s": "x".repeat(100) } },
            "payload_reduction": { "schema_version": "x".repeat(100), "top_reducers": ["x".repeat(100)] },
        }));
        let has = |answer: &Answer| {
            let value = Value::from(answer.clone());
            REMOVABLE.map(|path| {
                let pointer: String =
                    path.iter().map(|part| format!("/{}", part.replace('*', "t"))).collect();
                value.pointer(&pointer).is_some()
            })
        };
        let mut seen = Vec::new();
        for room in (0..3_000).rev() {
            let shown = has(&stats(full.clone(), room));
            if seen.last() != Some(&shown) {
                seen.push(shown);
            }
        }
        let gone: Vec<usize> = seen.iter().map(|has| has.iter().filter(|has| !**has).count()).collect();
        assert_eq!(gone, [0, 1, 2, 3, 4, 5, 6]);
        assert!(seen.iter().all(|has| has.is_sorted()), "{seen:?}");
        assert_eq!(Value::from(stats(full, 0)), json!({ "op": "stats", "truncated": true }));
    }
}
