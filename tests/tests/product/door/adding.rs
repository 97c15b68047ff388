//! `ptc add` at places and with words that are not as expected.

use super::setup::{Home, OURS};

#[test]
fn a_folder_that_is_not_there_is_made() {
    let home = Home::new();
    let far = home.path("new/folder/mine.json");
    for file in [far.to_str().unwrap(), "new/folder/mine.json"] {
        home.ok(&["add", "a", "--to", file, "--", "true"]);
    }
    assert_eq!(home.json("new/folder/mine.json")["mcpServers"]["a"]["command"], "true");
    assert!(home.path("project/new/folder/mine.json").is_file());
    // Nothing is made behind a link that leads elsewhere.
    std::fs::create_dir(home.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", home.path("project/link")).unwrap();
    let refused = home.run(&["add", "a", "--to", "link/folder/mine.json", "--", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(std::fs::read_dir(home.path("elsewhere")).unwrap().next().is_none());
}

#[test]
fn an_address_without_a_host_is_none() {
    let home = Home::new();
    for address in ["http://", "https://?x=1", "http://host:99999/mcp"] {
        let refused = home.run(&["add", "a", address]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(&format!("{address} is no address: ")), "{refused:?}");
    }
    assert!(!home.path(OURS).exists());
    home.ok(&["add", "a", "https://${HOST}/mcp"]);
}

#[test]
fn a_file_of_yaml_is_named_as_one() {
    let home = Home::new();
    let before = "mcpServers:\n  a:\n    command: x\n";
    home.write("project/c.yaml", before);
    let refused = home.run(&["add", "b", "--to", "c.yaml", "--", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("files of YAML are not edited"), "{refused:?}");
    assert_eq!(home.text("project/c.yaml"), before);
}

#[test]
fn words_that_cannot_be_meant_are_refused() {
    let home = Home::new();
    for (words, said) in [
        (&["p", "npx", "-y", "x", "--env", "A=1"][..], "ptc add p FLAGS -- npx …"),
        (&["f", "ftp://example.com/mcp"], "no address of a server"),
        (&["b", "--include", "x", "--", "true"], "belong to --openapi"),
        (&["", "true"], "a character at least"),
    ] {
        let refused = home.run(&[&["add"], words].concat());
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains(said) && !refused.stderr.contains("--force"),
            "{words:?}: {refused:?}"
        );
    }
    assert!(!home.path(OURS).exists());
}
