//! Lists the functions of a prelude (a preloaded Lisp library) in a few lines for prompts, so that models know what
//! they can call.

use super::{LinkedDefinition, Prelude};
use ptc_calls::tools::text::one_line;
use ptc_compiler::prelude::{ExportEffect, Visibility};

/// How many exports of one namespace are listed; programs find the others by discovery.
const LISTED: usize = 5;

/// Size limit of the text. Beyond it, namespaces are at most named.
const LONGEST: usize = 1_500;

/// Length limit, in characters, of the text about an export or a namespace.
const SENTENCE: usize = 160;

/// How many namespaces beyond the size limit are named.
const NAMED: usize = 5;

const TITLE: &str = ";; === prelude capabilities ===";

const HOW: &str =
    "Functions made for this deployment: prefer them, and call them by their full names, as in (ns/name …).";

const HINT: &str = ";; There may be more: (ns-publics 'ns), (dir 'ns), (doc 'ns/name) and (apropos \"words\") find it, (source \
                    'ns/name) shows the code.";

impl Prelude {
    /// The text; the same for the same prelude. `None` when no export is meant for prompts.
    #[doc(hidden)]
    pub fn inventory(&self) -> Option<String> {
        let mut blocks = vec![TITLE.to_owned(), HOW.to_owned()];
        let (mut bytes, mut left_out) = (0, Vec::new());
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
                let usages = export.usages().join(" ");
                block.push_str(&format!("\n  {} {}", export.reference, one_line(&usages, SENTENCE)));
                if export.compiled.effect != ExportEffect::Unknown {
                    block.push_str(&format!(" [{}]", export.compiled.effect.name()));
                }
                add_doc(&mut block, export.compiled.doc.as_deref());
            }
            if listed.len() > LISTED {
                let more = listed.len() - LISTED;
                block.push_str(&format!("\n  ;; +{more} more — discover via (ns-publics '{name})"));
            }
            match bytes + block.len() <= LONGEST {
                true => {
                    bytes += block.len();
                    blocks.push(block);
                }
                false => left_out.push(name),
            }
        }
        if blocks.len() == 2 && left_out.is_empty() {
            return None;
        }
        if !left_out.is_empty() {
            let named = left_out.iter().take(NAMED).map(|name| one_line(name, SENTENCE));
            let named = named.collect::<Vec<_>>().join(", ");
            let more = if left_out.len() > NAMED { ", …" } else { "" };
            let count = left_out.len();
            blocks.push(format!(";; +{count} more namespaces — (dir 'ns) lists each: {named}{more}"));
        }
        blocks.push(HINT.to_owned());
        Some(blocks.join("\n\n"))
    }
}

/// The first sentence of a docstring.
fn add_doc(block: &mut String, doc: Option<&str>) {
    let doc = doc.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = doc.find(". ").map_or(&*doc, |end| &doc[..=end]);
    if !sentence.is_empty() {
        block.push_str(" — ");
        block.push_str(&one_line(sentence, SENTENCE));
    }
}
