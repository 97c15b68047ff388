//! Eight third-party MCP servers behind one `ptc`: everything, filesystem, memory, sequential thinking, time, git,
//! fetch, sqlite.

use ptc_tests::binary::{eval, run_ptc};
use ptc_tests::third_party::{everything, fetch, filesystem, git, memory, sequential_thinking, sqlite, time};
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Eight {
    _folder: TempDir,
    path: PathBuf,
    config: ConfigFile,
}

fn eight() -> Eight {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    repository(&path);
    let servers = [
        ("everything", everything()),
        ("fs", filesystem(&path)),
        ("memory", memory(&path.join("memory.json"))),
        ("thinking", sequential_thinking()),
        ("time", time()),
        ("git", git(&path)),
        ("fetch", fetch()),
        ("sqlite", sqlite(&path.join("orders.db"))),
    ];
    let config = servers.into_iter().fold(Upstreams::default(), |upstreams, (name, mut entry)| {
        // A start that takes half of this timeout causes a warning, which a busy machine must not trigger.
        entry["handshake_timeout_ms"] = 600_000.into();
        upstreams.add(name, entry)
    });
    let config = config.write();
    Eight { _folder: folder, path, config }
}

fn repository(path: &Path) {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(path).args(["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]);
        git.args(["-c", "commit.gpgsign=false"]).args(arguments);
        // A hook or a workflow may have set these for another repository.
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        let done = git.output().expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    std::fs::write(path.join("prices.json"), r#"{"tea": 3, "coffee": 4}"#).expect("written");
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "Prices of the shop"]);
}

/// Answers every request on a loopback port with one text. Gives the address.
fn web_page(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&connection).lines().map_while(Result::ok);
            // The request ends with an empty line.
            let _ = lines.by_ref().find(String::is_empty);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            let _ = write!(&connection, "{head}Content-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    format!("http://{address}/")
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_doctor_finds_nothing_wrong_with_eight_servers() {
    let eight = eight();
    let finished = run_ptc(&[&["doctor", "--output", "json"][..], &eight.config.flags(&[])].concat(), "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(report["ok"], true, "{report:#}");
    // When the tests run as root, that is a finding of its own.
    let findings = report["configuration"]["findings"].as_array().expect("findings");
    assert!(
        findings.iter().all(|finding| finding["level"] == "ok" || finding["check"] == "user"),
        "{report:#}"
    );
    let servers = report["servers"].as_array().expect("servers");
    assert_eq!(servers.len(), 8, "{report:#}");
    for server in servers {
        assert_eq!((&server["level"], &server["state"]), (&"ok".into(), &"ready".into()), "{server:#}");
        assert!(server["tools"].as_u64() > Some(0), "{server:#}");
        let protocol = server["protocol"].as_str().expect("a protocol");
        assert!(protocol.starts_with("202"), "{server:#}");
        let (name, took) = (&server["name"], &server["start_ms"]);
        eprintln!("{name}: {took} ms, protocol {protocol}, {} tools", server["tools"]);
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn one_program_uses_all_eight() {
    let eight = eight();
    let path = eight.path.to_str().expect("UTF-8");
    let page = web_page("tea 2\ncoffee 5\n");
    let program = format!(
        r#"
(defn call [server tool args]
  (let [r (tool/call {{:server server :tool tool :args args}})]
    (if (:ok r) (:value r) (fail (str server "/" tool ": " (:message r))))))

;; What is in the shop: from a file, from the web, from a database.
(def prices (json/parse-string (call "fs" "read_text_file" {{:path "{path}/prices.json"}})))
(def sold
  (into {{}} (map (fn [[_ name n]] [name (parse-long n)])
                (re-seq #"(tea|coffee) (\d+)" (call "fetch" "fetch" {{:url "{page}" :raw true}})))))
(call "sqlite" "create_table" {{:query "CREATE TABLE orders (item TEXT, amount INTEGER)"}})
(doseq [[item amount] sold]
  (call "sqlite" "write_query" {{:query (str "INSERT INTO orders VALUES ('" item "', " amount ")")}}))
(def stored (call "sqlite" "read_query" {{:query "SELECT sum(amount) AS n FROM orders"}}))

;; The rest at once.
(def answers
  (pmap (fn [[server tool args]] (call server tool args))
        [["everything" "get-sum" {{:a 3 :b 4}}]
         ["memory" "create_entities" {{:entities [{{:name "shop" :entityType "place" :observations ["sells tea"]}}]}}]
         ["thinking" "sequentialthinking" {{:thought "add it up" :nextThoughtNeeded false :thoughtNumber 1 :totalThoughts 1}}]
         ["time" "convert_time" {{:source_timezone "UTC" :time "12:00" :target_timezone "Asia/Tokyo"}}]
         ["git" "git_log" {{:repo_path "{path}" :max_count 1}}]]))
(def graph (call "memory" "read_graph" {{}}))

{{:revenue (reduce + (map (fn [[item n]] (* n (get prices item))) sold))
 :stored   (boolean (re-find #"7" (str stored)))
 :sum      (boolean (re-find #"7" (str (nth answers 0))))
 :known    (:name (first (:entities graph)))
 :thought  (boolean (re-find #"thoughtNumber" (pr-str (nth answers 2))))
 :tokyo    (boolean (re-find #"21:00" (pr-str (nth answers 3))))
 :commit   (boolean (re-find #"Prices of the shop" (pr-str (nth answers 4))))}}"#
    );
    let flags = eight.config.flags(&["--timeout", "120s", "--upstream-call-timeout", "100s"]);
    let report = eval(&program, &flags);
    let expected =
        "{:commit true :known \"shop\" :revenue 26 :stored true :sum true :thought true :tokyo true}";
    assert_eq!(report["value"], expected, "{report:#}");
    let calls = report["upstream_calls"].as_array().expect("calls");
    let servers: std::collections::BTreeSet<&str> =
        calls.iter().map(|call| call["server"].as_str().expect("a name")).collect();
    assert_eq!(servers.len(), 8, "{servers:?}");
}
