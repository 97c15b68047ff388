//! Files of the client's machine that a call may name: those in folders that the command line gives.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Folders that files may be read from. No path leads out of them, whatever links they hold and whatever is changed
/// meanwhile: each step of a path is taken from the folder before it.
#[derive(Debug, Default)]
pub struct FileRoots(Vec<Root>);

#[derive(Debug)]
struct Root {
    /// As it was given, and as it is without links.
    paths: [PathBuf; 2],
    dir: Dir,
}

impl FileRoots {
    /// Opens the folders.
    ///
    /// # Errors
    /// One of them, and why it is not to be had.
    pub fn open(paths: &[PathBuf]) -> Result<FileRoots, (PathBuf, io::Error)> {
        let open = |path: &PathBuf| -> io::Result<Root> {
            let dir = Dir::open_ambient_dir(path, ambient_authority())?;
            Ok(Root { paths: [std::path::absolute(path)?, path.canonicalize()?], dir })
        };
        let roots = paths.iter().map(|path| open(path).map_err(|error| (path.clone(), error)));
        Ok(FileRoots(roots.collect::<Result<_, _>>()?))
    }

    /// The text of a file of at most so many bytes.
    ///
    /// # Errors
    /// In words, without a word about files outside of the folders.
    pub fn read(&self, name: &str, most_bytes: u64) -> Result<String, String> {
        let path = Path::new(name);
        let within = |root: &Root| match path.is_absolute() {
            true => root.paths.iter().find_map(|prefix| path.strip_prefix(prefix).ok()).map(Path::to_owned),
            false => Some(path.to_owned()),
        };
        let mut why = match self.0.is_empty() {
            true => "no folder is given by --files-root".to_owned(),
            false => "it is in no folder of --files-root".to_owned(),
        };
        for root in &self.0 {
            let Some(path) = within(root) else { continue };
            match read(&root.dir, &path, most_bytes) {
                Ok(text) => return Ok(text),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

fn read(dir: &Dir, path: &Path, most_bytes: u64) -> io::Result<String> {
    let mut options = OpenOptions::new();
    // A pipe without a writer is not waited for.
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = dir.open_with(path, &options)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    let read = file.take(most_bytes.saturating_add(1)).read_to_string(&mut text)?;
    if found.len() > most_bytes || read as u64 > most_bytes {
        return Err(io::Error::other(format!("it has more than {most_bytes} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let outside = tempfile::tempdir().expect("a folder");
        let root = tempfile::tempdir().expect("a folder");
        let (out, path) = (outside.path(), root.path());
        std::fs::write(out.join("secret.json"), "{\"secret\":1}").expect("written");
        std::fs::create_dir(path.join("sub")).expect("made");
        std::fs::write(path.join("sub/args.json"), "{}").expect("written");
        let link = |to: &Path, name: &str| symlink(to, path.join(name)).expect("linked");
        link(&out.join("secret.json"), "file-link");
        link(out, "dir-link");
        link(Path::new("dir-link"), "link-link");
        link(Path::new("/"), "root-link");
        link(Path::new(".."), "up-link");
        link(Path::new("loop-link"), "loop-link");
        link(Path::new("/proc/self/root"), "proc-link");
        link(Path::new("/dev/zero"), "zero-link");
        link(Path::new("sub/args.json"), "inner-link");
        let made = std::process::Command::new("mkfifo").arg(path.join("pipe")).status().expect("mkfifo");
        assert!(made.success());
        let sparse = std::fs::File::create(path.join("sparse")).expect("made");
        sparse.set_len(1 << 40).expect("long");
        let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).expect("bound");
        let roots = FileRoots::open(&[path.to_owned()]).expect("opened");
        for name in ["sub/args.json", "./sub/../sub/args.json", "inner-link"] {
            assert_eq!(roots.read(name, 100).as_deref(), Ok("{}"), "{name}");
            assert_eq!(
                roots.read(path.join(name).to_str().expect("UTF-8"), 100).as_deref(),
                Ok("{}"),
                "{name}"
            );
        }
        let secret = out.join("secret.json").display().to_string();
        let name = out.file_name().expect("a name").to_str().expect("UTF-8");
        let up = format!("../{name}/secret.json");
        let mut escapes: Vec<String> = [
            "file-link",
            "dir-link/secret.json",
            "link-link/secret.json",
            "./dir-link/./secret.json",
            "sub/../dir-link/secret.json",
            "root-link/etc/hostname",
            "root-link/etc/passwd",
            "up-link/etc/passwd",
            "loop-link",
            "loop-link/x",
            "proc-link/etc/passwd",
            "zero-link",
            "pipe",
            "sparse",
            "socket",
            ".",
            "",
            "sub",
            "sub/",
            "..",
            "../",
            "/",
            "/etc/passwd",
            "/etc/hostname",
            "/proc/self/environ",
            "/proc/self/mem",
            "/proc/self/fd/0",
            "/dev/zero",
            "/dev/stdin",
            "/dev/tty",
            "sub/../../etc/passwd",
            "nothing",
            "sub/args.json/..",
            "sub/args.json/x",
            "~/.ssh/id_rsa",
            "file:///etc/passwd",
            "%2e%2e/etc/passwd",
            "sub\0/args.json",
            "..\\etc\\passwd",
        ]
        .map(str::to_owned)
        .to_vec();
        let root = path.display();
        escapes.extend([
            up.clone(),
            format!("up-link/{name}/secret.json"),
            format!("root-link{secret}"),
            secret.clone(),
            format!("{root}/{up}"),
            format!("{root}/sub/../{up}"),
            format!("{root}/dir-link/secret.json"),
            format!("{root}/file-link"),
            format!("{root}{secret}"),
            format!("{root}-beside/secret.json"),
            format!("/proc/self/root{secret}"),
        ]);
        assert!(escapes.len() >= 40, "{}", escapes.len());
        for escape in escapes {
            let read = roots.read(&escape, 1 << 20);
            assert!(read.is_err(), "{escape:?} gave {read:?}");
        }
        assert!(FileRoots::default().read(&secret, 100).is_err());
    }

    #[test]
    fn what_changes_between_steps_leads_nowhere_either() {
        let outside = tempfile::tempdir().expect("a folder");
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(outside.path().join("args.json"), "outside").expect("written");
        let (inner, away) = (root.path().join("inner"), root.path().join("away"));
        std::fs::create_dir(&inner).expect("made");
        std::fs::write(inner.join("args.json"), "inside").expect("written");
        symlink(outside.path(), root.path().join("link")).expect("linked");
        let roots = FileRoots::open(&[root.path().to_owned()]).expect("opened");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // The folder and a link outside change places.
                    std::fs::rename(&inner, &away).expect("moved");
                    std::fs::rename(root.path().join("link"), &inner).expect("moved");
                    std::fs::rename(&inner, root.path().join("link")).expect("moved");
                    std::fs::rename(&away, &inner).expect("moved");
                }
            });
            for _ in 0..3_000 {
                if let Ok(text) = roots.read("inner/args.json", 100) {
                    assert_eq!(text, "inside");
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
