//! Families of hostile texts, by kind and size.

/// Texts of one kind.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// A text of about this many bytes.
    pub(crate) text: fn(usize) -> String,
}

/// `before`, then `unit` as often as it fits, then `after`.
fn repeated(before: &str, unit: &str, after: &str, bytes: usize) -> String {
    let room = bytes.saturating_sub(before.len() + after.len());
    format!("{before}{}{after}", unit.repeat(room / unit.len()))
}

/// The same with numbered units.
fn counted(before: &str, unit: impl Fn(usize) -> String, after: &str, bytes: usize) -> String {
    let mut text = String::from(before);
    for number in 0.. {
        let unit = unit(number);
        if text.len() + unit.len() + after.len() > bytes {
            break;
        }
        text.push_str(&unit);
    }
    text + after
}

/// Names that differ by number.
fn names(prefix: &str, count: usize) -> String {
    (0..count).map(|number| format!("{prefix}{number} ")).collect()
}

/// A body inside of nested functions with many locals each.
fn enclosed(unit: &str, bytes: usize) -> String {
    let open: String = (0..10).map(|level| format!("(fn [{}] ", names(&format!("p{level}x"), 20))).collect();
    repeated(&open, unit, &")".repeat(10), bytes)
}

macro_rules! families {
    ($($name:literal $text:expr;)+) => {
        pub(crate) const ALL: &[Family] = &[$(Family { name: $name, text: $text },)+];
    };
}

families! {
    // Unreadable text.
    "hashes" |n| repeated("", "#", "", n);
    "hashes apart" |n| repeated("", "# ", "", n);
    "nul" |n| repeated("", "\0", "", n);
    "letters of another script" |n| repeated("", "é", "", n);
    "letters of another script apart" |n| repeated("", "é ", "", n);
    "colons" |n| repeated("", ": ", "", n);
    "colons behind names" |n| repeated("", "a: ", "", n);
    "lines of colons" |n| repeated("", ":\n", "", n);
    "backslashes" |n| repeated("", "\\ ", "", n);
    "metadata" |n| repeated("", "^", "", n);
    "deref" |n| repeated("", "@a ", "", n);
    "quotes of lists" |n| repeated("", "'(", "", n);
    "special floats" |n| repeated("", "##Inf1 ", "", n);
    "open vectors" |n| repeated("", "[", "", n);
    "open lists" |n| repeated("", "(", "", n);
    "closing brackets" |n| repeated("", ")", "", n);
    "brackets that do not match" |n| repeated("", "(]", "", n);
    "an open string" |n| repeated("\"", "a", "", n);
    "odd maps" |n| repeated("", "{:a}", "", n);
    "odd maps of lists" |n| repeated("", "{(a)}", "", n);
    "long integers" |n| repeated("", &format!("{} ", "9".repeat(200)), "", n);
    "floats beyond range" |n| repeated("", "1e999 ", "", n);
    "line ends" |n| repeated("\u{feff}", "\r\n", "1", n);
    "a comment" |n| repeated(";", "a", "\n1", n);
    "comments" |n| repeated("", ";\n", "1", n);
    // Names without a meaning.
    "unknown members" |n| repeated("", "(foo/bar 1)", "", n);
    "unknown members that differ" |n| counted("", |i| format!("(str/x{i} 1)"), "", n);
    "unknown names" |n| repeated("", "(fooo 1)", "", n);
    "unknown names that differ" |n| counted("", |i| format!("(fooo{i})"), "", n);
    "unknown methods" |n| repeated("", "(.foo 1)", "", n);
    "unknown methods that differ" |n| counted("", |i| format!("(.m{i} 1)"), "", n);
    "unknown names among definitions" |n| {
        counted("", |i| format!("(def some-name-{i} 1) (some-nmae-{i})"), "", n)
    };
    "a long name" |n| repeated("", "a", "", n);
    "long names" |n| counted("", |i| format!("{}{i} ", "a".repeat(1_000)), "", n);
    "placeholders" |n| repeated("", "% ", "", n);
    "placeholders that differ" |n| counted("#(str ", |i| format!("%{}1 ", "0".repeat(i % 99)), ")", n);
    "placeholders in a function" |n| repeated("#(str ", "%1 ", ")", n);
    "wrong arities" |n| repeated("", "(inc)", "", n);
    "wrong arities that may not run" |n| repeated("(when 1 ", "(inc)", ")", n);
    "wrong special forms" |n| repeated("", "(if)", "", n);
    "empty lists" |n| repeated("", "()", "", n);
    // Valid programs.
    "empty maps" |n| repeated("", "{}", "", n);
    "quoted names" |n| repeated("", "'a", "", n);
    "quoted names that differ" |n| counted("", |i| format!("'a{i} "), "", n);
    "ones" |n| repeated("", "1 ", "", n);
    "and" |n| repeated("(and ", "1 ", ")", n);
    "or" |n| repeated("(or ", "nil ", ")", n);
    "or of unknown names" |n| repeated("(or ", "zork ", ")", n);
    "and as a test" |n| repeated("(if (and ", "1 ", ") 1 2)", n);
    "or inside and as a test" |n| repeated("(if (and ", "(or 1 2) ", ") 1 2)", n);
    "and that keeps many names" |n| {
        let bound: String = (0..90).map(|i| format!("a{i} (str) ")).collect();
        let used = names("a", 90);
        repeated(&format!("(let [{bound}] (if (and "), "1 ", &format!("(vector {used})) 1 2))"), n)
    };
    "cond" |n| repeated("(cond ", "1 2 ", ")", n);
    "cond of truth" |n| repeated("(cond ", ":a 2 ", ")", n);
    "cond that keeps many names" |n| {
        let bound: String = (0..90).map(|i| format!("a{i} (str) ")).collect();
        let used = names("a", 90);
        repeated(&format!("(let [{bound}] (cond "), "(str) 2 ", &format!("(str) (vector {used})))"), n)
    };
    "condp" |n| repeated("(condp = 1 ", "1 2 ", ")", n);
    "case" |n| counted("(case 1 ", |i| format!("{i} 2 "), ")", n);
    "case of keywords" |n| counted("(case 1 ", |i| format!(":k{} 2 ", i % 9_000), ")", n);
    "case of groups" |n| repeated("(case 1 ", "(1 2 3 4) 2 ", ")", n);
    "when" |n| repeated("(when 1 ", "1 ", ")", n);
    "->" |n| repeated("(-> 1 ", "inc ", ")", n);
    "-> of calls" |n| repeated("(-> 1 ", "(+ 1) ", ")", n);
    "-> of special forms" |n| repeated("(-> 1 ", "(if 1) ", ")", n);
    "->> with effects" |n| repeated("(->> 1 ", "(map (println)) ", ")", n);
    "-> with one long step" |n| repeated("(-> 1 (str ", "1 ", "))", n);
    "as->" |n| repeated("(as-> 1 x ", "x ", ")", n);
    "cond->" |n| repeated("(cond-> 1 ", "true inc ", ")", n);
    "cond-> with long steps" |n| repeated("(cond-> 1 ", "true (+ 1 1 1 1 1 1) ", ")", n);
    "some->" |n| repeated("(some-> 1 ", "inc ", ")", n);
    "doto" |n| repeated("(doto 1 ", "inc ", ")", n);
    "let" |n| counted("(let [", |i| format!("a{} 1 ", i % 9_000), "] 1)", n);
    "let of the same name" |n| repeated("(let [", "a 1 ", "] 1)", n);
    "let in let" |n| repeated("", &format!("{}1{}", "(let [a 1] ".repeat(30), ")".repeat(30)), "", n);
    "destructured vectors" |n| repeated("(let [[", "a ", "] 1] 1)", n);
    "destructured maps" |n| repeated("(let [{:keys [", "a ", "]} 1] 1)", n);
    "patterns in patterns" |n| repeated("", "(let [[a [b [c [d {:keys [e f] :or {e 1}}]]]] 1] a)", "", n);
    "defaults" |n| repeated("(let [{:keys [a] :or {", "a 1 ", "}} 1] 1)", n);
    "parameters" |n| repeated("(fn [", "a ", "] 1)", n);
    "arities" |n| repeated("(fn ", "([] 1) ", ")", n);
    "loop" |n| repeated("", "(loop [a 1 b 2] (if a (recur b a) 1))", "", n);
    "loop with patterns" |n| repeated("", "(loop [[a] [1] {:keys [b]} {}] (if a (recur b a) 1))", "", n);
    "recur of long vectors" |n| {
        let arguments = "[a b 1] ".repeat(15);
        let unit = format!("(loop [{}] (if p0 (recur {arguments}) 1))", "x 1 ".repeat(15).replace('x', "p0"));
        repeated("(let [a 1 b 2] ", &unit, ")", n)
    };
    "recur of one long vector" |n| {
        repeated("(loop [a 1 b 2] (if a (recur [", "a b ", "] b) 1))", n / 2 * 2)
    };
    "for" |n| repeated("", "(for [x [1] y [2] :when x :let [z y]] z)", "", n);
    "for with many bindings" |n| repeated("(for [", "x [1] ", "] x)", n);
    "for with many conditions" |n| repeated("(for [x [1] ", ":when x ", "] x)", n);
    "doseq that lets many names" |n| repeated("(doseq [x [1] ", ":let [y x] ", "] x)", n);
    "letfn" |n| repeated("", "(letfn [(a [x] (b x)) (b [x] (a x))] (a 1))", "", n);
    "letfn of many" |n| counted("(letfn [", |i| format!("(f{i} [x] x) "), "] 1)", n);
    "groups of letfn" |n| {
        let group: String = (0..12).map(|i| format!("(f{i} [x] ({}x)) ", names("f", 12))).collect();
        repeated("", &format!("(letfn [{group}] 1)"), "", n)
    };
    "functions" |n| repeated("", "(fn [x] x)", "", n);
    "short functions" |n| repeated("", "#(+ % %2)", "", n);
    "calls" |n| repeated("", "(inc 1)", "", n);
    "a long call" |n| repeated("(str ", "1 ", ")", n);
    "a long call of computed values" |n| repeated("(str ", "(str) ", ")", n);
    "arithmetic" |n| repeated("(+ ", "1 ", ")", n);
    "comparison" |n| repeated("(< ", "1 ", ")", n);
    "a vector" |n| repeated("[", "1 ", "]", n);
    "a vector of different integers" |n| counted("[", |i| format!("{i} "), "]", n);
    "a vector of computed values" |n| repeated("[", "(str) ", "]", n);
    "vectors in vectors" |n| repeated("[", &format!("{}{} ", "[".repeat(40), "]".repeat(40)), "]", n);
    "a map" |n| counted("{", |i| format!("{i} 1 "), "}", n);
    "a map of computed values" |n| counted("{", |i| format!("{i} (str) "), "}", n);
    "a map of maps" |n| counted("{", |i| format!("{{:a {i}}} 1 "), "}", n);
    "a map of strings" |n| counted("{", |i| format!("\"k{i}\" 1 "), "}", n);
    "maps as keys of keys" |n| {
        let unit = format!("{}1{} ", "{".repeat(30), " 1}".repeat(30));
        repeated("[", &unit, "]", n)
    };
    "a map that repeats a key" |n| repeated("{", "1 1 ", "}", n);
    "a set" |n| counted("#{", |i| format!("{i} "), "}", n);
    "a set of long equal beginnings" |n| {
        counted("#{", |i| format!("\"{}{i}\" ", "a".repeat(400)), "}", n)
    };
    "records" |n| repeated("", "{:a 1 :b (str)}", "", n);
    "a string" |n| repeated("\"", "a", "\"", n);
    "a string of escapes" |n| repeated("\"", "\\n", "\"", n);
    "strings" |n| counted("", |i| format!("(str \"s{i}\")"), "", n);
    "characters" |n| repeated("", "\\a", "", n);
    "keywords" |n| counted("", |i| format!("(str :k{i})"), "", n);
    "large integers" |n| counted("", |i| format!("(str {i}9999999999999999999999)"), "", n);
    "floats" |n| counted("", |i| format!("(str {i}.5)"), "", n);
    "one pattern" |n| repeated("", "(str #\"a+b\")", "", n);
    "patterns" |n| counted("", |i| format!("(str #\"a+{i}\")"), "", n);
    "broken patterns" |n| counted("", |i| format!("(str #\"({i}\")"), "", n);
    "definitions" |n| counted("", |i| format!("(def a{i} 1)"), "", n);
    "definitions of one name" |n| repeated("", "(def a 1)", "", n);
    "definitions in definitions" |n| {
        repeated("", &format!("{}1{}", "(def a ".repeat(40), ")".repeat(40)), "", n)
    };
    "calls of definitions" |n| repeated("(defn f [x] x)", "(f 1)", "", n);
    "docs" |n| repeated("(let [a 1] ", "(doc map)", ")", n);
    "names inside of many functions" |n| enclosed("inc ", n);
    "outer names inside of many functions" |n| enclosed("p0x1 ", n);
    "returns" |n| repeated("", "(return 1)", "", n);
    "comment forms" |n| repeated("(comment ", "1 ", ")", n);
    "tool calls" |n| repeated("", "(tool/call {:server \"s\" :tool \"t\" :args {:a 1}})", "", n);
    "a tool call" |n| repeated("(tool/call {:server \"s\" :tool \"t\" :args {:a [", "1 ", "]}})", n);
}
