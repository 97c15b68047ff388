//! Tools that the configuration defines (`transport: local`): commands and file operations in one folder, for scripts
//! and for programs.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::processes::eventually;
use ptc_tests::scripts::{engine, run};
use ptc_tests::serve::Server;
use std::path::Path;
use tempfile::TempDir;

const CONFIG: &str = r#"
servers:
  - name: here
    transport: local
    folder: data
    handlers:
      - name: count_lines
        description: Lines of a file
        command: ["wc", "-l", "{path}"]
      - name: shout
        command: ["printf", "<%s>", "{text} {times}"]
        parameters: {times: {type: integer}}
      - {name: fail, command: ["sh", "-c", "echo no such report >&2; exit 3"]}
      - {name: secretive, command: ["env"]}
      - {name: slow, command: ["sh", "-c", "sleep 600 & echo $! > pid; sleep 600"]}
      - {name: leave, command: ["sh", "-c", "mkfifo begun; setsid sh -c 'echo $$ > left; echo > begun; exec sleep 600' > /dev/null 2>&1 < /dev/null & cat begun"]}
      - {name: endless, command: ["yes"]}
      - {name: read_file, file: read}
      - {name: list_files, file: list}
      - {name: write_file, file: write}
tools:
  block: ["mcp__here__secretive"]
"#;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir_all(at("data/sub")).unwrap();
    std::fs::write(at("data/rows.json"), "[1, 2, 3]\n").unwrap();
    std::fs::write(at("outside.txt"), "nobody reads this").unwrap();
    std::os::unix::fs::symlink(at("outside.txt"), at("data/link")).unwrap();
    std::fs::write(at("config.yaml"), CONFIG).unwrap();
    folder
}

fn server(folder: &Path, flags: &[&str]) -> Server {
    let mut command = ptc(&["serve", "--tools", "lisp_eval,execute_program", "--python-engine", engine()]);
    command.current_dir(folder).args(["--upstreams-config", "config.yaml"]).args(flags);
    Server::from_command(command)
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn commands_and_files() {
    let folder = folder();
    let mut server = server(folder.path(), &["--response-profile", "structured"]);
    for (code, want) in [
        ("print(tools('lines'))", "['mcp__here__count_lines']\n"),
        ("print(await mcp__here__count_lines(path='rows.json'))", "1 rows.json\n\n"),
        // The text is one argument, whatever it contains.
        ("print(await mcp__here__shout(text='$(id); a', times=3))", "<$(id); a 3>\n"),
        ("r = await mcp__here__read_file(path='rows.json')\nprint(sum(r))", "6\n"),
        ("print(await mcp__here__list_files(path=''))", "['link', 'rows.json', 'sub/']\n"),
        (
            "w = await mcp__here__write_file(path='sub/new.txt', text='hello')\nprint(w, await mcp__here__read_file(path='sub/new.txt'))",
            "{'bytes': 5} hello\n",
        ),
    ] {
        assert_eq!(run(&mut server, code), format!("[Script executed successfully]\n{want}"), "{code}");
    }
    std::fs::hard_link(folder.path().join("outside.txt"), folder.path().join("data/hard")).unwrap();
    for (code, why) in [
        ("await mcp__here__write_file(path='hard', text='x')", "failed: hard: the file has other names"),
        ("await mcp__here__fail()", "ToolError: 'mcp__here__fail' failed: no such report"),
        (
            "await mcp__here__secretive()",
            "ToolError: 'mcp__here__secretive' is not available in execute_program",
        ),
        ("await mcp__here__count_lines(path='--files0-from=/etc/passwd')", "must not begin with -"),
        ("await mcp__here__count_lines(path=5)", "path must be str, got 5"),
        ("await mcp__here__count_lines()", "path"),
        ("await mcp__here__read_file(path='../outside.txt')", "failed: ../outside.txt: "),
        ("await mcp__here__read_file(path='link')", "failed: link: "),
        ("await mcp__here__read_file(path='/etc/passwd')", "failed: /etc/passwd: "),
        ("await mcp__here__write_file(path='../new.txt', text='x')", "failed: ../new.txt: "),
        ("await mcp__here__list_files(path='..')", "failed: ..: "),
    ] {
        let text = run(&mut server, code);
        assert!(text.starts_with("[Script execution failed]\n") && text.contains(why), "{code}: {text}");
    }
    assert!(!folder.path().join("new.txt").exists());
    let outside = std::fs::read_to_string(folder.path().join("outside.txt")).unwrap();
    assert_eq!(outside, "nobody reads this");
    // Programs can call them as well.
    let answer =
        server.run(r#"(:value (tool/call {:server "here" :tool "read_file" :args {:path "rows.json"}}))"#);
    assert_eq!(answer["structuredContent"]["result"], "[1 2 3]", "{answer}");
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_command_ends_with_its_script_and_is_cut_at_its_limit() {
    let folder = folder();
    let mut server = server(folder.path(), &["--python-timeout", "2s", "--max-upstream-calls", "2"]);
    let text = run(&mut server, "await mcp__here__slow()");
    assert!(text.starts_with("[Script execution failed]\n"), "{text}");
    let pid = std::fs::read_to_string(folder.path().join("data/pid")).unwrap();
    eventually("what it started has ended", || !Path::new("/proc").join(pid.trim()).exists());
    // One that left its group has ended when the call has its answer.
    let text = run(&mut server, "await mcp__here__leave()");
    assert!(text.starts_with("[Script executed successfully]"), "{text}");
    let pid = std::fs::read_to_string(folder.path().join("data/left")).unwrap();
    eventually("what left the group has ended", || !Path::new("/proc").join(pid.trim()).exists());
    assert!(run(&mut server, "await mcp__here__endless()").contains("failed: "));
    let text = run(&mut server, "for n in range(3): await mcp__here__list_files(path='')");
    assert!(text.starts_with("[Script execution failed]\n") && text.contains("ToolError"), "{text}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let folder = folder();
    for (from, to, want) in [
        ("folder: data", "folder: nowhere", "nowhere"),
        (
            "file: read}",
            "file: erase}",
            "config.yaml:6:5: upstream here handlers: file is read, list or write",
        ),
        ("    folder: data\n", "", "upstream here requires folder"),
        ("[\"wc\", \"-l\", \"{path}\"]", "\"wc -l {path}\"", "command is a list of strings"),
    ] {
        std::fs::write(folder.path().join("config.yaml"), CONFIG.replace(from, to)).unwrap();
        let mut command = ptc(&["doctor", "--output", "json", "--upstreams-config", "config.yaml"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(text.contains(want), "{to}: {text}");
    }
}
