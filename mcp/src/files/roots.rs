//! Folders, and from a path to something in them that is open.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};
use ptc_runtime::spill::SpillOptions;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Component, Path, PathBuf};

/// Folders that files may be named in.
#[derive(Debug, Default)]
pub struct FileRoots(Vec<Root>);

#[derive(Debug)]
pub(super) struct Root {
    /// As it was given, and as it is without links.
    paths: [PathBuf; 2],
    dir: Dir,
    /// The folder of kept results, if it is in this one.
    hidden: Option<PathBuf>,
}

/// What a path leads to. There is nothing else that can be opened.
pub(super) enum Opened {
    File(File, Metadata),
    Folder(Dir),
}

/// A folder, and the name of something in it that need not be there.
pub(super) struct Spot {
    pub(super) folder: Dir,
    pub(super) name: PathBuf,
}

impl FileRoots {
    /// Opens the folders.
    ///
    /// # Errors
    /// One of them, and why it is not to be had.
    pub fn open(paths: &[PathBuf]) -> Result<FileRoots, (PathBuf, io::Error)> {
        let roots = paths.iter().map(|path| Root::open(path).map_err(|error| (path.clone(), error)));
        Ok(FileRoots(roots.collect::<Result<_, _>>()?))
    }

    /// The paths of the folders, without links.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| root.paths[1].as_path())
    }

    /// The text of a file of at most so many bytes.
    ///
    /// # Errors
    /// In words, without a word about files outside of the folders.
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

    /// What is at a path.
    pub(super) fn existing(&self, name: &str) -> Result<Opened, String> {
        self.try_each(name, Root::existing)
    }

    /// The folder of what is at a path, or may be there.
    pub(super) fn spot(&self, name: &str, makes_folders: bool) -> Result<Spot, String> {
        self.try_each(name, |root, path| root.spot(path, makes_folders))
    }

    /// False for the folder of kept results, and what is in it.
    pub(super) fn shows(&self, opened: &impl AsFd) -> bool {
        self.0.iter().all(|root| root.check(opened).is_ok())
    }

    /// Opens something in the first folder in which that is possible.
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

    /// A path as one from this folder on.
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

    fn spot(&self, path: &Path, makes_folders: bool) -> io::Result<Spot> {
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
        let spot = Spot { folder, name: name.into() };
        if self.hidden.as_ref().is_some_and(|hidden| {
            hidden.file_name() == Some(name) && real_path(&spot.folder).as_deref() == hidden.parent()
        }) {
            return Err(hidden());
        }
        Ok(spot)
    }

    /// Refuses what is in the folder of kept results, wherever a path seems to lead.
    fn check(&self, opened: &impl AsFd) -> io::Result<()> {
        let Some(kept) = &self.hidden else { return Ok(()) };
        match real_path(opened) {
            Some(path) if !path.starts_with(kept) => Ok(()),
            _ => Err(hidden()),
        }
    }
}

/// Opens a plain file or a folder, within this one.
pub(super) fn open(dir: &Dir, path: &Path) -> io::Result<Opened> {
    // Devices are not even opened, and a pipe that takes their place is not waited for.
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

/// Where something open is, as the system has it.
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
