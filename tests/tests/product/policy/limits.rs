//! Limits over many calls, and secrets that stay with their server.

use super::{PolicyFile, probe};
use ptc_tests::binary::{ptc, run, value};
use ptc_tests::upstreams::{Upstreams, probe_server};

const OPEN: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n";

#[test]
fn limits_count_calls_of_all_processes_exactly() {
    let (config, state) = (probe(), tempfile::tempdir().unwrap());
    let text = "[[limit]]\ntools = [\"probe/echo\"]\nlimit = 'calls <= 25 per day'\n";
    let policy = PolicyFile::new(&format!("{OPEN}{text}"));
    let flags = config.flags(&["--policy", policy.path()]);
    let made = |program: &str| {
        let mut command = ptc(&[&["eval", program][..], &flags].concat());
        command.env("XDG_STATE_HOME", state.path());
        let ran = run(command, "");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    let program = "(count (filter :ok (pmap #(tool/call 'probe/echo {:v %}) (range 15))))";
    let counts: Vec<u32> = std::thread::scope(|scope| {
        let both = [0, 1].map(|_| scope.spawn(|| made(program).trim().parse().unwrap()));
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<u32>(), 25, "{counts:?}");
    let said = made("(let [r (tool/call 'probe/echo {:v 1})] [(:reason r) (:message r)])");
    assert!(said.contains(":denied") && said.contains(": limit calls <= 25 per day"), "{said}");
    // An edit of the file is no new limit; a higher one allows the rest.
    policy.rewrite(&format!("# A comment.\n\n{OPEN}{text}"));
    assert_eq!(made("(:reason (tool/call 'probe/echo {:v 1}))").trim(), ":denied");
    policy.rewrite(&format!("{OPEN}{}", text.replace("25", "26")));
    let two = made("(mapv #(:reason (tool/call 'probe/echo {:v %}) :made) [1 2])");
    assert_eq!(two.trim(), "[:made :denied]");
    // Other tools are not counted.
    assert_eq!(made("(:ok (tool/call 'probe/stats {}))").trim(), "true");
}

#[test]
fn sums_of_an_argument_are_limited_for_each_session() {
    let (config, state) = (probe(), tempfile::tempdir().unwrap());
    let text =
        "[[limit]]\ntools = [\"probe/echo\"]\nper = \"session\"\nlimit = 'sum(\"/v\") <= 100 per hour'\n";
    let policy = PolicyFile::new(&format!("{OPEN}{text}"));
    let flags = config.flags(&["--policy", policy.path()]);
    let program = "(mapv #(:reason (tool/call 'probe/echo {:v %}) :made) [60 -30 20 10 \"1\" 10])";
    // A run without a session is one of its own.
    for _ in 0..2 {
        let mut command = ptc(&[&["eval", program][..], &flags].concat());
        command.env("XDG_STATE_HOME", state.path());
        let ran = run(command, "");
        assert_eq!(ran.stdout.trim(), "[:made :made :denied :made :denied :denied]", "{ran:?}");
    }
}

#[test]
fn a_secret_of_one_server_is_not_sent_to_another() {
    let secret = "correct-horse-battery-staple";
    let mut keeper = probe_server(&[]);
    keeper["env"] = serde_json::json!({ "API_TOKEN": secret });
    let config = Upstreams::probe().add("keeper", keeper).write();
    let call = |server: &str| format!("(:reason (tool/call '{server}/echo {{:v \"x {secret} y\"}}) :made)");
    let both = format!("[{} {}]", call("probe"), call("keeper"));
    let open = PolicyFile::new(OPEN);
    assert_eq!(value(&both, &config.flags(&["--policy", open.path()])), "[:denied :made]");
    let passes = PolicyFile::new(&format!("secrets = \"allow\"\n{OPEN}"));
    assert_eq!(value(&both, &config.flags(&["--policy", passes.path()])), "[:made :made]");
    // One file that forbids it is enough.
    let forbids = PolicyFile::new(&format!("secrets = \"deny\"\n{OPEN}"));
    let flags = config.flags(&["--policy", passes.path(), "--policy", forbids.path()]);
    assert_eq!(value(&both, &flags), "[:denied :made]");
    assert_eq!(value(&both, &config.flags(&[])), "[:made :made]");
}
