//! Defines the command-line flags that choose preludes (Lisp libraries loaded before a program) or a store of prelude
//! versions, and loads what they name.

use super::variables;
use ptc_calls::outcome::Report;
use ptc_engine::prelude_store::PreludeStore;
use ptc_engine::{Prelude, PreludeError, PreludeSource};
use ptc_server::console::{self, Abort, Style};
use ptc_server::tools::session::StoreAccess;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Printed in place of an inventory without entries.
pub const NO_INVENTORY: &str = "no export of a prelude is meant for prompts";

/// Which preludes are attached.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PreludeFlags {
    /// File that defines namespaces for programs (`ns`, `defn`, `defn-`, `def`); may be given several times, in order
    #[arg(short, long, value_name = "FILE")]
    prelude: Vec<PathBuf>,
    /// Export (`crm/list-users`) or namespace that descriptions of tools do not list, whatever its file says; programs find
    /// it all the same. May be given several times
    #[arg(long, value_name = "NAME")]
    prelude_discoverable: Vec<String>,
}

/// Which store of preludes there is.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StoreFlags {
    /// File with versions of preludes, which sessions take by `preludes`; made if it is not there
    #[arg(long, value_name = "FILE")]
    prelude_store: Option<PathBuf>,
    /// Sessions that start as `write_capable` may write preludes of the store, with the namespace `prelude/`
    #[arg(long)]
    sessions_allow_prelude_write: bool,
}

impl StoreFlags {
    /// The access that sessions have to the store.
    pub fn access(&self, has_prelude: bool) -> Result<StoreAccess, Abort> {
        let path = variables::given_or_read(self.prelude_store.clone(), "prelude-store", variables::path)?;
        let may_write = variables::switch(self.sessions_allow_prelude_write, "sessions-allow-prelude-write")?;
        if may_write && path.is_none() {
            return Err(Abort::usage(
                "--sessions-allow-prelude-write needs --prelude-store, which is what is written",
            ));
        }
        let store = path.map(|path| open_store(&path).map(Arc::new)).transpose()?;
        Ok(StoreAccess { store, may_write, has_prelude })
    }
}

/// Opens a store.
pub fn open_store(path: &Path) -> Result<PreludeStore, Abort> {
    PreludeStore::open(path).map_err(|error| Abort::usage(error.message))
}

impl PreludeFlags {
    /// The files as one prelude; `None` without any.
    pub fn prelude(&self) -> Result<Option<Arc<Prelude>>, Abort> {
        let variable = || {
            variables::read("prelude", |text| {
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
        let prelude = compose(sources)?;
        let hidden = match self.prelude_discoverable.is_empty() {
            false => self.prelude_discoverable.clone(),
            true => {
                let names = |text: &str| Ok(text.split(',').map(|name| name.trim().to_owned()).collect());
                variables::read("prelude-discoverable", names)?.unwrap_or_default()
            }
        };
        if hidden.is_empty() {
            return Ok(Some(prelude));
        }
        let names: Vec<&str> = hidden.iter().map(String::as_str).collect();
        let narrowed = prelude.narrowed(&names);
        let narrowed = narrowed.map_err(|error| Abort::usage(format!("--prelude-discoverable: {error}")))?;
        Ok(Some(Arc::new(narrowed)))
    }
}

/// Composes texts to one prelude, and prints its warnings.
pub fn compose(sources: Vec<PreludeSource>) -> Result<Arc<Prelude>, Abort> {
    let prelude = Prelude::compose(sources).map_err(|error| wrong(&error))?;
    for (source, warning) in prelude.warnings() {
        let report = Report::from_diagnostic(warning, &source.text);
        console::complain(&report.text(&source.name, Style::stderr().palette()));
    }
    Ok(Arc::new(prelude))
}

/// Reads a prelude file.
pub fn source(file: &Path) -> Result<PreludeSource, Abort> {
    let name = file.display().to_string();
    let text = ptc_base::files::read_text(file)
        .map_err(|error| Abort::usage(format!("cannot read the prelude {name}: {error}")))?;
    let origin = Some(format!("file:{name}"));
    let id = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok(PreludeSource { name, text, id, origin, version: None })
}

/// The error for a prelude that does not compile.
fn wrong(error: &PreludeError) -> Abort {
    let text = error.failure.text(&error.source, Style::stderr().palette());
    Abort::usage(format!("the prelude {} does not compile\n{text}", error.source))
}
