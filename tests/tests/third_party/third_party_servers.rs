//! Programs call third-party MCP servers: npm server-everything and server-filesystem, PyPI mcp-server-time and
//! mcp-server-git.

use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::processes::{descendants, signal};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::third_party::{everything, filesystem, git, time};
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn everything_config() -> ConfigFile {
    Upstreams::default().add("everything", everything()).write()
}

/// A folder with a canonical path, so that servers that resolve links agree with it.
fn folder() -> (TempDir, String) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().canonicalize().expect("a path").to_str().expect("UTF-8").to_owned();
    (dir, path)
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn all_four_start_and_list_their_tools() {
    let (dir, path) = folder();
    repository(dir.path());
    let config = Upstreams::default()
        .add("everything", everything())
        .add("fs", filesystem(Path::new(&path)))
        .add("time", time())
        .add("git", git(Path::new(&path)))
        .write();
    let finished = run_ptc(&[&["tools"][..], &config.flags(&[])].concat(), "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for tool in ["get-sum", "get-tiny-image", "read_text_file", "list_directory", "convert_time", "git_log"] {
        assert!(finished.stdout.contains(tool), "no {tool} in:\n{}", finished.stdout);
    }
    // All four in one program.
    let program = format!(
        r#"(pmap (fn [[server tool args]] (:ok (tool/call {{:server server :tool tool :args args}})))
             [["everything" "echo" {{:message "hi"}}]
              ["fs" "list_directory" {{:path "{path}"}}]
              ["time" "get_current_time" {{:timezone "UTC"}}]
              ["git" "git_status" {{:repo_path "{path}"}}]])"#
    );
    assert_eq!(value(&program, &config.flags(&[])), "[true true true true]");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn text_structured_content_and_images() {
    let program = r#"
        (defn call [tool args] (tool/call {:server "everything" :tool tool :args args}))
        [(call "echo" {:message "hello"})
         (call "get-sum" {:a 2 :b 40})
         (call "get-structured-content" {:location "Chicago"})
         (call "get-tiny-image" {})
         (call "get-annotated-message" {:messageType "success" :includeImage true})]"#;
    let report = eval(program, &everything_config().flags(&[]));
    assert_eq!(report["ok"], true, "{report:#}");
    let [echo, sum, structured, image, annotated] = report["json"].as_array().expect("a list").as_slice()
    else {
        panic!("{report:#}")
    };
    assert_eq!(echo["value"], "Echo: hello");
    assert_eq!(echo["value_kind"], "text");
    assert!(sum["value"].as_str().expect("text").contains("42"), "{sum}");
    assert_eq!(structured["value_kind"], "json");
    let weather = structured["value"].as_object().expect("a map");
    assert!(weather.contains_key("temperature") && weather.contains_key("conditions"), "{weather:?}");
    // The first text is the value; the image is in the content.
    assert!(image["value"].is_string() && image["ok"] == true, "{image}");
    let blocks = image["content"].as_array().expect("blocks");
    assert!(blocks.iter().any(|block| block["type"] == "image" && block["data"].is_string()), "{image}");
    assert_eq!(annotated["ok"], true, "{annotated}");
    let calls = report["upstream_calls"].as_array().expect("calls");
    assert!(
        calls.iter().all(|call| call["status"] == "ok" && call["result_bytes"].as_u64() > Some(0)),
        "{calls:?}"
    );
}

/// An image that the program returns reaches the client as an image, without its base64 in the text.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn an_image_reaches_the_client() {
    let config = everything_config();
    let mut server = Server::start(&config.flags(&[]));
    for program in [
        "(tool/call {:server \"everything\" :tool \"get-tiny-image\" :args {}})",
        "(filter #(= (:type %) \"image\") (:content (tool/call {:server \"everything\" :tool \"get-tiny-image\"})))",
    ] {
        let result = server.run(program);
        let blocks = result["content"].as_array().expect("blocks");
        assert_eq!(blocks.len(), 2, "{result}");
        assert_eq!((&blocks[1]["type"], &blocks[1]["mimeType"]), (&"image".into(), &"image/png".into()));
        let data = blocks[1]["data"].as_str().expect("base64");
        assert!(data.len() > 1_000 && data.starts_with("iVBORw0KGgo"), "{data}");
        let text = text_of(&result);
        assert!(text.len() < 1_000 && text.contains(&format!("…[{} bytes of base64]", data.len())), "{text}");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_tool_error_is_a_value() {
    let (_dir, path) = folder();
    let config = Upstreams::default().add("fs", filesystem(Path::new(&path))).add("time", time()).write();
    let program = format!(
        r#"[(tool/call {{:server "fs" :tool "read_text_file" :args {{:path "{path}/absent.txt"}}}})
            (tool/call {{:server "fs" :tool "read_text_file" :args {{:path "/etc/passwd"}}}})
            (tool/call {{:server "time" :tool "get_current_time" :args {{:timezone "Mars/Base"}}}})
            (tool/call {{:server "time" :tool "convert_time"
                         :args {{:source_timezone "Mars/Base" :time "10:00" :target_timezone "UTC"}}}})]"#
    );
    let report = eval(&program, &config.flags(&[]));
    let results = report["json"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    for result in results {
        assert_eq!(result["ok"], false, "{result}");
        let reason = result["reason"].as_str().expect("a reason");
        assert!(["tool_error", "upstream_error"].contains(&reason), "{result}");
        assert!(!result["message"].as_str().expect("a message").is_empty());
    }
    assert!(results[0]["message"].as_str().expect("text").contains("absent.txt"), "{}", results[0]);
    assert_eq!(report["ptc_metrics"]["upstream_error_count"], 4, "{report:#}");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_wrong_tool_name_is_the_programs_fault() {
    let report =
        eval("(tool/call {:server \"everything\" :tool \"no-such\"})", &everything_config().flags(&[]));
    assert_eq!(report["ok"], false);
    let message = report["message"].as_str().expect("text");
    assert!(message.contains("no tool 'no-such' in upstream 'everything'"), "{message}");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_call_that_takes_too_long_is_given_up() {
    let program = r#"
        [(:reason (tool/call {:server "everything" :tool "trigger-long-running-operation" :args {:duration 600 :steps 2}}))
         (:value (tool/call {:server "everything" :tool "echo" :args {:message "still here"}}))]"#;
    let config = everything_config();
    // The second call must fit into the same limit, on a busy machine too.
    assert_eq!(
        value(program, &config.flags(&["--upstream-call-timeout", "5s"])),
        "[:timeout \"Echo: still here\"]"
    );
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn an_answer_beyond_the_cap_is_refused_and_the_connection_lives() {
    let (dir, path) = folder();
    std::fs::write(dir.path().join("big.txt"), "x".repeat(3 << 20)).expect("written");
    std::fs::write(dir.path().join("small.txt"), "small").expect("written");
    let config = Upstreams::default().add("fs", filesystem(Path::new(&path))).write();
    let program = format!(
        r#"(defn read-it [name] (tool/call {{:server "fs" :tool "read_text_file" :args {{:path (str "{path}/" name)}}}}))
           [(:reason (read-it "big.txt")) (:value (read-it "small.txt"))]"#
    );
    assert_eq!(value(&program, &config.flags(&[])), "[:response_too_large \"small\"]");
    // The same file under a larger cap.
    let program = format!(
        r#"(count (:value (tool/call {{:server "fs" :tool "read_text_file" :args {{:path "{path}/big.txt"}}}})))"#
    );
    let flags = config.flags(&["--max-upstream-response-bytes", "20M"]);
    assert_eq!(value(&program, &flags), (3 << 20).to_string());
}

/// The server process is killed while a call is in flight: the call fails, and a later one restarts the server.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_killed_server_comes_back() {
    let config = Upstreams::probe().add("everything", everything()).write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s", "--max-upstream-calls", "1000000"]));
    let own: Vec<u32> = descendants(server.id()).into_iter().filter(|id| is_probe(*id)).collect();
    let echo = "(tool/call {:server \"everything\" :tool \"echo\" :args {:message \"hi\"}})";
    assert_eq!(server.text(&format!("(:value {echo})")), "\"Echo: hi\"");
    // Branches start in order: when the probe has its call, the long call has been sent.
    let waiting = server.begin_program(
        r#"(first (pcalls
             (fn [] (let [r (tool/call {:server "everything" :tool "trigger-long-running-operation"
                                        :args {:duration 600 :steps 1}})]
                      [(:ok r) (:reason r)]))
             (fn [] (tool/call {:server "probe" :tool "echo" :args {:v 1}}))))"#,
    );
    let stats = "(:value (tool/call {:server \"probe\" :tool \"stats\"}))";
    // The echo, and this call itself.
    let seen = format!("(loop [asked 1] (if (> (:calls {stats}) asked) :seen (recur (inc asked))))");
    assert_eq!(server.text(&seen), ":seen");
    for child in descendants(server.id()).into_iter().filter(|child| !own.contains(child)) {
        signal(child, "KILL");
    }
    let answer = server.receive();
    assert_eq!(answer["id"], waiting);
    assert_eq!(text_of(&answer["result"]), "[false :upstream_unavailable]", "{answer}");
    let again = format!("(loop [] (let [r {echo}] (if (:ok r) (:value r) (recur))))");
    // The answer also notes the calls that failed in the meantime.
    let answer = server.text(&again);
    assert_eq!(answer.split("\n\n[note: ").next(), Some("\"Echo: hi\""), "{answer}");
}

fn is_probe(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("probe-server"))
}

fn in_repository(dir: &Path, arguments: &[&str]) {
    let author =
        ["-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"];
    let mut git = Command::new("git");
    git.current_dir(dir).args(author).args(arguments);
    // A hook or a workflow may have set these for another repository.
    git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
    let done = git.output().expect("git runs");
    assert!(done.status.success(), "{done:?}");
}

/// A repository with a commit for each of a few files.
fn repository(dir: &Path) {
    in_repository(dir, &["init", "--quiet"]);
    for (number, file) in ["notes.md", "src/main.rs", "docs/guide.md", "src/lib.rs"].iter().enumerate() {
        let path = dir.join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, format!("file {number}\n")).expect("written");
        in_repository(dir, &["add", "."]);
        in_repository(dir, &["commit", "--quiet", "-m", &format!("Change {number}: {file}")]);
    }
}

/// Example 1 of the aggregator's reference: read one file.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn example_1_simple_read() {
    let (dir, path) = folder();
    std::fs::write(dir.path().join("notes.md"), "# Notes\nBuy milk.\n").expect("written");
    let config = Upstreams::default().add("fs", filesystem(Path::new(&path))).write();
    let program = format!(
        r#"(let [r (tool/call {{:server "fs"
                         :tool   "read_text_file"
                         :args   {{:path "{path}/notes.md"}}}})]
             (if (:ok r)
               (:value r)
               (fail (:message r))))"#
    );
    // This server's structured content repeats its text, which is the payload.
    assert_eq!(value(&program, &config.flags(&[])), r##""# Notes\nBuy milk.\n""##);
    let report = eval(&program.replace("notes.md", "gone.md"), &config.flags(&[]));
    assert_eq!(report["error"], "fail", "{report:#}");
    assert!(report["value"].as_str().expect("text").contains("gone.md"), "{report:#}");
}

/// Example 2: commits that touch a file of a list stored in another server (git in place of GitHub).
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn example_2_cross_server_filter() {
    let (dir, path) = folder();
    repository(dir.path());
    std::fs::write(dir.path().join("watched-paths.txt"), "src/lib.rs\nnotes.md\nno/such.md\n")
        .expect("written");
    let config = Upstreams::default()
        .add("fs", filesystem(Path::new(&path)))
        .add("git", git(Path::new(&path)))
        .write();
    let program = format!(
        r#"
(def unwrap
  (fn [r]
    (if (:ok r)
      (:value r)
      (fail (:message r)))))

(def commits
  (->> (unwrap (tool/call {{:server "git"
                          :tool   "git_log"
                          :args   {{:repo_path "{path}" :max_count 50}}}}))
       (re-seq #"Commit: '?([0-9a-f]{{7,40}})")
       (map second)))

(def watched-paths
  (unwrap (tool/call {{:server "fs"
                      :tool   "read_text_file"
                      :args   {{:path "{path}/watched-paths.txt"}}}})))

(def watch-set
  (set (clojure.string/split-lines watched-paths)))

(def shown
  (pmap (fn [commit]
          (let [text (unwrap (tool/call {{:server "git"
                                        :tool   "git_show"
                                        :args   {{:repo_path "{path}" :revision commit}}}}))]
            {{:message (second (re-find #"(Change \d+)" text))
             :files   (set (map second (re-seq #"(?m)^[+]{{3}} (?:b/)?(\S+)" text)))}}))
        commits))

(def hits
  (filter (fn [commit]
            (some watch-set (:files commit)))
          shown))

(map :message hits)"#
    );
    let report = eval(&program, &config.flags(&[]));
    assert_eq!(report["value"], r#"["Change 3" "Change 0"]"#, "{report:#}");
    let ratio = report["ptc_metrics"]["payload_reduction_ratio"].as_f64();
    assert!(ratio > Some(10.0), "{report:#}");
}

/// Example 3: a parallel batch in which some items do not exist.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn example_3_parallel_batch() {
    let (dir, path) = folder();
    for id in (101..=110).filter(|id| id % 4 != 0) {
        std::fs::write(dir.path().join(format!("{id}.json")), format!("{{\"name\": \"item {id}\"}}"))
            .expect("written");
    }
    let config = Upstreams::default().add("store", filesystem(Path::new(&path))).write();
    let program = format!(
        r#"
(def ids [101 102 103 104 105 106 107 108 109 110])

(def items
  (pmap (fn [id]
          (tool/call {{:server "store"
                     :tool   "read_text_file"
                     :args   {{:path (str "{path}/" id ".json")}}}}))
        ids))

;; Drop world-fault failures (e.g. one ID was unknown):
(def good (map :value (filter :ok items)))

(map (fn [item] (:name (json/parse-string item))) good)"#
    );
    let report = eval(&program, &config.flags(&[]));
    let names: Vec<String> =
        [101, 102, 103, 105, 106, 107, 109, 110].iter().map(|id| format!("\"item {id}\"")).collect();
    assert_eq!(report["value"], format!("[{}]", names.join(" ")), "{report:#}");
    let failed = |call: &&Value| call["status"] == "error" && call["reason"] == "tool_error";
    let calls = report["upstream_calls"].as_array().expect("calls");
    assert_eq!((calls.len(), calls.iter().filter(failed).count()), (10, 2), "{report:#}");
}

/// Tools accept the argument names that models write.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn arguments_reach_python_servers() {
    let config = Upstreams::default().add("time", time()).write();
    let program = r#"
        (let [r (tool/call {:server "time" :tool "convert_time"
                            :args {:source-timezone "Europe/Berlin" :time "12:00" :target_timezone "Asia/Tokyo"}})]
          [(:ok r) (:time_difference (:value r)) (get-in r [:value "target" "timezone"])])"#;
    let text = value(program, &config.flags(&[]));
    assert!(text.starts_with("[true \"+") && text.ends_with("\"Asia/Tokyo\"]"), "{text}");
}
