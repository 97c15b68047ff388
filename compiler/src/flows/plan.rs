//! The result of the data-flow analysis: which data may reach which argument of which call of a program, shown as text
//! or as a Mermaid flowchart.

pub use super::set::SourceSet;
use ptc_vm::Span;
use std::fmt::Write;

/// The data flows that a program may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowPlan {
    /// Where data comes from, by number. The first is always [`FlowSource::Anything`], the second
    /// [`FlowSource::Literal`].
    pub sources: Vec<FlowSource>,
    /// The calls, in the order of the text.
    pub calls: Vec<FlowCall>,
    /// What may reach the prints.
    pub prints: SourceSet,
    /// What may reach the result of the program.
    pub result: SourceSet,
    /// What may reach the names that the program defines, for later programs of its session.
    pub definitions: Vec<(Box<str>, SourceSet)>,
    /// The program is too large to be planned: any call may receive anything, and the other fields are empty.
    pub is_unknown: bool,
}

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowSource {
    /// Anything: the analysis does not know.
    Anything,
    /// The text of the program.
    Literal,
    /// The clock.
    Clock,
    /// What the host says of its servers and tools.
    Catalog,
    /// `data/…`; `None`: any of them.
    Context(Option<Box<str>>),
    /// A name that an earlier program of the session defined.
    Session(Box<str>),
    /// An export of a prelude.
    Prelude(Box<str>),
    /// The data of a call's result: an index into [`FlowPlan::calls`].
    Result(usize),
    /// Whether a call succeeded, why not, and the kind of its value.
    Status(usize),
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowCallKind {
    /// A tool of a server.
    Tool,
    /// A resource.
    Resource,
    /// A prompt.
    Prompt,
    /// A list of resources, templates or prompts.
    List,
    /// A tool of the host.
    Granted,
    /// A function whose text is not known: it may call anything.
    Function,
}

/// A call in the text of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowCall {
    /// What is called.
    pub kind: FlowCallKind,
    /// Configured name of the server; `None` if it is computed.
    pub server: Option<Box<str>>,
    /// The tool or the name of the function; `None` if it is computed.
    pub tool: Option<Box<str>>,
    /// Where it stands in the text.
    pub span: Span,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What may decide whether, how often and where it is called.
    pub control: SourceSet,
    /// What may reach its arguments. An argument that is in no entry is absent.
    pub arguments: Vec<FlowArgument>,
}

/// A part of the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowArgument {
    /// The keys that lead to it. An empty text stands for any key.
    pub path: Vec<Box<str>>,
    /// What may reach it, or decide that it is there.
    pub sources: SourceSet,
}

impl FlowArgument {
    /// As a JSON pointer; any key is `*`.
    pub fn pointer(&self) -> String {
        FlowArgument::pointer_of(&self.path)
    }

    fn pointer_of(path: &[Box<str>]) -> String {
        let segments = path.iter().map(|key| match &**key {
            "" => "/*".to_owned(),
            // A key that reads like any key is told apart from it.
            "*" => "/\\*".to_owned(),
            key => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        });
        segments.collect()
    }

    /// A path as people see it: in one line, without characters that change how it is read.
    pub fn shown_path(path: &[Box<str>]) -> String {
        shown(&FlowArgument::pointer_of(path))
    }
}

impl FlowCall {
    /// `server/tool` as it is shown.
    pub fn name(&self) -> String {
        let part = |name: &Option<Box<str>>, any: &str| match name {
            Some(name) => shown(name),
            None => any.to_owned(),
        };
        let tool = part(&self.tool, "(any tool)");
        match self.kind {
            FlowCallKind::Granted => format!("tool/{tool}"),
            FlowCallKind::Function => tool,
            _ => format!("{}/{tool}", part(&self.server, "(any server)")),
        }
    }
}

/// A name of a program as it is shown. The text of a program must not be able to look like a part of its plan: a name
/// that has other characters than names usually have is quoted.
fn shown(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./*!?$@~:\\".contains(letter);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.chars().flat_map(escaped).collect::<String>()),
    }
}

/// A character inside quotes: those that end a line, that are not visible or that change the order are escaped.
fn escaped(letter: char) -> Vec<char> {
    match letter {
        ' ' => vec![' '],
        '"' | '\\' | '\n' | '\r' | '\t' => letter.escape_default().collect(),
        letter if letter.is_ascii_graphic() || letter.is_alphanumeric() => vec![letter],
        letter => letter.escape_unicode().collect(),
    }
}

impl FlowPlan {
    /// The number of the source that stands for anything.
    pub const ANYTHING: usize = 0;

    /// The plan of a program about which nothing is known.
    pub(super) fn unknown() -> FlowPlan {
        FlowPlan { is_unknown: true, ..FlowPlan::default() }
    }

    /// A source as it is shown: `mail/read (line 2)`.
    pub fn source_name(&self, number: usize) -> String {
        let call = |index: &usize| match self.calls.get(*index) {
            Some(call) => format!("{} (line {})", call.name(), call.line),
            None => "? (line 0)".to_owned(),
        };
        match self.sources.get(number) {
            None | Some(FlowSource::Anything) => "anything".to_owned(),
            Some(FlowSource::Literal) => "the program's text".to_owned(),
            Some(FlowSource::Clock) => "the clock".to_owned(),
            Some(FlowSource::Catalog) => "texts about tools".to_owned(),
            Some(FlowSource::Context(Some(key))) => format!("data/{}", shown(key)),
            Some(FlowSource::Context(None)) => "data/*".to_owned(),
            Some(FlowSource::Session(name)) => format!("{} of the session", shown(name)),
            Some(FlowSource::Prelude(name)) => shown(name),
            Some(FlowSource::Result(index)) => call(index),
            Some(FlowSource::Status(index)) => format!("status of {}", call(index)),
        }
    }

    /// The sources of a set as they are shown, those that say most first.
    pub fn names(&self, sources: SourceSet) -> Vec<String> {
        let mut numbers: Vec<usize> = sources.iter().collect();
        let rank = |number: &usize| match self.sources.get(*number) {
            None | Some(FlowSource::Anything) => 0,
            Some(FlowSource::Result(_)) => 1,
            Some(FlowSource::Status(_)) => 3,
            Some(FlowSource::Literal) => 4,
            Some(_) => 2,
        };
        numbers.sort_by_key(rank);
        numbers.into_iter().map(|number| self.source_name(number)).collect()
    }

    /// The plan as text, a paragraph for each call.
    pub fn text(&self) -> String {
        if self.is_unknown {
            return "The program is too large to be planned: every call may receive anything.\n".to_owned();
        }
        let line = |name: &str, sources: SourceSet| {
            let names = self.names(sources);
            let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
            format!("  {name:<20} {names}\n")
        };
        let paragraph = |call: &FlowCall| {
            let mut text = format!("line {}: {}\n", call.line, call.name());
            for argument in &call.arguments {
                text += &line(&FlowArgument::shown_path(&argument.path), argument.sources);
            }
            if !call.control.is_empty() {
                text += &line("whether and where", call.control);
            }
            text
        };
        let paragraphs: Vec<String> = self.calls.iter().map(paragraph).collect();
        let mut text = format!("{}\nthe program\n{}", paragraphs.join("\n"), line("the result", self.result));
        if !self.prints.is_empty() {
            text += &line("prints", self.prints);
        }
        for (name, sources) in &self.definitions {
            text += &line(&format!("(def {})", shown(name)), *sources);
        }
        text
    }

    /// The plan as a picture: a flowchart in the notation of Mermaid.
    pub fn mermaid(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('#', "#35;").replace('"', "#quot;"));
        let mut text = String::from("flowchart LR\n");
        for (index, call) in self.calls.iter().enumerate() {
            let _ =
                writeln!(text, "  c{index}[{}]", quoted(&format!("{} (line {})", call.name(), call.line)));
        }
        let _ = writeln!(text, "  end_([\"the result\"])");
        let mut shown = SourceSet::EMPTY;
        let mut arrow = |text: &mut String, sources: SourceSet, to: &str, label: &str, dotted: bool| {
            for number in sources.iter().filter(|number| *number != 1) {
                let from = match self.sources.get(number) {
                    Some(FlowSource::Result(index) | FlowSource::Status(index)) => format!("c{index}"),
                    _ => format!("s{number}"),
                };
                if from.starts_with('s') && !shown.has(number) {
                    shown = shown.union(SourceSet::only(number as u8));
                    let _ = writeln!(text, "  {from}([{}])", quoted(&self.source_name(number)));
                }
                let is_status = matches!(self.sources.get(number), Some(FlowSource::Status(_)));
                let line = if dotted || is_status { "-.->" } else { "-->" };
                let _ = writeln!(text, "  {from} {line}|{}| {to}", quoted(label));
            }
        };
        for (index, call) in self.calls.iter().enumerate() {
            let to = format!("c{index}");
            for argument in &call.arguments {
                let label = FlowArgument::shown_path(&argument.path);
                arrow(&mut text, argument.sources.minus(call.control), &to, &label, false);
            }
            arrow(&mut text, call.control, &to, "whether", true);
        }
        arrow(&mut text, self.result, "end_", "", false);
        text
    }
}
