//! Reads, writes and atomically replaces files safely: follows no symbolic link of another user when it writes, and
//! refuses pipes and devices instead of waiting for them.
//!
//! Architecture invariant: no other module of `runtime` or `mcp` opens a file for writing, renames one or
//! sets its mode (`disallowed-methods` in clippy.toml). What holds here:
//! - nothing is written through a link, unless the link is this user's and the caller allows it
//!   ([`LinkRule`]);
//! - a file is replaced by a new one with a random name in the same folder. It is created exclusively, and
//!   its mode is set on the descriptor, so a file that was put there before affects neither content nor mode;
//! - only a regular file is read, or a stream that the caller of the program has handed over: a named pipe or
//!   a device is refused instead of waited for.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

mod edits;
mod lock;
#[cfg(test)]
mod tests;
mod user_folders;

pub use edits::{FollowedFiles, ReloadSignal};
pub use lock::{FileLock, lock_edits};
pub use user_folders::{is_private_folder, make_folder, private_folder, runtime_folder, state_folder};

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What to do when the target is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRule<'f> {
    /// Write to the file that the link leads to, if the link is this user's.
    Follow,
    /// As [`LinkRule::Follow`], but refuse a target outside this folder: its content is not this user's
    /// work.
    Within(&'f Path),
    /// Replace the link itself.
    Replace,
}

/// Who may read the written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Only its owner: there may be secrets in it. A stricter mode stays.
    Private,
    /// The same users as before; a new file, only its owner.
    Kept,
}

/// Limit of links followed from a name to its file.
const MOST_LINKS: usize = 8;

/// The path that a write to this path goes to: the path itself, or the target of its links. Nothing needs to
/// exist there.
///
/// # Errors
/// A sentence: the rule forbids it, or the target is no regular file.
pub fn settle(path: &Path, links: LinkRule<'_>) -> io::Result<PathBuf> {
    let mut real = path.to_owned();
    for _ in 0..=MOST_LINKS {
        if let LinkRule::Within(folder) = links {
            must_be_within(&real, folder)?;
        }
        let found = match std::fs::symlink_metadata(&real) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(real),
            Err(error) => return Err(error),
        };
        if !found.is_symlink() || links == LinkRule::Replace {
            let is_replaceable = found.is_file() || (links == LinkRule::Replace && !found.is_dir());
            return if is_replaceable { Ok(real) } else { Err(not_regular(found.file_type())) };
        }
        if found.uid() != user() {
            return Err(refused("it is a link of another user"));
        }
        real = folder_of(&real).join(std::fs::read_link(&real)?);
    }
    Err(refused("it is a link to a link, too many times"))
}

/// Refuses a path if its folder, with links resolved, lies outside `folder`. A folder that does not exist
/// counts as lying below the last one that does.
fn must_be_within(path: &Path, folder: &Path) -> io::Result<()> {
    let outer = folder.canonicalize()?;
    let mut ancestors = folder_of(path).ancestors().collect::<Vec<_>>().into_iter();
    let there = ancestors.find(|ancestor| std::fs::symlink_metadata(or_here(ancestor)).is_ok());
    let real = or_here(there.unwrap_or(Path::new(""))).canonicalize()?;
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir)
        && there != Some(folder_of(path));
    match real.starts_with(&outer) && !climbs {
        true => Ok(()),
        false => Err(refused(&format!("it leads out of {}", outer.display()))),
    }
}

/// Replaces a file atomically. Missing folders are created.
///
/// # Errors
/// Those of [`settle`], and of the file system.
pub fn replace(path: &Path, content: &[u8], links: LinkRule<'_>, access: FileAccess) -> io::Result<()> {
    let real = settle(path, links)?;
    let folder = or_here(folder_of(&real));
    std::fs::create_dir_all(folder)?;
    let before = std::fs::symlink_metadata(&real).ok().filter(Metadata::is_file);
    let partial = folder.join(format!(".ptc-{:016x}.partial", random()));
    let mut file = create_new(&partial)?;
    let written = adopt(&file, before.as_ref(), access)
        .and_then(|()| file.write_all(content))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&partial, &real));
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(&partial);
    })
}

/// Gives a new file the mode and, where possible, the owner of the one that it replaces.
fn adopt(file: &File, before: Option<&Metadata>, access: FileAccess) -> io::Result<()> {
    let Some(before) = before else { return Ok(()) };
    if user() == 0 && before.uid() != 0 {
        // A superuser without the right to change owners keeps the file, as any other user does.
        let _ = std::os::unix::fs::fchown(file, Some(before.uid()), Some(before.gid()));
    }
    let mode = match access {
        FileAccess::Private => before.mode() & 0o600,
        FileAccess::Kept => before.mode() & 0o777,
    };
    file.set_permissions(PermissionsExt::from_mode(mode))
}

/// Creates a file for reading and writing that only its owner can read; never through a link.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`], and others of the file system.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Opens a file for appending; creates it for its owner if it is missing. An existing file must be a regular
/// file of this user with no other name, and is made private.
///
/// # Errors
/// It is something else, or the file system refuses.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    own(OpenOptions::new().append(true).create(true), path)
}

/// Opens a file for locking; creates it for its owner if it is missing.
///
/// # Errors
/// As [`open_to_append`].
pub fn open_to_lock(path: &Path) -> io::Result<File> {
    own(OpenOptions::new().write(true).truncate(false).create(true), path)
}

/// Opens a file that is there for reading and writing, as [`open_to_append`] does.
///
/// # Errors
/// As [`open_to_append`]; [`ErrorKind::NotFound`].
pub fn open_own(path: &Path) -> io::Result<File> {
    own(OpenOptions::new().read(true).write(true), path)
}

fn own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Do not wait for a pipe, do not become the owner of a terminal.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.mode(0o600).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(not_regular(found.file_type()));
    }
    if found.uid() != user() || found.nlink() > 1 {
        return Err(refused("it is a file of another user, or has other names"));
    }
    if found.mode() & 0o177 != 0 {
        file.set_permissions(PermissionsExt::from_mode(found.mode() & 0o600))?;
    }
    Ok(file)
}

/// Writes the names in a folder to the disk: a file that was replaced is the new one after a loss of power, too.
///
/// # Errors
/// Those of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Renames a file. A file or link that has the new name is replaced.
///
/// # Errors
/// Those of the file system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Gives a file a second name, which must be free.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`], and others of the file system.
pub fn give_name(file: &Path, name: &Path) -> io::Result<()> {
    std::fs::hard_link(file, name)
}

/// Opens a file for reading: a regular one, or a stream that was handed over (`/dev/stdin`, `<(…)`).
///
/// # Errors
/// A sentence when it is a named pipe, a device or a socket; others of the file system.
pub fn open(path: &Path) -> io::Result<File> {
    if is_handed_over(path) {
        return File::open(path);
    }
    let must_be_regular = |found: &Metadata| match (found.is_file(), found.is_dir()) {
        (true, _) => Ok(()),
        (_, true) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        _ => Err(not_regular(found.file_type())),
    };
    // Checked before opening, so that a device is not opened; checked again after, in case a pipe took the
    // file's place.
    must_be_regular(&std::fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

/// The content of a file that [`open`] accepts.
///
/// # Errors
/// Those of [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file that [`open`] accepts.
///
/// # Errors
/// Those of [`open`]; [`ErrorKind::InvalidData`] when it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// True for a descriptor that the caller of this process handed over on the command line, and for
/// `/dev/null`.
fn is_handed_over(path: &Path) -> bool {
    ["/dev/stdin", "/dev/null"].iter().any(|name| path == Path::new(name))
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// The parent of a bare file name is the working directory, written `.`.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// The user that this process acts for (the effective one).
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An unpredictable number: the keys of the standard hasher are random.
pub fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

fn not_regular(kind: FileType) -> io::Error {
    let what = match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_symlink() => "a link",
        () => "a device",
    };
    refused(&format!("it is {what}, not a regular file"))
}
