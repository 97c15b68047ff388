//! Tests of files, links and pipes that a checkout or another user has placed where `ptc` reads and writes.

use crate::binary::support::{ptc, stderr, stdout};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A home with a project in it, and a file of the user that must not change.
struct Home {
    folder: TempDir,
    victim: PathBuf,
}

const VICTIM: &str = "# the user's own\n";

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::create_dir_all(folder.path().join("project/.vscode")).expect("a folder");
        let victim = folder.path().join(".bashrc");
        std::fs::write(&victim, VICTIM).expect("written");
        set_mode(&victim, 0o600);
        Home { folder, victim }
    }

    fn at(&self, place: &str) -> PathBuf {
        self.folder.path().join("project").join(place)
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command: Command = ptc(arguments);
        command.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME");
        command.env_remove("PTC_UPSTREAMS").current_dir(self.folder.path().join("project"));
        let output = command.output().expect("binary ends");
        (output.status.code(), stdout(&output) + &stderr(&output))
    }

    fn holds(&self, case: &str) {
        let text = std::fs::read_to_string(&self.victim).expect("a file");
        assert_eq!(text, VICTIM, "{case}");
        assert_eq!(mode(&self.victim), 0o600, "{case}");
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

const CONFIG: &str = "/*\ntouch ~/PWNED\n: */\n{\"servers\": {}}\n";

/// File names next to the configuration that a write could follow or overwrite.
const PLANTED: [&str; 5] = [
    "mcp.json.ptc-backup",
    "mcp.json.partial",
    "mcp.json.ptc-backup.partial",
    "mcp.json.ptc-unreadable",
    "mcp.json.new",
];

#[test]
fn a_checkout_cannot_lead_what_install_writes_to_another_place() {
    for name in PLANTED {
        for kind in ["link", "pipe", "loose file"] {
            let case = format!("{name}: {kind}");
            let home = Home::new();
            let (file, planted) = (home.at(".vscode/mcp.json"), home.at(".vscode").join(name));
            std::fs::write(&file, CONFIG).expect("written");
            set_mode(&file, 0o644);
            match kind {
                "link" => symlink("../../.bashrc", &planted).expect("linked"),
                "pipe" => pipe(&planted),
                _ => {
                    std::fs::write(&planted, "x").expect("written");
                    set_mode(&planted, 0o666);
                }
            }
            let (code, said) = home.run(&["install", "vscode", "--project"]);
            assert_eq!(code, Some(0), "{case}: {said}");
            home.holds(&case);
            let backup = home.at(".vscode/mcp.json.ptc-backup");
            assert_eq!((mode(&backup), mode(&file)), (0o600, 0o644), "{case}");
            assert!(!file.is_symlink() && !backup.is_symlink(), "{case}");
            assert_eq!(std::fs::read_to_string(&backup).expect("a copy"), CONFIG, "{case}");
            // An unreadable file is put aside, and the one that was there before comes back.
            if name == "mcp.json.ptc-unreadable" {
                std::fs::write(&file, "{ broken").expect("written");
            }
            let (code, said) = home.run(&["install", "vscode", "--project", "--undo"]);
            assert_eq!(code, Some(0), "{case}: {said}");
            home.holds(&case);
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), CONFIG, "{case}");
            if name == "mcp.json.ptc-unreadable" {
                assert_eq!(std::fs::read_to_string(&planted).expect("a copy"), "{ broken", "{case}");
                assert_eq!(mode(&planted), 0o600, "{case}");
            }
        }
    }
}

#[test]
fn the_file_of_a_project_stays_in_the_project() {
    for (link, target) in [
        (".vscode/mcp.json", "../../.bashrc"),
        (".vscode/mcp.json", "../../nothing-yet"),
        (".vscode", "../outside"),
    ] {
        let home = Home::new();
        std::fs::create_dir(home.folder.path().join("outside")).expect("a folder");
        let place = home.at(link);
        let _ = std::fs::remove_dir(&place);
        symlink(target, &place).expect("linked");
        let (code, said) = home.run(&["install", "vscode", "--project"]);
        assert!(code == Some(2) && said.contains("it leads out of"), "{link}: {said}");
        home.holds(link);
        assert!(!home.folder.path().join("nothing-yet").exists());
        assert_eq!(std::fs::read_dir(home.folder.path().join("outside")).expect("a folder").count(), 0);
    }
    // A link inside the project is followed, and so is one in the home: people keep such files elsewhere.
    for (flags, link, target) in [
        (&["--project"][..], "project/.vscode/mcp.json", "project/real.json"),
        (&[], ".config/Code/User/mcp.json", "dotfiles/mcp.json"),
    ] {
        let home = Home::new();
        let (link, target) = (home.folder.path().join(link), home.folder.path().join(target));
        for path in [&link, &target] {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        }
        std::fs::write(&target, "{}").expect("written");
        symlink(&target, &link).expect("linked");
        let (code, said) = home.run(&[&["install", "vscode"], flags].concat());
        assert_eq!(code, Some(0), "{said}");
        assert!(
            link.is_symlink() && std::fs::read_to_string(&target).expect("a file").contains("serve"),
            "{said}"
        );
    }
}

#[test]
fn files_that_may_hold_secrets_are_their_owners_whatever_was_there_before() {
    let client = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"API_KEY\": \"k-123456789\"}}}}";
    let add: &[&str] = &["add", "--to", "mine.json", "b", "--", "y"];
    let import: &[&str] = &["config", "import", "--from", "claude-code", "--force", "--to", "mine.json"];
    for arguments in [add, import] {
        for planted in ["mine.json.partial", "mine.json", ".mine.json.partial"] {
            for kind in ["link", "loose file"] {
                let case = format!("{arguments:?} {planted} {kind}");
                let home = Home::new();
                std::fs::write(home.at(".mcp.json"), client).expect("written");
                let place = home.at(planted);
                match (kind, planted) {
                    ("link", _) => symlink("../.bashrc", &place).expect("linked"),
                    _ => {
                        std::fs::write(&place, "{}").expect("written");
                        set_mode(&place, 0o666);
                    }
                }
                let (code, said) = home.run(arguments);
                home.holds(&case);
                if code == Some(2) {
                    // `add` first reads the file that the link leads to, which is no configuration.
                    assert!(
                        kind == "link" && planted == "mine.json" && arguments[0] == "add",
                        "{case}: {said}"
                    );
                    continue;
                }
                assert_eq!(code, Some(0), "{case}: {said}");
                assert_eq!(mode(&home.at("mine.json")), 0o600, "{case}");
            }
        }
    }
}

#[test]
fn pipes_and_devices_are_refused_and_never_waited_for() {
    let home = Home::new();
    let place = home.at("pipe.json");
    pipe(&place);
    std::fs::write(home.at("empty.json"), "{\"upstreams\": {}}").expect("written");
    let commands: [&[&str]; 8] = [
        &["doctor", "--upstreams-config", "pipe.json"],
        &["eval", "--upstreams-config", "pipe.json", "(+ 1 2)"],
        &["serve", "--upstreams-config", "empty.json", "--http", "127.0.0.1:0", "--http-tokens", "pipe.json"],
        &["serve", "--upstreams-config", "empty.json", "--prelude", "pipe.json"],
        &["prelude", "list", "--prelude-store", "pipe.json"],
        &["add", "--to", "pipe.json", "b", "--", "y"],
        &["eval", "--context", "@pipe.json", "data"],
        &["eval", "--upstreams-config", "/dev/zero", "(+ 1 2)"],
    ];
    for arguments in commands {
        let (code, said) = home.run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains("not a regular file"), "{arguments:?}: {said}");
    }
    // A file descriptor that the shell passes is a pipe, too.
    let line = format!(
        "'{}' eval --upstreams-config <(echo '{{\"upstreams\": {{}}}}') '(+ 1 2)'",
        env!("CARGO_BIN_EXE_ptc")
    );
    let output = Command::new("bash").args(["-c", &line]).output().expect("bash");
    assert_eq!(stdout(&output), "3\n", "{}", stderr(&output));
}
