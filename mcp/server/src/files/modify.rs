//! The tool `filesystemModify`: writes files, makes folders, and removes both.

use super::query::structured;
use super::roots::{EntryPath, FileRoots};
use super::server::FileFault;
use cap_std::fs::{File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use ptc_base::files;
use ptc_upstream::AnswerWriter;
use serde::Deserialize;
use serde_json::json;
use std::io::{self, ErrorKind, Write};

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
/// folders, and so is a link.
fn write(entry_path: &EntryPath, content: &str, appends: bool) -> io::Result<()> {
    let before = match entry_path.folder.symlink_metadata(&entry_path.name) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    before.as_ref().map_or(Ok(()), must_be_plain)?;
    if !appends {
        return replace(entry_path, content, before.as_ref());
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut file = entry_path.folder.open_with(&entry_path.name, &options)?;
    must_be_plain(&file.metadata()?)?;
    file.write_all(content.as_bytes())
}

fn must_be_plain(found: &Metadata) -> io::Result<()> {
    match (found.is_file(), found.nlink()) {
        (true, 0 | 1) => Ok(()),
        (true, _) => Err(io::Error::other("the file has other names (hard links)")),
        (false, _) => Err(io::Error::other("it is no plain file")),
    }
}

/// Puts a new file in the place of the old one, so the old content stays where the disk has no room for the new one. An old
/// one that can be written and not replaced (another user's, in a folder of others, mounted by itself) is written in place.
fn replace(entry_path: &EntryPath, content: &str, before: Option<&Metadata>) -> io::Result<()> {
    let Some(before) = before else { return put(entry_path, content, None) };
    // A file that may not be written is not replaced either.
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut old = entry_path.folder.open_with(&entry_path.name, &options)?;
    must_be_plain(&old.metadata()?)?;
    let cannot_be_replaced = |error: &io::Error| {
        use ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
        matches!(error.kind(), CrossesDevices | PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
    };
    match put(entry_path, content, Some(before)) {
        Err(error) if cannot_be_replaced(&error) => {
            old.set_len(0)?;
            old.write_all(content.as_bytes())
        }
        done => done,
    }
}

/// Writes a new file under another name, and gives it its own.
fn put(entry_path: &EntryPath, content: &str, before: Option<&Metadata>) -> io::Result<()> {
    let EntryPath { folder, name } = entry_path;
    let partial = format!(".ptc-{:016x}.partial", files::random());
    let mut file = folder.open_with(&partial, OpenOptions::new().write(true).create_new(true))?;
    let written = before
        .map_or(Ok(()), |before| adopt(&file, before))
        .and_then(|()| file.write_all(content.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| folder.rename(&partial, folder, name));
    written.inspect_err(|_| {
        let _ = folder.remove_file(&partial);
    })
}

/// Gives a new file the mode and the owner of the one that it replaces.
fn adopt(file: &File, before: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        // Only a superuser may give files away.
        std::os::unix::fs::fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(before.mode() & 0o777))
}

/// Removes a file, a link itself, or an empty folder.
fn delete(entry_path: &EntryPath) -> io::Result<()> {
    match entry_path.folder.symlink_metadata(&entry_path.name)?.is_dir() {
        true => entry_path.folder.remove_dir(&entry_path.name),
        false => entry_path.folder.remove_file(&entry_path.name),
    }
}
