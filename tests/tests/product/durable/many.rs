//! Many stored runs: what each takes, and a copy of their folder, which is as good as the folder.

use super::cuts::options;
use ptc_base::store::{EmbeddedStore, Store};
use ptc_calls::journal::{DurableRuns, InDoubt, RunHolder};
use ptc_calls::options::RunOptions;
use ptc_calls::{Effect, HostTool, Limits, Outcome};
use ptc_engine::{Runtime, RuntimeConfig};
use ptc_runtime::schemars::JsonSchema;
use serde::Deserialize;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PROGRAM: &str = "(let [seen (mapv #(tool/look %) (range 5))] [(reduce + seen) (tool/pay 7)])";

const WEEK_MS: u64 = 7 * 24 * 3_600_000;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "ptc_runtime::schemars")]
struct Key {
    k: i64,
}

/// A process with these stored runs.
async fn start(folder: &Path, is_slow: bool) -> (Runtime, DurableRuns, Arc<EmbeddedStore>) {
    let store = Arc::new(EmbeddedStore::open(folder).unwrap());
    let runs = DurableRuns::new(store.clone(), RunHolder::only());
    let look = HostTool::new("look", |Key { k }: Key| async move { Ok::<_, Infallible>(k) });
    let pay = HostTool::new("pay", move |Key { k }: Key| async move {
        if is_slow {
            std::future::pending::<()>().await;
        }
        Ok::<_, Infallible>(k)
    });
    let tools = vec![look.effect(Effect::Read), pay.effect(Effect::Write)];
    let config = RuntimeConfig { workers: 1, tools, state: Some(runs.clone()), ..RuntimeConfig::default() };
    (Runtime::start(config).await.unwrap(), runs, store)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn message(outcome: &Outcome) -> String {
    outcome.result.as_ref().err().map(|failure| failure.message.clone()).unwrap_or_default()
}

/// `PTC_STORED_RUNS` runs wait for a call that may change something.
#[test]
fn a_copy_of_the_folder_goes_on_also_after_a_week() {
    let many: usize = std::env::var("PTC_STORED_RUNS").map_or(50, |many| many.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let before = resident_kib();
        let (process, runs, store) = start(&state, true).await;
        let hour = 3_600_000;
        let limits = Limits { timeout_ms: hour, upstream_call_timeout_ms: hour, ..options().limits };
        let waiting: Vec<_> =
            (0..many).map(|_| process.run(PROGRAM, RunOptions { limits, ..RunOptions::default() })).collect();
        let mut changes = store.watch();
        // Each run is at least one write.
        changes.wait_for(|changes| *changes >= many as u64).await.unwrap();
        while runs.list().await.unwrap().len() < many {
            changes.changed().await.unwrap();
        }
        runs.settled().await;
        let (memory, disk) =
            (resident_kib() - before, std::fs::metadata(state.join("runs.redb")).unwrap().len());
        println!(
            "{many} runs: {} bytes each on the disk, {} KiB of memory each",
            disk / many as u64,
            memory / many as u64
        );
        std::fs::create_dir(&copy).unwrap();
        std::fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::copy(state.join("runs.redb"), copy.join("runs.redb")).unwrap();
        drop((waiting, process));
        let (process, runs, store) = start(&copy, false).await;
        let names = runs.list().await.unwrap();
        assert_eq!(names.len(), many);
        let outcome = process.resume(&names[0].name, InDoubt::Report).await.unwrap();
        assert!(message(&outcome).contains("it may have been made"), "{outcome:?}");
        // The same run as it was before its call had left, a week earlier.
        let mut records = store.read_from(&format!("run/{}", names[1].name), 0).await.unwrap();
        let mut header: serde_json::Value = serde_json::from_slice(&records[0]).unwrap();
        let begun = header["run"]["begun_ms"].as_u64().unwrap();
        header["run"]["begun_ms"] = (begun - WEEK_MS).into();
        records[0] = serde_json::to_vec(&header).unwrap();
        records.retain(|record| !record.starts_with(b"{\"sent\""));
        store.begin("run/0old", "embedded", Duration::from_secs(60), records).await.unwrap();
        let outcome = process.resume("0old", InDoubt::Report).await.unwrap();
        assert_eq!(outcome.result.unwrap().text, "[10 7]");
        assert_eq!(runs.list().await.unwrap().len(), many - 1);
    });
}
