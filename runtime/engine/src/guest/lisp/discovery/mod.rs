//! Answers the forms with which programs find names, servers and tools and read their documentation (`apropos`, `dir`,
//! `doc`, `meta`, `ns-publics` and others).
//!
//! # Layout
//! - `request`: arguments and options; `reply`: answers as plain data, their size limit, their values
//! - `provider`: sources of names, in order; `local`: the language; `granted`: tools of the host
//! - `record`: one name with its documentation
//! - `search`: words and scores; `apropos`: everything that matches, in order; `topics`: what tools are about
//!
//! Names of the language win over servers of the same name. If an answer needs the tools of a server that are
//! not known, the server is started first. A defect of the program is a fault. If a server is down, the
//! budget is used up or the answer is too large, the answer is nil, with a note to the client.

mod apropos;
mod granted;
mod local;
mod provider;
mod record;
mod reply;
mod request;
mod search;
mod topics;

pub use apropos::matching_tools;
pub(crate) use reply::DiscoveryReply;
pub use topics::topics;

use crate::broker::ToolBroker;
use crate::guest::lisp::tool_call::programmer_fault;
pub(crate) use local::language;
pub(crate) use provider::Provider;
use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::call_messages::{Notation, no_such_server, no_such_tool, refused_tool};
use ptc_calls::tools::suggest::nearest;
use ptc_calls::tools::visible::shown_name;
use ptc_calls::tools::{
    Catalog, CatalogServer, HIDDEN_ARGUMENTS, LookUp, OWN_FACTS, ServerText, UpstreamTool, text as tool_text,
};
use ptc_upstream::Upstream;
use ptc_vm::builtins::DiscoveryForm;
use ptc_vm::{Context, Fault, Reason, Value};
pub(crate) use record::{ExportFacts, NameOrigin, NameRecord};
pub(crate) use search::Query;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Length limit, in characters, of a server's text about itself when its tools are listed too.
const SAID: usize = 300;

/// Fuel for the signature of a tool in a list.
pub(super) const LINE_TICKS: u64 = 256;

/// How to proceed with a discovery form.
pub(crate) enum Step {
    /// Return this answer.
    Answer(DiscoveryReply),
    /// The tools of these servers are not known: start them, then look again.
    Load(Vec<Arc<dyn Upstream>>),
}

/// Decides how to proceed. `loaded`: servers were started for this form, which is already paid for.
pub(crate) fn step(
    cx: &mut Context,
    providers: &[&dyn Provider],
    broker: &ToolBroker,
    account: &RunAccount,
    form: DiscoveryForm,
    arguments: &[Value],
    loaded: bool,
) -> Result<Step, Box<Fault>> {
    let lookup = Lookup { providers, broker, account, catalog: broker.catalog().snapshot(), form, loaded };
    match form {
        DiscoveryForm::Apropos => lookup.apropos(cx, arguments),
        DiscoveryForm::Dir => lookup.dir(cx, arguments),
        DiscoveryForm::Doc | DiscoveryForm::Meta => lookup.describe(cx, arguments),
        DiscoveryForm::Source => {
            let reference = request::reference(cx, form, arguments)?;
            let source = provider::first(providers, |provider| provider.source(&reference));
            let source = source.unwrap_or_else(|| format!("no source available for {reference}"));
            Ok(Step::Answer(DiscoveryReply::Print(source)))
        }
        DiscoveryForm::NsPublics => {
            let name = request::reference(cx, form, arguments)?;
            let members = provider::first(providers, |provider| provider.members(&name));
            let members = members.ok_or_else(|| lookup.unknown_namespace(&name))?;
            cx.tick(members.len() as u64 * 8)?;
            Ok(Step::Answer(DiscoveryReply::Named(members.iter().map(public).collect())))
        }
        DiscoveryForm::AllNs => {
            let mut all: Vec<String> = providers.iter().flat_map(|provider| provider.namespaces()).collect();
            all.sort();
            Ok(Step::Answer(DiscoveryReply::Lines(all)))
        }
        DiscoveryForm::NsName => {
            let name = request::reference(cx, form, arguments)?;
            let full = provider::first(providers, |provider| provider.namespace(&name));
            Ok(Step::Answer(DiscoveryReply::Text(full.ok_or_else(|| lookup.unknown_namespace(&name))?)))
        }
    }
}

/// One form that is being answered.
struct Lookup<'e> {
    providers: &'e [&'e dyn Provider],
    broker: &'e ToolBroker,
    account: &'e RunAccount,
    catalog: Arc<Catalog>,
    form: DiscoveryForm,
    loaded: bool,
}

impl Lookup<'_> {
    fn apropos(&self, cx: &mut Context, arguments: &[Value]) -> Result<Step, Box<Fault>> {
        let request::Apropos { query, limit, load } = request::apropos(cx, arguments)?;
        let has_servers = self.catalog.servers().len() > 0;
        if has_servers && !self.take_operation() {
            return Ok(Step::Answer(DiscoveryReply::Nil));
        }
        if load && !self.loaded {
            let unknown = self.catalog.servers().filter(|server| server.tools.is_none());
            let unknown: Vec<_> = unknown.filter_map(|server| self.broker.upstream(&server.name)).collect();
            if !unknown.is_empty() {
                return Ok(Step::Load(unknown));
            }
        }
        let tools_only = load && has_servers;
        let found = apropos::search(cx, &self.catalog, &query, limit, tools_only, self.providers)?;
        if !found.unsearched.is_empty() {
            let servers = found.unsearched.join(", ");
            self.account.note(if load {
                format!("apropos: the tools of {servers} could not be loaded")
            } else {
                format!("apropos: the tools of {servers} are not loaded; {{:load true}} searches them too")
            });
        }
        self.lines(found.lines)
    }

    fn dir(&self, cx: &mut Context, arguments: &[Value]) -> Result<Step, Box<Fault>> {
        let asked = request::dir(cx, arguments)?;
        let request::Dir { reference, limit, offset, .. } = &asked;
        let (limit, offset) = (*limit, *offset);
        if let Some(members) = provider::first(self.providers, |provider| provider.members(reference)) {
            return self.page(members.iter(), NameRecord::member_line, &asked);
        }
        let Some(server) = self.catalog.server(reference) else {
            return Err(self.unknown_server(reference));
        };
        if !self.loaded && !self.account.is_first_list(reference) && !self.take_operation() {
            return Ok(Step::Answer(DiscoveryReply::Nil));
        }
        let Some(tools) = &server.tools else { return Ok(self.load(server)) };
        cx.tick(tools.len() as u64)?;
        if let Some(why) = tools.cut() {
            let count = tools.len();
            self.account
                .note_loss(&format!("dir: only {count} tools of {reference} are known, because {why}"));
        }
        if let Some(says) = tools.instructions().filter(|_| offset == 0) {
            let says = tool_text::one_line(says, SAID);
            self.account.note(format!("dir: {reference} says: {says} (doc \"{reference}\") has all it says"));
        }
        cx.tick(tools.len().saturating_sub(offset).min(limit) as u64 * LINE_TICKS)?;
        if let Some(offers) = tools.offers().note().filter(|_| offset == 0) {
            self.account.note(format!("dir: {reference} also has {offers}; (doc \"{reference}\") says more"));
        }
        let line = |tool: &Arc<UpstreamTool>| tool_text::tool_line(&shown_name(&tool.name), tool);
        self.page(tools.iter(), line, &asked)
    }

    /// One page of the lines. When more follow, a note names the offset of the first that is not shown, and so does the
    /// last line of a list whose length the program did not set, if it fits.
    fn page<'t, T: 't>(
        &self,
        entries: impl ExactSizeIterator<Item = &'t T>,
        line: impl Fn(&T) -> String,
        asked: &request::Dir,
    ) -> Result<Step, Box<Fault>> {
        let request::Dir { reference: of, limit, offset, is_limited } = asked;
        let all = entries.len();
        let mut shown: Vec<String> = entries.skip(*offset).take(*limit).map(line).collect();
        let wanted = reply::cut_lines(&mut shown, self.cap());
        let next = offset.saturating_add(shown.len());
        if shown.len() < wanted {
            let way_on = (!shown.is_empty()).then(|| format!("; {{:offset {next}}} gives the next"));
            self.note_cut(shown.len(), wanted, &way_on.unwrap_or_default());
        } else if next < all && !shown.is_empty() {
            self.account.note_loss(&format!(
                "dir: {} of {all} of {of} shown; {{:offset {next}}} gives the next",
                shown.len()
            ));
            let more = format!("… {} more: (dir {} {{:offset {next}}})", all - next, Json::from(&**of));
            shown.extend((!is_limited).then_some(more));
            reply::cut_lines(&mut shown, self.cap());
        }
        Ok(Step::Answer(DiscoveryReply::Lines(shown)))
    }

    /// Lines cut to the size limit.
    fn lines(&self, mut lines: Vec<String>) -> Result<Step, Box<Fault>> {
        let all = reply::cut_lines(&mut lines, self.cap());
        if lines.len() < all {
            self.note_cut(lines.len(), all, "");
        }
        Ok(Step::Answer(DiscoveryReply::Lines(lines)))
    }

    /// Notes that the size limit cut a list.
    fn note_cut(&self, shown: usize, all: usize, way_on: &str) {
        let (form, cap) = (self.form.name(), self.cap());
        self.account.note_loss(&format!(
            "{form}: {shown} of {all} entries fit into max-catalog-result-bytes ({cap}){way_on}"
        ));
    }

    /// `doc` and `meta`.
    fn describe(&self, cx: &mut Context, arguments: &[Value]) -> Result<Step, Box<Fault>> {
        let reference = request::reference(cx, self.form, arguments)?;
        let records = provider::find(self.providers, &reference);
        if let Some(first) = records.first() {
            return Ok(self.capped(match self.form {
                DiscoveryForm::Meta => metadata(first),
                _ => {
                    let texts: Vec<String> = records.iter().map(NameRecord::documentation).collect();
                    DiscoveryReply::Text(texts.join("\n\n"))
                }
            }));
        }
        let parts = reference.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
        let Some((server_name, tool_name)) = parts else { return self.whole(cx, &reference) };
        let Some(server) = self.catalog.server(server_name) else {
            return Err(match provider::first(self.providers, |provider| provider.namespace(server_name)) {
                Some(_) => self.unknown_local(&reference),
                None => self.unknown_server(server_name),
            });
        };
        if !self.take_operation() {
            return Ok(Step::Answer(DiscoveryReply::Nil));
        }
        let mut found = self.catalog.look_up(server_name, tool_name);
        if matches!(found, LookUp::NotLoaded) {
            // For documentation, the last list of a stopped server will do.
            found = self.catalog.look_up_last(server_name, tool_name);
            if !self.loaded && !matches!(found, LookUp::Ready(_)) {
                return Ok(self.load(server));
            }
        }
        let wrong = match found {
            LookUp::Ready(tool) => {
                cx.tick(64)?;
                return Ok(self.capped(match self.form {
                    DiscoveryForm::Meta => {
                        DiscoveryReply::Json(tool_metadata(server_name, &tool).to_string())
                    }
                    _ => {
                        let seen = self.broker.seen_results(server_name, &tool);
                        DiscoveryReply::Text(tool_text::documentation(server_name, &tool, seen.as_ref()))
                    }
                }));
            }
            LookUp::NoServer | LookUp::NotLoaded => return Ok(self.load(server)),
            LookUp::Refused(refusal) => refused_tool(server_name, tool_name, refusal),
            LookUp::NoTool(tools) => {
                no_such_tool(server_name, tool_name, &tools, &self.catalog, Notation::Lisp)
            }
        };
        Err(programmer_fault(wrong))
    }

    /// `(doc 'name)` of a whole namespace or server. A prelude may have the name of the server that it wraps:
    /// then both are described.
    fn whole(&self, cx: &mut Context, reference: &str) -> Result<Step, Box<Fault>> {
        let is_doc = self.form == DiscoveryForm::Doc;
        let of = |provider: &dyn Provider| {
            Some((provider.namespace(reference)?, provider.about(reference), provider.members(reference)?))
        };
        let Some((name, about, members)) = provider::first(self.providers, of).filter(|_| is_doc) else {
            return self.server(reference);
        };
        cx.tick(members.len() as u64 * 8)?;
        let mut text = record::about_namespace(&name, about.as_deref(), &members);
        if let Some(server) = self.catalog.server(reference).filter(|_| self.take_operation()) {
            text.push_str("\n\nServer ");
            text.push_str(&tool_text::about_server(server, true));
        }
        Ok(self.capped(DiscoveryReply::Text(text)))
    }

    /// `(doc 'server)`: what is known about a server as a whole.
    fn server(&self, reference: &str) -> Result<Step, Box<Fault>> {
        let server = self.catalog.server(reference).filter(|_| self.form == DiscoveryForm::Doc);
        let Some(server) = server else { return Err(self.not_a_tool(reference)) };
        if !self.take_operation() {
            return Ok(Step::Answer(DiscoveryReply::Nil));
        }
        Ok(match server.tools {
            Some(_) => self.capped(DiscoveryReply::Text(tool_text::about_server(server, false))),
            None => self.load(server),
        })
    }

    /// Starts the server of a form that needs it; nil when it was already tried.
    fn load(&self, server: &CatalogServer) -> Step {
        let upstream = self.broker.upstream(&server.name);
        match upstream.as_ref().filter(|_| !self.loaded) {
            Some(upstream) => Step::Load(vec![upstream.clone()]),
            None => {
                let why = upstream.and_then(|upstream| upstream.status().error);
                let why = why.map(|why| format!(" ({})", self.broker.secrets().scrub(&why)));
                self.account.note_loss(&format!(
                    "{}: server {} is not available{}",
                    self.form.name(),
                    ServerText::new(&server.name),
                    why.unwrap_or_default()
                ));
                Step::Answer(DiscoveryReply::Nil)
            }
        }
    }

    /// The answer if it fits the size limit, else nil.
    fn capped(&self, reply: DiscoveryReply) -> Step {
        let (bytes, cap) = (reply.bytes(), self.cap());
        if bytes <= cap {
            return Step::Answer(reply);
        }
        let form = self.form.name();
        self.account.note_loss(&format!(
            "{form}: the answer of {bytes} bytes exceeds max-catalog-result-bytes ({cap})"
        ));
        Step::Answer(DiscoveryReply::Nil)
    }

    fn cap(&self) -> usize {
        usize::try_from(self.account.limits().max_catalog_result_bytes).unwrap_or(usize::MAX)
    }

    /// Charges one look at the upstreams' tools.
    fn take_operation(&self) -> bool {
        self.loaded || take_operation(self.account)
    }

    // ----- defects of the program

    fn unknown_server(&self, name: &str) -> Box<Fault> {
        let fault = programmer_fault(no_such_server(name, "", &self.catalog, Notation::Lisp));
        match provider::first(self.providers, |provider| {
            nearest(name, &as_strs(&provider.namespaces())).map(str::to_owned)
        }) {
            Some(near) => fault.hint(format!("A namespace is called `{near}`.")),
            None => fault,
        }
    }

    fn unknown_namespace(&self, name: &str) -> Box<Fault> {
        let form = self.form.name();
        let fault = Fault::new(Reason::RuntimeError, format_args!("{form}: unknown namespace {name:?}"));
        match self.catalog.server(name) {
            Some(_) => fault.hint(format!("{name:?} is an upstream server; (dir {name:?}) lists its tools.")),
            None => {
                let all: Vec<String> =
                    self.providers.iter().flat_map(|provider| provider.namespaces()).collect();
                fault.hint(format!("The namespaces are {}.", all.join(", ")))
            }
        }
    }

    fn unknown_local(&self, reference: &str) -> Box<Fault> {
        let fault = Fault::new(
            Reason::RuntimeError,
            format_args!("{}: unknown name {reference:?}", self.form.name()),
        );
        match self.nearest_local(reference) {
            Some(near) => fault.hint(format!("Did you mean `{near}`?")),
            None => fault.hint(format!("(apropos {reference:?}) searches.")),
        }
    }

    fn nearest_local(&self, reference: &str) -> Option<String> {
        let nearest =
            |provider: &dyn Provider| nearest(reference, &as_strs(&provider.references())).map(str::to_owned);
        provider::first(self.providers, nearest)
    }

    /// The fault for a reference that is neither a name of the language nor `server/tool`.
    fn not_a_tool(&self, reference: &str) -> Box<Fault> {
        let form = self.form.name();
        let message = format!("{form} requires upstream/tool ref, got '{reference}");
        let fault = Fault::new(Reason::RuntimeError, message);
        if self.catalog.server(reference).is_some() {
            return fault.hint(format!("It is a server; (dir '{reference}) lists its tools."));
        }
        let server = self
            .catalog
            .servers()
            .find(|server| server.tools.as_ref().is_some_and(|tools| tools.get(reference).is_some()));
        match (server, self.nearest_local(reference)) {
            (Some(server), _) => fault.hint(format!("Did you mean ({form} '{}/{reference})?", server.name)),
            (None, Some(near)) => fault.hint(format!("Did you mean ({form} '{near})?")),
            (None, None) => fault.hint(format!("(apropos {reference:?}) searches.")),
        }
    }
}

/// Takes one operation from the discovery budget. When that is used up, adds a note.
pub(crate) fn take_operation(account: &RunAccount) -> bool {
    let granted = account.take_discovery();
    if !granted {
        let limit = account.limits().max_catalog_ops;
        account.note_loss(&format!(
            "the discovery budget of {limit} operations is used up; further discovery forms gave nil"
        ));
    }
    granted
}

fn as_strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// One entry of `ns-publics`.
fn public(record: &NameRecord) -> (Cow<'static, str>, DiscoveryReply) {
    let mut entry = vec![
        ("name", DiscoveryReply::Text(record.name.clone())),
        ("doc", DiscoveryReply::Text(record.doc.clone())),
        ("arglists", DiscoveryReply::Lines(record.signatures.clone())),
    ];
    match &record.export {
        Some(export) => entry.extend(exported(export)),
        None => entry.push(("section", DiscoveryReply::Text(record.section.to_owned()))),
    }
    entry.push(("source", DiscoveryReply::Text(record.origin.word().to_owned())));
    (record.name.clone().into(), DiscoveryReply::map(entry))
}

/// Facts about an export in lists.
fn exported(export: &ExportFacts) -> [(&'static str, DiscoveryReply); 3] {
    [
        ("arity", export.arity.map_or(DiscoveryReply::keyword("variadic"), DiscoveryReply::Number)),
        ("visibility", DiscoveryReply::keyword(export.visibility)),
        ("effect", DiscoveryReply::keyword(export.effect.name())),
    ]
}

/// `(meta 'name)` of a name of the language or of an export.
fn metadata(record: &NameRecord) -> DiscoveryReply {
    let text = |text: &str| DiscoveryReply::Text(text.to_owned());
    let mut entries = vec![
        ("kind", text(record.kind)),
        ("source", text(record.origin.word())),
        ("namespace", text(&record.namespace)),
        ("name", text(&record.name)),
        ("ref", text(&record.reference)),
    ];
    match &record.export {
        Some(export) => {
            entries.push(("doc", text(&record.doc)));
            entries.push(("arglists", DiscoveryReply::Lines(record.signatures.clone())));
            entries.extend(exported(export));
            let provider = export.provider.clone().map_or(DiscoveryReply::Nil, DiscoveryReply::Text);
            entries.push(("provider_ref", provider));
            entries.push(("requires", DiscoveryReply::Lines(export.requires.clone())));
        }
        None => {
            let examples = record.examples.iter().map(|(program, result)| format!("{program} => {result}"));
            entries.push(("description", text(&record.doc)));
            entries.push(("signatures", DiscoveryReply::Lines(record.signatures.clone())));
            entries.push(("section", text(record.section)));
            entries.push(("examples", DiscoveryReply::Lines(examples.collect())));
        }
    }
    DiscoveryReply::map(entries)
}

/// `(meta 'server/tool)`.
fn tool_metadata(server: &str, tool: &UpstreamTool) -> Json {
    // Facts that the runtime itself adds about the origin of a tool.
    let origin = tool.meta.as_ref().and_then(|meta| meta.get(OWN_FACTS));
    let transport = origin.and_then(|origin| origin.get("transport")).and_then(Json::as_str).unwrap_or("mcp");
    let title = tool.title.as_deref().or_else(|| tool.annotations.more.get("title")?.as_str());
    let mut metadata = json!({
        "kind": format!("{transport}-tool"), "source": "upstream", "server": server, "tool": tool.name,
        "name": tool.name, "title": title, "description": tool.description,
        "input_schema": tool.input_schema, "output_schema": tool.result_schema(),
        "annotations": tool.annotations, "effect": tool.effect().name(),
        "call": tool_text::call_form(server, tool),
    });
    if let (Some(origin), Json::Object(metadata)) = (origin, &mut metadata) {
        let mut origin = origin.clone();
        if let Json::Object(facts) = &mut origin {
            facts.remove(HIDDEN_ARGUMENTS);
        }
        metadata.insert(OWN_FACTS.to_owned(), origin);
    }
    metadata
}
