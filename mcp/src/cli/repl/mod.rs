//! The command `ptc repl`, an interactive session in which programs build on each other.
//!
//! # Layout
//!
//! - here: the loop over inputs. `commands`: inputs that begin with a colon.
//! - `editor`: input at a terminal. `words`: completion. `balance`: whether an input is complete.
//! - `colour`: highlighting. `table`: lists of maps as tables.

mod balance;
mod colour;
mod commands;
mod editor;
mod table;
mod words;

use super::boot::{self, Booted, Need, UpstreamFlags, boot_with};
use super::flags::limits::LimitFlags;
use super::flags::prelude::{NO_INVENTORY, PreludeFlags};
use super::trace;
use balance::{Brackets, InputBalance, inputs};
use commands::{COMMANDS, ReplCommand};
use editor::{Terminal, TerminalInput};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::limits::{LimitTable, Limits};
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Outcome, RenderedValue};
use ptc_engine::history::{TurnHistory, introspection};
use ptc_engine::session::{Session, SessionLimits};
use ptc_engine::{Prelude, Scope};
use ptc_server::answer::outcome::{call_fault, millis};
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact::{stdout_is_terminal, visible_line};
use std::io::{BufRead as _, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use words::Words;

/// Most bytes of a shown result, and of its JSON for tables.
const SHOWN_BYTES: usize = 64 << 10;
const TABLE_BYTES: usize = 4 << 20;

/// Arguments of `ptc repl`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc repl --upstreams-config upstreams.json
  ptc repl -p crm.clj -l setup.ptc
  ptc repl -e '(def x 20)' -e '(+ x 1)'
  echo '(+ 1 2)' | ptc repl

Names, results (*1 *2 *3) and functions stay from one input to the next; *e is how the last
program failed. Ctrl-C ends the program that runs, or forgets the line; Ctrl-D leaves. :help
lists the commands.")]
pub struct ReplArgs {
    /// Run this program and leave; may be given several times
    #[arg(short, long, value_name = "PROGRAM")]
    eval: Vec<String>,
    /// Run this file first
    #[arg(short, long, value_name = "FILE")]
    load: Vec<PathBuf>,
    /// Print what prompts say of the preludes, and leave if there is no program
    #[arg(long)]
    show_prompt_inventory: bool,
    /// Give programs the namespace log/ over what was done before: in this REPL, or what is in this file or folder of
    /// `ptc serve --turn-log-dir`
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    log_prelude: Option<Option<PathBuf>>,
    #[command(flatten)]
    prelude: PreludeFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(args: ReplArgs) -> Result<Exit, Abort> {
    let prelude = args.prelude.prelude()?;
    if args.log_prelude.is_some() && prelude.is_some() {
        return Err(Abort::usage("--log-prelude is mutually exclusive with --prelude"));
    }
    let load = |path: &Option<PathBuf>| match path {
        Some(path) => TurnHistory::load(path).map_err(Abort::usage),
        None => Ok(TurnHistory::new()),
    };
    let history = args.log_prelude.as_ref().map(load).transpose()?.map(Arc::new);
    let prelude = with_history(prelude, history.as_ref());
    if args.show_prompt_inventory {
        let inventory = prelude.as_ref().and_then(|prelude| prelude.inventory());
        console::write_line(inventory.as_deref().unwrap_or(NO_INVENTORY))?;
        if args.eval.is_empty() {
            return Ok(Exit::Ok);
        }
    }
    // Preludes belong to a scope and not to the whole runtime, so that they can be reloaded.
    let booted = boot_with(&args.upstreams, None, Need::Interactive, 1).await?;
    let limits = args.limits.limits(booted.has_upstreams)?;
    let kept = SessionLimits { memory_bytes: limits.memory_bytes, ..SessionLimits::default() };
    if history.is_some() {
        // Hashes identify calls with the same arguments.
        booted.runtime.broker().hash_arguments();
    }
    let scope = scope(&booted, prelude.as_ref(), history.as_ref())?;
    let (session, files) = (scope.session(kept), args.prelude.clone());
    let mut repl =
        Repl { booted, scope, prelude, history, files, session, limits, last: None, tells_costs: false };
    let done = repl.all(&args).await;
    repl.session.close(ptc_engine::session::SessionEnd::Closed);
    repl.booted.runtime.shutdown().await;
    done
}

/// Whether a text is a prelude: apart from comments it begins with `(ns …)`.
fn declares_namespace(text: &str) -> bool {
    let first = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with(';'));
    first.is_some_and(|line| line.starts_with("(ns "))
}

/// The prelude of the files, or the one that shows the history.
fn with_history(files: Option<Arc<Prelude>>, history: Option<&Arc<TurnHistory>>) -> Option<Arc<Prelude>> {
    files.or_else(|| history.map(|history| introspection(history).1))
}

/// The scope in which programs have the namespaces of a prelude.
fn scope(
    booted: &Booted,
    prelude: Option<&Arc<Prelude>>,
    history: Option<&Arc<TurnHistory>>,
) -> Result<Scope, Abort> {
    let preludes: Vec<_> = prelude.into_iter().cloned().collect();
    let tools = history.map(|history| introspection(history).0).unwrap_or_default();
    booted.runtime.base().with(tools, &preludes).map_err(boot::abort)
}

struct Repl {
    booted: Booted,
    scope: Scope,
    prelude: Option<Arc<Prelude>>,
    /// The history, if programs can read it.
    history: Option<Arc<TurnHistory>>,
    files: PreludeFlags,
    session: Session,
    limits: Limits,
    /// The last program and its outcome.
    last: Option<(String, Outcome)>,
    tells_costs: bool,
}

impl Repl {
    async fn all(&mut self, args: &ReplArgs) -> Result<Exit, Abort> {
        let mut exit = Exit::Ok;
        for file in &args.load {
            let text = ptc_base::files::read_text(file)
                .map_err(|error| Abort::usage(format!("{}: {error}", file.display())))?;
            if !self.eval(&text, &file.display().to_string(), false).await? {
                if declares_namespace(&text) {
                    let file = file.display();
                    console::complain(&format!(
                        "note: {file} declares a namespace: -p {file} gives it to programs"
                    ));
                }
                exit = Exit::ProgramFailed;
            }
        }
        if !args.eval.is_empty() {
            for program in &args.eval {
                if !self.eval(program, "-e", true).await? {
                    return Ok(Exit::ProgramFailed);
                }
            }
            return Ok(exit);
        }
        if std::io::stdin().is_terminal() {
            self.typed().await.map(|()| Exit::Ok)
        } else {
            self.piped(exit).await
        }
    }

    /// Reads inputs at a terminal.
    async fn typed(&mut self) -> Result<(), Abort> {
        console::write_line("PTC-Lisp REPL: :help for help, Ctrl-D to leave")?;
        let mut terminal = Terminal::open(Style::stdout())?;
        // From now on Ctrl-C only reaches the code that waits for it. The terminal installs its own handler,
        // which calls this one if it was there before.
        let _heard = signal(SignalKind::interrupt())?;
        loop {
            let words = self.words();
            // Reading a terminal blocks, and the connections to servers must go on.
            let read = tasks::blocking(TaskOwner::Process, move |_| {
                let typed = terminal.read(words);
                (terminal, typed)
            });
            let (back, typed) = read.await.ok_or_else(|| Abort::usage("the terminal could not be read"))?;
            terminal = back;
            let text = match typed? {
                TerminalInput::Text(text) => text,
                TerminalInput::Nothing => continue,
                TerminalInput::End => break,
            };
            if !self.input(&text).await? {
                break;
            }
        }
        Ok(())
    }

    /// Reads inputs from a pipe: without prompts, and errors set the exit code.
    async fn piped(&mut self, mut exit: Exit) -> Result<Exit, Abort> {
        let mut input = String::new();
        // A plain thread: one that blocks on a line must not delay the end of the process.
        let (sender, mut lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            // Invalid UTF-8 is an error of that program, and not the end of the input.
            let lines = std::io::stdin().lock().split(b'\n');
            let lines = lines.map(|line| line.map(|line| String::from_utf8_lossy(&line).into_owned()));
            lines.map_while(|line| sender.blocking_send(line).ok()).for_each(drop);
        });
        let mut balance = InputBalance::default();
        while let Some(line) = lines.recv().await {
            let mut line = line?;
            line.push('\n');
            input.push_str(&line);
            if balance.feed(&line) != Brackets::Whole {
                continue;
            }
            balance = InputBalance::default();
            let input = std::mem::take(&mut input);
            let asked = commands::meant(&input, |name| self.has(name)).to_owned();
            match commands::read(&asked) {
                Some(ReplCommand::Quit) => return Ok(exit),
                Some(asked) => self.command(asked).await?,
                None if input.trim().is_empty() => {}
                None if !self.eval(&input, "input", true).await? => exit = Exit::ProgramFailed,
                None => {}
            }
        }
        if !input.trim().is_empty() && !self.eval(&input, "input", true).await? {
            exit = Exit::ProgramFailed;
        }
        Ok(exit)
    }

    /// Handles one input. Returns false to leave.
    async fn input(&mut self, text: &str) -> Result<bool, Abort> {
        // Several inputs come at once when they are pasted.
        for input in inputs(text) {
            let asked = commands::meant(input, |name| self.has(name)).to_owned();
            match commands::read(&asked) {
                Some(ReplCommand::Quit) => return Ok(false),
                Some(asked) => self.command(asked).await?,
                None if !self.eval(input, "input", true).await? => break,
                None => {}
            }
        }
        Ok(true)
    }

    /// Whether the session has a binding of this name.
    fn has(&self, name: &str) -> bool {
        let mut found = false;
        self.session.contents(|contents| {
            found = contents.bindings.iter().any(|(known, _)| **known == *name);
        });
        found
    }

    /// Runs a program in the session. Returns false when it failed. Ctrl-C ends the program only.
    async fn eval(&mut self, program: &str, name: &str, shows_value: bool) -> Result<bool, Abort> {
        let options = RunOptions {
            limits: self.limits,
            result_bytes: SHOWN_BYTES,
            plain_text: stdout_is_terminal(),
            want_json: true,
            json_bytes: TABLE_BYTES,
            brief_text: true,
            source_name: name.to_owned().into(),
            ..RunOptions::default()
        };
        let (sender, mut outcome) = oneshot::channel();
        let submitted = self.session.submit(program, options, None, Box::new(sender));
        let submitted = submitted.map_err(|_| Abort::usage("a program is under way"))?;
        let mut was_stopped = false;
        let outcome = loop {
            tokio::select! {
                ended = &mut outcome => break ended.map_err(|_| Abort::usage("the program was lost"))?,
                _ = tokio::signal::ctrl_c(), if !was_stopped => {
                    was_stopped = true;
                    submitted.cancel();
                }
            }
        };
        self.show(name, &outcome, shows_value)?;
        let is_ok = outcome.result.is_ok();
        if let (Err(failure), Ok(turn)) = (&outcome.result, self.session.acquire()) {
            let (done, noted) = oneshot::channel::<()>();
            turn.note_failure(failure, move || drop(done));
            // The sender is dropped when the failure has been noted.
            let _ = noted.await;
        }
        if let Some(history) = &self.history {
            history.add_run("repl", program, &outcome);
        }
        self.last = Some((program.to_owned(), outcome));
        Ok(is_ok)
    }

    fn show(&self, name: &str, outcome: &Outcome, shows_value: bool) -> Result<(), Abort> {
        for note in &outcome.notes {
            console::complain(&format!("note: {note}"));
        }
        console::write_data(outcome.prints.iter().flat_map(|line| [line.as_str(), "\n"]))?;
        match &outcome.result {
            Ok(answer) if shows_value => {
                let more = if answer.truncated { " …\n" } else { "\n" };
                if answer.is_plain {
                    console::write_line(&Style::stdout().dim("<text>"))?;
                }
                console::write_data([answer.text.as_str(), more])?;
            }
            Ok(_) => {}
            Err(failure) => console::complain(&failure.text(name, Style::stderr().palette())),
        }
        if self.tells_costs {
            let usage = &outcome.usage;
            let fuel = usage.fuel.map(|fuel| format!(", fuel {fuel}")).unwrap_or_default();
            let (time, peak) = (usage.duration, usage.peak_bytes);
            let calls = trace::count(usage.upstream_calls as usize, "upstream call");
            let costs = format!("{time:.1?}{fuel}, {peak} bytes at most, {calls}");
            console::write_line(&Style::stdout().dim(&costs))?;
        }
        Ok(())
    }

    async fn command(&mut self, asked: ReplCommand<'_>) -> Result<(), Abort> {
        let style = Style::stdout();
        match asked {
            ReplCommand::Help => {
                for (name, text) in COMMANDS {
                    console::write_line(&format!("{:<9} {text}", format!(":{name}")))?;
                }
                Ok(())
            }
            ReplCommand::Doc(name) => self.look_up(&format!("(println (doc '{name}))")).await,
            ReplCommand::Dir(name) => {
                self.look_up(&format!("(doseq [line (dir '{name})] (println line))")).await
            }
            ReplCommand::Tools => {
                let servers = self.booted.runtime.servers();
                if servers.is_empty() {
                    return console::write_line("no server is configured");
                }
                for server in servers {
                    let state = style.dim(server.state.name());
                    console::write_line(&format!("{} {state}", style.bold(&server.name)))?;
                    for tool in &server.tools {
                        let line = tool.description.as_deref().and_then(|text| text.lines().next());
                        console::write_line(&format!(
                            "  {}  {}",
                            visible_line(&tool.name),
                            style.dim(line.unwrap_or_default())
                        ))?;
                    }
                }
                Ok(())
            }
            ReplCommand::Calls => {
                let calls = self.last.iter().flat_map(|(_, outcome)| &outcome.upstream_calls);
                for call in calls {
                    let said = match call_fault(call) {
                        Some((reason, error)) => style.red(&format!("{reason}: {error}")),
                        None => format!("{} bytes", call.result_bytes.unwrap_or(0)),
                    };
                    let (begun, took) = (millis(call.begun), millis(call.duration));
                    let line = format!("{}/{}  at {begun} ms, {took} ms, {said}", call.server, call.tool);
                    console::write_line(&line)?;
                }
                Ok(())
            }
            ReplCommand::Trace => match &self.last {
                Some((program, outcome)) => console::write(&trace::drawn(program, outcome)),
                None => console::write_line("no program has run"),
            },
            ReplCommand::Table => {
                let answer = self.last.as_ref().and_then(|(_, outcome)| outcome.result.as_ref().ok());
                let json =
                    |answer: &RenderedValue| serde_json::from_str(answer.json.as_ref()?.as_ref().ok()?).ok();
                match answer.and_then(json).and_then(|value| table::table(&value)) {
                    Some(table) => console::write(&table),
                    None => console::write_line("the last result is no list of maps"),
                }
            }
            ReplCommand::Time => {
                self.tells_costs = !self.tells_costs;
                console::write_line(if self.tells_costs { "costs are shown" } else { "costs are not shown" })
            }
            ReplCommand::Limits => {
                for row in Limits::TABLE {
                    console::write_line(&format!("{:<32} {}", row.flag, (row.get)(&self.limits)))?;
                }
                Ok(())
            }
            ReplCommand::Prelude => self.show_prelude(),
            ReplCommand::Reload => self.reload().await,
            ReplCommand::Wrong(message) => {
                console::complain(&message);
                Ok(())
            }
            ReplCommand::Quit => Ok(()),
        }
    }

    /// Runs a program outside the session for its output. Ctrl-C ends it.
    async fn look_up(&self, program: &str) -> Result<(), Abort> {
        let options =
            RunOptions { limits: self.limits, source_name: "command".into(), ..RunOptions::default() };
        tokio::select! {
            outcome = self.scope.run(program, options) => self.show("command", &outcome, false),
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    }

    fn show_prelude(&self) -> Result<(), Abort> {
        let Some(prelude) = &self.prelude else { return console::write_line("there is no prelude") };
        for namespace in prelude.namespaces() {
            let style = Style::stdout();
            let about = namespace.doc().and_then(|doc| doc.lines().next()).unwrap_or_default();
            let exports = namespace.exports().len();
            let line = format!("{}  {exports} exports  {}", style.bold(namespace.name()), style.dim(about));
            console::write_line(line.trim_end())?;
        }
        Ok(())
    }

    /// Reloads the files of preludes. Definitions of the session stay and call the new functions. On an error
    /// nothing changes.
    async fn reload(&mut self) -> Result<(), Abort> {
        let history = self.history.as_ref();
        let read = self.files.prelude().and_then(|prelude| {
            let prelude = with_history(prelude, history);
            Ok((scope(&self.booted, prelude.as_ref(), history)?, prelude))
        });
        let (scope, prelude) = match read {
            Ok(read) => read,
            Err(abort) => {
                console::complain(&abort.message);
                return Ok(());
            }
        };
        let (done, moved) = oneshot::channel::<()>();
        if scope.take_over(&self.session, move || drop(done)).is_err() {
            return Err(Abort::usage("a program is under way"));
        }
        // The sender is dropped when the session has moved.
        let _ = moved.await;
        (self.scope, self.prelude) = (scope, prelude);
        self.show_prelude()
    }

    /// The words for completion.
    fn words(&self) -> Words {
        let mut words = Words::default();
        self.session.contents(|contents| {
            for (name, binding) in &contents.bindings {
                // A function is shown with its parameters: #fn[x y].
                let shown = binding.preview.strip_prefix("#fn[");
                if let Some((parameters, _)) = shown.and_then(|shown| shown.split_once(']')) {
                    let usage = format!("({name} {parameters})").replace(" )", ")");
                    words.usages.insert(name.to_string(), usage);
                }
                words.names.push(name.to_string());
            }
        });
        words.names.extend(["*1", "*2", "*3", "*e"].map(str::to_owned));
        for namespace in self.prelude.iter().flat_map(|prelude| prelude.namespaces()) {
            for export in namespace.exports() {
                let name = format!("{}/{}", namespace.name(), export.name);
                words.usages.insert(name.clone(), export.usages(&name).join(" "));
                words.names.push(name);
            }
        }
        for server in self.booted.runtime.servers() {
            for tool in &server.tools {
                let properties = tool.input_schema["properties"].as_object();
                let keys = properties.map(|keys| keys.keys().cloned().collect()).unwrap_or_default();
                words.tools.push((format!("{}/{}", server.name, tool.name), keys));
            }
            words.servers.push(server.name.to_string());
        }
        words.keep_shown();
        words
    }
}
