//! The commands `ptc completions` and `ptc man`, which generate shell completions and manual pages from the definition
//! of the command line.

use clap::Command;
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console::{self, Abort, Exit};
use std::path::{Path, PathBuf};

/// Arguments of `ptc completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc completions bash > ~/.local/share/bash-completion/completions/ptc
  ptc completions zsh > ~/.zfunc/_ptc
  ptc completions fish > ~/.config/fish/completions/ptc.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Arguments of `ptc man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc man | man -l -
  ptc man serve | man -l -
  ptc man --to ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The command, all of its words; without one, the page of ptc itself
    #[arg(value_name = "COMMAND", conflicts_with = "to")]
    of: Vec<String>,
    /// Write a page for each command into this folder
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

/// Runs `ptc completions`.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<Exit, Abort> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "ptc", &mut script);
    console::write_data([&*String::from_utf8_lossy(&script)])?;
    Ok(Exit::Ok)
}

/// Runs `ptc man`.
pub fn man(args: &ManArgs, command: Command) -> Result<Exit, Abort> {
    match &args.to {
        Some(folder) => {
            let mut command = command.disable_help_subcommand(true);
            command.build();
            write_pages(command, folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(find(command, &args.of)?).render(&mut page)?;
            console::write_data([&*String::from_utf8_lossy(&page)])?;
        }
    }
    Ok(Exit::Ok)
}

/// The command with this path, for example `prelude check`.
fn find(command: Command, path: &[String]) -> Result<Command, Abort> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    path.iter().try_fold(command, |command, name| {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        let names: Vec<&str> = below.map(Command::get_name).collect();
        command.find_subcommand(name).filter(|below| !below.is_hide_set()).cloned().ok_or_else(|| {
            Abort::usage(format!("{} has no command {name}: {}", command.get_name(), names.join(", ")))
        })
    })
}

/// Writes a page for each visible command.
fn write_pages(command: Command, folder: &Path) -> std::io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned() {
        write_pages(inner, folder)?;
    }
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    files::replace(&folder.join(page.get_filename()), &text, LinkRule::Replace, FileAccess::Kept)
}
