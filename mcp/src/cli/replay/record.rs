//! The flag `--record`, which writes a recording of each run (program, calls and answers) to a folder, for `ptc replay`
//! and `ptc test`.

use crate::cli::flags::variables;
use ptc_calls::journal::Recorder;
use ptc_server::console::Abort;
use std::path::PathBuf;

/// Flag of commands that run programs.
#[derive(Debug, clap::Args)]
pub struct RecordFlags {
    /// Record every run in a file of this folder: the program, its context, its calls and their answers, for
    /// `ptc replay` and `ptc test`. Files hold real data and are readable for this user only
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

impl RecordFlags {
    /// The recorder, if runs are to be recorded.
    pub fn recorder(&self) -> Result<Option<Recorder>, Abort> {
        let folder = variables::given_or_read(self.record.clone(), "record", variables::path)?;
        let opened = folder.map(Recorder::open).transpose();
        opened.map_err(|error| Abort::usage(error.to_string()))
    }
}
