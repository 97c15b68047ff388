//! Declares the builtins with which a program requests resources and prompts of an MCP server through the host:
//! `resource/read`, `prompt/get` and their listings.

use crate::builtins::{Builtin, Category, HostFunction, ServerForm, host};

/// One row for each form: form, usage, documentation.
macro_rules! forms {
    ($($form:ident $usage:literal $doc:literal;)+) => {
        &[$(host(
            ServerForm::$form.name(), Category::Interop, "1", $usage, $doc, HostFunction::Ask(ServerForm::$form),
        ),)+]
    };
}

/// The rows of this module.
pub(crate) const TABLE: &[Builtin] = forms! {
    ListResources "(resource/list {:server s})"
        "The resources of an upstream, as a result of tool/call whose value is a list of maps with uri, name, mimeType.";
    ListTemplates "(resource/templates {:server s})"
        "The templates of resource addresses of an upstream, as resource/list.";
    ReadResource "(resource/read {:server s :uri u})"
        "What a resource holds, as a result of tool/call: its text, decoded if it is JSON; other contents are in :content.";
    ListPrompts "(prompt/list {:server s})"
        "The prompts of an upstream with their arguments, as a result of tool/call whose value is a list of maps.";
    GetPrompt "(prompt/get {:server s :name n :args {…}})"
        "A prompt with its arguments filled in, as a result of tool/call: a map with description and messages.";
};
