//! Sets, walks, numbers, methods and dates.

use super::Table;

#[rustfmt::skip]
pub(super) const SET: Table = &[
    ("set", "(set [1 2 1])", "#{1 2}"),
    ("hash-set", "(hash-set 1 2)", "#{1 2}"),
    ("sorted-set", "(sorted-set 3 1 2)", "#{1 2 3}"),
    ("disj", "(disj #{1 2} 1)", "#{2}"),
    ("union", "(set/union #{1} #{2})", "#{1 2}"),
    ("intersection", "(set/intersection #{1 2} #{2 3})", "#{2}"),
    ("difference", "(set/difference #{1 2} #{2})", "#{1}"),
    ("subset?", "(set/subset? #{1} #{1 2})", "true"),
    ("superset?", "(set/superset? #{1 2} #{1})", "true"),
    ("select", "(set/select odd? #{1 2 3})", "#{1 3}"),
    ("project", "(set/project [{:a 1 :b 2}] [:a])", "#{{:a 1}}"),
    ("rename-keys", "(set/rename-keys {:a 1} {:a :x})", "{:x 1}"),
    ("rename", "(set/rename [{:a 1}] {:a :x})", "#{{:x 1}}"),
    ("map-invert", "(set/map-invert {:a 1 :b 2})", "{1 :a 2 :b}"),
    ("index", "(set/index [{:k 1 :n 1} {:k 1 :n 2}] [:k])", "{{:k 1} #{{:k 1 :n 1} {:k 1 :n 2}}}"),
    ("join", r#"(set/join [{:id 1 :a "x"}] [{:id 1 :b "y"}])"#, r#"#{{:a "x" :b "y" :id 1}}"#),
];

#[rustfmt::skip]
pub(super) const WALK: Table = &[
    ("walk", "(walk inc sum [1 2 3])", "9"),
    ("prewalk", "(prewalk (fn [x] (if (number? x) (inc x) x)) [1 [2]])", "[2 [3]]"),
    ("postwalk", "(postwalk (fn [x] (if (number? x) (inc x) x)) {:a [1 {:b 2}]})", "{:a [2 {:b 3}]}"),
    ("keywordize-keys", r#"(keywordize-keys {"a" {"b" 1}})"#, "{:a {:b 1}}"),
    ("stringify-keys", "(stringify-keys {:a {:b 1}})", r#"{"a" {"b" 1}}"#),
];

#[rustfmt::skip]
pub(super) const MATH: Table = &[
    ("max", "(max 1 3 2)", "3"),
    ("min", "(min 1 3 2)", "1"),
    ("quot", "(quot 7 2)", "3"),
    ("abs", "(abs -3)", "3"),
    ("floor", "(floor 1.7)", "1"),
    ("ceil", "(ceil 1.2)", "2"),
    ("round", "(round 2.5)", "3"),
    ("trunc", "(trunc -1.7)", "-1"),
    ("sqrt", "(sqrt 16)", "4.0"),
    ("pow", "(pow 2 10)", "1024.0"),
    ("int", "(int 3.7)", "3"),
    ("char", r#"(map char [104 105])"#, r#"["h" "i"]"#),
    ("Math/PI", "(* 2 Math/PI)", "6.283185307179586"),
    ("Math/E", "Math/E", "2.718281828459045"),
    ("double", "(double 3)", "3.0"),
    ("float", "(float 3)", "3.0"),
    ("bit-and", "(bit-and 6 3)", "2"),
    ("bit-or", "(bit-or 6 3)", "7"),
    ("bit-xor", "(bit-xor 6 3)", "5"),
    ("bit-and-not", "(bit-and-not 6 3)", "4"),
    ("bit-not", "(bit-not 6)", "-7"),
    ("bit-shift-left", "(bit-shift-left 1 4)", "16"),
    ("bit-shift-right", "(bit-shift-right 16 2)", "4"),
    ("bit-set", "(bit-set 0 3)", "8"),
    ("bit-clear", "(bit-clear 15 0)", "14"),
    ("bit-flip", "(bit-flip 4 0)", "5"),
    ("bit-test", "(bit-test 4 2)", "true"),
];

#[rustfmt::skip]
pub(super) const JAVA: Table = &[
    (".contains", r#"(.contains "hello" "ell")"#, "true"),
    (".startsWith", r#"(.startsWith "hello" "he")"#, "true"),
    (".endsWith", r#"(.endsWith "hello" "lo")"#, "true"),
    (".indexOf", r#"(.indexOf "hello" "z")"#, "-1"),
    (".lastIndexOf", r#"(.lastIndexOf "hello" "l")"#, "3"),
    (".length", r#"(.length "hello")"#, "5"),
    (".substring", r#"(.substring "hello" 1 3)"#, r#""el""#),
    (".toLowerCase", r#"(.toLowerCase "ABC")"#, r#""abc""#),
    (".toUpperCase", r#"(.toUpperCase "abc")"#, r#""ABC""#),
    ("Integer/parseInt", r#"(Integer/parseInt "42")"#, "42"),
    ("Long/parseLong", r#"(Long/parseLong "42")"#, "42"),
    ("Double/parseDouble", r#"(Double/parseDouble "2.5")"#, "2.5"),
    ("Float/parseFloat", r#"(Float/parseFloat "2.5")"#, "2.5"),
    ("Boolean/parseBoolean", r#"(Boolean/parseBoolean "TRUE")"#, "true"),
    ("parse", r#"(parse "2024-01-02")"#, r#""2024-01-02""#),
    ("LocalDate/parse", r#"(LocalDate/parse "2024-01-02")"#, r#""2024-01-02""#),
    ("Instant/parse", r#"(Instant/parse "2024-01-02T03:04:05+01:00")"#, r#""2024-01-02T02:04:05Z""#),
    ("java.util.Date.", "(java.util.Date. 0)", r#""1970-01-01T00:00:00Z""#),
    ("System/currentTimeMillis", "(pos? (System/currentTimeMillis))", "true"),
    ("currentTimeMillis", "(= (currentTimeMillis) (currentTimeMillis))", "true"),
    (".getTime", r#"(.getTime (parse "1970-01-01T00:00:01Z"))"#, "1000"),
    (".toEpochDay", r#"(.toEpochDay (parse "1970-01-11"))"#, "10"),
    (".plusDays", r#"(.plusDays (parse "2024-02-28") 2)"#, r#""2024-03-01""#),
    (".minusDays", r#"(.minusDays (parse "2024-03-01") 1)"#, r#""2024-02-29""#),
    (".isBefore", r#"(.isBefore (parse "2024-01-01") (parse "2024-01-02"))"#, "true"),
    (".isAfter", r#"(.isAfter (parse "2024-01-01") (parse "2024-01-02"))"#, "false"),
    ("Duration/between", r#"(Duration/between (parse "2024-01-01T00:00:00Z") (parse "2024-01-02T00:00:00Z"))"#, "#duration[86400000ms]"),
    (".toMillis", r#"(.toMillis (Duration/between (parse "2024-01-01T00:00:00Z") (parse "2024-01-01T00:00:02Z")))"#, "2000"),
    (".toDays", r#"(.toDays (Duration/between (parse "2024-01-01T00:00:00Z") (parse "2024-01-03T12:00:00Z")))"#, "2"),
    ("NaN", "(NaN? NaN)", "true"),
    ("POSITIVE_INFINITY", "(< 1e300 POSITIVE_INFINITY)", "true"),
    ("NEGATIVE_INFINITY", "(> -1e300 NEGATIVE_INFINITY)", "true"),
];
