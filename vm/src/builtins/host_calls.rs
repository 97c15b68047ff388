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
        matches!(self, HostFunction::Discover(form) if form.takes_reference())
    }
}

/// Declares forms with their names in programs.
macro_rules! forms {
    ($(#[doc = $about:literal])+ $type:ident { $($(#[doc = $doc:literal])+ $form:ident $name:literal;)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[doc = $doc])+ $form,)+ }

        impl $type {
            /// The name in programs.
            pub const fn name(self) -> &'static str {
                match self { $($type::$form => $name,)+ }
            }
        }
    };
}

forms! {
    /// The forms that look names up.
    DiscoveryForm {
        /// `(apropos query opts?)`.
        Apropos "apropos";
        /// `(dir ref opts?)`.
        Dir "dir";
        /// `(doc ref)`.
        Doc "doc";
        /// `(meta ref)`.
        Meta "meta";
        /// `(source ref)`.
        Source "source";
        /// `(ns-publics ns)`.
        NsPublics "ns-publics";
        /// `(all-ns)`.
        AllNs "all-ns";
        /// `(ns-name ns)`.
        NsName "ns-name";
    }
}

impl DiscoveryForm {
    const fn takes_reference(self) -> bool {
        !matches!(self, DiscoveryForm::Apropos | DiscoveryForm::AllNs)
    }
}

forms! {
    /// The forms that request something other than tools from a server. Each takes one map.
    ServerForm {
        /// `(resource/list {:server s})`.
        ListResources "resource/list";
        /// `(resource/templates {:server s})`.
        ListTemplates "resource/templates";
        /// `(resource/read {:server s :uri u})`.
        ReadResource "resource/read";
        /// `(prompt/list {:server s})`.
        ListPrompts "prompt/list";
        /// `(prompt/get {:server s :name n :args {…}})`.
        GetPrompt "prompt/get";
    }
}

forms! {
    /// The forms that read from a result that was spilled because it is too large to be carried.
    SpillForm {
        /// `(spill/stat r)`.
        Stat "spill/stat";
        /// `(spill/head r lines?)`.
        Head "spill/head";
        /// `(spill/tail r lines?)`.
        Tail "spill/tail";
        /// `(spill/slice r from to)`.
        Slice "spill/slice";
        /// `(spill/grep r pattern context?)`.
        Grep "spill/grep";
        /// `(spill/read r bytes?)`.
        Read "spill/read";
        /// `(spill/json-path r path)`.
        JsonPath "spill/json-path";
    }
}
