//! Tools that are compared with those that were reviewed (`ptc pin`, `--pin`).

use ptc_tests::binary::{Finished, ptc, run};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::probe_server;
use serde_json::json;
use tempfile::TempDir;

/// A folder with a configuration whose tools have this description.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.configure("Says it", "");
        folder
    }

    fn configure(&self, description: &str, more: &str) {
        let text = format!(
            "servers:\n  - name: here\n    transport: local\n    folder: \".\"\n    handlers:\n      - {{name: say, description: {description}, command: [\"printf\", \"{{text}}\"]}}\n{more}"
        );
        std::fs::write(self.0.path().join("config.yaml"), text).unwrap();
    }

    fn ptc(&self, arguments: &[&str]) -> Finished {
        let mut command = ptc(arguments);
        command.current_dir(self.0.path()).args(["--upstreams-config", "config.yaml"]);
        run(command, "")
    }

    fn eval(&self, program: &str, pin: &str) -> String {
        let finished = self.ptc(&["eval", program, "--pin", pin]);
        finished.stdout + &finished.stderr
    }
}

const SAY: &str = "(let [r (tool/call 'here/say {:text \"x\"})] [(:ok r) (:reason r)])";

#[test]
fn a_tool_that_has_changed_is_not_called_until_it_is_accepted() {
    let folder = Folder::new();
    let missing = folder.eval(SAY, "enforce");
    assert!(missing.contains("ptc.lock, which is not there: `ptc pin --all`"), "{missing}");
    let shown = folder.ptc(&["pin"]);
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.stdout.contains("here: new tool say\n"), "{shown:?}");
    assert_eq!(folder.ptc(&["pin", "--all"]).code, Some(0));
    assert!(folder.eval(SAY, "enforce").contains("[true nil]"));
    folder.configure("Says it to all", "");
    let refused = folder.eval(SAY, "enforce");
    assert!(refused.contains("[false :tool_changed]"), "{refused}");
    let refused = folder.eval("(:message (tool/call 'here/say {:text \"x\"}))", "enforce");
    assert!(refused.contains("here/say: its text is not the pinned one; `ptc pin`"), "{refused}");
    assert!(!folder.ptc(&["eval", "(dir 'here)", "--pin", "enforce"]).stdout.contains("say"));
    assert!(folder.eval(SAY, "off").contains("[true nil]"));
    let warned = folder.eval(SAY, "warn");
    assert!(warned.contains("[true nil]") && warned.contains("not as it was pinned"), "{warned}");
    let shown = folder.ptc(&["pin"]);
    assert_eq!(shown.code, Some(1));
    assert!(
        shown.stdout.contains("  - description: \"Says it\"\n  + description: \"Says it to all\"\n"),
        "{shown:?}"
    );
    assert_eq!(folder.ptc(&["pin", "here"]).code, Some(0));
    assert!(folder.eval(SAY, "enforce").contains("[true nil]"));
    folder.configure("Says it to all", "      - {name: shout, command: [\"printf\", \"{text}\"]}\n");
    assert!(folder.eval(SAY, "enforce").contains("[true nil]"));
    assert!(
        folder.eval("(:reason (tool/call 'here/shout {:text \"x\"}))", "enforce").contains(":tool_changed")
    );
    assert_eq!(folder.ptc(&["pin", "hree"]).code, Some(2));
}

#[test]
fn prompts_and_resources_that_have_changed_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |arguments: &[&str]| {
        let mut command = ptc(arguments);
        command.current_dir(folder.path()).args(["--upstreams-config", "config.json"]);
        run(command, "")
    };
    let configure = |about: &str| {
        let servers = json!({ "probe": probe_server(&["--about", about]) });
        let text = json!({ "upstreams": servers }).to_string();
        std::fs::write(folder.path().join("config.json"), text).unwrap();
    };
    // Longer than what lists show of it.
    let long = "It says hello. ".repeat(40);
    configure(&long);
    assert_eq!(in_folder(&["pin", "--all"]).code, Some(0));
    let calls = [
        "(prompt/get {:server \"probe\" :name \"greet\" :args {:who \"me\"}})",
        "(resource/read {:server \"probe\" :uri \"memo://notes\"})",
        "(resource/read {:server \"probe\" :uri \"memo://dot\"})",
        "(resource/read {:server \"probe\" :uri \"memo://numbers/7\"})",
        "(resource/read {:server \"probe\" :uri \"memo://elsewhere\"})",
    ];
    let program = format!("(mapv #(:reason % :made) [{}])", calls.join(" "));
    let reasons = |pin: &str| in_folder(&["eval", &program, "--pin", pin]).stdout.trim().to_owned();
    let unlisted = "[:made :made :made :made :tool_changed]";
    assert_eq!(reasons("enforce"), unlisted);
    configure(&(long + "Then it sends everything to me."));
    assert_eq!(reasons("enforce"), "[:tool_changed :tool_changed :made :made :tool_changed]");
    let shown = in_folder(&["pin"]);
    assert!(shown.code == Some(1) && shown.stdout.contains("probe: prompt greet\n"), "{shown:?}");
    assert_eq!(in_folder(&["pin", "probe"]).code, Some(0));
    assert_eq!(reasons("enforce"), unlisted);
}

#[test]
fn changes_in_flight_are_refused_until_they_are_accepted() {
    let folder = Folder::new();
    assert_eq!(folder.ptc(&["pin", "--all"]).code, Some(0));
    let mut command = ptc(&["serve", "--upstreams-config", "config.yaml", "--pin", "enforce"]);
    command.args(["--config-reload", "watch"]).current_dir(folder.0.path());
    let mut server = Server::from_command(command);
    assert_eq!(text_of(&server.run(SAY)), "[true nil]");
    let mut until = |want: &str| while text_of(&server.run(SAY)) != want {};
    folder.configure("Says it to all", "");
    until("[false :tool_changed]");
    assert_eq!(folder.ptc(&["pin", "here"]).code, Some(0));
    until("[true nil]");
    // A file that was edited by hand is not used.
    let path = folder.0.path().join("ptc.lock");
    let edited = std::fs::read_to_string(&path).unwrap().replace("Says it to all", "Says nothing");
    std::fs::write(&path, edited).unwrap();
    server.has_logged("the edited ptc.lock is not used, the one before stays: here/say: the digests are not");
    assert_eq!(text_of(&server.run(SAY)), "[true nil]");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn ptc_up_takes_no_pins() {
    let refused = Folder::new().ptc(&["up", "--pin", "enforce"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("--pin does nothing in `ptc up`"),
        "{refused:?}"
    );
}
