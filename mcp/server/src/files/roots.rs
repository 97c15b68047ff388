//! Opens paths safely within the folders that callers may access, so that no path leads out of them.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};
use ptc_base::spill::SpillOptions;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Component, Path, PathBuf};

/// Folders that callers may access.
#[derive(Debug, Default)]
pub struct FileRoots(Vec<Root>);

#[derive(Debug)]
pub(super) struct Root {
    /// The path as given, and the canonical path.
    paths: [PathBuf; 2],
    dir: Dir,
    /// The folder of spilled results, if it overlaps with this one.
    hidden: Option<PathBuf>,
}

/// The result of opening a path: only these kinds are ever opened.
pub(super) enum Opened {
    File(File, Metadata),
    Folder(Dir),
}

/// A folder, and the name of an entry in it that may not exist.
pub(super) struct EntryPath {
    pub(super) folder: Dir,
    pub(super) name: PathBuf,
}

impl FileRoots {
    /// Opens the folders.
    ///
    /// # Errors
    /// The first folder that cannot be opened, and why.
    pub fn open(paths: &[PathBuf]) -> Result<FileRoots, (PathBuf, io::Error)> {
        let roots = paths.iter().map(|path| Root::open(path).map_err(|error| (path.clone(), error)));
        Ok(FileRoots(roots.collect::<Result<_, _>>()?))
    }

    /// The canonical paths of the folders.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| root.paths[1].as_path())
    }

    /// Reads a text file of at most `most_bytes` bytes.
    ///
    /// # Errors
    /// A message that reveals nothing about files outside of the folders.
    pub fn read(&self, name: &str, most_bytes: u64) -> Result<String, String> {
        self.try_each(name, |root, path| {
            let Opened::File(file, found) = root.existing(path)? else { return Err(no_file()) };
            let mut text = String::new();
            let read = file.take(most_bytes.saturating_add(1)).read_to_string(&mut text)?;
            if found.len() > most_bytes || read as u64 > most_bytes {
                return Err(io::Error::other(format!("it has more than {most_bytes} bytes")));
            }
            Ok(text)
        })
    }

    /// Opens the file or folder at a path.
    pub(super) fn existing(&self, name: &str) -> Result<Opened, String> {
        self.try_each(name, Root::existing)
    }

    /// Opens the parent folder of a path that may not exist.
    pub(super) fn entry_path(&self, name: &str, makes_folders: bool) -> Result<EntryPath, String> {
        self.try_each(name, |root, path| root.entry_path(path, makes_folders))
    }

    /// False for the folder of spilled results, and for everything in it.
    pub(super) fn shows(&self, opened: &impl AsFd) -> bool {
        self.0.iter().all(|root| root.check(opened).is_ok())
    }

    /// Opens a path in the first folder where that succeeds.
    fn try_each<T>(&self, name: &str, open: impl Fn(&Root, &Path) -> io::Result<T>) -> Result<T, String> {
        let path = Path::new(name);
        let mut why = match self.0.is_empty() {
            true => "no folder is given by --files-root".to_owned(),
            false => "it is in no folder of --files-root".to_owned(),
        };
        for root in &self.0 {
            let Some(path) = root.within(path) else { continue };
            match open(root, path) {
                Ok(opened) => return Ok(opened),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

impl Root {
    fn open(path: &Path) -> io::Result<Root> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        let real = path.canonicalize()?;
        let kept = SpillOptions::default().base;
        let kept = match (kept.parent().map(Path::canonicalize), kept.file_name()) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => kept,
        };
        let hidden = (kept.starts_with(&real) || real.starts_with(&kept)).then_some(kept);
        Ok(Root { paths: [std::path::absolute(path)?, real], dir, hidden })
    }

    /// A path relative to this folder; `None` for an absolute path elsewhere.
    fn within<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        match path.is_absolute() {
            true => {
                let inner = self.paths.iter().find_map(|prefix| path.strip_prefix(prefix).ok())?;
                Some(if inner.as_os_str().is_empty() { Path::new(".") } else { inner })
            }
            false => Some(path),
        }
    }

    fn existing(&self, path: &Path) -> io::Result<Opened> {
        let opened = open(&self.dir, path)?;
        match &opened {
            Opened::File(file, _) => self.check(file)?,
            Opened::Folder(folder) => self.check(folder)?,
        }
        Ok(opened)
    }

    fn entry_path(&self, path: &Path, makes_folders: bool) -> io::Result<EntryPath> {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(io::Error::other("it does not end with a name"));
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut folder = self.dir.try_clone()?;
        if makes_folders {
            for step in parent.components() {
                match step {
                    Component::CurDir => {}
                    Component::Normal(step) => {
                        match folder.create_dir(step) {
                            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                            _ => {}
                        }
                        folder = folder.open_dir(step)?;
                        self.check(&folder)?;
                    }
                    _ => return Err(io::Error::other("folders are made along a plain path only")),
                }
            }
        } else if !parent.as_os_str().is_empty() {
            folder = folder.open_dir(parent)?;
        }
        self.check(&folder)?;
        let entry_path = EntryPath { folder, name: name.into() };
        if self.hidden.as_ref().is_some_and(|hidden| {
            hidden.file_name() == Some(name) && real_path(&entry_path.folder).as_deref() == hidden.parent()
        }) {
            return Err(hidden());
        }
        Ok(entry_path)
    }

    /// Refuses the folder of spilled results, by whatever path it was reached.
    fn check(&self, opened: &impl AsFd) -> io::Result<()> {
        let Some(kept) = &self.hidden else { return Ok(()) };
        match real_path(opened) {
            Some(path) if !path.starts_with(kept) => Ok(()),
            _ => Err(hidden()),
        }
    }
}

/// Opens a regular file or a folder within `dir`.
pub(super) fn open(dir: &Dir, path: &Path) -> io::Result<Opened> {
    // Devices are not even opened. A pipe that replaces the file meanwhile does not block.
    let is_plain = |found: &Metadata| found.is_file() || found.is_dir();
    if !is_plain(&dir.metadata(path)?) {
        return Err(no_file());
    }
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = dir.open_with(path, &options)?;
    let found = file.metadata()?;
    match (found.is_dir(), is_plain(&found)) {
        (true, _) => Ok(Opened::Folder(Dir::from_std_file(file.into_std()))),
        (false, true) => Ok(Opened::File(file, found)),
        (false, false) => Err(no_file()),
    }
}

/// The path of an open handle, from the kernel.
pub(super) fn real_path(opened: &impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd())).ok()
}

fn hidden() -> io::Error {
    io::Error::other(
        "it is in the folder of kept results, which are looked at with {\"action\":\"readresult\"} or spill/… only",
    )
}

fn no_file() -> io::Error {
    io::Error::other("it is no file")
}
