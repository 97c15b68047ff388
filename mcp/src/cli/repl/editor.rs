//! Reads REPL input at a terminal: rustyline with completion, hints and colours of the language.

use super::balance::{Brackets, TypedInput, balance};
use super::colour::{INDENT, PROMPT, coloured};
use super::words::Words;
use crate::console::exit::Abort;
use crate::console::style::Style;
use ptc_runtime::files::{self, LinkRule};
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
use std::sync::{Mutex, PoisonError};

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
}

struct InputHelper {
    words: Words,
    style: Style,
}

impl Terminal {
    /// Opens the terminal, with the history of earlier sessions if there is one.
    pub(super) fn open(style: Style) -> Result<Terminal, Abort> {
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
        let mut editor = Editor::with_config(config).map_err(|error| Abort::usage(error.to_string()))?;
        editor.set_helper(Some(InputHelper { words: Words::default(), style }));
        for enter in [KeyEvent(KeyCode::Enter, Modifiers::NONE), KeyEvent::ctrl('J')] {
            editor.bind_sequence(enter, EventHandler::Conditional(Box::<NextLine>::default()));
        }
        let history = history_file();
        if let Some(file) = &history {
            // At first there is no history file.
            let _ = editor.load_history(file);
        }
        Ok(Terminal { editor, history })
    }

    /// Reads an input of one or more lines.
    pub(super) fn read(&mut self, words: Words) -> Result<TerminalInput, Abort> {
        if let Some(language) = self.editor.helper_mut() {
            language.words = words;
        }
        match self.editor.readline(PROMPT) {
            Ok(text) => {
                // A history that cannot be stored is not fatal.
                let _ = self.editor.add_history_entry(text.as_str());
                Ok(TerminalInput::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(TerminalInput::Nothing),
            Err(ReadlineError::Eof) => Ok(TerminalInput::End),
            Err(error) => Err(std::io::Error::other(error).into()),
        }
    }

    /// Saves the history.
    pub(super) fn close(mut self) {
        if let Some(file) = &self.history {
            let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            let _ = made.is_ok().then(|| self.editor.save_history(file));
        }
    }
}

fn history_file() -> Option<PathBuf> {
    // A file that belongs to another user is neither read nor written.
    files::settle(&files::state_folder()?.join("history"), LinkRule::Follow).ok()
}

impl Helper for InputHelper {}

impl Validator for InputHelper {
    fn validate(&self, input: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match balance(input.input()) {
            Brackets::Open | Brackets::OpenText if !input.input().starts_with(':') => {
                ValidationResult::Incomplete
            }
            _ => ValidationResult::Valid(None),
        })
    }
}

/// Handles Enter in an incomplete input: the next line begins below the first character of the first one.
#[derive(Default)]
struct NextLine(Mutex<TypedInput>);

impl ConditionalEventHandler for NextLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        let whole = self.0.lock().unwrap_or_else(PoisonError::into_inner).check(at.line());
        if at.line().starts_with(':') || whole == Brackets::Whole {
            return None;
        }
        let before = at.line().get(..at.pos())?;
        let here = if before.len() == at.line().len() { whole } else { balance(before) };
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

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.style.is_enabled()
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.style.is_enabled() { self.style.green(prompt).into() } else { prompt.into() }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.style.is_enabled() { self.style.dim(hint).into() } else { hint.into() }
    }
}
