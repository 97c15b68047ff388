//! Defines the command-line flags that give tools access to local files: the allowed folders, and whether programs get
//! a built-in server (`utils`) that reads, or also writes, files in these folders.

use super::variables;
use ptc_server::console::Abort;
use ptc_server::files::{FileRoots, FileUtilities};
use ptc_upstream::config::ServerEntry;
use std::path::PathBuf;
use std::sync::Arc;

/// The configured name of the file utilities.
const NAME: &str = "utils";

/// Flags of files.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FileFlags {
    /// Folder that files may be named in, by --utils and argumentsFile; may be given several times
    #[arg(long, value_name = "DIR")]
    files_root: Vec<PathBuf>,
    /// One more server, `utils`, with the tools filesystemQuery and init, which read the files in --files-root
    #[arg(long)]
    utils: bool,
    /// The server `utils` writes files too (filesystemModify)
    #[arg(long)]
    files_write: bool,
}

impl FileFlags {
    /// Opens the folders of `--files-root`.
    pub fn roots(&self) -> Result<FileRoots, Abort> {
        FileRoots::open(&self.files_root)
            .map_err(|(path, error)| Abort::usage(format!("--files-root {}: {error}", path.display())))
    }

    /// The entry of the server `utils`, if it is enabled.
    pub fn server(&self) -> Result<Option<ServerEntry>, Abort> {
        let utils = variables::switch(self.utils, "utils")?;
        let writes = variables::switch(self.files_write, "files-write")?;
        let missing = match (utils, writes, self.files_root.is_empty()) {
            (false, true, _) => "--files-write needs --utils",
            (true, _, true) => "--utils needs --files-root",
            (false, false, _) => return Ok(None),
            (true, _, false) => {
                let utilities = FileUtilities::new(Arc::new(self.roots()?), writes);
                let mut entry = ServerEntry::custom(NAME, Arc::new(utilities));
                entry.description = Some("Files of this machine, in the folders of --files-root".to_owned());
                return Ok(Some(entry));
            }
        };
        Err(Abort::usage(missing))
    }
}
