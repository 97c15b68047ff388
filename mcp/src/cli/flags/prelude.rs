//! Flags of preludes.

use crate::console;
use crate::console::exit::Abort;
use crate::console::style::Style;
use ptc_runtime::outcome::Report;
use ptc_runtime::{Prelude, PreludeError, PreludeSource};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which preludes are attached.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PreludeFlags {
    /// File that defines namespaces for programs (`ns`, `defn`, `defn-`, `def`); may be given several times, in order
    #[arg(short, long, value_name = "FILE")]
    prelude: Vec<PathBuf>,
}

impl PreludeFlags {
    /// The files as one prelude; `None` without any.
    pub fn prelude(&self) -> Result<Option<Arc<Prelude>>, Abort> {
        let variable = || {
            super::variables::read("prelude", |text| {
                Ok(std::env::split_paths(text)
                    .filter(|path| !path.as_os_str().is_empty())
                    .collect::<Vec<_>>())
            })
        };
        let files = match self.prelude.is_empty() {
            false => self.prelude.clone(),
            true => variable()?.unwrap_or_default(),
        };
        if files.is_empty() {
            return Ok(None);
        }
        let sources = files.iter().map(|file| source(file)).collect::<Result<Vec<_>, _>>()?;
        let prelude = Prelude::compose(sources).map_err(|error| wrong(&error))?;
        for (source, warning) in prelude.warnings() {
            let report = Report::of_diagnostic(warning, &source.text);
            console::complain(&report.text(&source.name, Style::stderr().palette()));
        }
        Ok(Some(Arc::new(prelude)))
    }
}

/// Reads a file.
pub fn source(file: &Path) -> Result<PreludeSource, Abort> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Abort::usage(format!("cannot read the prelude {name}: {error}")))?;
    let origin = Some(format!("file:{name}"));
    let id = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok(PreludeSource { name, text, id, origin, version: None })
}

/// What is wrong with a text.
pub fn wrong(error: &PreludeError) -> Abort {
    let text = error.failure.text(&error.source, Style::stderr().palette());
    Abort::usage(format!("the prelude {} does not compile\n{text}", error.source))
}
