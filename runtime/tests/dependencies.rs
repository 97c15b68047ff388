//! The crate's dependencies contain no command line, no server, and no other interpreter.

use std::process::Command;

/// Packages and features that the crate pulls in with all its own features.
fn tree() -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--offline", "--edges", "normal,features", "--prefix", "none"]);
    cargo.args(["--package", "ptc-runtime", "--all-features", "--manifest-path"]);
    let output = cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn an_application_gets_neither_a_command_line_nor_a_server_nor_another_interpreter() {
    let tree = tree();
    let packages: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(packages.contains(&"ptc-vm") && packages.contains(&"hyper"), "{tree}");
    let foreign =
        ["clap", "axum", "warp", "actix", "rmcp", "monty", "pyo3", "rustpython", "ptc-mcp", "ptc-python"];
    for package in packages {
        let found = foreign.iter().find(|name| package == **name || package.starts_with(&format!("{name}-")));
        assert_eq!(found, None, "{package}");
    }
    for package in ["hyper", "hyper-util", "tower-http"] {
        let server = format!("{package} feature \"server");
        assert_eq!(tree.lines().find(|line| line.starts_with(&server)), None, "HTTP is spoken as a client");
    }
}
