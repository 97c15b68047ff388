//! What is in a folder, and in those below it.

use super::roots::FileRoots;
use cap_std::fs::{Dir, Metadata};
use ptc_runtime::tasks::StopFlag;
use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;

/// Folders within each other that are gone into. Each is open while those in it are looked at.
const DEEPEST: usize = 64;

/// Names of one folder that are held at once; of others nobody is told.
const NAMES: usize = 100_000;

/// How folders are gone through.
pub(super) struct Walk<'w> {
    pub(super) roots: &'w FileRoots,
    pub(super) recursive: bool,
    pub(super) include_hidden: bool,
    pub(super) stop: &'w StopFlag,
}

/// Something in a folder.
pub(super) struct FolderEntry<'e> {
    pub(super) folder: &'e Dir,
    pub(super) name: &'e OsString,
    /// From the first folder on.
    pub(super) path: &'e str,
    /// Of a link: its own.
    pub(super) found: &'e Metadata,
}

struct OpenFolder {
    folder: Dir,
    prefix: String,
    names: std::vec::IntoIter<OsString>,
}

impl Walk<'_> {
    /// Shows everything to `visit`, in the order of names, a folder before what is in it. False when something was left
    /// out: `visit` has had enough, a folder is too deep, has too many names, or cannot be read.
    pub(super) fn visit<E: From<io::Error>>(
        &self,
        first: Dir,
        mut visit: impl FnMut(&FolderEntry<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<bool, E> {
        let mut is_whole = true;
        let mut levels = vec![self.level(first, String::new(), &mut is_whole)?];
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.names.next() else {
                levels.pop();
                continue;
            };
            self.stop.check()?;
            // It may be gone meanwhile.
            let Ok(found) = level.folder.symlink_metadata(&name) else { continue };
            let path = format!("{}{}", level.prefix, name.to_string_lossy());
            let inner = match found.is_dir() {
                true => match level.folder.open_dir(&name) {
                    Ok(inner) if !self.roots.shows(&inner) => continue,
                    inner => inner.ok(),
                },
                false => None,
            };
            let entry = FolderEntry { folder: &level.folder, name: &name, path: &path, found: &found };
            if visit(&entry)?.is_break() {
                return Ok(false);
            }
            if self.recursive && found.is_dir() {
                let is_deep = levels.len() == DEEPEST;
                let next =
                    inner.filter(|_| !is_deep).map(|inner| self.level(inner, path + "/", &mut is_whole));
                match next {
                    Some(Ok(next)) => levels.push(next),
                    _ => is_whole = false,
                }
            }
        }
        Ok(is_whole)
    }

    fn level(&self, folder: Dir, prefix: String, is_whole: &mut bool) -> io::Result<OpenFolder> {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            self.stop.check()?;
            let name = entry?.file_name();
            if !self.include_hidden && name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if names.len() == NAMES {
                *is_whole = false;
                break;
            }
            names.push(name);
        }
        names.sort_unstable();
        Ok(OpenFolder { folder, prefix, names: names.into_iter() })
    }
}
