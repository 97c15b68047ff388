//! Tests of the sharing between maps: only memory may show it.

use super::with_context;
use crate::context::Context;
use crate::json::decode;
use crate::value::Value;
use crate::value::map::MapNode;
use std::rc::Rc;

/// Rows of `{"id":…,"name":…}` with the same value.
fn rows(cx: &mut Context, count: usize) -> Vec<Rc<MapNode>> {
    let text = format!("[{}]", vec![r#"{"id":7,"name":"n"}"#; count].join(","));
    let Ok(Value::Vector(rows)) = decode(cx, text.as_bytes()) else { panic!("a vector") };
    let rows = rows.iter().map(|row| match row {
        Value::Map(map) => map,
        _ => panic!("a map"),
    });
    rows.collect()
}

fn share_keys(maps: &[Rc<MapNode>]) -> bool {
    maps.windows(2).all(|pair| Rc::ptr_eq(pair[0].key_set(), pair[1].key_set()))
}

#[test]
fn rows_of_json_share_their_keys() {
    with_context(|cx| assert!(share_keys(&rows(cx, 100))));
}

#[test]
fn rows_that_get_the_same_keys_added_share_them_again() {
    with_context(|cx| {
        let added = [cx.keyword("total"), cx.keyword("tax"), cx.keyword("net")];
        let widen = |row: Rc<MapNode>, cx: &mut Context| {
            added
                .iter()
                .fold(row, |row, key| MapNode::insert(row, cx, key.clone(), Value::Int(1)).expect("inserts"))
        };
        let wider: Vec<Rc<MapNode>> = rows(cx, 50).into_iter().map(|row| widen(row, cx)).collect();
        assert_eq!(wider[0].len(), 5);
        assert!(share_keys(&wider));
    });
}

#[test]
fn a_map_that_outgrows_its_neighbours_keeps_its_own_keys() {
    with_context(|cx| {
        let mut maps = rows(cx, 2);
        let [grown, other] = &mut maps[..] else { panic!("two maps") };
        for number in 0..100 {
            *grown =
                MapNode::insert(grown.clone(), cx, Value::Int(number), Value::Int(-number)).expect("inserts");
        }
        assert_eq!((grown.len(), other.len()), (102, 2));
        for number in 0..100 {
            let row = grown.find(cx, &Value::Int(number)).expect("finds").expect("is there");
            assert!(matches!(grown.value(row), Value::Int(value) if *value == -number));
        }
    });
}

#[test]
fn a_name_is_found_as_keyword_before_it_is_found_as_string() {
    with_context(|cx| {
        let text = rows(cx, 1).remove(0);
        let keyword = cx.keyword("id");
        let Value::Keyword(symbol) = keyword else { panic!("a keyword") };
        // The position of the string key is remembered …
        assert_eq!(text.find_named(cx, symbol), Some(0));
        let both = MapNode::insert(text.clone(), cx, keyword, Value::Nil).expect("inserts");
        // … and is not used for a map with the keyword.
        assert_eq!(both.find_named(cx, symbol), Some(2));
        assert_eq!(text.find_named(cx, symbol), Some(0));
    });
}

/// Fuel is the same whether the order of the keys is known from another map or from an earlier run.
#[test]
fn the_order_of_keys_costs_the_same_in_every_run() {
    with_context(|cx| {
        let maps = rows(cx, 3);
        let mut costs = Vec::new();
        for map in &maps {
            for _ in 0..2 {
                let before = cx.fuel.used();
                map.order(cx).expect("within limits");
                costs.push(cx.fuel.used() - before);
            }
        }
        let first = costs[0];
        assert!(first > 0);
        assert_eq!(costs, [first, 0, first, 0, first, 0]);
        cx.run = cx.run.next();
        let before = cx.fuel.used();
        maps[0].order(cx).expect("within limits");
        assert_eq!(cx.fuel.used() - before, first);
    });
}

/// Caches must not retain what the program has dropped.
#[test]
fn keys_that_are_not_names_are_not_remembered() {
    with_context(|cx| {
        let key = Value::string(&"long ".repeat(1_000));
        let Value::Str(node) = &key else { panic!("a string") };
        let node = Rc::downgrade(node);
        let map = MapNode::insert(MapNode::empty(), cx, key, Value::Nil).expect("inserts");
        let name = cx.keyword("name");
        let wider = MapNode::insert(map.clone(), cx, name, Value::Nil).expect("inserts");
        assert_eq!((map.len(), wider.len()), (1, 2));
        drop((map, wider));
        assert_eq!(node.strong_count(), 0);
    });
}
