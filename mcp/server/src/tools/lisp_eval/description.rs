//! The description of `lisp_eval`: what a model must know to write a correct program at first try.
//!
//! Clients cut descriptions at about 2 KB, so the whole text stays below [`MAX_BYTES`] and the essentials
//! come first. The catalog gets the remaining room.

use crate::answer::caps::Profile;
use crate::tools::Facts;
use crate::tools::catalog::LISP;
use ptc_calls::tools::text::one_line;
use ptc_engine::card::{CALL, LANGUAGE};

/// Longest description, unless the whole catalog was requested. The inventory of a prelude is not included.
pub const MAX_BYTES: usize = 2_040;

const DISCOVERY_HINT: &str = "Find tools with (apropos \"words\"), (dir 'server), (doc 'server/tool); \
    (meta …) has the schemas. ";

const PURPOSE_UPSTREAM: &str = "Runs one PTC-Lisp program (eager, sandboxed Clojure subset) beside the MCP \
    servers below; only the value of its last form comes back.";

const PURPOSE_ALONE: &str = "Runs one PTC-Lisp program (an eager, sandboxed subset of Clojure) and returns \
    the value of its last form. Stateless: nothing survives the call. No tools are configured.";

/// Most characters of the prelude's namespaces, which are named before the catalog.
const NAMESPACES: usize = 100;

/// Writes the description. `tests/description/claims.txt` lists its statements, each with a program that
/// shows it.
pub fn description(facts: &Facts) -> String {
    let mut text = String::with_capacity(MAX_BYTES);
    let seconds = facts.timeout_ms as f64 / 1_000.0;
    if facts.catalog.is_empty() {
        text.push_str(PURPOSE_ALONE);
        text.push_str(&format!(" At most {seconds} s."));
    } else {
        text.push_str(DISCOVERY_HINT);
        text.push_str(PURPOSE_UPSTREAM);
        text.push_str(CALL);
        text.push_str(&format!(" At most {} calls and {seconds} s.", facts.max_calls));
    }
    let before = text.len();
    push_namespaces(&mut text, facts);
    // The text about a prelude does not count against the catalog's room.
    let of_prelude = text.len() - before;
    text.push_str(LANGUAGE);
    let kilobytes = facts.profile.caps().result_bytes >> 10;
    text.push_str(&format!(
        " Definitions end with the program (sessions keep them). Answers print as Clojure data (\"a\", {{:k 2.0}}), \
         cut at {kilobytes} KB with prints: return a summary."
    ));
    if !facts.catalog.is_empty() {
        push_catalog(&mut text, facts, of_prelude);
    }
    text.push_str(note(facts.profile));
    push_inventory(&mut text, facts);
    text
}

/// Writes the description of a session tool that runs programs as `lisp_eval` does. `says` is what it does
/// beyond that.
pub fn session_description(facts: &Facts, says: &str) -> String {
    let mut text = String::with_capacity(MAX_BYTES);
    if facts.catalog.is_empty() {
        text.push_str(says);
        push_namespaces(&mut text, facts);
    } else {
        text.push_str(DISCOVERY_HINT);
        text.push_str(says);
        text.push_str(CALL);
        let before = text.len();
        push_namespaces(&mut text, facts);
        let of_prelude = text.len() - before;
        push_catalog(&mut text, facts, of_prelude);
    }
    push_inventory(&mut text, facts);
    text
}

/// Appends the catalog in the remaining room. `apart` bytes of the text do not count.
fn push_catalog(text: &mut String, facts: &Facts, apart: usize) {
    let room = MAX_BYTES.saturating_sub(text.len() - apart + 1 + note(facts.profile).len());
    text.push('\n');
    text.push_str(&facts.catalog.render(&LISP, &facts.catalog_style, room));
}

/// Names the namespaces of the inventory early, because clients may cut the end of a description.
fn push_namespaces(text: &mut String, facts: &Facts) {
    let Some(prelude) = facts.prelude.as_ref().filter(|prelude| prelude.inventory().is_some()) else {
        return;
    };
    let names: Vec<&str> = prelude.namespaces().map(|namespace| namespace.name()).collect();
    let names = one_line(&names.join(", "), NAMESPACES);
    text.push_str(&format!("\nMade for this deployment, see the end or (dir 'ns): {names}."));
}

fn push_inventory(text: &mut String, facts: &Facts) {
    if let Some(inventory) = facts.inventory() {
        text.push('\n');
        text.push_str(&inventory);
    }
}

const fn note(profile: Profile) -> &'static str {
    match profile {
        Profile::Slim | Profile::Debug => "",
        Profile::Structured => "\nResponse profile: structured.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::catalog::{CatalogMode, CatalogStyle, CatalogView, ServerView, ToolView};
    use std::sync::Arc;

    fn facts(servers: usize, tools: usize) -> Facts {
        let about = "Does something that takes a while to describe";
        let tool = |index| ToolView::new(&format!("tool_{index}"), about, "");
        let server = |index| ServerView {
            name: format!("server-{index}"),
            description: "A server".into(),
            tools: Some((0..tools).map(tool).collect()),
            others: String::new(),
        };
        let catalog = Arc::new(CatalogView { servers: (0..servers).map(server).collect() });
        Facts { catalog, max_calls: 50, timeout_ms: 10_000, profile: Profile::Structured, ..Facts::default() }
    }

    #[test]
    fn the_description_is_under_two_kilobytes_whatever_is_configured() {
        for (servers, tools) in [(0, 0), (1, 2), (3, 40), (400, 10)] {
            let text = description(&facts(servers, tools));
            assert!(text.len() < 2_048, "{} bytes with {servers} servers of {tools} tools", text.len());
        }
    }

    #[test]
    fn small_catalogs_are_listed_and_others_named() {
        let text = description(&facts(1, 2));
        assert!(text.contains("\n  - tool_1 - Does something that takes a while to describe"), "{text}");
        let text = description(&facts(3, 40));
        assert!(text.contains("\n- server-2: A server. 40 tools.\n") && !text.contains("tool_1"), "{text}");
    }

    #[test]
    fn a_catalog_that_was_asked_for_is_listed_in_full() {
        let style = CatalogStyle { mode: CatalogMode::Inline, ..CatalogStyle::default() };
        let text = description(&Facts { catalog_style: style, ..facts(3, 40) });
        assert_eq!(text.matches("\n  - tool_39 - Does").count(), 3);
    }

    #[test]
    fn a_session_says_the_same_of_servers() {
        let text = session_description(&facts(1, 2), "Runs one program in a session.");
        assert!(text.starts_with("Find tools with (apropos"), "{text}");
        assert!(
            text.contains("Runs one program in a session.") && text.contains("(tool/call 'fs/read"),
            "{text}"
        );
        assert!(text.contains("\n  - tool_1 - Does something that takes a while to describe"), "{text}");
        assert!(session_description(&facts(400, 10), "x").len() < 2_048);
        assert_eq!(session_description(&facts(0, 0), "x"), "x");
    }

    #[test]
    fn a_prelude_takes_no_room_of_the_catalog() {
        let exports: String = (0..200)
            .map(|n| format!("(ns n{n}) (defn f{n} \"Does a thing. And then more of it.\" [a] a) "))
            .collect();
        let prelude = ptc_engine::Prelude::compile("p.clj", &exports).map(std::sync::Arc::new).ok();
        for (servers, tools) in [(1, 2), (3, 40)] {
            let bare = description(&facts(servers, tools));
            let with = description(&Facts { prelude: prelude.clone(), ..facts(servers, tools) });
            let catalog = bare.find("\nConfigured upstream").map(|at| &bare[at..]).unwrap_or_default();
            assert!(!catalog.is_empty() && with.contains(catalog), "{with}");
            assert!(with.contains("n0/f0 (f0 a) — Does a thing.\n") && !with.contains("And then"), "{with}");
            assert!(with.len() < 4_096, "{}", with.len());
        }
    }

    #[test]
    fn with_upstreams_it_starts_with_the_discovery_hint_and_the_call_form() {
        let text = description(&facts(1, 1));
        assert!(text.starts_with("Find tools with (apropos"));
        assert!(text.find("(tool/call 'fs/read") < text.find("/ gives"));
        assert!(text.contains("\n- server-0: A server. 1 tool."));
        assert!(!description(&facts(0, 0)).contains("tool/call"));
    }
}
