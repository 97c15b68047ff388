//! Reports unbound names with what to write instead: the nearest known name, or the PTC-Lisp equivalent of a Clojure
//! name or a foreign notation.

use super::{Resolver, foreign_names};
use crate::diagnostic::{Diagnostic, is_digits};
use crate::names::{Name, Special, find_builtin};
use crate::namespace::Namespace;
use ptc_vm::builtins::{self, Category};
use ptc_vm::{BoundedText, Reason, Span};

/// Steps for each name that is compared with an unknown one.
const NAME_STEPS: usize = 4;

/// Most unbound names that are reported.
const MAX_UNBOUND: usize = 20;

impl<'a> Resolver<'a, '_> {
    /// Records an unbound name; its hint looks at the names in scope here.
    pub(crate) fn note_unbound(&mut self, name: Name, span: Span) {
        let number = name.number() as usize;
        if number >= self.noted_unbound.len() {
            self.noted_unbound.resize(number + 1, false);
        }
        if std::mem::replace(&mut self.noted_unbound[number], true) {
            return;
        }
        if self.unbound.len() >= MAX_UNBOUND {
            self.more_unbound += 1;
            return;
        }
        let message = format!("Undefined variable: {}", self.names.text(name));
        let mut error = Diagnostic::error(Reason::UnboundVar, span, message).hint(self.hint(name, span));
        // Advice that several names share is given once.
        if let Some((known, _)) = self.unbound.iter().find(|(_, known)| known.hints == error.hints) {
            let hint = format!("The same as for `{}`.", self.names.text(*known));
            error.hints = vec![BoundedText::new(hint)];
        }
        self.unbound.push((name, error));
    }

    fn hint(&self, name: Name, span: Span) -> String {
        let text = self.names.text(name);
        if self.globals.is_definable(name) {
            // Inside a function it may be the other of two that call each other.
            let together = match self.scopes.len() > 1 {
                true => format!(
                    " Functions that call each other stand in one (letfn [({text} [x] …) (other [x] …)] …)."
                ),
                false => String::new(),
            };
            return format!(
                "`{text}` is defined by a `def` that does not run before this on every way; define it earlier, at \
                 the top level.{together}"
            );
        }
        if let Some(special) = Special::lookup(text) {
            return format!("`{text}` is a special form, no value: write {}.", special.usage());
        }
        if let Some(qualified) = self.exported_as(&text.replace('_', "-")) {
            return format!("Write {qualified}.");
        }
        let own = self.own_names();
        // Names are compared twice, and sorted.
        if self.meter.work(NAME_STEPS * own.len()).is_err() {
            return String::new();
        }
        let hyphens = text.replace('_', "-");
        if hyphens != text && (own.contains(&hyphens.as_str()) || find_builtin(&hyphens).is_some()) {
            return format!("Use hyphens, not underscores: `{hyphens}`");
        }
        let near = nearest(text, &own).map(did_you_mean);
        let advice = near.or_else(|| foreign_names::advice(text).map(str::to_owned));
        if let Some(hint) = advice.or_else(|| self.notation(text)) {
            return hint;
        }
        let candidates = self.candidates(own);
        let folded = text.to_ascii_lowercase();
        let same = candidates.iter().copied().find(|candidate| candidate.replace('-', "") == folded);
        if let Some(name) = same.or_else(|| nearest(text, &candidates)) {
            return did_you_mean(name);
        }
        let before = self.source.get(..span.start as usize).unwrap_or("");
        match before.trim_end().ends_with('(') {
            true => format!("Define it before this: (defn {text} [x] …)."),
            false => format!(
                "Define it before this with (def {text} …); the context is read as data/{text}, text is \"{text}\", a key \
                 :{text}."
            ),
        }
    }

    /// The hint for a notation of another language.
    fn notation(&self, text: &str) -> Option<String> {
        if let Some((object, member)) = text.split_once('.').filter(|(a, b)| !a.is_empty() && !b.is_empty()) {
            if self.attached(object).is_some() {
                return Some(format!("Write {object}/{member}."));
            }
            return Some(dotted(object, member.trim_end_matches('.')));
        }
        let is_constructor = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
        if text.strip_prefix("->").is_some_and(is_constructor) {
            return Some("There are no records: write a map, as in {:x 1 :y 2}.".to_owned());
        }
        if let Some(operand) = text.strip_prefix('!').filter(|operand| !operand.is_empty()) {
            return Some(format!("Write (not {operand})."));
        }
        if let Some(operand) = text.strip_suffix("++").filter(|operand| !operand.is_empty()) {
            return Some(format!("Nothing is assigned: (inc {operand}) is the next number."));
        }
        if text.ends_with('\'') {
            return Some("Text stands in double quotes: \"…\".".to_owned());
        }
        let denominator = text.strip_prefix('/').filter(|digits| is_digits(digits))?;
        Some(format!("There are no ratios: write (/ a {denominator})."))
    }

    /// The qualified names of an export in attached namespaces: `crm/get-user or hr/get-user`.
    fn exported_as(&self, name: &str) -> Option<String> {
        let has_it = |namespace: &&&Namespace| namespace.export(name).is_some();
        let found = self.externals.namespaces.iter().filter(has_it);
        let names: Vec<String> = found.map(|namespace| format!("{}/{name}", namespace.name())).collect();
        (!names.is_empty()).then(|| names.join(" or "))
    }

    /// Names defined by the program or its session.
    fn own_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.externals.session.iter().map(|session| session.name).collect();
        names.extend(self.globals.visible_names().map(|name| self.names.text(name)));
        names.extend(self.scopes.names().map(|name| self.names.text(name)));
        // Names made by the compiler begin with a blank.
        names.retain(|name| !name.starts_with(' '));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// All names that may have been meant, in order.
    fn candidates<'c>(&'c self, own: Vec<&'c str>) -> Vec<&'c str> {
        let mut candidates = own;
        candidates.extend(
            builtins::all()
                .filter(|(_, builtin)| !matches!(builtin.category, Category::Internal | Category::Json))
                .map(|(_, builtin)| builtin.name),
        );
        candidates.extend(Special::NAMES);
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// The hint for `object.member`.
fn dotted(object: &str, member: &str) -> String {
    const PACKAGES: &[&str] = &["java", "javax", "clojure", "org", "com", "js"];
    let path: Vec<&str> = member.split('.').filter(|key| !key.is_empty()).collect();
    match (object, path.as_slice()) {
        ("data" | "ctx" | "context", [key]) => format!("Read the context with data/{key}."),
        ("data" | "ctx" | "context", [key, rest @ ..]) => {
            format!("Read the context with (get-in data/{key} [:{}]).", rest.join(" :"))
        }
        ("JSON" | "json", ["parse" | "loads" | "load"]) => "Write (json/parse-string text).".to_owned(),
        ("JSON" | "json", ["stringify" | "dumps" | "dump"]) => {
            "Write (json/generate-string value).".to_owned()
        }
        ("Math" | "math", [function]) => format!("Write (Math/{function} x)."),
        _ if PACKAGES.contains(&object) => {
            "There are no Java classes: use functions such as str/join, maps {:a 1} and sets #{1}.".to_owned()
        }
        _ if builtins::NAMESPACES.iter().any(|(prefix, _)| *prefix == object) => {
            format!("Write {object}/{member}.")
        }
        (_, [key]) => match foreign_names::method(object, key) {
            Some(form) => format!("Call functions with the value as argument: {form}."),
            None => format!("Read a key with (:{key} {object})."),
        },
        (_, path) => format!("Read a path of keys with (get-in {object} [:{}]).", path.join(" :")),
    }
}

/// The known name nearest to a misspelt one.
pub(crate) fn nearest<'c>(word: &str, known: &[&'c str]) -> Option<&'c str> {
    ptc_vm::fault::nearest(word, known.iter().copied())
}

/// The standard hint for a misspelt name.
pub(crate) fn did_you_mean(name: &str) -> String {
    format!("Did you mean `{name}`?")
}
