//! Suggests a remedy for an error or a warning about the configuration file, by a table from parts of messages to
//! remedies.
//!
//! Remedies for a server come from its transport.

/// Message texts about the file, and their remedies.
pub(in crate::cli) const CONFIGS: [(&str, &str); 7] = [
    ("is not set", "export the variable before ptc is started, or write the value into the file"),
    ("JSON decode failed", "correct the JSON at this place"),
    ("requires command", "name the program that starts the server: \"command\": \"npx\""),
    ("requires explicit transport", "add \"command\" for a server on this machine"),
    ("unsupported transport", "reach it with \"command\", or remove the entry"),
    ("this program itself", "remove it: ptc cannot be its own upstream"),
    ("No such file", "correct the path, or run `ptc config import` to write one"),
];

/// Texts of warnings about the file, and their remedies.
pub(in crate::cli) const WARNINGS: [(&str, &str); 4] = [
    ("is there twice", "remove one of the two by hand"),
    ("replaces the one", "rename one of the two if both are needed"),
    ("has no effect", "nothing, if programs may call all tools of the server"),
    (
        "nothing hides it",
        "if it is a secret, use a longer one; if it is none, write it into the file under another name",
    ),
];

/// The remedy for a configuration that cannot be read.
pub(super) fn of_config(message: &str) -> String {
    let known = CONFIGS.iter().find(|(text, _)| message.contains(text));
    known.map_or("compare with `ptc config schema`", |(_, remedy)| remedy).to_owned()
}

/// The remedy for a warning about the configuration.
pub(super) fn of_warning(message: &str) -> String {
    let known = WARNINGS.iter().find(|(text, _)| message.contains(text));
    known
        .map_or("correct or remove it; `ptc config schema` lists what there is", |(_, remedy)| remedy)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_fit_their_findings() {
        assert!(of_config("upstreams_config: env var X is not set").contains("export"));
    }
}
