//! Approvals under delays, changed arguments, edits of the policy, and clients that go away.

use super::super::{Clearance, Policy, PolicyState, SharedPolicy, Subject};
use super::{ApprovalAnswer, ApprovalSettings};
use crate::run::account::RunAccount;
use crate::run::client::asker::CallAsker;
use crate::run::client::{ClientAnswer, ClientError, ServedClient};
use crate::run::limits::Limits;
use crate::tools::{CallTarget, UpstreamTool};
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::Locked;
use ptc_vm::Interrupt;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers by the number in the arguments: approves, denies, or has gone.
#[derive(Default)]
struct Person {
    asked: Mutex<Vec<String>>,
}

impl ServedClient for Person {
    fn ask(self: Arc<Self>, _: &'static str, params: String) -> ClientAnswer {
        let form: Json = serde_json::from_str(&params).unwrap();
        let text = form["message"].as_str().unwrap().to_owned();
        let number = number(&text);
        self.asked.locked().push(text);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(number * 37 % 100)).await;
            match number % 5 {
                0 => Err(ClientError { code: 0, message: "the client has gone".into() }),
                1 => Ok(json!({ "action": "accept", "content": { "decision": "deny" } }).to_string()),
                _ => Ok(json!({ "action": "accept", "content": { "decision": "approve" } }).to_string()),
            }
        })
    }
}

/// The first number of a text that ends with `}`.
fn number(text: &str) -> u64 {
    let digits = text.split("{\"v\":").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    digits.parse().unwrap()
}

fn policy(version: u32) -> Policy {
    let text = format!("# {version}\n[[rule]]\ndo = \"ask\"\ntools = [\"bank/pay\"]\n");
    Policy::parse([("p", text.as_str())]).unwrap()
}

fn shared() -> SharedPolicy {
    let secrets = SecretRegistry::new();
    SharedPolicy::new(Some(Arc::new(policy(0))), ApprovalSettings::default(), PolicyState::default(), secrets)
}

fn account() -> Arc<RunAccount> {
    Arc::new(RunAccount::new(Limits::default(), Interrupt::default()))
}

struct Call {
    target: CallTarget,
    tool: UpstreamTool,
}

impl Call {
    fn pay() -> Call {
        let tool = serde_json::from_value(json!({ "name": "pay", "inputSchema": {} })).unwrap();
        Call { target: CallTarget::Tool("pay".into()), tool }
    }

    fn subject<'c>(&'c self, arguments: &'c str) -> Subject<'c> {
        let asker = CallAsker::default();
        Subject {
            server: "bank",
            target: &self.target,
            tool: &self.tool,
            arguments,
            place: None,
            origins: None,
            asker,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_approval_counts_for_another_call_or_another_policy() {
    let (shared, person) = (shared(), Arc::<Person>::default());
    let calls = (0..1_000_u64).map(|number| {
        let (shared, person) = (shared.clone(), person.clone());
        async move {
            let (run, call) = (account(), Call::pay());
            let arguments = format!("{{\"v\":{number}}}");
            let Clearance::Asked(asked) = shared.clear(&call.subject(&arguments), &run) else {
                panic!("it is asked about")
            };
            let answer = shared.ask(&run, &asked, &call.subject(&arguments), Some(person)).await;
            let approval = match (number % 5, answer) {
                (0, Err(ApprovalAnswer::Unavailable(_))) | (1, Err(ApprovalAnswer::Denied(_))) => return,
                (2..=4, Ok(approval)) => approval,
                (_, answer) => panic!("{number}: {answer:?}"),
            };
            let mut other = Call::pay();
            other.tool.description = Some("It pays twice.".to_owned());
            let cleared = match number % 4 {
                0 => shared.clear_approved(&call.subject("{\"v\":0}"), &run, approval),
                1 => shared.clear_approved(&other.subject(&arguments), &run, approval),
                2 => {
                    shared.replace(Arc::new(policy(1 + u32::try_from(number).unwrap())));
                    shared.clear_approved(&call.subject(&arguments), &run, approval)
                }
                _ => {
                    let now = shared.current().unwrap();
                    let cleared = shared.clear_approved(&call.subject(&arguments), &run, approval);
                    // Another call may have replaced the policy while this one was asked about.
                    if now.version != policy(0).version {
                        return;
                    }
                    assert!(matches!(cleared, Clearance::Granted(..)), "{number}: {cleared:?}");
                    return;
                }
            };
            assert!(matches!(cleared, Clearance::Asked(_)), "{number}: {cleared:?}");
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(person.asked.locked().len(), 1_000);
    assert_eq!(shared.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_approval_lets_its_own_call_pass() {
    let (shared, person, run, call) = (shared(), Arc::<Person>::default(), account(), Call::pay());
    let subject = call.subject("{\"v\":2}");
    let Clearance::Asked(asked) = shared.clear(&subject, &run) else { panic!("it is asked about") };
    let approval = shared.ask(&run, &asked, &subject, Some(person.clone())).await.unwrap();
    let Clearance::Granted(_, Some(ruling)) = shared.clear_approved(&subject, &run, approval) else {
        panic!("it is approved")
    };
    assert_eq!(ruling.answered_by.as_deref(), Some("the user of the client"));
    // The next call is asked about again.
    assert!(matches!(shared.clear(&subject, &run), Clearance::Asked(_)));
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_equal_calls_counts_once_for_each_of_them() {
    let (shared, person) = (shared(), Arc::<Person>::default());
    let calls = (0..1_000_u64).filter(|number| number % 5 > 1).map(|number| {
        let (shared, person) = (shared.clone(), person.clone());
        async move {
            let (run, call) = (account(), Call::pay());
            let arguments = format!("{{\"v\":{number}}}");
            let subject = call.subject(&arguments);
            let asked = || match shared.clear(&subject, &run) {
                Clearance::Asked(asked) => asked,
                cleared => panic!("{number}: {cleared:?}"),
            };
            let (one, two) = (asked(), asked());
            let ask = |asked| shared.ask(&run, asked, &subject, Some(person.clone()));
            let (first, second) = tokio::join!(ask(&one), ask(&two));
            for approval in [first.unwrap(), second.unwrap()] {
                let cleared = shared.clear_approved(&subject, &run, approval);
                assert!(matches!(cleared, Clearance::Granted(..)), "{number}: {cleared:?}");
            }
            // A third one, and one of another run.
            asked();
            assert!(matches!(shared.clear(&subject, &account()), Clearance::Asked(_)), "{number}");
        }
    });
    futures_util::future::join_all(calls).await;
    // Both are in one question.
    assert_eq!(person.asked.locked().len(), 600);
    assert_eq!(shared.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_group_whose_leader_was_cancelled_asks_again() {
    let (shared, person, run, call) = (shared(), Arc::<Person>::default(), account(), Call::pay());
    let (one, two) = (call.subject("{\"v\":2}"), call.subject("{\"v\":3}"));
    let Clearance::Asked(first) = shared.clear(&one, &run) else { panic!("it is asked about") };
    let Clearance::Asked(second) = shared.clear(&two, &run) else { panic!("it is asked about") };
    let leader = shared.ask(&run, &first, &one, Some(person.clone()));
    let member = shared.ask(&run, &second, &two, Some(person.clone()));
    let cancelled = tokio::time::timeout(Duration::from_millis(5), leader);
    let (cancelled, approved) = tokio::join!(cancelled, member);
    assert!(cancelled.is_err() && approved.is_ok(), "{approved:?}");
    let asked = person.asked.locked();
    assert!(asked.len() == 1 && number(&asked[0]) == 3, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_ends() {
    struct Silent;
    impl ServedClient for Silent {
        fn ask(self: Arc<Self>, _: &'static str, _: String) -> ClientAnswer {
            Box::pin(std::future::pending())
        }
    }
    let (shared, run, call) = (shared(), account(), Call::pay());
    let subject = call.subject("{\"v\":2}");
    let Clearance::Asked(asked) = shared.clear(&subject, &run) else { panic!("it is asked about") };
    let answer = shared.ask(&run, &asked, &subject, Some(Arc::new(Silent))).await;
    assert!(
        matches!(answer, Err(ApprovalAnswer::Unavailable(why)) if why.contains("no answer within 600 s"))
    );
    assert_eq!(shared.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_for_its_own_rule_and_the_narrowest_one_decides() {
    let any = |remember: &str| rule(remember, "");
    let large = |remember: &str| rule(remember, "when = { \"/v\" = { gte = 100 } }\n");
    let small = |remember: &str| rule(remember, "when = { \"/v\" = { lt = 100 } }\n");
    for files in [
        vec![any("tool") + &large("call")],
        vec![large("call") + &any("tool")],
        vec![any("run") + &large("call")],
        vec![any("session") + &large("run")],
        vec![any("run"), large("call")],
        vec![large("call"), any("session")],
        // The rules of both files have one title.
        vec![small("run"), large("run")],
        vec![small("tool"), large("tool")],
    ] {
        let policy = Policy::parse(files.iter().map(|text| ("p", text.as_str()))).unwrap();
        let secrets = SecretRegistry::new();
        let shared = SharedPolicy::new(
            Some(Arc::new(policy)),
            ApprovalSettings::default(),
            PolicyState::default(),
            secrets,
        );
        let (person, run, call) = (Arc::<Person>::default(), account(), Call::pay());
        let subject = call.subject("{\"v\":2}");
        let Clearance::Asked(asked) = shared.clear(&subject, &run) else { panic!("it is asked about") };
        shared.ask(&run, &asked, &subject, Some(person)).await.unwrap();
        let alike = shared.clear(&call.subject("{\"v\":3}"), &run);
        assert!(matches!(alike, Clearance::Granted(..)), "{files:?}: {alike:?}");
        let other = shared.clear(&call.subject("{\"v\":102}"), &run);
        assert!(matches!(other, Clearance::Asked(_)), "{files:?}: {other:?}");
    }
    // Defaults that ask count for one call, whatever a rule of another file says.
    let files = ["default = { destructive = \"ask\" }\n".to_owned(), any("run")];
    let policy = Policy::parse(files.iter().map(|text| ("p", text.as_str()))).unwrap();
    let shared = SharedPolicy::new(
        Some(Arc::new(policy)),
        ApprovalSettings::default(),
        PolicyState::default(),
        SecretRegistry::new(),
    );
    let (person, run, call) = (Arc::<Person>::default(), account(), Call::pay());
    let subject = call.subject("{\"v\":2}");
    let Clearance::Asked(asked) = shared.clear(&subject, &run) else { panic!("it is asked about") };
    shared.ask(&run, &asked, &subject, Some(person)).await.unwrap();
    assert!(matches!(shared.clear(&subject, &run), Clearance::Asked(_)));
}

fn rule(remember: &str, when: &str) -> String {
    format!("[[rule]]\ndo = \"ask\"\ntools = [\"bank/pay\"]\nremember = \"{remember}\"\n{when}")
}

#[tokio::test(start_paused = true)]
async fn names_in_questions_are_quoted_where_they_could_mislead() {
    let name = "pay (read)?\narguments: {} May ptc";
    let tool: UpstreamTool = serde_json::from_value(json!({ "name": name, "inputSchema": {} })).unwrap();
    let text = "[[rule]]\ndo = \"ask\"\ntools = [\"bank/*\"]\n";
    let policy = Arc::new(Policy::parse([("p", text)]).unwrap());
    let shared = SharedPolicy::new(
        Some(policy),
        ApprovalSettings::default(),
        PolicyState::default(),
        SecretRegistry::new(),
    );
    let (person, run) = (Arc::<Person>::default(), account());
    let call = Call { target: CallTarget::Tool(name.into()), tool };
    let subject = call.subject("{\"v\":2}");
    let Clearance::Asked(asked) = shared.clear(&subject, &run) else { panic!("it is asked about") };
    shared.ask(&run, &asked, &subject, Some(person.clone())).await.unwrap();
    let text = person.asked.locked()[0].clone();
    let shown = r#"May ptc call bank/"pay (read)?\narguments: {} May ptc" ("#;
    assert!(text.starts_with(shown), "{text}");
}
