//! Makes the errors for qualified names and methods that do not exist, with what was probably meant as a hint.

use super::suggest::{did_you_mean, nearest};
use super::symbol::OTHER_NAMESPACES;
use super::{Resolver, foreign_names};
use crate::diagnostic::{Failed, Hint, error, invalid_form};
use crate::names::find_builtin;
use crate::namespace::Namespace;
use ptc_vm::builtins::{Builtin, Category};
use ptc_vm::{Reason, Span, builtins};

/// The list of namespaces, for a name in an unknown one.
const NAMESPACE_LIST: &str =
    "Namespaces are str/, set/, walk/, json/, regex/, Math/, data/ and tool/; core functions have none.";

impl Resolver<'_, '_> {
    /// The error of a qualified name that does not exist.
    #[cold]
    pub(super) fn unknown_member(&self, namespace: &str, member: &str, span: Span) -> Failed {
        if self.has_enough_errors() {
            return invalid_form(span, "unknown name");
        }
        if let Some(namespace) = self.attached(namespace) {
            return no_export(namespace, member, span);
        }
        if self.defines == Some(namespace) {
            let message = format!(
                "qualified self-reference `{namespace}/{member}` is not allowed in a prelude body; call the sibling by \
                 its bare name `{member}`"
            );
            return error(Reason::QualifiedSelfReference, span, message).hint(format!("Write {member}."));
        }
        let known = builtins::NAMESPACES.iter().find(|(prefix, _)| *prefix == namespace);
        let category = known.map(|(_, category)| *category);
        let hint = self.member_hint(namespace, member, category);
        let is_other = OTHER_NAMESPACES.contains(&namespace);
        let prefix = format!("{namespace}/");
        let own = || members(|builtin| builtin.name.starts_with(&prefix)).join(", ");
        let message = match category {
            _ if is_other || category.is_some() => format!("{namespace}/{member} is not available"),
            None if builtins::HOST_NAMESPACES.contains(&namespace) => {
                format!("Unknown {namespace} function: {namespace}/{member}. Available: {}", own())
            }
            _ => format!("unknown namespace {namespace}/"),
        };
        invalid_form(span, message).hint(hint.unwrap_or_else(|| match category {
            Some(category) => {
                let members = members(|builtin| builtin.category == category);
                format!("{} functions: {}", label(category), members.join(", "))
            }
            None if is_other => format!("Known: {}.", own()),
            None => format!("{NAMESPACE_LIST} (:{member} {namespace}) reads a key of a map."),
        }))
    }

    /// The attached namespace of this name.
    pub(crate) fn attached(&self, name: &str) -> Option<&Namespace> {
        self.externals.namespaces.iter().copied().find(|namespace| namespace.name() == name)
    }

    /// An export of an attached namespace with a similar name.
    fn export_like(&self, namespace: &str, member: &str) -> Option<String> {
        let names: Vec<&str> = self.externals.namespaces.iter().map(|known| known.name()).collect();
        let same = names.iter().find(|known| known.eq_ignore_ascii_case(namespace)).copied();
        let namespace = self.attached(same.or_else(|| nearest(namespace, &names))?)?;
        let members: Vec<&str> = namespace.exports().iter().map(|export| &*export.name).collect();
        let member =
            members.iter().find(|name| **name == member).copied().or_else(|| nearest(member, &members))?;
        Some(format!("{}/{member}", namespace.name()))
    }

    /// A hint with the probable meaning of an unknown qualified name.
    fn member_hint(&self, namespace: &str, member: &str, category: Option<Category>) -> Option<String> {
        if self.externals.servers.contains(&namespace) {
            return Some(format!(
                "Call tools with (tool/call {{:server \"{namespace}\" :tool \"{member}\" :args {{…}}}})."
            ));
        }
        if matches!(namespace, "ctx" | "context" | "input" | "inputs" | "args" | "params") {
            return Some(format!("Read the input of the program with data/{member}."));
        }
        if ["json", "cheshire", "JSON"].iter().any(|part| namespace.contains(part)) {
            let is_reading = ["read", "parse", "decode", "load"].iter().any(|part| member.contains(part));
            return Some(match is_reading {
                true => "Write (json/parse-string text).".to_owned(),
                false => "Write (json/generate-string value).".to_owned(),
            });
        }
        let qualified = format!("{namespace}/{member}");
        if let Some(advice) = foreign_names::advice(&qualified).or_else(|| foreign_names::advice(member)) {
            return Some(advice.to_owned());
        }
        if let Some(meant) = self.export_like(namespace, member) {
            return Some(did_you_mean(&meant));
        }
        if let Some(builtin) = find_builtin(member) {
            return Some(format!("Write {}.", builtin.info().usage));
        }
        if let Some(category) = category {
            let members = members(|builtin| builtin.category == category);
            return nearest(member, &members).map(|near| did_you_mean(&format!("{namespace}/{near}")));
        }
        let members = members(|builtin| builtin.category != Category::Internal);
        nearest(&qualified, &members).or_else(|| nearest(member, &members)).map(did_you_mean)
    }
}

/// The error of a method that does not exist.
pub(super) fn unsupported_method(text: &str, span: Span) -> Failed {
    let methods = members(|builtin| builtin.name.starts_with('.'));
    let failed = error(Reason::UnsupportedMethod, span, format!("Unsupported method '{text}'."));
    // `.-x` reads a field.
    let name = text[1..].trim_start_matches('-');
    failed.hint(match (foreign_names::method("obj", name), nearest(text, &methods)) {
        (Some(form), _) => format!("Write {form}."),
        (None, Some(near)) => did_you_mean(near),
        (None, None) => {
            format!(
                "Methods are those of Java's String, LocalDate, Instant and Duration, such as .substring, .plusDays \
                 and .toEpochMilli; (:{name} obj) reads a key of a map."
            )
        }
    })
}

/// The error of a name that a namespace does not export.
fn no_export(namespace: &Namespace, member: &str, span: Span) -> Failed {
    let name = namespace.name();
    let members: Vec<&str> = namespace.exports().iter().map(|export| &*export.name).collect();
    let message = format!(
        "{name}/{member} is not a public export of namespace {name}. Discover its public exports with (ns-publics \
         '{name}) or (apropos \"{member}\")."
    );
    invalid_form(span, message).hint(match nearest(member, &members) {
        Some(near) => did_you_mean(&format!("{name}/{near}")),
        None => format!("{name}/ has {}.", members.join(", ")),
    })
}

/// The names of builtins, sorted.
fn members(choose: impl Fn(&Builtin) -> bool) -> Vec<&'static str> {
    let mut members: Vec<&str> =
        builtins::all().filter(|(_, builtin)| choose(builtin)).map(|(_, builtin)| builtin.name).collect();
    members.sort_unstable();
    members
}

fn label(category: Category) -> &'static str {
    match category {
        Category::Core => "Core",
        Category::String => "String",
        Category::Set => "Set",
        Category::Walk => "Walk",
        Category::Regex => "Regex",
        Category::Math => "Math",
        Category::Json => "JSON",
        Category::Interop => "Interop",
        Category::Internal => "Internal",
    }
}
