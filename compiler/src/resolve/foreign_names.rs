//! Lists names and methods of Clojure and other languages that this language does not have, with what to write instead,
//! for error messages.

/// Names between blanks, and what to write instead.
pub(super) const ABSENT: &[(&str, &str)] = &[
    // ----- Clojure: state, exceptions, code as data
    (
        "atom swap! reset! deref ref volatile! vswap! vreset! agent send alter ref-set dosync swap-vals! \
         reset-vals! compare-and-set! add-watch set! var-set alter-var-root with-local-vars",
        "There is no mutable state: carry the value through (reduce f init coll) or loop/recur.",
    ),
    ("binding with-redefs with-open", "There are no dynamic variables: bind with `let` or pass an argument."),
    (
        "try catch finally throw ex-info ex-message ex-data assert raise except Exception Exception. \
         Error Throwable error",
        "There are no exceptions: test before, as in (if (:ok r) (:value r) …); tool results carry :ok \
         and :reason; (fail value) ends the program.",
    ),
    (
        "require use import ns in-ns refer alias load load-file include",
        "Remove it: everything is loaded. Use names such as str/join or set/union directly.",
    ),
    ("while until", "Loop with (loop [x init] (if done x (recur next))), or use (take-while pred coll)."),
    (
        "declare",
        "Remove it and define each function before its first use; functions that call each other stand in one (letfn [(f [x] …) (g [x] …)] …).",
    ),
    ("lazy-seq lazy-cat lazy", "Sequences are eager: use (take n (iterate f x)), `loop` or `range`."),
    (
        "future promise delay force deliver thread go chan async await Promise realized? Thread/sleep \
         sleep setTimeout locking",
        "Use (pmap f coll) or (pcalls f g) to run tool calls at the same time; they return the results.",
    ),
    ("memo", "Write (memoize f)."),
    (
        "print pr printf newline print-str prn-str println-str with-out-str tap> pprint flush",
        "Use (println x) for lines and (str …), (pr-str x) or (format \"%.2f\" x) for text.",
    ),
    (
        "rand rand-int rand-nth shuffle uuid random-uuid random-sample random UUID/randomUUID \
         java.util.UUID/randomUUID",
        "Programs are deterministic: pass random values in as data/… or get them from a tool.",
    ),
    (
        "slurp spit line-seq read-line reader writer file io open fetch http curl requests http/get http/post http/put \
         http/request client/get client/post System/getenv \
         getenv exec sh",
        "There is no I/O: call a tool with (tool/call {:server \"name\" :tool \"name\" :args {…}}).",
    ),
    (
        "read-string eval load-string macroexpand macroexpand-1 gensym resolve ns-resolve find-var intern",
        "Code is no data here: call functions directly; json/parse-string reads JSON text.",
    ),
    ("defmacro macro macrolet", "There are no macros: write a function with `defn`; thread with -> and ->>."),
    ("symbol", "Write the symbol itself, as in 'server/tool, or a keyword."),
    (
        "sorted-map-by sorted-set-by",
        "Maps and sets are in key order; order otherwise with (sort-by f > coll).",
    ),
    ("defmethod defmulti definline", "Use `defn`, and `case` or `cond` to choose by value."),
    (
        "defrecord deftype defprotocol reify proxy extend-type extend-protocol defstruct new \
         gen-class",
        "There are no types of your own: use maps like {:kind :order :id 1} and functions.",
    ),
    (
        "instance? satisfies?",
        "Ask with a predicate such as number?, string?, keyword?, map? or vector?; (type x) gives the type.",
    ),
    ("assoc! conj! dissoc! pop! transient persistent!", "Use assoc, conj and dissoc; they are as fast."),
    (
        "time bench System/nanoTime",
        "Times are measured by the host; (System/currentTimeMillis) is the clock, fixed per program.",
    ),
    ("with-meta vary-meta alter-meta!", "There is no metadata: put the value into a map."),
    (
        "chunk vector-of to-array into-array aget aset make-array object-array",
        "Sequences are vectors already: use the collection itself, `vec` or (nth v i).",
    ),
    (
        "bigdec bigint biginteger rationalize numerator denominator unchecked-add decimal BigDecimal. BigInteger. \
         java.math.BigDecimal. BigDecimal/valueOf BigInteger/valueOf Math/toIntExact Math/addExact Math/multiplyExact",
        "Integers have any size, other numbers are floats: use the number itself, `int` or `double`.",
    ),
    ("char-array chars", "Characters are strings of one character: (seq s) lists them."),
    (
        "parse-json read-json json-parse parse-json-string from-json loads read-str",
        "Use (json/parse-string text).",
    ),
    (
        "write-json to-json generate-json dumps stringify json-str write-str",
        "Use (json/generate-string value).",
    ),
    ("data ctx context input inputs args params", "Read the context with data/key, as in data/orders."),
    (
        "tool call-tool call_tool tool-call call mcp invoke use_mcp_tool callTool",
        "Call tools with (tool/call {:server \"name\" :tool \"name\" :args {…}}).",
    ),
    ("trampoline", "Call the function itself: recursion is limited by memory only."),
    ("map-vals mapvals fmap transform-vals", "Write (update-vals m f)."),
    ("map-keys mapkeys transform-keys", "Write (update-keys m f)."),
    (
        "subseq rsubseq",
        "Write (filter (fn [[k v]] (<= low k high)) m), or (filter #(<= low % high) s) for a set.",
    ),
    ("bounded-count", "Write (count (take n coll))."),
    (
        "parse-uuid",
        "Write (re-matches #\"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\" s): an identifier is its text.",
    ),
    ("identical?", "Write (= a b)."),
    // ----- JavaScript, Python, Scheme
    ("null None undefined NULL Nil NIL Null", "Write nil."),
    ("True TRUE yes", "Write true."),
    ("False FALSE no", "Write false."),
    ("&&", "Write (and a b)."),
    ("!= <> !== /=", "Write (not= a b)."),
    ("=== eq eq? eql equal equal? equals is", "Write (= a b)."),
    ("!", "Write (not x)."),
    ("** ^ expt", "Write (pow a b)."),
    ("// div /* */", "Comments begin with ; and integers divide with (quot a b)."),
    (
        "+= -= *= := ++ -- setq setf",
        "Nothing is assigned: bind a new name with `let`, or carry the value through loop/recur or \
         reduce.",
    ),
    (
        "=> lambda function func fun λ defun defn* fn*",
        "A function is (fn [x] …) or #(f %); a named one (defn name [x] …).",
    ),
    (
        "define var const global nonlocal val=",
        "Use (def name value) at the top, (let [name value] …) for a part, (defn name [x] …) for \
         functions.",
    ),
    (
        "let* letrec let-values",
        "Write (let [a 1 b 2] body); functions that need themselves are (fn name [x] …).",
    ),
    ("begin progn", "Write (do a b)."),
    (
        "else elif elseif elsif else-if otherwise",
        "Write (if test then else), or (cond test1 a test2 b :else c).",
    ),
    ("switch match select-case", "Write (case x :a 1 :b 2 default), or `cond`."),
    (
        "foreach for-each each forEach dolist",
        "Write (doseq [x coll] …) for effects, (for [x coll] …) or (map f coll) for results.",
    ),
    ("in of", "Loop with (for [x coll] …); (contains? m k) tests a key, (some #{x} coll) an item."),
    ("len length size strlen sizeof lenght lengh", "Write (count coll)."),
    ("append push add push! extend", "Write (conj coll x); (concat a b) joins collections."),
    ("car head", "Write (first coll)."),
    ("cdr tail", "Write (rest coll)."),
    ("cadr", "Write (second coll)."),
    ("null? isEmpty is-empty is_empty isNull is-nil", "Write (empty? coll), or (nil? x)."),
    ("foldl foldr fold inject accumulate", "Write (reduce f init coll)."),
    ("flatMap flat-map flatmap concatMap", "Write (mapcat f coll)."),
    ("collect listcomp", "Write (map f coll) or (for [x coll] …)."),
    ("where find-all find_all filter-by select-by", "Write (filter pred coll)."),
    ("any exists exists?", "Write (some pred coll)."),
    ("all all? every", "Write (every? pred coll)."),
    (
        "contains has has? has-key? include? member member?",
        "Write (contains? m k) for a key, (some #{x} coll) for an item, (str/includes? s part) for \
         text.",
    ),
    (
        "string toString to-string to_string tostring string-append concat-str strcat repr String. String/valueOf \
         Character/toString",
        "Write (str a b).",
    ),
    ("upper toUpperCase to-upper string-upcase uppercase", "Write (str/upper-case s)."),
    ("lower toLowerCase to-lower string-downcase lowercase", "Write (str/lower-case s)."),
    ("substring substr slice string-slice", "Write (subs s start end)."),
    ("strip string-trim", "Write (str/trim s)."),
    (
        "parseInt parse_int Integer. atoi string->number to-int to_int str->int Long. Integer/valueOf Long/valueOf",
        "Write (parse-long s).",
    ),
    (
        "parseFloat parse_float Float. Double. to-float to_float str->float Double/valueOf",
        "Write (parse-double s).",
    ),
    ("enumerate with-index each-with-index map-with-index", "Write (map-indexed (fn [i x] …) coll)."),
    (
        "hash hash-code hashCode",
        "Values are compared and grouped by themselves: (= a b), (group-by f coll), (distinct coll); there are no hash numbers.",
    ),
    (
        "ChronoUnit/DAYS ChronoUnit/HOURS ChronoUnit/MINUTES ChronoUnit/SECONDS ChronoUnit/WEEKS ChronoUnit/MONTHS",
        "Days between dates are (- (.toEpochDay end) (.toEpochDay start)); between instants (.toHours (Duration/between start end)).",
    ),
    ("IsoFields/WEEK_OF_WEEK_BASED_YEAR ChronoField/ALIGNED_WEEK_OF_YEAR", "Write (iso-week date)."),
    (
        "DateTimeFormatter/ofPattern DateTimeFormatter/ISO_DATE SimpleDateFormat.",
        "(str date) is ISO 8601; make other texts with (format \"%02d.%02d.%d\" (.getDayOfMonth d) (.getMonthValue d) (.getYear d)).",
    ),
    (
        "re-matcher re-groups Pattern/compile Pattern/matches",
        "Write (re-find #\"a(b)\" text) for the first match and its groups, (re-seq #\"a\" text) for all, (re-matches #\"a\" text) for the whole text.",
    ),
    (
        "Long/toString Integer/toString Long/toHexString Integer/toHexString",
        "Write (str n), or (format \"%x\" n) for hexadecimal digits.",
    ),
    (
        "YearMonth/from YearMonth/of YearMonth/parse YearMonth/now",
        "Write (subs (str date) 0 7) for year and month as text, or (.getYear date) and (.getMonthValue date).",
    ),
    (
        "URLEncoder/encode URLDecoder/decode java.net.URLEncoder/encode",
        "There is no percent-encoding: arguments of tools are sent as what they are.",
    ),
    ("String/join", "Write (str/join \", \" coll)."),
    (
        "Character/isDigit Character/isLetter Character/isLetterOrDigit Character/isUpperCase Character/isLowerCase \
         Character/isWhitespace Character/isAlphabetic",
        "Characters are texts: (re-matches #\"[0-9]\" c), with [A-Za-z] for letters, [A-Z] for capitals, \\s for blanks.",
    ),
    (
        "Character/digit Character/getNumericValue",
        "Write (parse-long c) for a decimal digit, (Integer/parseInt c 16) for a hexadecimal one.",
    ),
    (
        "Integer/MAX_VALUE Long/MAX_VALUE Double/MAX_VALUE Double/POSITIVE_INFINITY",
        "Integers have any size: begin with ##Inf, or take (apply min coll).",
    ),
    (
        "Integer/MIN_VALUE Long/MIN_VALUE Double/NEGATIVE_INFINITY",
        "Integers have any size: begin with ##-Inf, or take (apply max coll).",
    ),
    ("Double/isNaN Float/isNaN", "Write (NaN? x)."),
    ("Double/isInfinite Float/isInfinite", "Write (infinite? x)."),
    (
        "Integer/toBinaryString Long/toBinaryString Long/bitCount Integer/bitCount",
        "Look at single bits with (bit-test n i), as in (map #(if (bit-test n %) 1 0) (range 7 -1 -1)).",
    ),
    ("unsigned-bit-shift-right", "Write (bit-shift-right n count): integers have any size."),
    (
        "Locale/US Locale/ENGLISH Locale/ROOT",
        "Leave it out: (format \"%,.2f\" x) writes 1,234.50 everywhere.",
    ),
    ("Year/isLeap", "Write (.isLeapYear date)."),
    (
        "Period/between ChronoUnit/between",
        "Days between dates are (- (.toEpochDay end) (.toEpochDay start)).",
    ),
    ("iterator-seq enumeration-seq bean", "Values are data already: use the map or list itself."),
    ("namespace", "Keywords have no namespaces: (name k) is all of it."),
    ("dict object Map make-hash make-hash-table hashmap", "Write a map {:a 1}, or (into {} pairs)."),
    ("array Array tuple list-of", "Write a vector [a b]."),
    ("hash-ref gethash getattr fetch-in dig get-value", "Write (get m key), or (get-in m [k1 k2])."),
    ("groupby groupBy group_by group", "Write (group-by f coll)."),
    (
        "orderBy order-by order_by sorted sortBy sort-on sort-desc",
        "Write (sort-by f coll), downwards (sort-by f > coll).",
    ),
    ("uniq unique dedup distinct-values", "Write (distinct coll)."),
    ("average mean", "Write (avg coll)."),
    ("limit top", "Write (take n coll)."),
    ("offset skip", "Write (drop n coll)."),
    ("modulo remainder %%", "Write (mod a b)."),
    ("now today Date.now datetime Date time/now", "Write (java.util.Date.) or (System/currentTimeMillis)."),
    ("console.log console log echo puts display displayln write-line debug", "Write (println x)."),
    ("exit quit abort System/exit", "Write (return value), or (fail value)."),
    ("typeof type-of type? class class-of isinstance", "Write (type x), or a predicate such as (string? x)."),
    ("then end do-block endif", "Parentheses close a form: (if test then-value else-value)."),
    ("this self super", "There are no objects: pass the value as an argument."),
    ("pass noop void continue break", "Write nil for nothing; leave a loop by not calling `recur`."),
];

/// Names of forms with rules of their own: their contents are not resolved, since errors there would be noise.
const SYNTAX: &str = "try catch finally ns require use import refer declare binding with-redefs with-open defmacro \
                      macro macrolet defrecord deftype defprotocol reify proxy extend-type extend-protocol \
                      defstruct class defmulti defmethod define lambda function func fun defun let* letrec \
                      let-values switch match with-local-vars def- fn* defn*";

/// Methods and members of other languages, called on the expression before the dot; `x` is its value.
pub(super) const METHODS: &[(&str, &str)] = &[
    ("length size len count Count Length", "(count x)"),
    ("push append add", "(conj x item)"),
    ("map forEach each", "(map f x)"),
    ("filter select where", "(filter pred x)"),
    ("reduce fold", "(reduce f init x)"),
    ("find", "(first (filter pred x)), or (re-find #\"a(b)\" text) for a pattern"),
    ("group groups", "(nth (re-find #\"a(b)\" text) 1)"),
    ("some any", "(some pred x)"),
    ("every all", "(every? pred x)"),
    ("flatMap", "(mapcat f x)"),
    ("join", "(str/join \", \" x)"),
    ("split", "(str/split x #\",\")"),
    ("toUpperCase upper", "(str/upper-case x)"),
    ("toLowerCase lower", "(str/lower-case x)"),
    ("trim strip", "(str/trim x)"),
    ("replace replaceAll", "(str/replace x \"a\" \"b\")"),
    ("startsWith startswith", "(str/starts-with? x \"a\")"),
    ("endsWith endswith", "(str/ends-with? x \"a\")"),
    ("includes contains has", "(str/includes? x \"a\") or (contains? x key)"),
    ("indexOf index", "(str/index-of x \"a\"), or (.indexOf x item) of a list"),
    ("slice substring substr", "(subs x start end)"),
    ("concat", "(concat x other)"),
    ("reverse", "(reverse x)"),
    ("repeat", "(str/join (repeat n x))"),
    ("toCharArray getBytes chars", "(seq x)"),
    ("sort", "(sort x)"),
    ("keys", "(keys x)"),
    ("values vals", "(vals x)"),
    ("items entries", "(for [[k v] x] …)"),
    ("get getOrDefault at charAt", "(get x key), or (.getYear x), (iso-week x) of a date"),
    (
        "atZone atOffset withZone withZoneSameInstant",
        "(.plusSeconds x 3600): there are no zones, so the offset is added",
    ),
    ("withYear", "(.plusYears x (- year (.getYear x)))"),
    ("withMonth", "(.plusMonths x (- month (.getMonthValue x)))"),
    ("setScale", "(/ (Math/round (* x 100)) 100.0), or (format \"%.2f\" x) for text"),
    ("name", "(name x)"),
    ("codePointAt", "(int (nth x i))"),
    ("first", "(first x)"),
    ("last", "(last x)"),
    ("toString", "(str x)"),
    ("isEmpty", "(empty? x)"),
    (
        "format toFixed",
        "(format \"%.2f\" x), or (format \"%02d.%02d.%d\" (.getDayOfMonth x) (.getMonthValue x) (.getYear x)) of a date",
    ),
    ("log", "(println x)"),
    ("parse", "(json/parse-string x)"),
    ("stringify dumps", "(json/generate-string x)"),
    ("getDayOfMonth getDate", "(.getDayOfMonth x)"),
    ("getYear getFullYear", "(.getYear x)"),
    (
        "format-date strftime",
        "(str x) and take the part with subs, or (.getYear x), (.getMonthValue x), (.getDayOfMonth x)",
    ),
    ("containsKey hasKey", "(contains? x key)"),
    (
        "between until",
        "(- (.toEpochDay end) (.toEpochDay start)) for the days between two dates, (Duration/between start end) for two instants",
    ),
    ("floor ceil round abs pow sqrt max min", "(Math/floor x) and so on"),
];

/// Packages of Java, the longer of two with the same beginning first.
const PACKAGES: &[&str] =
    &["java.time.format.", "java.time.temporal.", "java.time.", "java.util.", "java.lang.", "java.text."];

/// The advice for a name, with its package or without.
pub(super) fn advice(name: &str) -> Option<&'static str> {
    let short = PACKAGES.iter().find_map(|package| name.strip_prefix(package));
    advice_for(name).or_else(|| advice_for(short?))
}

fn advice_for(name: &str) -> Option<&'static str> {
    ABSENT
        .iter()
        .find(|(names, _)| names.split_ascii_whitespace().any(|known| known == name))
        .map(|(_, advice)| *advice)
}

/// Whether the form of this name has rules of its own.
pub(super) fn is_syntax(name: &str) -> bool {
    SYNTAX.split_ascii_whitespace().any(|known| known == name)
}

/// What to write for a method, with `object` for `x`.
pub(super) fn method(object: &str, method: &str) -> Option<String> {
    let (_, form) =
        METHODS.iter().find(|(names, _)| names.split_ascii_whitespace().any(|known| known == method))?;
    // `x` is a separate word in the forms, between blanks or brackets.
    let spelled: Vec<String> = form
        .split(' ')
        .map(|word| match word.trim_end_matches([')', ']', ',']) {
            "x" => format!("{object}{}", &word[1..]),
            _ => word.to_owned(),
        })
        .collect();
    Some(spelled.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_row() {
        let mut names: Vec<&str> =
            ABSENT.iter().flat_map(|(names, _)| names.split_ascii_whitespace()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn no_row_names_what_the_language_has() {
        let rows = ABSENT.iter().map(|(names, _)| *names).chain([SYNTAX]);
        let is_present = |name: &&str| {
            ptc_vm::builtins::lookup(None, name).is_some() || crate::names::Special::lookup(name).is_some()
        };
        let present: Vec<&str> = rows.flat_map(str::split_ascii_whitespace).filter(is_present).collect();
        assert_eq!(present, [""; 0]);
    }

    #[test]
    fn names_have_advice_with_their_package_too() {
        for name in ["java.time.format.DateTimeFormatter/ofPattern", "java.time.temporal.ChronoUnit/DAYS"] {
            assert_eq!(advice(name), advice(name.rsplit('.').next().unwrap_or_default()), "{name}");
            assert!(advice(name).is_some(), "{name}");
        }
        assert_eq!(advice("java.time.Period/between"), advice("Period/between"));
    }

    #[test]
    fn methods_become_calls() {
        assert_eq!(method("s", "length").as_deref(), Some("(count s)"));
        assert_eq!(method("row", "items").as_deref(), Some("(for [[k v] row] …)"));
        assert_eq!(method("s", "nothing"), None);
    }
}
