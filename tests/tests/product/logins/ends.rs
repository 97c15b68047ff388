//! Commands that are asked to end during a renewal or a login: they end by the signal, and lose no token.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Asked, Habits, OAuthServer};
use ptc_tests::processes::{eventually, signal};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::{Arc, Mutex};

const SIGNALS: [(&str, i32); 3] = [("INT", 2), ("TERM", 15), ("HUP", 1)];

/// What an alarm waits for, and the signal that it sends.
#[derive(Clone, Copy)]
struct Aim {
    grant: &'static str,
    signal: &'static str,
    /// Unknown until the command has started.
    process: Option<u32>,
}

/// Signals the process of a command when the server gets a request with this grant.
#[derive(Clone, Default)]
struct Alarm(Arc<Mutex<Option<Aim>>>);

impl Alarm {
    fn set(&self, grant: &'static str, signal: &'static str, process: Option<u32>) {
        *self.0.lock().unwrap() = Some(Aim { grant, signal, process });
    }

    fn aim(&self, child: &Child) {
        if let Some(aim) = &mut *self.0.lock().unwrap() {
            aim.process = Some(child.id());
        }
    }

    fn ring(&self, asked: &Asked) {
        let grant = asked.field("grant_type");
        let is_meant = |aim: Aim| asked.path == "/token" && grant.as_deref() == Some(aim.grant);
        if !self.0.lock().unwrap().is_some_and(is_meant) {
            return;
        }
        eventually("the process is known", || {
            self.0.lock().unwrap().is_some_and(|aim| aim.process.is_some())
        });
        if let Some(Aim { signal: name, process: Some(process), .. }) = self.0.lock().unwrap().take() {
            signal(process, name);
        }
    }
}

/// A server that signals before it does what is asked, or after that and before it answers.
fn server(is_late: bool) -> (OAuthServer, Alarm) {
    let alarm = Alarm::default();
    let set = alarm.clone();
    let server = OAuthServer::answering(Habits::default(), move |server, asked: &Asked| {
        if !is_late {
            set.ring(asked);
        }
        let reply = server.usual(asked);
        set.ring(asked);
        Some(reply)
    });
    (server, alarm)
}

#[test]
fn a_signal_during_a_renewal_loses_no_login() {
    let call = "(tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})";
    let commands: [&[&str]; 3] = [&["call", "hosted/echo", "a=1"], &["eval", call], &["tools", "hosted"]];
    for is_late in [false, true] {
        let (server, alarm) = server(is_late);
        let user = User::of(&server);
        assert_eq!(user.login(&[]).code, Some(0));
        for (command, (name, number)) in commands.into_iter().zip(SIGNALS) {
            server.end_access();
            let before = user.stored()[0].1.clone();
            alarm.set("refresh_token", name, None);
            let child = user.command(command).spawn().unwrap();
            alarm.aim(&child);
            let status = child.wait_with_output().unwrap().status;
            assert_eq!(status.signal(), Some(number), "{command:?} {status}");
            assert_ne!(user.stored()[0].1["refresh_token"], before["refresh_token"], "{command:?} {name}");
            assert_echoed(&user.echo());
        }
        assert_eq!((server.grants("refresh_token"), server.revoked()), (3, 0));
    }
}

#[test]
fn a_signal_during_a_login_loses_no_login() {
    for is_late in [false, true] {
        for (name, number) in SIGNALS {
            let (server, alarm) = server(is_late);
            let user = User::of(&server);
            let begun = user.begin_login(&[]);
            alarm.set("authorization_code", name, Some(begun.child.id()));
            let answer = begun.consent();
            assert_eq!(begun.signalled(&answer), Some(number), "{name}");
            assert_echoed(&user.echo());
        }
    }
}
