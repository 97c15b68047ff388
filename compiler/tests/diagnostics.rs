//! Reasons, messages and hints of errors in programs.

use ptc_compiler::diagnostic::Report;
use ptc_compiler::{CallArity, CompileOptions, Diagnostic, Externals, SessionName, compile};
use ptc_vm::Reason;

fn errors_with(source: &str, externals: &Externals<'_>) -> Vec<Diagnostic> {
    match compile(source, externals, &CompileOptions::default()) {
        Ok(_) => panic!("{source} compiles"),
        Err(rejection) => rejection.errors,
    }
}

fn first_error(source: &str) -> Diagnostic {
    errors_with(source, &Externals::default()).swap_remove(0)
}

#[track_caller]
fn refuses(source: &str, reason: Reason, message: &str) {
    let error = first_error(source);
    assert_eq!((error.reason, error.message.as_str()), (reason, message), "{source}");
}

#[test]
fn parse_errors() {
    let parse = Reason::ParseError;
    refuses("(+ 1", parse, "unbalanced parentheses: 1 unclosed '('");
    refuses("\n \"abc", parse, "unclosed string at line 2, column 2");
    refuses("#_x", parse, "reader discard syntax (#_) is not supported. Use ; for comments");
    refuses("@a", parse, "deref syntax (@var) is not supported. Atoms and refs are not available");
    refuses(
        "'(1 2)",
        parse,
        "quoted collections are not supported; only quoted symbols like 'github are allowed",
    );
    refuses("{:a}", parse, "Map literal requires even number of forms, got 1");
    refuses("::a", parse, "syntax error: could not parse expression at line 1, column 1");
    refuses("λ", parse, "syntax error: could not parse expression at line 1, column 1");
    refuses("##Infx", parse, "syntax error: could not parse expression at line 1, column 1");
    refuses(&"9".repeat(101), parse, "integer literal exceeds 100 digit limit");
    assert_eq!(first_error("(let [a 1]\n  (foo").span.start, 13, "the innermost unclosed bracket");
}

#[test]
fn special_forms_say_their_shape() {
    refuses("(if 1 2 3 4)", Reason::InvalidArity, "expected (if cond then else?)");
    refuses("(let)", Reason::InvalidArity, "expected (let [bindings] body ...)");
    refuses("(fn)", Reason::InvalidArity, "expected (fn [params] body ...) or (fn name [params] body ...)");
    refuses("(def x)", Reason::InvalidArity, "expected (def name value), got (def x) without value");
    refuses("(return)", Reason::InvalidArity, "expected (return value)");
    refuses("(pmap inc)", Reason::InvalidArity, "expected (pmap f coll) or (pmap f c1 c2 ...)");
    refuses("()", Reason::InvalidForm, "Empty list is not a valid expression");
    refuses("(let (a 1) a)", Reason::InvalidForm, "let bindings must be a vector");
    refuses("(let [a] a)", Reason::InvalidForm, "let bindings require even number of forms");
    refuses("(cond 1)", Reason::InvalidCondForm, "cond requires even number of test/result forms");
    refuses("(loop [x 0] (inc (recur x)))", Reason::InvalidForm, "recur must be in tail position");
    refuses("(fn [x] (recur))", Reason::ArityMismatch, "recur expected 1 argument(s), got 0");
    refuses("#(map #(inc %) %)", Reason::InvalidForm, "Nested #() anonymous functions are not allowed");
    refuses("{:a 1 :a 2}", Reason::DuplicateKey, "duplicate key :a in map literal");
    refuses("#{1 1}", Reason::DuplicateKey, "duplicate element 1 in set literal");
    refuses(
        "%",
        Reason::InvalidPlaceholder,
        "placeholder '%' can only be used inside #() anonymous function syntax",
    );
    refuses(
        "(. \"a\" length)",
        Reason::InvalidForm,
        "(. obj method) syntax is not supported. Use (.method obj) instead.",
    );
    refuses(
        "(def a/b 1)",
        Reason::InvalidForm,
        "qualified definitions are not supported: cannot define a/b. Define unqualified names in the user namespace \
         instead.",
    );
    refuses("(for [x 5] x)", Reason::InvalidArity, "for binding 'x' expected a collection, got: 5 (number)");
    assert_eq!(first_error("#\"(\"").reason, Reason::InvalidForm);
}

#[test]
fn unbound_names_come_together_with_hints() {
    let errors = errors_with("(mapp inc (foo 1)) (foo 2)", &Externals::default());
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, ["Undefined variable: mapp", "Undefined variable: foo"]);
    assert_eq!((errors[0].span.start, errors[1].span.start), (1, 11));
    assert_eq!(errors[0].hints, ["Did you mean `map`?"]);
    let hint = |source: &str| first_error(source).hints.first().cloned().unwrap_or_default();
    assert_eq!(hint("(let [user-name 1] user_name)"), "Use hyphens, not underscores: `user-name`");
    assert_eq!(hint("(map let [1])"), "`let` is a special form, no value: write (let [bindings] body ...).");
    assert!(hint("(while 5)").starts_with("Loop with (loop [x init]"));
    assert_eq!(hint("(defn total [] 1) (totl)"), "Did you mean `total`?");
    assert!(hint("(defn f [] (g)) (defn g [] 1)").contains("define it earlier"));
    assert!(hint("(if true (def q 1) 2) q").contains("define it earlier"));
}

#[test]
fn names_are_visible_where_they_certainly_have_a_value() {
    for source in [
        "(do (def a 1)) a",
        "(let [x 1] (def a x)) a",
        "(loop [x 1] (def a x)) a",
        "(defn f [] (f))",
        "(def f (fn [] (f)))",
        "(defn if [x] x) (if 1 2)",
        "(or not-yet 5)",
        "(comment nowhere)",
        "(let [cond 1] cond)",
        "(defn f [cond] (cond 1))",
    ] {
        let compiled = compile(source, &Externals::default(), &CompileOptions::default());
        assert!(compiled.is_ok(), "{source}: {:?}", compiled.err());
    }
    refuses("(def x (+ x 1))", Reason::UnboundVar, "Undefined variable: x");
    refuses("(or (inc nope) 0)", Reason::UnboundVar, "Undefined variable: nope");
}

#[test]
fn arity_is_an_error_only_where_the_call_certainly_runs() {
    refuses("(inc 1 2)", Reason::ArityError, "arity error: inc expects 1 argument(s), got 2");
    refuses("(min)", Reason::ArityError, "arity error: min requires at least 1 argument, got 0");
    refuses("(defn f [a] a) (f)", Reason::ArityMismatch, "f expected 1 argument(s), got 0");
    refuses("((fn [x] x))", Reason::ArityMismatch, "function expected 1 argument(s), got 0");
    for source in [
        "(fn [] (inc 1 2))",
        "(if true 1 (inc))",
        "(return 1) (inc)",
        "(def inc +) (inc 1 2)",
        "(defn f [a] a) (def f +) (f)",
    ] {
        let compiled = compile(source, &Externals::default(), &CompileOptions::default()).expect(source);
        let redefined = source.contains("(def ");
        assert_eq!(compiled.warnings.is_empty(), redefined, "{source}");
    }
}

#[test]
fn independent_errors_are_reported_together() {
    let errors = errors_with("(if) (let [x] x) (nope)", &Externals::default());
    let reasons: Vec<Reason> = errors.iter().map(|error| error.reason).collect();
    assert_eq!(reasons, [Reason::InvalidArity, Reason::InvalidForm, Reason::UnboundVar]);
}

#[test]
fn stray_closers_are_skipped_with_a_warning() {
    let compiled =
        compile("(+ 1 2))) (+ 3 4)", &Externals::default(), &CompileOptions::default()).expect("it compiles");
    assert_eq!(compiled.warnings.len(), 2);
}

#[test]
fn tools_and_servers() {
    let used = |source: &str| {
        let compiled = compile(source, &Externals::default(), &CompileOptions::default()).expect(source);
        let named: Vec<String> = compiled.servers.named.into_iter().collect();
        (named, compiled.servers.dynamic)
    };
    assert_eq!(used("(+ 1 2)"), (vec![], false));
    assert_eq!(
        used("(tool/call 'git/log {:n 1}) (pmap #(tool/call {:server \"fs\" :tool % :args {}}) [\"a\"])"),
        (vec!["fs".into(), "git".into()], false)
    );
    assert_eq!(used("(tool/call {:server (str 1) :tool \"x\"})"), (vec![], true));
    assert_eq!(used("(map tool/call [{}])"), (vec![], true));
    for fails in ["(tool/call \"git/log\" {:n 1})", "(tool/call \"git\" \"log\")"] {
        assert_eq!(used(fails), (vec!["git".into()], false), "{fails}");
    }
    assert_eq!(used("(tool/servers)"), (vec![], true));
    assert_eq!(used("(tool/search {:q 1})"), (vec![], false));
    let externals = Externals { tools: &["search", "fetch"], ..Externals::default() };
    let error = errors_with("(tool/serch {:q 1})", &externals).swap_remove(0);
    assert_eq!(error.reason, Reason::UnknownTool);
    assert_eq!(error.message, "Unknown tool: serch. Available tools: fetch, search");
    assert_eq!(error.hints, ["Did you mean `tool/search`?"]);
}

#[test]
fn a_server_that_is_not_configured_is_a_warning() {
    let externals = Externals { servers: &["github", "fs"], ..Externals::default() };
    let compiled =
        compile("(tool/call 'gihub/search {})", &externals, &CompileOptions::default()).expect("it compiles");
    assert_eq!(compiled.warnings[0].message, "no upstream server is named gihub. Configured: fs, github");
    assert_eq!(compiled.warnings[0].hints, ["Did you mean `github`?"]);
}

#[test]
fn session_names_are_known() {
    let arity = Some(CallArity { min: 1, max: Some(1) });
    let session = [SessionName { name: "total", arity: None }, SessionName { name: "f", arity }];
    let externals = Externals { session: &session, ..Externals::default() };
    assert!(compile("(+ total (f 1))", &externals, &CompileOptions::default()).is_ok());
    let error = errors_with("(f 1 2)", &externals).swap_remove(0);
    assert_eq!(
        (error.reason, error.message.as_str()),
        (Reason::ArityMismatch, "f expected 1 argument(s), got 2")
    );
    assert_eq!(errors_with("totl", &externals)[0].hints, ["Did you mean `total`?"]);
    assert!(compile("*1", &Externals::default(), &CompileOptions::default()).is_ok());
}

/// The warnings of a program that compiles.
fn warnings(source: &str) -> Vec<Diagnostic> {
    match compile(source, &Externals::default(), &CompileOptions::default()) {
        Ok(compiled) => compiled.warnings,
        Err(rejection) => panic!("{source}: {:?}", rejection.errors),
    }
}

#[test]
fn numbers_without_blanks_between_them_are_warned_of() {
    for (source, read) in [
        ("(str 2024-01-15)", "2024-01-15"),
        ("(+ 10-5 1)", "10-5"),
        ("[1.5-2.5]", "1.5-2.5"),
        ("[1e5-3]", "1e5-3"),
        ("(- 3 2-1)", "2-1"),
    ] {
        let found = warnings(source);
        let [warning] = found.as_slice() else { panic!("{source}: {found:?}") };
        assert_eq!(&source[warning.span.start as usize..warning.span.end as usize], read);
        assert_eq!(&*warning.message, format!("{read} is read as several numbers"));
    }
    for source in ["[1 -2 -3.5]", "(let [a-1 2] [a-1 -1])", "[\"a\"-1]", "(- 2 1)", "[1,-2]", "{:a-1 -1}"] {
        assert_eq!(warnings(source), [], "{source}");
    }
}

#[test]
fn tests_of_lists_that_are_never_nil_are_warned_of() {
    for (source, tested) in [
        ("(defn f [[x & xs]] (if xs (recur xs) x))", "xs"),
        ("(loop [[x & more] [1 2 3] acc 0] (if more (recur more (+ acc x)) (+ acc x)))", "more"),
        ("(defn f [x & more] (if more (+ x (apply f more)) x))", "more"),
        ("(defn f [x & opts] (if-not opts :n :o))", "opts"),
        ("(fn [x & more] (when more x))", "more"),
        ("(fn [x & more] (map (fn [y] (when-not more y)) x))", "more"),
        ("(fn f [x & more] (if more (recur x (rest more)) x))", "more"),
        ("(fn f [x & more] (if more (recur x more) x))", "more"),
        ("#(if %& 1 2)", "%&"),
        ("(let [[cmd & args] [1]] (cond (= cmd 2) 3 args :args :else :none))", "args"),
        ("(let [[cmd & args] [1]] (and args cmd))", "args"),
        ("(let [[cmd & args] [1]] (or args [cmd]))", "args"),
        ("(let [[cmd & args] [1]] (cond-> cmd args inc))", "args"),
        ("(let [[cmd & args] [1]] (when-let [a args] a))", "args"),
        ("(let [[cmd & args] [1]] (for [x [1] :when args] x))", "args"),
        ("(if (re-seq #\"x\" \"abc\") :found :none)", "(re-seq #\"x\" \"abc\")"),
        ("(when-let [ms (re-seq #\"x\" \"abc\")] ms)", "(re-seq #\"x\" \"abc\")"),
        ("(if-let [ms (->> \"abc\" (re-seq #\"x\"))] ms 1)", "(->> \"abc\" (re-seq #\"x\"))"),
        ("(defn f [x & xs] (if (and x xs) 1 2))", "xs"),
        ("(defn f ([x] x) ([x & xs] (if xs (recur (first xs) (rest xs)) x)))", "xs"),
        ("(defn f ([] 0) ([x & xs] (if xs (apply + x xs) x)))", "xs"),
        ("(defn f [x & xs] (if (not xs) 1 2))", "xs"),
        ("(defn f [x & xs] (if (or (= x 1) (and x (not xs))) 1 2))", "xs"),
        ("(let [[x & xs] [1]] (if (nil? xs) :last x))", "xs"),
        ("(let [[x & xs] [1]] [x (some? xs)])", "xs"),
        ("(let [m (re-seq #\"e\" \"a\")] (if m 1 2))", "m"),
        ("(if (not (re-seq #\"e\" \"a\")) 1 2)", "(re-seq #\"e\" \"a\")"),
    ] {
        let found = warnings(source);
        let [warning] = found.as_slice() else { panic!("{source}: {found:?}") };
        assert_eq!(warning.reason, Reason::AlwaysTrue, "{source}");
        let span = warning.span.start as usize..warning.span.end as usize;
        assert_eq!(&source[span], tested, "{source}");
        assert!(warning.hints[0].contains(&format!("(seq {tested})")), "{source}");
    }
}

#[test]
fn tests_that_may_be_false_are_not_warned_of() {
    for source in [
        "(defn f [x & xs] (if (seq xs) (recur (first xs) (rest xs)) x))",
        "(defn f [x & xs] (if xs (recur (first xs) (next xs)) x))",
        "(defn f [x & xs] (if (empty? xs) x xs))",
        "(defn f [x & xs] (let [xs (seq xs)] (if xs x 1)))",
        "(defn f [x & xs] (map (fn [xs] (if xs 1 2)) x))",
        "(defn f [x & {:keys [opts]}] (if opts 1 2))",
        "(defn f [x & [opts]] (if opts 1 2))",
        "(let [[a b] [1]] (if b 1 2))",
        "(let [[a & r] [1]] (or (first r) r))",
        "(let [[a & r :as all] [1]] (if all 1 2))",
        "(do (defn re-seq [a b] nil) (if (re-seq 1 2) 1 2))",
        "(if (re-find #\"x\" \"abc\") 1 2)",
        "(defn f [x & xs] (if (and x (seq xs)) 1 2))",
        "(let [m (re-seq #\"e\" \"a\") m (seq m)] (if m 1 2))",
        "(let [m (re-seq #\"e\" \"a\")] (if (empty? m) 1 2))",
        "(defn f [x & xs] (if x (and x xs) xs))",
        "(defn f ([x] x) ([x & xs] (if xs (apply + x xs) x)))",
        "(if (seq (re-seq #\"x\" \"abc\")) 1 2)",
    ] {
        assert_eq!(warnings(source), [], "{source}");
    }
}

#[test]
fn characters_written_as_codes_are_warned_of() {
    for (source, code, hint) in [
        ("(str \"caf\\u00e9 x\")", "\\u00e9", "Write the character itself: é"),
        ("(str \\u00e9)", "\\u00e9", "Write the character itself: é"),
        ("\"\\ud83d\\ude00\"", "\\ud83d\\ude00", "Write the character itself: 😀"),
        ("\"\\ud83d\"", "\\ud83d", "Write the character itself."),
        ("\"a\\u001bb\"", "\\u001b", "Write (char 27), and join texts with (str a b)."),
    ] {
        let found = warnings(source);
        let [warning] = found.as_slice() else { panic!("{source}: {found:?}") };
        assert_eq!(&source[warning.span.start as usize..warning.span.end as usize], code, "{source}");
        assert_eq!(warning.hints, [hint], "{source}");
    }
    for source in ["(re-find #\"\\u00e9\" \"x\")", "\"\\\\u00e9\"", "\"\\u00g9\"", "\\u", "\"\\u12é3\""] {
        assert_eq!(warnings(source), [], "{source}");
    }
}

/// The hints of the first error, as a report shows them.
fn hints(source: &str) -> String {
    Report::from_diagnostic(&first_error(source), source).hints.join("\n")
}

#[test]
fn habits_of_clojure_have_a_hint() {
    for (source, part) in [
        ("(+ 1 0xFF)", "decimal digits: 255."),
        ("(+ 1 -0xFF)", "decimal digits: -255."),
        ("(+ 1 0b101)", "decimal digits: 5."),
        ("(+ 1 -2r101)", "decimal digits: -5."),
        ("(inc 1/2)", "(/ 1 2)"),
        ("{:x/a 1}", "(get m \"x/a\")"),
        ("(:a.b {})", "(get m \"a.b\")"),
        ("{:@type 1}", "(get m \"@type\")"),
        ("```clojure\n(+ 1 2)\n```", "Delete the lines with ```"),
        ("\"a\\\nb\"", "delete the backslash at the end of the line"),
        ("\"a", "Close it with"),
        ("(json/parse-string \"{}\" true)", "keywords find the string keys"),
        ("(defn f [] (g)) (defn g [] (f))", "(letfn [(g [x]"),
        ("(declare g)", "(letfn"),
        ("(java.time.temporal.ChronoUnit/DAYS 1)", ".toEpochDay"),
        ("(java.time.format.DateTimeFormatter/ofPattern \"x\")", "ISO 8601"),
        ("(http/get \"x\")", "tool/call"),
        ("(lenght [1])", "(count coll)"),
        ("(.-x {})", "(:x obj)"),
        ("(subseq [1] > 1)", "filter"),
        ("(instance? String 1)", "string?"),
        ("(map-vals inc {})", "update-vals"),
        ("(inc ctx/x)", "data/x"),
        ("#\"\\p{Foo}\"", "\\p{Punct}"),
        ("#\"[z-a]\"", "hyphen"),
    ] {
        let hints = hints(source);
        assert!(hints.contains(part), "{source}: {hints}");
    }
}
