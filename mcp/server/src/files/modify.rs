//! The tool `filesystemModify`: writes files, makes folders, and removes both.

use super::query::structured;
use super::roots::{EntryPath, FileRoots};
use super::server::FileFault;
use cap_std::fs::{MetadataExt, OpenOptions, OpenOptionsExt};
use ptc_upstream::AnswerWriter;
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
        let done = roots.entry_path(&path, makes_folders).and_then(|entry_path| {
            let done = match operation {
                ModifyOperation::Write => write(&entry_path, &content, false),
                ModifyOperation::Append => write(&entry_path, &content, true),
                ModifyOperation::Mkdir => entry_path.folder.create_dir(&entry_path.name),
                ModifyOperation::Delete => delete(&entry_path),
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
fn write(entry_path: &EntryPath, content: &str, appends: bool) -> io::Result<()> {
    let check = |found: &cap_std::fs::Metadata| match (found.is_file(), found.nlink()) {
        (true, 0 | 1) => Ok(()),
        (true, _) => Err(io::Error::other("the file has other names (hard links)")),
        (false, _) => Err(io::Error::other("it is no plain file")),
    };
    if let Ok(found) = entry_path.folder.symlink_metadata(&entry_path.name) {
        check(&found)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).append(appends);
    // Without `O_TRUNC`: the file is checked before it is emptied.
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut file = entry_path.folder.open_with(&entry_path.name, &options)?;
    check(&file.metadata()?)?;
    if !appends {
        file.set_len(0)?;
    }
    file.write_all(content.as_bytes())
}

/// Removes a file, a link itself, or an empty folder.
fn delete(entry_path: &EntryPath) -> io::Result<()> {
    match entry_path.folder.symlink_metadata(&entry_path.name)?.is_dir() {
        true => entry_path.folder.remove_dir(&entry_path.name),
        false => entry_path.folder.remove_file(&entry_path.name),
    }
}
