//! The decision function against a simple reference, on generated policies and calls.

use super::*;
use crate::run::client::asker::CallOrigin;
use crate::run::outcome::Verdict;
use crate::tools::HOST;
use serde_json::json;

/// A generator of small numbers (splitmix64), so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % most as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const SERVERS: [&str; 2] = ["mail", "bank"];
const TOOLS: [&str; 3] = ["read", "send", "send_all"];
/// Patterns, and the calls that each names, as `server/tool`.
const PATTERNS: [(&str, &[&str]); 7] = [
    ("mail/read", &["mail/read"]),
    ("mail/*", &["mail/read", "mail/send", "mail/send_all"]),
    ("send", &["mail/send", "bank/send"]),
    ("send*", &["mail/send", "mail/send_all", "bank/send", "bank/send_all"]),
    ("mcp__bank__send", &["bank/send"]),
    ("*/send_all", &["mail/send_all", "bank/send_all"]),
    ("*", &["mail/read", "mail/send", "mail/send_all", "bank/read", "bank/send", "bank/send_all"]),
];
const VERDICTS: [Verdict; 3] = Verdict::ALL;
const ORIGINS: [CallOrigin; 3] = [CallOrigin::Program, CallOrigin::Agent, CallOrigin::Script];
/// Values of `/n`: whether each is above 5. `None`: it cannot be decided.
const VALUES: [(&str, Option<bool>); 5] = [
    ("{\"n\": 6}", Some(true)),
    ("{\"n\": 5}", Some(false)),
    ("{}", Some(false)),
    ("{\"n\": \"6\"}", None),
    ("[", None),
];

struct GeneratedRule {
    verdict: Verdict,
    pattern: usize,
    has_condition: bool,
    origin: Option<CallOrigin>,
}

struct GeneratedFile {
    rules: Vec<GeneratedRule>,
    /// For destructive tools: all that are generated.
    default: Option<Verdict>,
}

impl GeneratedFile {
    fn new(numbers: &mut Numbers) -> GeneratedFile {
        let rules = (0..numbers.below(5)).map(|_| GeneratedRule {
            verdict: numbers.pick(&VERDICTS),
            pattern: numbers.below(PATTERNS.len()),
            has_condition: numbers.below(2) == 0,
            origin: (numbers.below(3) == 0).then(|| numbers.pick(&ORIGINS)),
        });
        let rules = rules.collect();
        GeneratedFile { rules, default: (numbers.below(2) == 0).then(|| numbers.pick(&VERDICTS)) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(default) = self.default {
            text += &format!("default = {{ destructive = \"{}\" }}\n", default.name());
        }
        for rule in &self.rules {
            let (pattern, _) = PATTERNS[rule.pattern];
            text += &format!("[[rule]]\ndo = \"{}\"\ntools = [\"{pattern}\"]\n", rule.verdict.name());
            if rule.has_condition {
                text += "when = { \"/n\" = { gt = 5 } }\n";
            }
            if let Some(origin) = rule.origin {
                text += &format!("who = [\"{}\"]\n", origin.name());
            }
        }
        text
    }

    /// The strictest rule that applies, else the default.
    fn verdict(&self, call: &str, above: Option<bool>, origin: CallOrigin) -> Option<Verdict> {
        let applies = |rule: &&GeneratedRule| {
            PATTERNS[rule.pattern].1.contains(&call)
                && rule.origin.is_none_or(|meant| meant == origin)
                && (!rule.has_condition || above.unwrap_or(rule.verdict != Verdict::Allow))
        };
        self.rules.iter().filter(applies).map(|rule| rule.verdict).max().or(self.default)
    }
}

fn tool(name: &str) -> UpstreamTool {
    serde_json::from_value(json!({ "name": name, "inputSchema": {} })).unwrap()
}

fn decided(
    files: &[&GeneratedFile],
    server: &str,
    name: &str,
    arguments: &str,
    origin: CallOrigin,
) -> Verdict {
    let texts: Vec<String> = files.iter().map(|file| file.text()).collect();
    let policy = Policy::parse(texts.iter().map(|text| ("p", text.as_str()))).unwrap();
    let (target, tool, asker) =
        (CallTarget::Tool(name.into()), tool(name), CallAsker { origin, identity: None });
    policy
        .ruling(&Subject {
            server,
            target: &target,
            tool: &tool,
            arguments,
            place: None,
            origins: None,
            asker,
        })
        .verdict
}

#[test]
fn decisions_are_those_of_a_simple_reference_and_no_file_widens_another() {
    let mut numbers = Numbers(35);
    for _ in 0..3_000 {
        let files: Vec<GeneratedFile> =
            (0..=numbers.below(3)).map(|_| GeneratedFile::new(&mut numbers)).collect();
        let (server, name, origin) = (numbers.pick(&SERVERS), numbers.pick(&TOOLS), numbers.pick(&ORIGINS));
        let (arguments, above) = numbers.pick(&VALUES);
        let call = format!("{server}/{name}");
        let said = files.iter().filter_map(|file| file.verdict(&call, above, origin)).max();
        let all: Vec<&GeneratedFile> = files.iter().collect();
        let decided_by = |files: &[&GeneratedFile]| decided(files, server, name, arguments, origin);
        let got = decided_by(&all);
        let texts: Vec<String> = files.iter().map(GeneratedFile::text).collect();
        assert_eq!(
            got,
            said.unwrap_or(Verdict::Ask),
            "{call} {arguments} {origin:?}\n{}",
            texts.join("\n---\n")
        );
        // The order of files does not count.
        let turned: Vec<&GeneratedFile> = all.iter().rev().copied().collect();
        assert_eq!(decided_by(&turned), got);
        // A file that says something is not widened by the others.
        for file in &files {
            if file.verdict(&call, above, origin).is_some() {
                assert!(decided_by(&[file]) <= got);
            }
        }
    }
}

#[test]
fn spellings_of_a_denied_name_are_denied_and_of_an_allowed_name_are_not_allowed() {
    let policy = |verdict: &str, names: &str| {
        let text = format!(
            "default = {{ destructive = \"ask\" }}\n[[rule]]\ndo = \"{verdict}\"\ntools = [\"{names}\"]\n"
        );
        Policy::parse([("p", text.as_str())]).unwrap()
    };
    let spellings = [
        "github/delete_repo",
        "mcp__github__delete_repo",
        "github/delete_*",
        "git?ub/*_repo",
        "GitHub/Delete_Repo",
    ];
    let deny = spellings.map(|names| policy("deny", names));
    let allow = policy("allow", "github/delete_repo");
    let mut numbers = Numbers(7);
    let alike =
        [('d', "D\u{501}"), ('e', "E\u{435}"), ('l', "L\u{4cf}"), ('o', "O\u{43e}"), ('p', "P\u{440}")];
    for _ in 0..2_000 {
        let mut name = String::new();
        for letter in "delete_repo".chars() {
            let others = alike.iter().find(|(plain, _)| *plain == letter).map_or("", |(_, others)| others);
            match numbers.below(4) {
                0 if !others.is_empty() => {
                    let others: Vec<char> = others.chars().collect();
                    name.push(numbers.pick(&others));
                }
                1 if numbers.below(4) == 0 => name.extend([letter, '\u{200b}']),
                _ => name.push(letter),
            }
        }
        let (target, tool) = (CallTarget::Tool(name.as_str().into()), tool(&name));
        let asker = CallAsker::default();
        let subject = Subject {
            server: "github",
            target: &target,
            tool: &tool,
            arguments: "{}",
            place: None,
            origins: None,
            asker,
        };
        for (deny, names) in deny.iter().zip(spellings) {
            assert_eq!(deny.ruling(&subject).verdict, Verdict::Deny, "{name:?} for {names}");
        }
        let want = if name == "delete_repo" { Verdict::Allow } else { Verdict::Ask };
        assert_eq!(allow.ruling(&subject).verdict, want, "{name:?}");
    }
}

#[test]
fn a_tool_that_is_called_like_a_request_is_not_allowed_as_one() {
    let text = "default = { read = \"allow\", destructive = \"deny\" }\n[[rule]]\ndo = \"allow\"\ntools = [\"fs/resources/read\"]\n";
    let policy = Policy::parse([("p", text)]).unwrap();
    let verdict = |target: &CallTarget| {
        let tool = tool("resources/read");
        let asker = CallAsker::default();
        policy
            .ruling(&Subject {
                server: "fs",
                target,
                tool: &tool,
                arguments: "{}",
                place: None,
                origins: None,
                asker,
            })
            .verdict
    };
    assert_eq!(verdict(&CallTarget::Resource("file:///x".into())), Verdict::Allow);
    assert_eq!(verdict(&CallTarget::Tool("resources/read".into())), Verdict::Deny);
}

#[test]
fn annotations_count_only_for_trusted_servers() {
    let text = "default = { read = \"allow\", write = \"ask\", destructive = \"deny\" }\n[servers.fs]\ntrust = \"annotations\"\n[effects]\n\"db/look\" = \"read\"\n";
    let policy = Policy::parse([("p", text)]).unwrap();
    for (server, name, annotations, want) in [
        ("fs", "a", json!({ "readOnlyHint": true }), Verdict::Allow),
        ("fs", "a", json!({ "readOnlyHint": true, "destructiveHint": true }), Verdict::Deny),
        ("fs", "a", json!({ "destructiveHint": false }), Verdict::Ask),
        ("fs", "a", json!({}), Verdict::Deny),
        ("db", "a", json!({ "readOnlyHint": true }), Verdict::Deny),
        ("db", "look", json!({ "destructiveHint": true }), Verdict::Allow),
        // Tools of the host are part of this program.
        (HOST, "a", json!({ "readOnlyHint": true }), Verdict::Allow),
    ] {
        let mut tool = tool(name);
        tool.annotations = serde_json::from_value(annotations.clone()).unwrap();
        let (target, asker) = (CallTarget::Tool(name.into()), CallAsker::default());
        let subject = Subject {
            server,
            target: &target,
            tool: &tool,
            arguments: "{}",
            place: None,
            origins: None,
            asker,
        };
        assert_eq!(policy.ruling(&subject).verdict, want, "{server}/{name} {annotations}");
    }
}

#[test]
fn the_policies_of_the_documents_can_be_read() {
    for (name, text) in [
        ("policies.md", include_str!("../../../../../docs/policies.md")),
        ("policy.md", include_str!("../../../../../docs/policy.md")),
    ] {
        let blocks: Vec<&str> =
            text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(blocks.len() >= 2, "{name}");
        for block in blocks {
            if let Err(error) = Policy::parse([(name, block)]) {
                panic!("{error}\n{block}");
            }
        }
    }
}
