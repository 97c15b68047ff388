//! Tests of string and regex builtins, with arguments written as JSON; `#"…"` in a string makes a regex.

use super::{call, with_context, with_limits};
use crate::context::Context;
use crate::fault::Reason;
use crate::json::decode;
use crate::print::pr_str;
use crate::value::Value;

fn shown(cx: &mut Context, namespace: &str, name: &str, arguments: Vec<Value>) -> String {
    match call(cx, Some(namespace), name, arguments) {
        Ok(value) => pr_str(cx, &value, usize::MAX).expect("prints").text,
        Err(fault) => format!("{}: {}", fault.reason.raw(), fault.message),
    }
}

fn check(cases: &'static [(&'static str, &'static str, &'static str, &'static str)]) {
    with_context(move |cx| {
        for (namespace, name, arguments, expected) in cases {
            let Ok(Value::Vector(items)) = decode(cx, arguments.as_bytes()) else { panic!("{arguments}") };
            let mut values = Vec::new();
            for item in items.iter() {
                values.push(match item.as_str().and_then(|text| text.strip_prefix('#')) {
                    Some(pattern) => Value::Regex(cx.compile_regex(pattern).expect("compiles")),
                    None => item,
                });
            }
            assert_eq!(shown(cx, namespace, name, values), *expected, "{name} {arguments}");
        }
    });
}

#[test]
fn format_fills_templates_in() {
    check(&[
        ("str", "format", r#"["%d items", 5]"#, r#""5 items""#),
        ("str", "format", r#"["%-8s|%6.2f|%03d", "ab", 3.14159, 7]"#, r#""ab      |  3.14|007""#),
        ("str", "format", r#"["%,d %,.1f", 1234567, 9876.54]"#, r#""1,234,567 9,876.5""#),
        ("str", "format", r#"["%+d % d %x %o %X", 3, 4, 255, 8, 255]"#, r#""+3  4 ff 10 FF""#),
        ("str", "format", r#"["%x", -1]"#, r#""ffffffffffffffff""#),
        ("str", "format", r#"["%2$s-%1$s", "a", "b"]"#, r#""b-a""#),
        ("str", "format", r#"["%e", 12345.678]"#, r#""1.234568e+04""#),
        ("str", "format", r#"["%b %B %n%%", null, 1]"#, r#""false TRUE \n%""#),
        ("str", "format", r#"["%s%s", null, [1, "x"]]"#, r#""null[1 \"x\"]""#),
        ("str", "format", r#"["%.2s|%5s", "żółć", "é"]"#, r#""żó|    é""#),
        ("str", "format", r#"["%d", 3.0]"#, r#""3""#),
        ("str", "format", r#"["%d", "x"]"#, "runtime_error: format: %d expects an integer, got string"),
        ("str", "format", r#"["%s %s", 1]"#, "runtime_error: not enough arguments for format string"),
        ("str", "format", r#"["%q", 1]"#, "runtime_error: unsupported format specifier in: %q"),
        ("str", "format", r#"["%", 1]"#, "runtime_error: unsupported format specifier in: %"),
        (
            "str",
            "format",
            r#"["%99999999999999999999d", 1]"#,
            "runtime_error: unsupported format specifier in: %99999999999999999999d",
        ),
        ("str", "format", r#"["%5000d", 1]"#, "runtime_error: unsupported format specifier in: %5000d"),
    ]);
}

#[test]
fn split_drops_empty_pieces_at_the_end() {
    check(&[
        ("str", "split", r##"["a,,b,,", "#,"]"##, r#"["a" "" "b"]"#),
        ("str", "split", r##"[",a", "#,"]"##, r#"["" "a"]"#),
        ("str", "split", r##"["a,,b", "#,", -1]"##, r#"["a" "" "b"]"#),
        ("str", "split", r##"["a,b,", "#,", -1]"##, r#"["a" "b" ""]"#),
        ("str", "split", r##"["a,b,c", "#,", 2]"##, r#"["a" "b,c"]"#),
        ("str", "split", r##"["abc", "#"]"##, r#"["a" "b" "c"]"#),
        ("str", "split", r##"["", "#,"]"##, r#"[""]"#),
        ("str", "split", r##"["a1b2", "#(?=\\d)"]"##, r#"["a" "1b" "2"]"#),
        ("str", "split", r#"["héé", ""]"#, r#"["h" "é" "é"]"#),
        ("str", "split-lines", r#"["a\r\nb\n\n"]"#, r#"["a" "b"]"#),
        (
            "str",
            "split",
            r#"["a..b", ".."]"#,
            "type_error: split: arg 2 expected a regex, one character or \"\", got a string of 2 characters",
        ),
    ]);
}

#[test]
fn replace_expands_groups() {
    check(&[
        ("str", "replace", r##"["2026-03-04", "#(\\d+)-(\\d+)-(\\d+)", "$3/$2/$1"]"##, r#""04/03/2026""#),
        ("str", "replace", r##"["ab", "#(?<x>a)", "<${x}>"]"##, r#""<a>b""#),
        ("str", "replace", r##"["a", "#a", "$ \\$1 \\\\"]"##, r#""$ $1 \\""#),
        ("str", "replace", r##"["a", "#a", "$1"]"##, "runtime_error: the regex has no group 1"),
        ("str", "replace", r##"["abc", "#", "-"]"##, r#""-a-b-c-""#),
        ("str", "replace", r#"["abc", "", "-"]"#, r#""-a-b-c-""#),
        ("str", "replace", r#"["aaa", "a", "b"]"#, r#""bbb""#),
        ("str", "replace-first", r#"["aaa", "a", "b"]"#, r#""baa""#),
        ("str", "replace", r#"["$", "$", "$1"]"#, r#""$1""#),
    ]);
}

#[test]
fn indexes_count_graphemes() {
    check(&[
        ("str", "subs", r#"["😀ab", 1, 2]"#, r#""a""#),
        ("str", "subs", r#"["abc", -1]"#, r#""""#),
        ("str", "subs", r#"["abc", 2, 1]"#, r#""""#),
        ("str", "subs", r#"["abc", 1, 99]"#, r#""bc""#),
        ("str", "index-of", r#"["héllo", "l"]"#, "2"),
        ("str", "index-of", r#"["hello", "l", 3]"#, "3"),
        ("str", "last-index-of", r#"["hello", "l", 2]"#, "2"),
        ("str", "last-index-of", r#"["héé", "é", 1]"#, "1"),
        ("str", "last-index-of", r#"["hello", ""]"#, "5"),
        ("str", "capitalize", r#"["éCOLE"]"#, r#""École""#),
        ("str", "reverse", r#"["a😀e\u0301"]"#, "\"e\u{301}😀a\""),
    ]);
}

#[test]
fn regex_matches_carry_their_groups() {
    check(&[
        ("regex", "re-find", r##"["#(a)?(b)", "b"]"##, r#"["b" nil "b"]"#),
        ("regex", "re-find", r##"["#\\d+", "a12"]"##, r#""12""#),
        ("regex", "re-matches", r##"["#a|ab", "ab"]"##, r#""ab""#),
        ("regex", "re-matches", r##"["#\\d+", "1a"]"##, "nil"),
        ("regex", "re-seq", r##"["#a*", "baac"]"##, r#"["" "aa" "" ""]"#),
        ("regex", "re-find", r#"["a", "b"]"#, "type_error: re-find: invalid argument types: string, string"),
        ("str", "extract", r#"["ID:(\\d+)", "ID:42"]"#, r#""42""#),
        ("str", "extract-int", r#"["x=(\\w+)", "x=abc", 1, 0]"#, "0"),
    ]);
}

#[test]
fn str_appends_in_place() {
    // Copying the text each time would take 450 MB of fuel.
    let used = with_limits(1_000_000, 1 << 20, |cx| {
        let mut text = Value::string("");
        for _ in 0..30_000 {
            text = call(cx, Some("str"), "str", vec![text, Value::string("x")]).expect("appends");
        }
        assert_eq!(text.as_str().map(str::len), Some(30_000));
        cx.fuel.used()
    });
    assert!(used < 100_000, "{used}");
}

#[test]
fn growing_texts_end_in_a_typed_fault() {
    let fault = with_limits(1_000_000_000, 1 << 20, |cx| {
        let mut text = Value::string("x");
        loop {
            match call(cx, Some("str"), "str", vec![text.clone(), text]) {
                Ok(longer) => text = longer,
                Err(fault) => break fault,
            }
        }
    });
    assert_eq!(fault.reason, Reason::MemoryExceeded);
}
