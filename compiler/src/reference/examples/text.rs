//! Documentation examples for functions on strings, regular expressions and JSON, as programs with their printed
//! results.

use super::Table;

#[rustfmt::skip]
pub(super) const STRING: Table = &[
    ("parse-long", r#"(parse-long "42")"#, "42"),
    ("parse-int", r#"(parse-int "4x")"#, "nil"),
    ("parse-double", r#"(parse-double "2.50")"#, "2.5"),
    ("parse-boolean", r#"(parse-boolean "true")"#, "true"),
    ("str", r#"(str "n=" 1 nil :k)"#, r#""n=1:k""#),
    ("pr-str", r#"(pr-str "a" [1 "b"])"#, r#""\"a\" [1 \"b\"]""#),
    ("join", r#"(str/join ", " [1 2 3])"#, r#""1, 2, 3""#),
    ("format", r#"(format "%05.2f %-4s|%d" 3.14159 "ab" 7)"#, r#""03.14 ab  |7""#),
    ("subs", r#"(subs "hello" 1 3)"#, r#""el""#),
    ("includes?", r#"(str/includes? "hello" "ell")"#, "true"),
    ("starts-with?", r#"(str/starts-with? "hello" "he")"#, "true"),
    ("ends-with?", r#"(str/ends-with? "hello" "lo")"#, "true"),
    ("index-of", r#"(str/index-of "hello" "l")"#, "2"),
    ("last-index-of", r#"(str/last-index-of "hello" "l")"#, "3"),
    ("split", r#"(str/split "a,b,c" #",")"#, r#"["a" "b" "c"]"#),
    ("split-lines", r#"(str/split-lines "a\nb")"#, r#"["a" "b"]"#),
    ("replace", r##"(str/replace "a1b2" #"\d" "#")"##, r#""a#b#""#),
    ("replace", "(replace {1 :one} [1 2])", "[:one 2]"),
    ("replace-first", r#"(str/replace-first "aa" "a" "b")"#, r#""ba""#),
    ("upcase", r#"(upcase "abc")"#, r#""ABC""#),
    ("upper-case", r#"(str/upper-case "abc")"#, r#""ABC""#),
    ("downcase", r#"(downcase "ABC")"#, r#""abc""#),
    ("lower-case", r#"(str/lower-case "ABC")"#, r#""abc""#),
    ("capitalize", r#"(str/capitalize "hELLO")"#, r#""Hello""#),
    ("reverse", r#"(str/reverse "abc")"#, r#""cba""#),
    ("escape", r#"(str/escape "a<b" {"<" "&lt;"})"#, r#""a&lt;b""#),
    ("trim", r#"(str/trim "  a ")"#, r#""a""#),
    ("triml", r#"(str/triml "  a")"#, r#""a""#),
    ("trimr", r#"(str/trimr "a  ")"#, r#""a""#),
    ("trim-newline", r#"(str/trim-newline "a\n")"#, r#""a""#),
    ("blank?", r#"(str/blank? "  ")"#, "true"),
    ("extract", r#"(extract "id=(\\d+)" "id=42")"#, r#""42""#),
    ("extract-int", r#"(extract-int "id=(\\d+)" "id=42")"#, "42"),
];

#[rustfmt::skip]
pub(super) const REGEX: Table = &[
    ("re-pattern", r#"(re-find (re-pattern "\\d+") "a12")"#, r#""12""#),
    ("re-find", r#"(re-find #"(\w+)@(\w+)" "to bob@home")"#, r#"["bob@home" "bob" "home"]"#),
    ("re-matches", r#"(re-matches #"\d+" "42")"#, r#""42""#),
    ("re-seq", r#"(re-seq #"\d+" "a1b22")"#, r#"["1" "22"]"#),
    ("re-split", r#"(re-split #",\s*" "a, b,c")"#, r#"["a" "b" "c"]"#),
];

#[rustfmt::skip]
pub(super) const JSON: Table = &[
    ("json/parse-string", r#"(json/parse-string "{\"a\": [1, 2.5, null]}")"#, r#"{"a" [1 2.5 nil]}"#),
    ("json/parse-lines", r#"(json/parse-lines "{\"a\": 1}\n{\"a\": 2}")"#, r#"[{"a" 1} {"a" 2}]"#),
    ("json/generate-string", r#"(json/generate-string {"a" [1 nil]})"#, r#""{\"a\":[1,null]}""#),
];
