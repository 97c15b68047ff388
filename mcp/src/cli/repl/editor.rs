//! Reads REPL input at a terminal: rustyline with completion, hints and colours of the language.

use super::balance::{Brackets, TypedInput, balance};
use super::colour::{CONTINUED, INDENT, PROMPT, coloured};
use super::words::Words;
use ptc_base::files::{self, LinkRule};
use ptc_server::console::{Abort, Style};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The result of reading at a terminal.
pub(super) enum TerminalInput {
    /// An input.
    Text(String),
    /// No input: Ctrl-C.
    Nothing,
    /// The end of the session: Ctrl-D.
    End,
}

/// A terminal in line editing mode. It shows what is typed, and names that were redacted when they were read.
pub(super) struct Terminal {
    editor: Editor<InputHelper, FileHistory>,
    history: Option<PathBuf>,
    typed: SharedInput,
}

struct InputHelper {
    words: Words,
    style: Style,
    typed: SharedInput,
}

/// The input, which several parts of the editor check.
#[derive(Clone, Default)]
struct SharedInput(Arc<Mutex<TypedInput>>);

impl SharedInput {
    fn lock(&self) -> MutexGuard<'_, TypedInput> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of an input that can be edited and has colours. The editor draws its whole text at each key, so what is
/// longer is accepted at the end of a line, and the rest is typed as a new part.
const EDITED: usize = 4 << 10;

impl Terminal {
    /// Opens the terminal, with the history of earlier sessions if there is one.
    pub(super) fn open(style: Style) -> Result<Terminal, Abort> {
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
        let mut editor = Editor::with_config(config).map_err(|error| Abort::usage(error.to_string()))?;
        let typed = SharedInput::default();
        editor.set_helper(Some(InputHelper { words: Words::default(), style, typed: typed.clone() }));
        for enter in [KeyEvent(KeyCode::Enter, Modifiers::NONE), KeyEvent::ctrl('J')] {
            editor.bind_sequence(enter, EventHandler::Conditional(Box::new(NextLine(typed.clone()))));
        }
        let history = history_file();
        if let Some(file) = &history {
            // At first there is no history file.
            let _ = editor.load_history(file);
        }
        Ok(Terminal { editor, history, typed })
    }

    /// Reads an input of one or more lines.
    pub(super) fn read(&mut self, words: Words) -> Result<TerminalInput, Abort> {
        if let Some(language) = self.editor.helper_mut() {
            language.words = words;
        }
        *self.typed.lock() = TypedInput::default();
        let (mut whole, mut prompt) = (String::new(), PROMPT);
        loop {
            let part = match self.editor.readline(prompt) {
                Ok(part) => part,
                Err(ReadlineError::Interrupted) => return Ok(TerminalInput::Nothing),
                Err(ReadlineError::Eof) => return Ok(TerminalInput::End),
                Err(error) => return Err(std::io::Error::other(error).into()),
            };
            whole.push_str(&part);
            let mut typed = self.typed.lock();
            if typed.is_complete(&part) {
                break;
            }
            typed.accept(&part);
            (whole, prompt) = (whole + "\n", CONTINUED);
        }
        // A history that cannot be stored is not fatal.
        let _ = self.editor.add_history_entry(whole.as_str());
        // At once: the terminal may be closed, and another REPL may write to the same file.
        if let Some(file) = &self.history {
            let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            let _ = made.is_ok().then(|| self.editor.append_history(file));
        }
        Ok(TerminalInput::Text(whole))
    }
}

fn history_file() -> Option<PathBuf> {
    // A file that belongs to another user is neither read nor written.
    files::settle(&files::state_folder()?.join("history"), LinkRule::Follow).ok()
}

impl Helper for InputHelper {}

impl Validator for InputHelper {
    fn validate(&self, input: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_long = input.input().len() > EDITED;
        Ok(match self.typed.lock().is_complete(input.input()) || is_long {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

/// Handles Enter in an incomplete input: the next line begins below the first character of the first one.
struct NextLine(SharedInput);

impl ConditionalEventHandler for NextLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        let mut typed = self.0.lock();
        if typed.is_complete(at.line()) || at.line().len() > EDITED {
            return None;
        }
        let before = at.line().get(..at.pos())?;
        let here = if before.len() == at.line().len() { typed.check(before) } else { balance(before) };
        let indent = if here == Brackets::OpenText { "" } else { INDENT };
        Some(Cmd::Insert(1, format!("\n{indent}")))
    }
}

impl Completer for InputHelper {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.words.complete(&line[..at]))
    }
}

impl Hinter for InputHelper {
    type Hint = String;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        if at < line.len() {
            return None;
        }
        self.words.usage(line).map(|usage| format!("   {usage}"))
    }
}

impl Highlighter for InputHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        coloured(line, self.style)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        self.style.is_enabled() && line.len() <= EDITED
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.style.is_enabled() { self.style.green(prompt).into() } else { prompt.into() }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.style.is_enabled() { self.style.dim(hint).into() } else { hint.into() }
    }
}
