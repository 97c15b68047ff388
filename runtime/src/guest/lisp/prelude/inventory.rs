//! What prompts say of a prelude: the exports that are meant for them, in a few lines.

use super::{LinkedDefinition, Prelude};
use ptc_compiler::prelude::{ExportEffect, Visibility};

/// Exports of one namespace that are listed; the others are found by asking.
const LISTED: usize = 5;

const TITLE: &str = ";; === prelude capabilities ===";

const HOW: &str =
    "Functions made for this deployment: prefer them, and call them by their full names, as in (ns/name …).";

const HINT: &str = ";; There may be more: (ns-publics 'ns), (dir 'ns), (doc 'ns/name) and (apropos \"words\") find it, (source \
                    'ns/name) shows the code.";

impl Prelude {
    /// The text for prompts: the same for the same prelude. `None` when no export is meant for them.
    pub fn inventory(&self) -> Option<String> {
        let mut blocks = vec![TITLE.to_owned(), HOW.to_owned()];
        for attached in &self.namespaces {
            let exports = attached.definitions.iter().map(|&number| &self.definitions[number as usize]);
            let listed: Vec<&LinkedDefinition> =
                exports.filter(|export| export.compiled.visibility == Visibility::Prompt).collect();
            if listed.is_empty() {
                continue;
            }
            let name = attached.namespace.name();
            let mut block = format!(";; {name}");
            add_doc(&mut block, attached.namespace.doc());
            for export in listed.iter().take(LISTED) {
                block.push_str(&format!("\n  {} {}", export.reference, export.usages().join(" ")));
                if export.compiled.effect != ExportEffect::Unknown {
                    block.push_str(&format!(" [{}]", export.compiled.effect.name()));
                }
                add_doc(&mut block, export.compiled.doc.as_deref());
            }
            if listed.len() > LISTED {
                let more = listed.len() - LISTED;
                block.push_str(&format!("\n  ;; +{more} more — discover via (ns-publics '{name})"));
            }
            blocks.push(block);
        }
        if blocks.len() == 2 {
            return None;
        }
        blocks.push(HINT.to_owned());
        Some(blocks.join("\n\n"))
    }
}

fn add_doc(block: &mut String, doc: Option<&str>) {
    let doc = doc.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    if !doc.is_empty() {
        block.push_str(" — ");
        block.push_str(&doc);
    }
}
