//! Declares the builtins that the host carries out by their forms: `apropos`, `dir`, `doc` and others look up names and
//! documentation (the host knows more names than this table: exports of preludes, tools of upstreams), `resource/read`,
//! `prompt/get` and others request resources and prompts of an MCP server, `spill/head`, `spill/grep` and others read
//! parts of a large result that the host keeps in a file.

use crate::builtins::{Builtin, Category, DiscoveryForm, HostFunction, ServerForm, SpillForm, host};

/// One row for each form: form, arities, usage, documentation.
macro_rules! forms {
    ($type:ident $function:ident $category:ident: $($form:ident $arity:literal $usage:literal $doc:literal;)+) => {
        &[$(host(
            $type::$form.name(), Category::$category, $arity, $usage, $doc, HostFunction::$function($type::$form),
        ),)+]
    };
}

/// The rows of the forms that look names up.
pub(crate) const DISCOVERY: &[Builtin] = forms! { DiscoveryForm Discover Core:
    Apropos "1-2" "(apropos query {:limit 8 :load false})"
        "The names and tools whose name or description matches the words, best first.";
    Dir "1-2" "(dir 'server {:limit 50 :offset 0}); (tool/servers) lists the servers"
        "The members of a namespace, or the tools of a server, one line each.";
    Doc "1" "(doc 'ref)"
        "The documentation of a name, or of a tool as server/tool: arguments, call form, result.";
    Meta "1" "(meta 'ref)"
        "What is known about a name, or a tool as server/tool, as a map.";
    Source "1" "(source 'ref)"
        "Prints the definition of a name that the host attached; nil.";
    NsPublics "1" "(ns-publics 'ns)"
        "The names of a namespace, each with a map of what is known about it.";
    AllNs "0" "(all-ns)"
        "The names of all namespaces.";
    NsName "1" "(ns-name 'ns)"
        "The name of a namespace as a string.";
};

/// The rows of the forms that request something other than tools from a server.
pub(crate) const SERVERS: &[Builtin] = forms! { ServerForm Ask Interop:
    ListResources "1" "(resource/list {:server s})"
        "The resources of an upstream, as a result of tool/call whose value is a list of maps with uri, name, mimeType.";
    ListTemplates "1" "(resource/templates {:server s})"
        "The templates of resource addresses of an upstream, as resource/list.";
    ReadResource "1" "(resource/read {:server s :uri u})"
        "What a resource holds, as a result of tool/call: its text, decoded if it is JSON; other contents are in :content.";
    ListPrompts "1" "(prompt/list {:server s})"
        "The prompts of an upstream with their arguments, as a result of tool/call whose value is a list of maps.";
    GetPrompt "1" "(prompt/get {:server s :name n :args {…}})"
        "A prompt with its arguments filled in, as a result of tool/call: a map with description and messages.";
};

/// The rows of the forms that read from a spilled result.
pub(crate) const SPILLS: &[Builtin] = forms! { SpillForm Look Interop:
    Stat "1" "(spill/stat r)"
        "The size of a kept result: :bytes, :lines, and the :keys of an object. r is the result of the call, or its :spill.";
    Head "1-2" "(spill/head r lines?)"
        "The first lines of a kept result (50), as {:lines [text …] :from_line n :truncated b}. Rows of JSON are lines.";
    Tail "1-2" "(spill/tail r lines?)"
        "The last lines of a kept result (50), as spill/head.";
    Slice "3" "(spill/slice r from to)"
        "The lines from one to another, counted from 1 and both included, as spill/head.";
    Grep "2-3" "(spill/grep r pattern context?)"
        "The lines that match a regular expression, whatever their case, with their numbers: {:text s :matches n :truncated b}.";
    Read "1-2" "(spill/read r bytes?)"
        "The beginning of a kept result: {:text s :truncated b}.";
    JsonPath "2" "(spill/json-path r path)"
        "What a path such as $.items[0].name finds in kept JSON; nil if nothing. With [*] or [from:to] a list.";
};
