//! The description of `lisp_eval`: what a model must know to write a correct program at first try.
//!
//! Clients cut descriptions at about 2 KB, so the whole text stays below [`MAX_BYTES`] and the
//! essentials come first; the catalog gets what is left.

use crate::answer::caps::Profile;
use crate::tools::Facts;

/// Longest description we send, unless the whole catalog was asked for.
pub const MAX_BYTES: usize = 2_000;

const DISCOVERY_HINT: &str = "Find tools with (apropos \"words\"), (dir 'server) and (doc 'server/tool), \
    then call them with tool/call. ";

const PURPOSE_UPSTREAM: &str = "Runs one PTC-Lisp program (an eager, sandboxed subset of Clojure) next to \
    the MCP servers below; only the value of its last form comes back.";

const PURPOSE_ALONE: &str = "Runs one PTC-Lisp program (an eager, sandboxed subset of Clojure) and returns \
    the value of its last form. Stateless: nothing survives the call. No tools are configured.";

const CALL: &str = r#"
Call: (tool/call {:server "fs" :tool "read_file" :args {:path "a.txt"}})
=> {:ok true :value v} or {:ok false :reason kw :message s}; check :ok before :value:
(let [r (tool/call {...})] (if (:ok r) (:value r) (fail (:message r))))
In parallel: (pmap (fn [id] (tool/call {:server "s" :tool "t" :args {:id id}})) ids)"#;

const LANGUAGE: &str = r#"
`context` keys are data/<key>, e.g. data/orders (no parentheses). JSON maps have string keys; (:id m) and (get m "id") both work.
Forms: let def defn fn #() if when cond case -> ->> for doseq loop/recur, destructuring; map filter reduce group-by sort-by frequencies update assoc get-in select-keys merge; str/join str/split re-find set/union json/parse-string; (println x) shows up beside the result; (return v) stops early, (fail v) stops with an error.
Not available: lazy or infinite seqs, atoms, try/catch, macros, ns/require, I/O. Return a small summary, not raw data.
Example: (->> data/orders (filter #(= (:status %) "open")) (group-by :region) (map (fn [[k v]] [k (reduce + (map :total v))])) (into {}))"#;

/// Writes the description.
pub fn description(facts: &Facts) -> String {
    let mut text = String::with_capacity(MAX_BYTES);
    if facts.catalog.is_empty() {
        text.push_str(PURPOSE_ALONE);
        text.push_str(LANGUAGE);
    } else {
        text.push_str(DISCOVERY_HINT);
        text.push_str(PURPOSE_UPSTREAM);
        text.push_str(CALL);
        text.push_str(&format!("; at most {} calls a program.", facts.max_calls));
        text.push_str(LANGUAGE);
        let room = MAX_BYTES.saturating_sub(text.len() + 1 + note(facts.profile).len());
        text.push('\n');
        text.push_str(&facts.catalog.render(&facts.catalog_style, room));
    }
    text.push_str(note(facts.profile));
    text
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

    fn facts(servers: usize, tools: usize) -> Facts {
        let tool = |index| ToolView {
            name: format!("tool_{index}"),
            description: "Does something that takes a while to describe".into(),
        };
        let server = |index| ServerView {
            name: format!("server-{index}"),
            description: "A server".into(),
            tools: Some((0..tools).map(tool).collect()),
        };
        let catalog = CatalogView { servers: (0..servers).map(server).collect() };
        Facts { catalog, max_calls: 50, profile: Profile::Structured, ..Facts::default() }
    }

    #[test]
    fn the_description_is_under_two_kilobytes_whatever_is_configured() {
        for (servers, tools) in [(0, 0), (1, 2), (3, 40), (400, 10)] {
            let text = description(&facts(servers, tools));
            assert!(text.len() < 2_048, "{} bytes with {servers} servers of {tools} tools", text.len());
        }
    }

    #[test]
    fn every_name_and_the_example_exist_in_the_language() {
        let compiles = |program: &str| {
            let (externals, options) = Default::default();
            ptc_compiler::compile(program, &externals, &options)
                .map(|_| ())
                .map_err(|errors| errors[0].message.clone())
        };
        let (_, rest) = LANGUAGE.split_once("destructuring; ").expect("forms come before functions");
        let (names, rest) = rest.split_once("; (println").expect("functions come before println");
        for name in names.split([' ', ';']).filter(|name| !name.is_empty()) {
            assert_eq!(compiles(name), Ok(()), "{name}");
        }
        let (_, example) = rest.split_once("Example: ").expect("the example comes last");
        assert_eq!(compiles(example), Ok(()));
        let call = CALL.lines().last().expect("calls").trim_start_matches("In parallel: ");
        assert_eq!(compiles(&format!("(let [ids [1]] {call})")), Ok(()));
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
    fn with_upstreams_it_starts_with_the_discovery_hint_and_the_call_form() {
        let text = description(&facts(1, 1));
        assert!(text.starts_with("Find tools with (apropos"));
        assert!(text.find("(tool/call {:server") < text.find("Forms:"));
        assert!(text.contains("\n- server-0: A server. 1 tool."));
        assert!(!description(&facts(0, 0)).contains("tool/call"));
    }
}
