//! Processes that are killed during a renewal or a login.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use ptc_tests::processes::{eventually, signal};
use std::sync::{Arc, Mutex};

/// When the server signals the process that asks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// Before it does what is asked.
    Before,
    /// After that, before it answers.
    After,
}

/// Kills one process at one request.
#[derive(Clone, Default)]
struct Trap(Arc<Mutex<Aim>>);

#[derive(Default)]
struct Aim {
    /// The request; `None` until the trap is set and after it has struck.
    step: Option<&'static str>,
    process: Option<u32>,
}

impl Trap {
    fn set(&self, step: &'static str) {
        *self.0.lock().unwrap() = Aim { step: Some(step), process: None };
    }

    fn aim(&self, process: u32) {
        self.0.lock().unwrap().process = Some(process);
    }

    /// The process to kill at this request. It may ask before the test knows its id.
    fn victim(&self, asked: &Asked) -> Option<u32> {
        let is_hit = |step: &str| match asked.path.as_str() {
            "/token" => asked.field("grant_type").as_deref() == Some(step),
            path => path == step,
        };
        self.0.lock().unwrap().step.take_if(|step| is_hit(step))?;
        let mut process = None;
        eventually("the process is known", || {
            process = self.0.lock().unwrap().process;
            process.is_some()
        });
        process
    }
}

fn server(when: When) -> (OAuthServer, Trap) {
    let trap = Trap::default();
    let set = trap.clone();
    let server = OAuthServer::answering(Habits::default(), move |server, asked: &Asked| {
        let victim = set.victim(asked)?;
        let reply = (when == When::After).then(|| server.usual(asked));
        signal(victim, "KILL");
        // Whatever is answered, no process reads it.
        Some(reply.unwrap_or_else(|| Reply::status(500)))
    });
    (server, trap)
}

#[test]
fn a_renewal_that_is_killed_loses_no_good_token() {
    for when in [When::Before, When::After] {
        let (server, trap) = server(when);
        let user = User::of(&server);
        assert_eq!(user.login(&[]).code, Some(0));
        server.end_access();
        trap.set("refresh_token");
        let child = user.command(&["call", "hosted/echo", "a=1"]).spawn().unwrap();
        trap.aim(child.id());
        assert_eq!(child.wait_with_output().unwrap().status.code(), None, "it was killed");
        assert_eq!(user.stored().len(), 1, "nothing is deleted");
        let report = user.echo();
        match when {
            When::Before => assert_echoed(&report),
            // The server has used up the token, and its answer is lost with the process.
            When::After => {
                assert!(report["value"].as_str().unwrap().contains(":login_required"), "{report:#}");
                assert_eq!(user.login(&[]).code, Some(0));
                assert_echoed(&user.echo());
            }
        }
    }
}

#[test]
fn a_login_that_is_killed_leaves_the_one_before_it() {
    for (step, when) in [
        ("/register", When::Before),
        ("/register", When::After),
        ("authorization_code", When::Before),
        ("authorization_code", When::After),
    ] {
        let (server, trap) = server(when);
        let user = User::of(&server);
        assert_eq!(user.login(&[]).code, Some(0));
        let before = user.stored()[0].1.clone();
        // The next login registers again.
        user.change(|login| login["client"]["redirect_uri"] = serde_json::Value::Null);
        if step == "/register" {
            trap.set(step);
            let mut child = user.command(&["login", "hosted", "--paste"]).spawn().unwrap();
            trap.aim(child.id());
            assert_eq!(child.wait().unwrap().code(), None, "it was killed");
        } else {
            let begun = user.begin_login(&[]);
            trap.set(step);
            trap.aim(begun.child.id());
            let answer = begun.consent();
            assert_eq!(begun.paste(&answer).code, None, "it was killed");
        }
        let after = user.stored()[0].1.clone();
        assert_eq!(after["access_token"], before["access_token"], "{step} {when:?}");
        assert_echoed(&user.echo());
        assert_eq!(user.login(&[]).code, Some(0));
        assert_echoed(&user.echo());
    }
}
