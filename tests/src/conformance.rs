//! Runs conformance cases: programs with the results that they must give.

use crate::binary;
use crate::pr_text::same;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The flags that the cases are defined with.
const FLAGS: &[&str] = &["--loop-limit", "1000", "--timeout", "60s"];

/// Reads the cases of every `*.jsonl` file of a folder.
pub fn cases(dir: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let lines = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    lines
        .flat_map(|text| {
            let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            rows
        })
        .filter(|row| row.get("expect").is_some())
        .collect()
}

/// The results of all cases.
#[derive(Default)]
pub struct Report {
    /// Right answers and all cases, by area.
    pub areas: BTreeMap<String, (usize, usize)>,
    /// What is wrong with each wrong answer.
    pub mismatches: Vec<String>,
}

impl Report {
    /// Number of cases.
    pub fn total(&self) -> usize {
        self.areas.values().map(|(_, all)| all).sum()
    }

    /// Number of right answers.
    pub fn passed(&self) -> usize {
        self.areas.values().map(|(passed, _)| passed).sum()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (area, (passed, all)) in &self.areas {
            writeln!(f, "{area:<24} {passed:>5} of {all:>5}")?;
        }
        let (passed, all) = (self.passed(), self.total());
        write!(f, "{:<24} {passed:>5} of {all:>5}  {:.2} %", "total", 100.0 * passed as f64 / all as f64)
    }
}

/// Runs all cases through `ptc batch` and judges the answers.
pub fn run(cases: &[Value]) -> Report {
    let input: String = cases
        .iter()
        .map(|case| {
            let mut line = serde_json::json!({ "id": case["id"], "program": case["program"] });
            if let Some(context) = case.get("context") {
                line["context"] = context.clone();
            }
            format!("{line}\n")
        })
        .collect();
    let answers = binary::batch(FLAGS, &input);
    assert_eq!(answers.len(), cases.len(), "one answer a case");
    let mut report = Report::default();
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(case["id"], answer["id"], "answers come in order");
        let area = case["area"].as_str().unwrap().split('/').next().unwrap();
        let (passed, all) = report.areas.entry(area.to_owned()).or_default();
        *all += 1;
        match judge(&case["expect"], answer) {
            Ok(()) => *passed += 1,
            Err(why) => {
                let program = case["program"].as_str().unwrap();
                report.mismatches.push(format!("[{}] {program}\n    {why}", case["id"].as_str().unwrap()));
            }
        }
    }
    report
}

/// # Errors
/// What is wrong with the answer.
fn judge(expect: &Value, answer: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    if let Some(reason) = expect.get("error") {
        if answer["ok"] == true {
            return Err(format!("expected error {reason}, got value {}", answer["value"]));
        }
        if reason != "*" && answer["error"] != *reason {
            return Err(format!("expected error {reason}, got {} ({})", answer["error"], answer["message"]));
        }
        let part = text(&expect["message_contains"]);
        if !text(&answer["message"]).contains(&part) {
            return Err(format!("error message lacks {part:?}: {}", answer["message"]));
        }
        if let (Some(wanted), Some(got)) = (expect.get("value"), answer.get("value"))
            && !same(&text(wanted), &text(got))
        {
            return Err(format!("expected failure value {wanted}, got {got}"));
        }
    } else if answer["ok"] != true {
        return Err(format!("expected {}, got {} ({})", expect["value"], answer["error"], answer["message"]));
    } else if !same(&text(&expect["value"]), &text(&answer["value"])) {
        return Err(format!("expected {}, got {}", expect["value"], answer["value"]));
    }
    match expect.get("prints") {
        Some(prints) if *prints != answer["prints"] => {
            Err(format!("expected printed lines {prints}, got {}", answer["prints"]))
        }
        _ => Ok(()),
    }
}
