//! `ptc completions` and `ptc man`: what shells and `man` want to know, made from the command line itself.

use crate::console;
use crate::console::exit::{Abort, Exit};
use clap::Command;
use std::path::PathBuf;

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
  ptc man --to ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command into this folder [default: the page of ptc, to standard output]
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
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(command, folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            console::write_data([&*String::from_utf8_lossy(&page)])?;
        }
    }
    Ok(Exit::Ok)
}
