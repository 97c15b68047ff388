//! The first login: without configuration, by paste and by browser; what says that one is missing.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Habits, OAuthServer};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_server_that_wants_a_login_says_so_everywhere_and_works_after_it() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let report = user.echo();
    let value = report["value"].as_str().unwrap();
    assert!(value.contains(":reason :login_required") && value.contains("ptc login hosted"), "{report:#}");
    for command in [&["tools"][..], &["doctor"], &["call", "hosted/echo"], &["eval", "(tool/servers)"]] {
        let said = user.run(command);
        let text = said.stdout.clone() + &said.stderr;
        assert!(text.contains("ptc login hosted"), "{command:?} {said:?}");
    }
    let said = user.login(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains(&format!("logged in to hosted at {}", server.url(""))), "{said:?}");
    assert_echoed(&user.echo());
    assert_eq!(user.run(&["tools"]).code, Some(0));
    // The token, and nothing else, went to the server; requests for tokens named the resource.
    let (path, login) = user.stored().pop().unwrap();
    assert_eq!(login["resource"], server.url("/mcp"));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let tokens = server.asked("/token");
    assert!(tokens.iter().all(|asked| asked.field("resource") == Some(server.url("/mcp"))), "{tokens:?}");
    assert!(server.asked("/mcp").iter().all(|asked| asked.query.is_empty()));
}

#[test]
fn the_browser_of_this_machine_brings_the_answer() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let browser = user.path("browser");
    let script =
        "#!/usr/bin/env python3\nimport sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n";
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = user.command(&["login", "hosted"]);
    command.env("BROWSER", &browser);
    let said = ptc_tests::binary::run(command, "");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stdout.contains("state="), "{said:?}");
    assert_echoed(&user.echo());
    // The client is used again for the next login, with its port.
    let said = user.login(&[]);
    assert_eq!((said.code, server.asked("/register").len()), (Some(0), 1), "{said:?}");
}

#[test]
fn a_running_server_takes_a_login_that_is_made_meanwhile() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let mut serve = ptc_tests::serve::Server::from_command(user.command(&["serve"]));
    let program = "(:reason (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}}))";
    assert!(serve.text(program).contains(":login_required"));
    assert_eq!(user.login(&[]).code, Some(0));
    assert!(serve.text(program).contains("nil"));
    // The login ends at the server: each call says so at once, until there is another one.
    server.end_access();
    server.end_refresh();
    assert!(serve.text(program).contains(":login_required"));
    assert!(serve.text(program).contains(":login_required"));
    assert_eq!(server.grants("refresh_token"), 1, "a refused refresh token is not sent again");
    assert_eq!(user.login(&[]).code, Some(0));
    assert!(serve.text(program).contains("nil"));
}
