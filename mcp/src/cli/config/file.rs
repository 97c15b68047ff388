//! Reads and replaces one configuration file as a command of `ptc` edits it: other commands wait meanwhile, and what
//! another program writes meanwhile is not replaced.

use ptc_base::files::{self, FileAccess, FileLock, LinkRule};
use ptc_server::console::{Abort, Exit};
use ptc_upstream::config;
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The right to read files of the user, change them and write them again. Another command that edits waits for it, so a
/// command gets it before it reads the first file.
#[derive(Clone)]
pub(super) struct EditRight {
    _lock: Arc<Option<FileLock>>,
}

impl EditRight {
    /// Waits for it.
    pub(super) fn wait() -> Result<EditRight, Abort> {
        Ok(EditRight { _lock: Arc::new(files::lock_edits()?) })
    }
}

/// Where links of a file may lead.
pub(super) enum Links {
    /// The file is replaced without being read, so a link is replaced instead of followed.
    Replaced,
    /// The file is the user's own.
    Anywhere,
    /// The file may be one of a checkout, which must not lead what is written to another place.
    Within(PathBuf),
}

impl Links {
    /// Those of a configuration of `ptc`.
    pub(super) fn of_servers(path: &Path) -> io::Result<Links> {
        let own = config::default_file();
        let folder = |path: &Path| path.parent().map(Path::to_owned);
        let is_own = config::find(&[]).iter().any(|used| used == path)
            || own.is_some_and(|own| folder(&own) == folder(path));
        let is_below = path.is_relative() && !path.components().any(|part| part == Component::ParentDir);
        let is_folder = |folder: &&Path| folder.as_os_str().is_empty() || folder.is_dir();
        Ok(match path.parent().and_then(|folder| folder.ancestors().find(is_folder)) {
            _ if is_own => Links::Anywhere,
            Some(folder) if !is_below && !folder.as_os_str().is_empty() => Links::Within(folder.to_owned()),
            _ => Links::Within(std::env::current_dir()?),
        })
    }

    fn rule(&self) -> LinkRule<'_> {
        match self {
            Links::Replaced => LinkRule::Replace,
            Links::Anywhere => LinkRule::Follow,
            Links::Within(folder) => LinkRule::Within(folder),
        }
    }
}

/// A configuration file, and its content as this command knows it.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    links: Links,
    access: FileAccess,
    /// What was read or written last; `None` where there is no file.
    known: RefCell<Option<Vec<u8>>>,
    /// Held from reading to writing.
    _right: EditRight,
}

impl ConfigFile {
    /// Reads the file. One that does not exist, or is to be replaced, has no content.
    pub(super) fn read(
        right: &EditRight,
        path: PathBuf,
        links: Links,
        access: FileAccess,
    ) -> Result<ConfigFile, Abort> {
        let known = files::settle(&path, links.rule()).and_then(|_| match links {
            Links::Replaced => Ok(None),
            Links::Anywhere | Links::Within(_) => content(&path),
        });
        let known = known.map_err(|error| Abort::usage(format!("{}: {error}", path.display())))?;
        Ok(ConfigFile { path, links, access, known: RefCell::new(known), _right: right.clone() })
    }

    /// Its text; `None` where there is no file.
    ///
    /// # Errors
    /// It is no text.
    pub(super) fn text(&self) -> Result<Option<String>, Abort> {
        let known = self.known.borrow().clone();
        let no_text = || Abort::usage(format!("{}: it is no text in UTF-8", self.path.display()));
        known.map(|bytes| String::from_utf8(bytes).map_err(|_| no_text())).transpose()
    }

    /// Refuses a file that is not to be written, or that another program has changed since it was read.
    pub(super) fn must_be_writable(&self) -> Result<(), Abort> {
        let path = self.path.display();
        if std::fs::metadata(&self.path).is_ok_and(|found| found.permissions().readonly()) {
            return Err(Abort::usage(format!("{path} is read-only; it is left as it is")));
        }
        let is_read = !matches!(self.links, Links::Replaced);
        if is_read && content(&self.path).map_err(|error| self.failed(&error))? != *self.known.borrow() {
            let again =
                "another program has changed it meanwhile; it is left as it is: run the command again";
            return Err(Abort { exit: Exit::Io, message: format!("{path}: {again}") });
        }
        Ok(())
    }

    /// Writes the file.
    pub(super) fn write(&self, text: &str) -> Result<(), Abort> {
        self.must_be_writable()?;
        write_file(&self.path, text, self.links.rule(), self.access)?;
        *self.known.borrow_mut() = Some(text.into());
        Ok(())
    }

    /// Saves a copy of the present content in the same folder, if there is any, readable by its owner only. Replaces a
    /// link of that name.
    pub(super) fn keep(&self, ending: &str) -> Result<Option<PathBuf>, Abort> {
        let Some(content) = content(&self.path).map_err(|error| self.failed(&error))? else {
            return Ok(None);
        };
        let aside = beside(&self.path, ending);
        let failed = |error: io::Error| unwritten(&aside, &error);
        files::replace(&aside, &content, LinkRule::Replace, FileAccess::Private).map_err(failed)?;
        Ok(Some(aside))
    }

    /// The copy that [`ConfigFile::keep`] has made. A link is not followed, because it may lead to a foreign file.
    pub(super) fn backup(&self) -> Option<String> {
        let path = beside(&self.path, BACKUP);
        let is_link = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if is_link { None } else { files::read_text(&path).ok() }
    }

    /// Removes that copy.
    pub(super) fn remove_backup(&self) -> Result<(), Abort> {
        let path = beside(&self.path, BACKUP);
        std::fs::remove_file(&path).map_err(|error| unwritten(&path, &error))
    }

    fn failed(&self, error: &io::Error) -> Abort {
        Abort::usage(format!("{}: {error}", self.path.display()))
    }
}

/// The content of a file, if it is there.
fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match files::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The suffix of a backup's file name.
pub(super) const BACKUP: &str = ".ptc-backup";

/// The path with another ending after the name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// [`files::replace`] with an error of the command line.
pub(super) fn write_file(
    path: &Path,
    text: &str,
    links: LinkRule<'_>,
    access: FileAccess,
) -> Result<(), Abort> {
    files::replace(path, text.as_bytes(), links, access).map_err(|error| unwritten(path, &error))
}

/// A file could not be written or removed.
pub(super) fn unwritten(path: &Path, error: &io::Error) -> Abort {
    Abort { exit: Exit::Io, message: format!("{}: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_writes_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let right = EditRight { _lock: Arc::default() };
        let path = folder.path().join("mcp.json");
        let read = || ConfigFile::read(&right, path.clone(), Links::Anywhere, FileAccess::Kept).ok().unwrap();
        let theirs = |text: &str| write_file(&path, text, LinkRule::Follow, FileAccess::Kept).ok().unwrap();
        let is_refused = |file: &ConfigFile| file.write("ours").is_err_and(|abort| abort.exit == Exit::Io);
        let new = read();
        theirs("theirs");
        assert!(is_refused(&new));
        let changed = read();
        theirs("theirs again");
        assert!(is_refused(&changed));
        assert_eq!(files::read_text(&path).unwrap(), "theirs again");
        let same = read();
        same.write("ours").ok().unwrap();
        same.write("ours again").ok().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(is_refused(&same) && !path.exists());
    }
}
