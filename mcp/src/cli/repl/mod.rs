//! `ptc repl`: programs that build on each other, typed one after the other. It is a session of the runtime.
//!
//! # Layout
//!
//! - here: what is done with an input. `commands`: what begins with a colon.
//! - `editor`: a person at a terminal. `words`: what can be written next. `balance`: whether an input is whole.
//! - `table`: lists of maps as tables.

mod balance;
mod commands;
mod editor;
mod table;
mod words;

use super::boot::{Booted, Need, UpstreamFlags, boot_with};
use super::flags::limits::LimitFlags;
use super::flags::prelude::PreludeFlags;
use crate::answer::outcome::{fault_of, millis};
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::console::style::Style;
use balance::{Brackets, balance};
use commands::{COMMANDS, ReplCommand};
use editor::{Terminal, Typed};
use ptc_runtime::limits::{LimitTable, Limits};
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::{Outcome, RenderedValue};
use ptc_runtime::session::{Session, SessionLimits};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use tokio::sync::oneshot;
use words::Words;

/// Bytes of a result that a person is shown, and those of its JSON, for tables.
const SHOWN_BYTES: usize = 64 << 10;
const TABLE_BYTES: usize = 4 << 20;

/// Arguments of `ptc repl`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc repl --upstreams-config upstreams.json
  ptc repl -p crm.clj -l setup.ptc
  ptc repl -e '(def x 20)' -e '(+ x 1)'
  echo '(+ 1 2)' | ptc repl

Names, results (*1 *2 *3) and functions stay from one input to the next. Ctrl-C ends the
program that runs, or forgets the line; Ctrl-D leaves. :help lists the commands.")]
pub struct ReplArgs {
    /// Run this program and leave; may be given several times
    #[arg(short, long, value_name = "PROGRAM")]
    eval: Vec<String>,
    /// Run this file first
    #[arg(short, long, value_name = "FILE")]
    load: Vec<PathBuf>,
    #[command(flatten)]
    prelude: PreludeFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(args: ReplArgs) -> Result<Exit, Abort> {
    let booted = boot_with(&args.upstreams, args.prelude.prelude()?, Need::State, 1).await?;
    let limits = args.limits.limits(booted.has_upstreams)?;
    let kept = SessionLimits { memory_bytes: limits.memory_bytes, ..SessionLimits::default() };
    let session = booted.runtime.session(kept);
    let mut repl = Repl { booted, session, limits, last: None, tells_costs: false };
    let done = repl.all(&args).await;
    repl.session.close();
    repl.booted.runtime.shutdown().await;
    done
}

struct Repl {
    booted: Booted,
    session: Session,
    limits: Limits,
    /// How the last program ended.
    last: Option<Outcome>,
    tells_costs: bool,
}

impl Repl {
    async fn all(&mut self, args: &ReplArgs) -> Result<Exit, Abort> {
        let mut exit = Exit::Ok;
        for file in &args.load {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Abort::usage(format!("{}: {error}", file.display())))?;
            if !self.eval(&text, &file.display().to_string(), false).await? {
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

    /// A person types.
    async fn typed(&mut self) -> Result<(), Abort> {
        console::write_line("PTC-Lisp REPL: :help for help, Ctrl-D to leave")?;
        let mut terminal = Terminal::open(Style::stdout().is_enabled())?;
        loop {
            let words = self.words();
            // Reading a terminal blocks, and connections to servers have to go on.
            let read = tokio::task::spawn_blocking(move || {
                let typed = terminal.read(words);
                (terminal, typed)
            });
            let (back, typed) = read.await.map_err(|error| Abort::usage(error.to_string()))?;
            terminal = back;
            let text = match typed? {
                Typed::Text(text) => text,
                Typed::Nothing => continue,
                Typed::End => break,
            };
            if !self.input(&text).await? {
                break;
            }
        }
        terminal.close();
        Ok(())
    }

    /// Inputs come from a file or another program: no prompt, and errors end with an exit code.
    async fn piped(&mut self, mut exit: Exit) -> Result<Exit, Abort> {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        let mut input = String::new();
        for line in text.lines() {
            input.push_str(line);
            input.push('\n');
            if balance(&input) == Brackets::Open {
                continue;
            }
            let input = std::mem::take(&mut input);
            match commands::read(&input) {
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

    /// False to leave.
    async fn input(&mut self, text: &str) -> Result<bool, Abort> {
        match commands::read(text) {
            Some(ReplCommand::Quit) => return Ok(false),
            Some(asked) => self.command(asked).await?,
            None if text.trim().is_empty() => {}
            None => {
                self.eval(text, "input", true).await?;
            }
        }
        Ok(true)
    }

    /// Runs a program in the session; false when it failed. Ctrl-C ends it and nothing else.
    async fn eval(&mut self, program: &str, name: &str, shows_value: bool) -> Result<bool, Abort> {
        let options = RunOptions {
            limits: self.limits,
            result_bytes: SHOWN_BYTES,
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
        self.last = Some(outcome);
        Ok(is_ok)
    }

    fn show(&self, name: &str, outcome: &Outcome, shows_value: bool) -> Result<(), Abort> {
        for note in &outcome.notes {
            console::complain(&format!("note: {note}"));
        }
        console::write_parts(outcome.prints.iter().flat_map(|line| [line.as_str(), "\n"]))?;
        match &outcome.result {
            Ok(answer) if shows_value => {
                let more = if answer.truncated { " …\n" } else { "\n" };
                console::write_parts([answer.text.as_str(), more])?;
            }
            Ok(_) => {}
            Err(failure) => console::complain(&failure.text(name, Style::stderr().palette())),
        }
        if self.tells_costs {
            let usage = &outcome.usage;
            let fuel = usage.fuel.map(|fuel| format!(", fuel {fuel}")).unwrap_or_default();
            let (time, peak, calls) = (usage.duration, usage.peak_bytes, usage.upstream_calls);
            let costs = format!("{time:.1?}{fuel}, {peak} bytes at most, {calls} upstream calls");
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
                            tool.name,
                            style.dim(line.unwrap_or_default())
                        ))?;
                    }
                }
                Ok(())
            }
            ReplCommand::Calls => {
                let calls = self.last.iter().flat_map(|outcome| &outcome.upstream_calls);
                for call in calls {
                    let said = match fault_of(call) {
                        Some((reason, error)) => style.red(&format!("{reason}: {error}")),
                        None => format!("{} bytes", call.result_bytes.unwrap_or(0)),
                    };
                    let (begun, took) = (millis(call.begun), millis(call.duration));
                    let line = format!("{}/{}  at {begun} ms, {took} ms, {said}", call.server, call.tool);
                    console::write_line(&line)?;
                }
                Ok(())
            }
            ReplCommand::Table => {
                let answer = self.last.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
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
            ReplCommand::Wrong(message) => {
                console::complain(&message);
                Ok(())
            }
            ReplCommand::Quit => Ok(()),
        }
    }

    /// Runs a program beside the session, for what it prints.
    async fn look_up(&self, program: &str) -> Result<(), Abort> {
        let options =
            RunOptions { limits: self.limits, source_name: "command".into(), ..RunOptions::default() };
        let outcome = self.booted.runtime.run(program, options).await;
        self.show("command", &outcome, false)
    }

    /// What can be written now.
    fn words(&self) -> Words {
        let mut names: Vec<String> =
            self.session.contents(|contents| contents.bindings.keys().map(|name| name.to_string()).collect());
        names.extend(["*1", "*2", "*3"].map(str::to_owned));
        let mut words = Words { names, ..Words::default() };
        for server in self.booted.runtime.servers() {
            for tool in &server.tools {
                let properties = tool.input_schema["properties"].as_object();
                let keys = properties.map(|keys| keys.keys().cloned().collect()).unwrap_or_default();
                words.tools.push((format!("{}/{}", server.name, tool.name), keys));
            }
            words.servers.push(server.name.to_string());
        }
        words
    }
}
