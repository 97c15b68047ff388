//! The tool `filesystemModify`: writes files, makes folders, and removes both.

use super::query::structured;
use super::roots::{FileRoots, Spot};
use super::server::FileFault;
use cap_std::fs::{MetadataExt, OpenOptions, OpenOptionsExt};
use ptc_runtime::upstream::AnswerWriter;
use serde::Deserialize;
use serde_json::json;
use std::io::{self, Write};

/// Operation of a call.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ModifyOperation {
    Write,
    Append,
    Mkdir,
    Delete,
}

/// Arguments of the tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FilesystemModify {
    operation: Option<ModifyOperation>,
    path: String,
    content: Option<String>,
    create_missing_dirs: Option<bool>,
}

impl FilesystemModify {
    /// Carries it out.
    pub(super) fn answer(self, roots: &FileRoots, answer: &mut AnswerWriter) -> Result<(), FileFault> {
        let FilesystemModify { operation, path, content, create_missing_dirs } = self;
        let operation = operation.unwrap_or(ModifyOperation::Write);
        let name = format!("{operation:?}").to_lowercase();
        let writes = matches!(operation, ModifyOperation::Write | ModifyOperation::Append);
        if writes != content.is_some() {
            let needs = if writes { "needs" } else { "takes no" };
            return Err(format!("{name} {needs} `content`").into());
        }
        let makes_folders = create_missing_dirs.unwrap_or(false) && operation != ModifyOperation::Delete;
        let content = content.unwrap_or_default();
        let done = roots.spot(&path, makes_folders).and_then(|spot| {
            let done = match operation {
                ModifyOperation::Write => write(&spot, &content, false),
                ModifyOperation::Append => write(&spot, &content, true),
                ModifyOperation::Mkdir => spot.folder.create_dir(&spot.name),
                ModifyOperation::Delete => delete(&spot),
            };
            done.map_err(|error| error.to_string())
        });
        done.map_err(|why| format!("{name} of {path:?} failed: {why}"))?;
        let mut data = json!({ "path": path, "operation": name });
        if writes {
            data["bytes"] = content.len().into();
        }
        structured(answer, &data)
    }
}

/// Writes a regular file. A file with several hard links is refused, since the others may be outside of the
/// folders.
fn write(spot: &Spot, content: &str, appends: bool) -> io::Result<()> {
    let check = |found: &cap_std::fs::Metadata| match (found.is_file(), found.nlink()) {
        (true, 0 | 1) => Ok(()),
        (true, _) => Err(io::Error::other("the file has other names (hard links)")),
        (false, _) => Err(io::Error::other("it is no plain file")),
    };
    if let Ok(found) = spot.folder.symlink_metadata(&spot.name) {
        check(&found)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).append(appends);
    // Without `O_TRUNC`: the file is checked before it is emptied.
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut file = spot.folder.open_with(&spot.name, &options)?;
    check(&file.metadata()?)?;
    if !appends {
        file.set_len(0)?;
    }
    file.write_all(content.as_bytes())
}

/// Removes a file, a link itself, or an empty folder.
fn delete(spot: &Spot) -> io::Result<()> {
    match spot.folder.symlink_metadata(&spot.name)?.is_dir() {
        true => spot.folder.remove_dir(&spot.name),
        false => spot.folder.remove_file(&spot.name),
    }
}
