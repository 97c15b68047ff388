//! Walks a folder tree, in the order of names and to a bounded depth, for the tool that lists and searches files.

use super::roots::FileRoots;
use cap_std::fs::{Dir, Metadata};
use ptc_base::tasks::StopFlag;
use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;

/// Deepest level of folders that is visited. Each open level holds a file descriptor.
const DEEPEST: usize = 64;

/// Most names of one folder that are held at once; further ones are skipped.
const NAMES: usize = 100_000;

/// Settings of a walk.
pub(super) struct Walk<'w> {
    pub(super) roots: &'w FileRoots,
    pub(super) recursive: bool,
    pub(super) include_hidden: bool,
    pub(super) stop: &'w StopFlag,
}

/// An entry of a folder.
pub(super) struct FolderEntry<'e> {
    pub(super) folder: &'e Dir,
    pub(super) name: &'e OsString,
    /// Path relative to the folder where the walk began.
    pub(super) path: &'e str,
    /// Metadata; for a link, that of the link itself.
    pub(super) found: &'e Metadata,
}

struct OpenFolder {
    folder: Dir,
    prefix: String,
    names: std::vec::IntoIter<OsString>,
}

impl Walk<'_> {
    /// Passes everything to `visit`, in the order of names, and a folder before its entries. Returns false when
    /// something was left out: `visit` stopped, or a folder is too deep, has too many names, or cannot be read.
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
            // It may have been removed meanwhile.
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
