//! Enumerates the operations for which a program calls the runtime that embeds the VM: tool calls, the clock, the
//! remaining budget, documentation, resources and prompts, and stored results.

/// The closed set of host calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostFunction {
    /// `(tool/call …)`: a tool of an upstream.
    ToolCall,
    /// `(tool/call! …)`: the value of such a tool; a failure ends the program.
    ToolCallValue,
    /// `(tool/name …)`: a tool that the host granted; the first argument is the symbol `name`.
    Tool,
    /// `(tool/servers)`.
    Servers,
    /// `(budget/remaining)`: what the program may still use.
    Budget,
    /// The clock, fixed once per program.
    Now,
    /// A form that looks names up.
    Discover(DiscoveryForm),
    /// A form that requests something other than tools from a server.
    Ask(ServerForm),
    /// A form that reads from a spilled result.
    Look(SpillForm),
}

impl HostFunction {
    /// True if the first argument names something, so that a bare symbol there needs no quote.
    pub const fn takes_reference(self) -> bool {
        match self {
            HostFunction::Discover(form) => form.takes_reference(),
            HostFunction::ToolCall
            | HostFunction::ToolCallValue
            | HostFunction::Tool
            | HostFunction::Servers
            | HostFunction::Budget
            | HostFunction::Now
            | HostFunction::Ask(_)
            | HostFunction::Look(_) => false,
        }
    }
}

/// The forms that look names up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiscoveryForm {
    /// `(apropos query opts?)`.
    Apropos,
    /// `(dir ref opts?)`.
    Dir,
    /// `(doc ref)`.
    Doc,
    /// `(meta ref)`.
    Meta,
    /// `(source ref)`.
    Source,
    /// `(ns-publics ns)`.
    NsPublics,
    /// `(all-ns)`.
    AllNs,
    /// `(ns-name ns)`.
    NsName,
}

impl DiscoveryForm {
    /// The name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            DiscoveryForm::Apropos => "apropos",
            DiscoveryForm::Dir => "dir",
            DiscoveryForm::Doc => "doc",
            DiscoveryForm::Meta => "meta",
            DiscoveryForm::Source => "source",
            DiscoveryForm::NsPublics => "ns-publics",
            DiscoveryForm::AllNs => "all-ns",
            DiscoveryForm::NsName => "ns-name",
        }
    }

    const fn takes_reference(self) -> bool {
        !matches!(self, DiscoveryForm::Apropos | DiscoveryForm::AllNs)
    }
}

/// The forms that request something other than tools from a server. Each takes one map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerForm {
    /// `(resource/list {:server s})`.
    ListResources,
    /// `(resource/templates {:server s})`.
    ListTemplates,
    /// `(resource/read {:server s :uri u})`.
    ReadResource,
    /// `(prompt/list {:server s})`.
    ListPrompts,
    /// `(prompt/get {:server s :name n :args {…}})`.
    GetPrompt,
}

impl ServerForm {
    /// The name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            ServerForm::ListResources => "resource/list",
            ServerForm::ListTemplates => "resource/templates",
            ServerForm::ReadResource => "resource/read",
            ServerForm::ListPrompts => "prompt/list",
            ServerForm::GetPrompt => "prompt/get",
        }
    }
}

/// The forms that read from a result that was spilled because it is too large to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpillForm {
    /// `(spill/stat r)`.
    Stat,
    /// `(spill/head r lines?)`.
    Head,
    /// `(spill/tail r lines?)`.
    Tail,
    /// `(spill/slice r from to)`.
    Slice,
    /// `(spill/grep r pattern context?)`.
    Grep,
    /// `(spill/read r bytes?)`.
    Read,
    /// `(spill/json-path r path)`.
    JsonPath,
}

impl SpillForm {
    /// The name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            SpillForm::Stat => "spill/stat",
            SpillForm::Head => "spill/head",
            SpillForm::Tail => "spill/tail",
            SpillForm::Slice => "spill/slice",
            SpillForm::Grep => "spill/grep",
            SpillForm::Read => "spill/read",
            SpillForm::JsonPath => "spill/json-path",
        }
    }
}
