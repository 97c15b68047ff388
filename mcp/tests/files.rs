//! Tests that the file tools cannot leave their folders, by any argument that takes a path.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use ptc_base::secrets::SecretRegistry;
use ptc_base::spill::SpillStore;
use ptc_base::tasks::StopFlag;
use ptc_server::files::{FileRoots, FileUtilities};
use ptc_upstream::{AnswerWriter, ResultSink};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// A folder full of links out of it, and files outside.
struct Hostile {
    outside: TempDir,
    root: TempDir,
    roots: Arc<FileRoots>,
    _socket: std::os::unix::net::UnixListener,
}

const SECRET: &str = "{\"secret\":1}";

impl Hostile {
    fn new() -> Hostile {
        let (outside, root) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let (out, path) = (outside.path(), root.path());
        std::fs::write(out.join("secret.json"), SECRET).expect("written");
        std::fs::create_dir(out.join("folder")).expect("made");
        std::fs::create_dir(path.join("sub")).expect("made");
        std::fs::write(path.join("sub/args.json"), "{}").expect("written");
        let link = |to: &Path, name: &str| symlink(to, path.join(name)).expect("linked");
        link(&out.join("secret.json"), "file-link");
        link(&out.join("new.json"), "new-link");
        link(out, "dir-link");
        link(Path::new("dir-link"), "link-link");
        link(Path::new("/"), "root-link");
        link(Path::new(".."), "up-link");
        link(Path::new("loop-link"), "loop-link");
        link(Path::new("/proc/self/root"), "proc-link");
        link(Path::new("/dev/zero"), "zero-link");
        link(Path::new("sub/args.json"), "inner-link");
        std::fs::hard_link(out.join("secret.json"), path.join("hard-link")).expect("linked");
        let made = std::process::Command::new("mkfifo").arg(path.join("pipe")).status().expect("mkfifo");
        assert!(made.success());
        std::fs::File::create(path.join("sparse")).expect("made").set_len(1 << 40).expect("long");
        let socket = std::os::unix::net::UnixListener::bind(path.join("socket")).expect("bound");
        let roots = Arc::new(FileRoots::open(&[path.to_owned()]).expect("opened"));
        Hostile { outside, root, roots, _socket: socket }
    }

    /// Paths that lead outside, or to something other than a file.
    fn escapes(&self) -> Vec<String> {
        let (out, root) = (self.outside.path(), self.root.path().display());
        let secret = out.join("secret.json").to_str().expect("UTF-8").to_owned();
        let name = out.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let up = format!("../{name}/secret.json");
        let mut escapes = [
            "file-link",
            "dir-link/secret.json",
            "link-link/secret.json",
            "dir-link/./secret.json",
            "dir-link/folder/../secret.json",
            "sub/../dir-link/secret.json",
            "new-link",
            "root-link/etc/hostname",
            "root-link/etc/passwd",
            "up-link/etc/passwd",
            "loop-link",
            "loop-link/x",
            "proc-link/etc/passwd",
            "zero-link",
            "pipe",
            "socket",
            "..",
            "../",
            "up-link",
            "dir-link/folder",
            "/",
            "/etc/passwd",
            "/etc/hostname",
            "/proc/self/environ",
            "/proc/self/mem",
            "/proc/self/fd/0",
            "/dev/zero",
            "/dev/stdin",
            "/dev/tty",
            "sub/../../etc/passwd",
            "sub/args.json/..",
            "sub/args.json/x",
            "~/.ssh/id_rsa",
            "file:///etc/passwd",
            "%2e%2e/etc/passwd",
            "sub\0/args.json",
            "..\\etc\\passwd",
        ]
        .map(str::to_owned)
        .to_vec();
        escapes.extend([
            up.clone(),
            format!("up-link/{name}/secret.json"),
            format!("root-link{secret}"),
            secret.clone(),
            format!("{root}/{up}"),
            format!("{root}/sub/../{up}"),
            format!("{root}/dir-link/secret.json"),
            format!("{root}/file-link"),
            format!("{root}{secret}"),
            format!("{root}-beside/secret.json"),
            format!("/proc/self/root{secret}"),
        ]);
        assert!(escapes.len() >= 40, "{}", escapes.len());
        escapes
    }

    /// True if the files outside are unchanged.
    fn is_untouched(&self) -> bool {
        let names = || std::fs::read_dir(self.outside.path()).expect("a folder").count();
        let secret = std::fs::read_to_string(self.outside.path().join("secret.json"));
        secret.is_ok_and(|text| text == SECRET) && names() == 2 && self.outside.path().join("folder").is_dir()
    }
}

/// The answer of a tool, or its error text.
fn call(roots: &Arc<FileRoots>, tool: &str, arguments: &Value) -> Result<Value, String> {
    let answer = AnswerWriter::of_result(ResultSink { max_bytes: 1 << 20, store: None });
    let utilities = FileUtilities::new(roots.clone(), true);
    let answer = utilities.call(tool, &arguments.to_string(), answer, &StopFlag::default());
    let answer = answer.map_err(|fault| format!("{fault:?}"))?;
    let result: Value = serde_json::from_slice(answer.bytes()).expect("JSON");
    if result["isError"] == true { Err(result.to_string()) } else { Ok(result) }
}

#[test]
fn files_inside_are_read_by_any_path_to_them() {
    let hostile = Hostile::new();
    for name in ["sub/args.json", "./sub/../sub/args.json", "inner-link"] {
        let whole = hostile.root.path().join(name).to_str().expect("UTF-8").to_owned();
        for name in [name, &whole] {
            assert_eq!(hostile.roots.read(name, 100).as_deref(), Ok("{}"), "{name}");
            let read = call(&hostile.roots, "filesystemQuery", &json!({ "path": name }));
            assert_eq!(read.expect(name)["content"][0]["text"], "{}");
        }
    }
    assert!(hostile.roots.read("sub/args.json", 1).is_err());
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let hostile = Hostile::new();
    for escape in hostile.escapes() {
        let read = hostile.roots.read(&escape, 1 << 20);
        assert!(read.is_err(), "{escape:?} gave {read:?}");
        for operation in ["read", "list", "search", "info"] {
            let mut arguments = json!({ "path": escape, "operation": operation });
            if operation == "search" {
                arguments["pattern"] = ".".into();
            }
            let found = call(&hostile.roots, "filesystemQuery", &arguments);
            assert!(found.is_err(), "{operation} {escape:?} gave {found:?}");
        }
    }
    for name in ["", ".", "sub", "sub/", "nothing", "sparse"] {
        assert!(hostile.roots.read(name, 1 << 20).is_err(), "{name}");
    }
    let secret = hostile.outside.path().join("secret.json").to_str().expect("UTF-8").to_owned();
    assert!(FileRoots::default().read(&secret, 100).is_err());
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let hostile = Hostile::new();
    for escape in hostile.escapes() {
        for operation in ["write", "append", "mkdir"] {
            for makes_folders in [false, true] {
                let mut arguments = json!({ "path": escape, "operation": operation,
                    "createMissingDirs": makes_folders });
                if operation != "mkdir" {
                    arguments["content"] = "overwritten".into();
                }
                let done = call(&hostile.roots, "filesystemModify", &arguments);
                // Odd names that are inside.
                let is_inside = ["~", "file:", "%2e", "..\\"].iter().any(|odd| escape.starts_with(odd))
                    || escape
                        == format!(
                            "{}{}",
                            hostile.root.path().display(),
                            hostile.outside.path().join("secret.json").display()
                        );
                assert!(done.is_err() || is_inside, "{operation} {escape:?} gave {done:?}");
            }
        }
        assert!(hostile.is_untouched(), "{escape:?}");
    }
    // A link itself can be removed; its target stays.
    for escape in hostile.escapes() {
        let _ = call(&hostile.roots, "filesystemModify", &json!({ "path": escape, "operation": "delete" }));
        assert!(hostile.is_untouched(), "{escape:?}");
    }
    let hard = json!({ "path": "hard-link", "content": "overwritten" });
    assert!(
        call(&hostile.roots, "filesystemModify", &hard)
            .expect_err("it has other names")
            .contains("hard links")
    );
    assert!(hostile.is_untouched());
}

#[test]
fn folders_are_gone_through_without_leaving_them() {
    let hostile = Hostile::new();
    for arguments in [
        json!({ "recursive": true, "includeHidden": true }),
        json!({ "operation": "search", "pattern": "secret|root|\\w" }),
    ] {
        let found = call(&hostile.roots, "filesystemQuery", &arguments).expect("it is gone through");
        let text = found.to_string();
        assert!(!text.contains("secret.json") && !text.contains("passwd"), "{text}");
    }
    let listed = call(&hostile.roots, "filesystemQuery", &json!({})).expect("listed");
    let kind = |name: &str| {
        let files = listed["structuredContent"]["files"].as_array().expect("a list");
        files.iter().find(|entry| entry["name"] == name).map(|entry| entry["type"].clone())
    };
    assert_eq!(kind("dir-link"), Some("link".into()));
    assert_eq!(kind("pipe"), Some("other".into()));
    assert_eq!(kind("sub"), Some("folder".into()));
    // A sparse file of a terabyte is not text, and is not read to its end.
    let sparse = call(&hostile.roots, "filesystemQuery", &json!({ "path": "sparse" }));
    assert!(sparse.expect_err("it is too large").contains("TooLarge"));
    let part = json!({ "path": "sparse", "fromLine": 1, "toLine": 2 });
    assert!(
        call(&hostile.roots, "filesystemQuery", &part).expect_err("it is no text").contains("no UTF-8 text")
    );
}

#[test]
fn kept_results_are_hidden() {
    let options = ptc_base::spill::SpillOptions::default();
    let store = SpillStore::open(&options, SecretRegistry::new()).expect("a store");
    let kept = store.keep(b"kept").expect("kept");
    let whole = kept.path().to_owned();
    let temporary = options.base.parent().expect("a parent").to_owned();
    let roots = Arc::new(FileRoots::open(std::slice::from_ref(&temporary)).expect("opened"));
    let name = options.base.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
    let inside =
        Path::new(&whole).strip_prefix(&temporary).expect("inside").to_str().expect("UTF-8").to_owned();
    let folder = Path::new(&inside).parent().and_then(Path::to_str).expect("UTF-8").to_owned();
    for path in [&name, &folder, &inside, &whole, &format!("./{name}/../{inside}")] {
        let read = call(&roots, "filesystemQuery", &json!({ "path": path }));
        assert!(read.expect_err(path).contains("kept results"), "{path}");
        assert!(roots.read(path, 100).is_err());
        for arguments in [
            json!({ "path": path, "content": "x" }),
            json!({ "path": path, "operation": "delete" }),
            json!({ "path": path, "operation": "mkdir" }),
            json!({ "path": format!("{path}/more/x"), "operation": "mkdir", "createMissingDirs": true }),
        ] {
            call(&roots, "filesystemModify", &arguments).expect_err(path);
        }
    }
    let listed = call(&roots, "filesystemQuery", &json!({ "limit": 100_000 })).expect("listed");
    assert!(!listed.to_string().contains(&format!("\"{name}\"")));
    assert_eq!(kept.read(100).map(|part| part.text).as_deref(), Ok("kept"));
}

#[test]
fn what_changes_between_steps_leads_nowhere_either() {
    let hostile = Hostile::new();
    let root = hostile.root.path();
    std::fs::remove_file(root.join("hard-link")).expect("removed");
    let (inner, away) = (root.join("inner"), root.join("away"));
    std::fs::create_dir(&inner).expect("made");
    std::fs::write(inner.join("secret.json"), "inside").expect("written");
    symlink(hostile.outside.path(), root.join("link")).expect("linked");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The folder and a link that leads outside are swapped.
                std::fs::rename(&inner, &away).expect("moved");
                std::fs::rename(root.join("link"), &inner).expect("moved");
                std::fs::rename(&inner, root.join("link")).expect("moved");
                std::fs::rename(&away, &inner).expect("moved");
            }
        });
        for round in 0..300 {
            if let Ok(text) = hostile.roots.read("inner/secret.json", 100) {
                assert_eq!(text, "inside");
            }
            for arguments in [
                json!({ "path": "inner/secret.json" }),
                json!({ "path": "inner", "operation": "search", "pattern": "secret" }),
                json!({ "recursive": true, "operation": "search", "pattern": "secret" }),
            ] {
                if let Ok(found) = call(&hostile.roots, "filesystemQuery", &arguments) {
                    assert!(!found.to_string().contains("\\\"secret\\\":1"), "{found}");
                    assert_ne!(found["content"][0]["text"], SECRET);
                }
            }
            for arguments in [
                json!({ "path": "inner/secret.json", "content": "inside" }),
                json!({ "path": "inner/new.json", "content": "inside" }),
                json!({ "path": "inner/new.json", "operation": "delete" }),
                json!({ "path": format!("inner/{round}"), "operation": "mkdir" }),
            ] {
                let _ = call(&hostile.roots, "filesystemModify", &arguments);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(hostile.is_untouched());
}

/// On a full disk the old content is still there.
#[test]
fn a_file_is_replaced_as_a_whole() {
    use std::io::Read as _;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let root = tempfile::tempdir().expect("a folder");
    let roots = Arc::new(FileRoots::open(&[root.path().to_owned()]).expect("folders"));
    let path = root.path().join("a.txt");
    std::fs::write(&path, "old").expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("a mode");
    let (mut before, inode) =
        (std::fs::File::open(&path).expect("a file"), path.metadata().expect("there").ino());
    let written = call(&roots, "filesystemModify", &json!({ "path": "a.txt", "content": "new" }));
    assert!(written.is_ok(), "{written:?}");
    let found = path.metadata().expect("there");
    assert!(found.ino() != inode && found.mode() & 0o777 == 0o640);
    let mut old = String::new();
    before.read_to_string(&mut old).expect("read");
    assert_eq!((&*old, &*std::fs::read_to_string(&path).expect("read")), ("old", "new"));
    let names: Vec<_> =
        std::fs::read_dir(root.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["a.txt"]);
}

#[test]
fn files_are_written_appended_and_removed() {
    let root = tempfile::tempdir().expect("a folder");
    let roots = Arc::new(FileRoots::open(&[root.path().to_owned()]).expect("opened"));
    let modify = |arguments: Value| call(&roots, "filesystemModify", &arguments);
    let made =
        modify(json!({ "path": "a/b.txt", "content": "one\n", "createMissingDirs": true })).expect("written");
    assert_eq!(made["structuredContent"], json!({ "path": "a/b.txt", "operation": "write", "bytes": 4 }));
    modify(json!({ "path": "a/b.txt", "content": "two\nthree", "operation": "append" })).expect("appended");
    let query = |arguments: Value| call(&roots, "filesystemQuery", &arguments);
    let text = |arguments: Value| query(arguments).expect("read")["content"][0]["text"].clone();
    assert_eq!(text(json!({ "path": "a/b.txt" })), "one\ntwo\nthree");
    assert_eq!(text(json!({ "path": "a/b.txt", "fromLine": 2, "toLine": 2 })), "two\n");
    assert_eq!(text(json!({ "path": "a/b.txt", "fromLine": 3 })), "three");
    assert_eq!(text(json!({ "path": "a/b.txt", "fromLine": 4 })), "");
    let found = query(json!({ "operation": "search", "pattern": "T[wh]" })).expect("searched");
    let want = json!([{ "file": "a/b.txt", "line": 2, "text": "two" }, { "file": "a/b.txt", "line": 3, "text": "three" }]);
    assert_eq!(found["structuredContent"]["matches"], want);
    let found = query(json!({ "operation": "search", "pattern": "t", "limit": 1 })).expect("searched");
    assert_eq!(found["structuredContent"]["metadata"]["truncated"], true);
    let listed = query(json!({ "recursive": true, "pattern": "\\.txt$" })).expect("listed");
    assert_eq!(listed["structuredContent"]["summary"], "1 files of 13 bytes, 0 folders");
    assert_eq!(listed["structuredContent"]["files"][0]["name"], "a/b.txt");
    let info = query(json!({ "path": "a", "operation": "info" })).expect("described");
    assert_eq!(info["structuredContent"]["type"], "folder");
    for wrong in [
        json!({ "path": "a", "operation": "delete" }),
        json!({ "path": "a/b.txt" }),
        json!({ "path": "x", "operation": "mkdir", "content": "" }),
        json!({ "path": ".", "content": "" }),
        json!({ "path": "none/x", "content": "" }),
        json!({ "path": "a", "content": "" }),
    ] {
        modify(wrong.clone()).expect_err(&wrong.to_string());
    }
    let wrong = query(json!({ "path": "a/b.txt", "recursive": true })).expect_err("it is a file");
    assert!(wrong.contains("`recursive` belongs to search and list, not to read"), "{wrong}");
    for path in ["a/b.txt", "a"] {
        modify(json!({ "path": path, "operation": "delete" })).expect("removed");
    }
    assert_eq!(std::fs::read_dir(root.path()).expect("a folder").count(), 0);
    std::fs::write(root.path().join("cut.txt"), [b"x".repeat(65_535), "é".into(), b"\xff".to_vec()].concat())
        .expect("written");
    assert!(query(json!({ "path": "cut.txt" })).expect_err("no text").contains("no UTF-8"));
}
