//! Benchmark of one decision of a policy with 200 rules.

use criterion::{Criterion, criterion_group, criterion_main};
use ptc_calls::asker::CallAsker;
use ptc_calls::policy::{Policy, Subject};
use ptc_calls::tools::{CallTarget, UpstreamTool};
use std::fmt::Write as _;
use std::hint::black_box;

/// 190 rules for other tools, and ten with a condition for the tool that is called.
fn policy() -> Policy {
    let mut text = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n".to_owned();
    for rule in 0..190 {
        let verdict = ["deny", "ask", "allow"][rule % 3];
        let _ = write!(
            text,
            "[[rule]]\ndo = \"{verdict}\"\ntools = [\"s{rule}/delete_*\", \"mcp__t{rule}__x\"]\n"
        );
    }
    for rule in 0..10 {
        let _ = write!(
            text,
            "[[rule]]\ndo = \"deny\"\ntools = [\"bank/send_*\"]\nwhen = {{ \"/amount\" = {{ gt = {}00000 }}, \"/to\" = \"*@evil{rule}.com\" }}\n",
            rule + 1
        );
    }
    Policy::parse([("bench.toml", text.as_str())]).expect("the rules of the benchmark are valid")
}

fn decision(criterion: &mut Criterion) {
    let tool = r#"{"name": "send_money", "inputSchema": {"type": "object"}}"#;
    let policy = policy();
    let tool: UpstreamTool = serde_json::from_str(tool).expect("the tool of the benchmark is valid");
    let target = CallTarget::Tool("send_money".into());
    let mut group = criterion.benchmark_group("policy of 200 rules");
    for (name, server) in [("no rule names the tool", "mail"), ("ten rules with two conditions each", "bank")]
    {
        let arguments = r#"{"to": "ada@example.com", "amount": 120, "note": "for the books of this month"}"#;
        let subject = Subject::new(server, &target, &tool, arguments, CallAsker::default());
        group.bench_function(name, |bencher| bencher.iter(|| black_box(policy.ruling(black_box(&subject)))));
    }
    group.finish();
}

criterion_group!(benches, decision);
criterion_main!(benches);
