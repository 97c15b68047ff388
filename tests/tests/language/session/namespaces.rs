//! Namespaces that a host attaches to programs, from the text of both to the value.

use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use std::sync::Arc;

const GEO: &str = r#"(ns geo "Shapes.")
(def unit "m2")
(def scale 1)
(defn- scaled "A helper." [n] (* n scale))
(defn area "The area of a rectangle." [a b] [(scaled (* a b)) unit])
(defn side [area] (/ 12 area))
"#;

fn geo() -> Arc<Prelude> {
    Arc::new(Prelude::compile("geo.clj", GEO).expect("it compiles"))
}

async fn runtime(prelude: impl Into<Option<Arc<Prelude>>>) -> Runtime {
    let preludes = prelude.into().into_iter().collect();
    let config = RuntimeConfig { preludes, start: StartPolicy::Lazy, workers: 1, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("no servers")
}

async fn run(runtime: &Runtime, source: &str) -> Outcome {
    runtime.run(source, RunOptions::default()).await
}

async fn value(runtime: &Runtime, source: &str) -> String {
    run(runtime, source).await.result.unwrap_or_else(|failure| panic!("{source}: {failure:?}")).text
}

#[tokio::test]
async fn programs_call_into_a_namespace() {
    let runtime = runtime(geo()).await;
    for (source, expected) in [
        ("(geo/area 2 3)", "[6 \"m2\"]"),
        ("(map geo/side [1 2 3])", "[12.0 6.0 4.0]"),
        ("geo/unit", "\"m2\""),
        // Names of the program are separate and change nothing in the namespace.
        ("(def scale 100) (defn scaled [n] :mine) [(geo/area 2 3) (scaled 1)]", "[[6 \"m2\"] :mine]"),
        ("(let [area 5] [area (first (geo/area area 1))])", "[5 5]"),
        ("(sort (keys (ns-publics 'geo)))", "[\"area\" \"scale\" \"side\" \"unit\"]"),
    ] {
        assert_eq!(value(&runtime, source).await, expected, "{source}");
    }
}

#[tokio::test]
async fn a_program_can_define_nothing_in_it() {
    let runtime = runtime(geo()).await;
    let protected = "cannot redefine geo/area: it is a public export of the protected namespace geo and cannot be \
                     redefined by user code.";
    let foreign =
        "cannot define geo/new: geo is a protected namespace whose names cannot be redefined by user code.";
    let private = "geo/scaled is not a public export of namespace geo. Discover its public exports with (ns-publics \
                   'geo) or (apropos \"scaled\").";
    for (source, message) in [
        ("(def geo/area 1)", protected),
        ("(defn geo/area [a] a)", protected),
        ("(do (defonce geo/area 1))", protected),
        ("(def geo/new 1)", foreign),
        ("(geo/scaled 1)", private),
    ] {
        let failure = run(&runtime, source).await.result.expect_err(source);
        assert_eq!(failure.message, message);
        let report = &failure.reports[0];
        assert!(report.location.is_some() && !report.hints.is_empty(), "{source}: {report:?}");
    }
    let failure = run(&runtime, "(geo/area 1)").await.result.expect_err("one argument");
    assert!(failure.message.contains("geo/area"), "{}", failure.message);
    for name in ["tool", "data", "budget", "ptc.core", "str", "clojure.core", "user"] {
        let message = format!("prelude cannot declare reserved namespace `{name}`");
        let refused = Prelude::compile("p", &format!("(ns {name}) (def x 1)")).expect_err(name);
        assert_eq!(refused.failure.message, message);
    }
}

#[tokio::test]
async fn discovery_shows_its_exports_first() {
    let runtime = runtime(geo()).await;
    assert_eq!(
        value(&runtime, "(first (apropos \"area\"))").await,
        "\"prelude: geo/area - The area of a rectangle.\""
    );
    let documented = value(&runtime, "(doc geo/area)").await;
    assert!(documented.contains("Signature: (area a b)"), "{documented}");
    assert_eq!(value(&runtime, "(filter #(str/starts-with? % \"geo\") (all-ns))").await, "[\"geo\"]");
    let listed = value(&runtime, "(dir 'geo)").await;
    assert!(listed.contains("side") && !listed.contains("scaled"), "{listed}");
}

#[tokio::test]
async fn a_fault_inside_it_is_shown_where_it_was_called() {
    let runtime = runtime(geo()).await;
    let source = "(def before 1)\n(str (geo/side 0))";
    let failure = run(&runtime, source).await.result.expect_err("division");
    let report = &failure.reports[0];
    let place = report.location.as_ref().map(|place| (place.start.line, place.start.column));
    assert_eq!(place, Some((2, 6)), "{report:?}");
    assert!(
        report
            .hints
            .iter()
            .any(|hint| hint.contains("It happened in geo/side, at geo.clj:6:19: (/ 12 area)")),
        "{report:?}"
    );
}

/// The cache key includes what a program was compiled with; programs with unusual limits are cached as well.
#[tokio::test]
async fn what_a_program_was_compiled_with_belongs_to_its_key() {
    let source = "(first (geo/area 2 3))";
    let runtime = runtime(geo()).await;
    assert_eq!(value(&runtime, source).await, "6");
    let mut options = RunOptions::default();
    options.limits.max_symbols = 1;
    let refused = runtime.run(source, options.clone()).await;
    assert_eq!(refused.result.map_err(|failure| failure.reason.raw()).unwrap_err(), "symbol_limit_exceeded");
    // A program that ended at once runs on its caller's thread the next time, whatever its limits.
    options.limits.max_symbols = 500;
    assert!(runtime.run(source, options.clone()).await.result.is_ok());
    let now = |options: &RunOptions| {
        let text = |outcome: &Outcome| outcome.result.as_ref().expect("a value").text.clone();
        runtime.try_run(source, None, options, text)
    };
    for _ in 0..3 {
        assert_eq!(now(&options).expect("it is tiny"), "6");
    }
    // What is cached for it there is not used for a program compiled with other options.
    options.limits.max_symbols = 1;
    assert_eq!(now(&options), None);
}

/// A program does not pay for defining the names of its namespaces, wherever it runs.
#[tokio::test]
async fn what_it_takes_to_attach_it_is_nowhere_on_a_programs_account() {
    let prelude = "(ns rows) (def table (mapv inc (range 200))) (defn third [] (nth table 3))";
    let prelude = Arc::new(Prelude::compile("rows.clj", prelude).expect("it compiles"));
    let (bare, attached) = (runtime(None).await, runtime(prelude).await);
    let source = "(+ 1 (nth [1 2 3 4] 3))";
    let fuel = run(&bare, source).await.usage.fuel;
    assert_eq!(run(&attached, source).await.usage.fuel, fuel);
    for source in [source, "(rows/third)"] {
        let learnt = run(&attached, source).await.usage;
        for _ in 0..2 {
            let now = attached.try_run(source, None, &RunOptions::default(), |outcome| outcome.usage);
            let now = now.expect("it is tiny");
            assert_eq!((now.fuel, now.peak_bytes), (learnt.fuel, learnt.peak_bytes), "{source}");
        }
    }
}
