//! Writes Markdown documentation of a prelude (a Lisp library that is loaded before programs), for people.

use super::{LinkedDefinition, Prelude};
use ptc_compiler::prelude::{ExportEffect, Visibility};
use std::fmt::Write as _;

impl Prelude {
    /// Namespaces and exports: what they are for, how to call them and what they need.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for attached in &self.namespaces {
            let namespace = &attached.namespace;
            let _ = writeln!(text, "# {}", namespace.name());
            if let Some(doc) = namespace.doc() {
                let _ = writeln!(text, "\n{}", paragraph(doc));
            }
            for &number in &attached.definitions {
                self.definitions[number as usize].describe(&mut text);
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

impl LinkedDefinition {
    fn describe(&self, text: &mut String) {
        let compiled = &self.compiled;
        let usages: Vec<String> =
            self.export().usages(&self.reference).iter().map(|usage| format!("`{usage}`")).collect();
        let _ = writeln!(text, "\n## {}", usages.join(", "));
        if let Some(doc) = &compiled.doc {
            let _ = writeln!(text, "\n{}", paragraph(doc));
        }
        let mut facts = Vec::new();
        match compiled.effect {
            _ if compiled.arity.is_none() => facts.push("A constant.".to_owned()),
            ExportEffect::Read if compiled.requires.is_empty() => facts.push("Changes nothing.".to_owned()),
            // Only declared: what the tools behind it do is up to their servers.
            ExportEffect::Read => facts.push("Meant to change nothing.".to_owned()),
            ExportEffect::Write => facts.push("May change something.".to_owned()),
            ExportEffect::Unknown => {}
        }
        if !compiled.requires.is_empty() {
            let needs: Vec<String> = compiled.requires.iter().map(|id| format!("`{id}`")).collect();
            facts.push(format!("Needs {}.", needs.join(", ")));
        }
        if compiled.is_dynamic {
            facts.push("Chooses servers or tools while it runs.".to_owned());
        }
        if compiled.visibility == Visibility::Discoverable {
            facts.push("Not listed in prompts.".to_owned());
        }
        if !facts.is_empty() {
            let _ = writeln!(text, "\n{}", facts.join(" "));
        }
    }
}

/// A docstring without the line breaks and indentation of its file.
fn paragraph(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
