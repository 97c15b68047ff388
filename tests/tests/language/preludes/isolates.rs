//! One prelude in several isolates: each isolate's changes to its data and functions stay its own.

use super::prelude;
use ptc_calls::options::RunOptions;
use ptc_engine::session::{Session, SessionLimits};
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use std::sync::Arc;

const TEXT: &str = r#"(ns m "Data and functions.")
(def rows [1 2 3])
(def table {:kept [1] :deep {:list [1 2]}})
(defn grown [x] (conj rows x))
(defn put [k v] (assoc-in table [:deep k] v))
(defn adder [n] (fn [x] (+ n x)))
(defn remembering [f] (memoize f))
(defn matching [text] (re-find #"[a-z]+\d" text))
"#;

/// The prelude's own data, the same in every isolate.
const DATA: &str = "[m/rows m/table]";
const UNCHANGED: &str = "[[1 2 3] {:deep {:list [1 2]} :kept [1]}]";

async fn runtime(preludes: Vec<Arc<Prelude>>) -> Runtime {
    let config = RuntimeConfig { preludes, start: StartPolicy::Lazy, workers: 2, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("no servers")
}

/// The value of a program in a session.
async fn value(session: &Session, program: &str) -> String {
    let run = session.run(program, RunOptions::default(), None).expect("one at a time");
    run.await.result.unwrap_or_else(|failure| panic!("{program}: {failure:?}")).text
}

/// Derives values from the prelude that are specific to `who`, a number.
async fn begin(session: &Session, who: usize) {
    let program = format!(
        "(def own (m/put :who {who})) (def list (m/grown {who})) (def add (m/adder {who}))\n\
         (def seen (m/remembering (fn [x] (+ x {who})))) (seen 1)"
    );
    assert_eq!(value(session, &program).await, (who + 1).to_string());
}

/// Changes them, then reads them and the prelude.
async fn go_on(session: &Session, who: usize, turn: usize) {
    let program = format!(
        "(def own (update own :kept conj {who})) (def list (conj list {turn}))\n\
         [(count (:kept own)) (get-in own [:deep :who]) (count list) (nth list 3) (peek list) (add 1) (seen 1) (seen {turn})\n\
          (m/matching \"ab{who}\")]"
    );
    let digit = who.to_string()[..1].to_owned();
    let want = format!(
        "[{} {who} {} {who} {turn} {} {} {} \"ab{digit}\"]",
        turn + 1,
        turn + 4,
        who + 1,
        who + 1,
        who + turn
    );
    assert_eq!(value(session, &program).await, want);
    assert_eq!(value(session, DATA).await, UNCHANGED);
}

#[tokio::test]
async fn two_isolates_take_turns_and_each_has_what_it_made() {
    let prelude = prelude(TEXT);
    // A second runtime with the same prelude, in the same process.
    let runtimes = [runtime(vec![prelude.clone()]).await, runtime(vec![prelude]).await];
    let sessions: Vec<Session> = runtimes
        .iter()
        .flat_map(|runtime| [(); 2].map(|()| runtime.session(SessionLimits::default())))
        .collect();
    for (who, session) in sessions.iter().enumerate() {
        begin(session, who).await;
    }
    for turn in 1..4 {
        for (who, session) in sessions.iter().enumerate() {
            go_on(session, who, turn).await;
        }
    }
    // One session ends with all its values; the others retain theirs.
    let mut sessions = sessions.into_iter();
    drop(sessions.next());
    for (who, session) in sessions.enumerate() {
        go_on(&session, who + 1, 4).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn isolates_that_run_at_once_have_nothing_of_each_other() {
    let runtime = Arc::new(runtime(vec![prelude(TEXT)]).await);
    let running: Vec<_> = (0..8)
        .map(|who| {
            let runtime = runtime.clone();
            tokio::spawn(async move {
                let session = runtime.session(SessionLimits::default());
                begin(&session, who).await;
                for turn in 1..20 {
                    go_on(&session, who, turn).await;
                    // Programs outside sessions, which leave nothing behind.
                    let alone = runtime.run("[(m/grown 4) (m/put :x 1) m/rows]", RunOptions::default()).await;
                    let alone = alone.result.expect("a value").text;
                    assert_eq!(alone, "[[1 2 3 4] {:deep {:list [1 2] :x 1} :kept [1]} [1 2 3]]");
                }
            })
        })
        .collect();
    for task in running {
        task.await.expect("no panic");
    }
    // Each branch of a program grows the data for itself as well.
    let branches = "(= (pmap m/grown (range 100)) (map m/grown (range 100)))";
    let session = runtime.session(SessionLimits::default());
    assert_eq!(value(&session, branches).await, "true");
    assert_eq!(value(&session, DATA).await, UNCHANGED);
}
