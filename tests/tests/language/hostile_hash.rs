//! Programs with colliding keys, in everything that has keys: collisions either cost fuel or are nearly free. Each
//! attack ends within the time limit, and its fuel shows how much work it did.

use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_tests::collisions;
use ptc_vm::{Budget, Exit, Isolate, Reason};
use std::fmt::Write;
use std::time::Duration;

/// The limits: 10 MiB, 200 ms and some overrun. Unoptimised code gets more.
const MEMORY: u64 = 10 << 20;
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 250 });

/// Fuel for each key: more than any of these programs needs for keys that do not collide, times the logarithm of
/// their number.
const FUEL: u64 = 400;

/// Processor time of this thread, independent of other load.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("nanoseconds"))
}

/// The result of a program.
struct Ran {
    result: Result<String, Reason>,
    fuel: u64,
    time: Duration,
}

fn run(source: &str, context: &str) -> Ran {
    let compiled = compile(source, &Externals::default(), &CompileOptions::default());
    let program = compiled.unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program;
    let mut isolate = Isolate::new(Budget { memory_bytes: MEMORY, ..Budget::default() });
    isolate.set_context(context).expect("the context fits");
    let begin = processor_time();
    let unit = isolate.load(program).expect("loads");
    isolate.start(unit);
    let result = loop {
        match isolate.run(100_000) {
            Exit::SliceEnd => {}
            Exit::Done => {
                let text = isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 1_000));
                break text.map(|printed| printed.text).map_err(|fault| fault.reason);
            }
            Exit::Fault(fault) => break Err(fault.reason),
            other => panic!("{other:?}"),
        }
    };
    let time = processor_time() - begin;
    let fuel = isolate.fuel_used();
    assert_eq!(isolate.close(), 0, "bytes left behind by {source}");
    Ran { result, fuel, time }
}

/// Programs over `ks`, a sequence of `n` distinct keys.
const PROGRAMS: &[&str] = &[
    "(count (frequencies ks))",
    "(count (group-by identity ks))",
    "(count (set ks))",
    "(count (into #{} ks))",
    "(count (into {} (map (fn [k] [k 1]) ks)))",
    "(count (distinct ks))",
    "(count (zipmap ks ks))",
    "(count (reduce (fn [m k] (assoc m k 1)) {} ks))",
    "(count (reduce (fn [m k] (update m k (fnil inc 0))) {} ks))",
    "(count (map (memoize (fn [k] 1)) ks))",
    "(count (filter (set ks) ks))",
    "(let [m (zipmap ks ks)] (count (map m ks)))",
    "(let [m (zipmap ks ks)] (count (filter (fn [k] (contains? m k)) ks)))",
    "(let [m (zipmap ks ks)] (count (reduce dissoc m ks)) (count ks))",
    "(let [s (set ks)] (if (= s (set (reverse ks))) (count s) 0))",
    "(count (union (set ks) (set (take 100 ks))))",
    "(do (difference (set ks) (set (drop 100 ks))) (count ks))",
    "(count (sort ks))",
    "(count (keys (group-by identity ks)))",
    "(count (sequence (distinct) ks))",
];

/// Runs every program on these keys. `keys` is the expression for `ks`; it may read the context `data`.
fn attack(name: &str, count: usize, keys: &str, data: &str) {
    let context = format!("{{\"data\":[{data}]}}");
    let levels = u64::from(usize::BITS - count.leading_zeros());
    let mut wrong = Vec::new();
    let mut answered = 0;
    for program in PROGRAMS {
        let ran = run(&format!("(let [ks {keys}] {program})"), &context);
        match &ran.result {
            Ok(text) if *text == count.to_string() => answered += 1,
            // Sorting collections, and pairs of so much data, may exceed the memory limit.
            Err(Reason::MemoryExceeded) => {}
            other => wrong.push(format!("{program}: {other:?}")),
        }
        if ran.time > TIME || ran.fuel > FUEL * levels * count as u64 {
            wrong.push(format!("{program}: {:?}, {} units", ran.time, ran.fuel));
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert!(answered * 2 > PROGRAMS.len(), "{name}: only {answered} programs have an answer");
}

fn integers(count: usize) -> String {
    (0..count as u32).fold(String::new(), |mut text, nth| {
        let comma = if nth == 0 { "" } else { "," };
        write!(text, "{comma}{}", collisions::integer(nth)).expect("a string");
        text
    })
}

fn quoted(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(",")
}

#[test]
fn integers_of_one_hash() {
    attack("30,000 integers", 30_000, "data/data", &integers(30_000));
    attack("60,000 integers", 60_000, "data/data", &integers(60_000));
}

#[test]
fn floats_of_one_hash() {
    let floats: Vec<String> =
        (0..31_000).filter_map(collisions::float).map(|float| format!("{float:e}")).collect();
    attack("floats", 30_000, "data/data", &floats[..30_000].join(","));
}

#[test]
fn vectors_of_one_hash() {
    attack("pairs", 20_000, "(map (fn [n] [n 1]) data/data)", &integers(20_000));
    attack("vectors that begin alike", 20_000, "(map (fn [n] [0 0 0 0 0 0 0 0 n]) (range 20000))", "1");
}

#[test]
fn collections_of_one_hash() {
    let row = "{:a 1 :b 2 :c 3 :d 4 :e 5 :f 6 :g 7 :h 8 :id n}";
    attack("wide maps", 5_000, &format!("(map (fn [n] {row}) (range 5000))"), "1");
    attack("maps", 10_000, "(map (fn [n] {:id n}) data/data)", &integers(10_000));
    attack("sets", 5_000, "(map (fn [n] #{n 0 1}) data/data)", &integers(5_000));
}

#[test]
fn texts_of_one_hash() {
    let texts = quoted((0..5_000).map(collisions::long_text));
    attack("long texts", 5_000, "data/data", &texts);
}

/// Hashes differ, but all texts probe the same slots.
#[test]
fn texts_in_the_same_places() {
    let texts = quoted(collisions::texts(30_000, 10));
    attack("texts", 30_000, "data/data", &texts);
}

#[test]
fn keywords_in_the_same_places() {
    let names = quoted(collisions::texts(4_000, 10));
    attack("keywords", 4_000, "(map keyword data/data)", &names);
}

#[test]
fn functions_are_different_keys() {
    attack("closures", 5_000, "(map (fn [n] (fn [] n)) data/data)", &integers(5_000));
    attack("partials", 5_000, "(map (fn [n] (partial + n)) data/data)", &integers(5_000));
}

/// Names of the program, which are interned before it runs.
#[test]
fn names_in_the_same_places() {
    let names: Vec<String> = collisions::texts(9_000, 10).iter().map(|name| format!(":{name}")).collect();
    let ran = run(&format!("(count #{{{}}})", names.join(" ")), "{}");
    assert_eq!(ran.result, Ok("9000".to_owned()));
    assert!(ran.time < TIME, "{:?}", ran.time);
}

/// JSON objects: decoded as context, and by the program.
#[test]
fn objects_of_json() {
    let texts = collisions::texts(30_000, 10);
    let object = |texts: &[String]| {
        let entries: Vec<String> = texts.iter().map(|text| format!("{text:?}:1")).collect();
        format!("{{{}}}", entries.join(","))
    };
    let begin = processor_time();
    let ran = run("(count data/object)", &format!("{{\"object\":{}}}", object(&texts)));
    assert_eq!(ran.result, Ok("30000".to_owned()));
    assert!(processor_time() - begin < 2 * TIME);
    let text = format!("{:?}", object(&texts[..10_000]));
    let ran = run("(count (json/parse-string data/text))", &format!("{{\"text\":{text}}}"));
    assert_eq!(ran.result, Ok("10000".to_owned()));
    assert!(ran.time < TIME, "{:?}", ran.time);
    let ran = run(
        "(count (json/generate-string (zipmap data/data data/data)))",
        &format!("{{\"data\":[{}]}}", quoted(texts)),
    );
    assert!(ran.result.is_ok() && ran.time < TIME, "{:?} {:?}", ran.result, ran.time);
}

/// Keys with many paths and few nodes.
#[test]
fn shared_structure_as_keys() {
    let wide = "(defn wide [n] (reduce (fn [a _] [a a]) n (range 20)))";
    for use_of in ["(count (set keys))", "(count (frequencies keys))", "(count (zipmap keys keys))"] {
        let ran = run(&format!("{wide} (let [keys (map wide (range 500))] {use_of})"), "{}");
        // They collide, and differ at the end of 2^20 paths or at the first.
        assert!(ran.result.is_ok() || ran.result == Err(Reason::FuelExceeded), "{:?}", ran.result);
        assert!(ran.time < TIME * 4 || ran.fuel > 1_000_000, "{use_of}: {:?} {}", ran.time, ran.fuel);
    }
}

/// Work on long leaves costs fuel by the byte: each program repeats an operation that takes long, which must cost
/// fuel in proportion.
#[test]
fn long_leaves_are_paid_by_the_byte() {
    /// Bytes of a leaf.
    const BYTES: u64 = 1_000_000;
    let text = format!("\"{}\"", "ab-".repeat(BYTES as usize / 3));
    let context = format!("{{\"a\":{text},\"b\":{text},\"map\":{{\"x\":1}}}}");
    // A number of that many bytes, twice.
    let number = "(defn big [] (reduce (fn [n _] (* n n)) 3 (range 16)))";
    for (program, bytes) in [
        ("(let [a data/a b data/b] (dotimes [_ 10] (= a b)))", BYTES),
        ("(let [a data/a b data/b] (dotimes [_ 10] (compare a b)))", BYTES),
        ("(let [a [data/a] b [data/b]] (dotimes [_ 10] (= a b)))", BYTES),
        ("(let [a data/a b data/b] (dotimes [_ 10] (sort [a b])))", BYTES),
        ("(let [a data/a b data/b] (dotimes [_ 10] (sort-by (juxt identity count) [a b])))", BYTES),
        ("(let [a data/a b data/b] (dotimes [_ 10] (max-key count a b) (distinct [a b])))", BYTES),
        ("(let [a data/a m {data/b 1}] (dotimes [_ 10] (m a)))", BYTES),
        ("(let [a data/a m data/map] (dotimes [_ 10] (m a)))", BYTES),
        ("(let [a data/a m data/map] (dotimes [_ 10] (get m a)))", BYTES),
        ("(let [a (big) b (big)] (dotimes [_ 10] (= a b)))", 12_000),
        ("(let [a (big) b (big)] (dotimes [_ 10] (< a b)))", 12_000),
        ("(let [a (big) b (big)] (dotimes [_ 10] (compare a b)))", 12_000),
        ("(let [a (big) m {(big) 1}] (dotimes [_ 10] (m a)))", 12_000),
    ] {
        let once = run(&format!("{number} {}", program.replace("10", "1")), &context);
        let often = run(&format!("{number} {program}"), &context);
        assert!(once.result.is_ok() && often.result.is_ok(), "{program}: {:?}", often.result);
        let paid = often.fuel - once.fuel;
        assert!(paid >= 9 * bytes / 65, "{program}: {paid} units for {} bytes", 9 * bytes);
    }
}
