//! Tests every writer against everything that may lie at its target.

use super::*;
use tempfile::TempDir;

/// What stands at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Premade {
    Nothing,
    LooseFile,
    StrictFile,
    Link,
    LinkWithin,
    DanglingLink,
    Pipe,
    Folder,
    OtherOwner,
}

/// A way to write to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Followed,
    WithinFolder,
    Replaced,
    Appended,
    Locked,
    Opened,
    Created,
}

const PREMADE: [Premade; 9] = [
    Premade::Nothing,
    Premade::LooseFile,
    Premade::StrictFile,
    Premade::Link,
    Premade::LinkWithin,
    Premade::DanglingLink,
    Premade::Pipe,
    Premade::Folder,
    Premade::OtherOwner,
];
const WRITERS: [Writer; 7] = [
    Writer::Followed,
    Writer::WithinFolder,
    Writer::Replaced,
    Writer::Appended,
    Writer::Locked,
    Writer::Opened,
    Writer::Created,
];

const OLD: &str = "old";
const NEW: &str = "new";

struct Fixture {
    _folders: TempDir,
    project: PathBuf,
    target: PathBuf,
    /// A file of the user outside the project.
    victim: PathBuf,
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// `None` where the case needs a superuser.
fn fixture(premade: Premade) -> Option<Fixture> {
    let folders = tempfile::tempdir().unwrap();
    let project = folders.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let (target, victim) = (project.join("target"), folders.path().join("victim"));
    let file = |path: &Path, mode: u32| {
        std::fs::write(path, OLD).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    file(&victim, 0o640);
    let link = |to: &Path| std::os::unix::fs::symlink(to, &target).unwrap();
    match premade {
        Premade::Nothing => {}
        Premade::LooseFile => file(&target, 0o666),
        Premade::StrictFile => file(&target, 0o400),
        Premade::Link => link(&victim),
        Premade::LinkWithin => {
            file(&project.join("inner"), 0o644);
            link(Path::new("inner"));
        }
        Premade::DanglingLink => link(&folders.path().join("nothing")),
        Premade::Pipe => pipe(&target),
        Premade::Folder => std::fs::create_dir(&target).unwrap(),
        Premade::OtherOwner => {
            if user() != 0 {
                return None;
            }
            file(&target, 0o666);
            std::os::unix::fs::chown(&target, Some(4321), Some(4321)).unwrap();
        }
    }
    Some(Fixture { _folders: folders, project, target, victim })
}

fn write(writer: Writer, fixture: &Fixture, access: FileAccess) -> io::Result<()> {
    let path = &fixture.target;
    match writer {
        Writer::Followed => replace(path, NEW.as_bytes(), LinkRule::Follow, access),
        Writer::WithinFolder => replace(path, NEW.as_bytes(), LinkRule::Within(&fixture.project), access),
        Writer::Replaced => replace(path, NEW.as_bytes(), LinkRule::Replace, access),
        Writer::Appended => open_to_append(path)?.write_all(NEW.as_bytes()),
        Writer::Locked => open_to_lock(path)?.write_all(NEW.as_bytes()),
        Writer::Opened => open_own(path)?.write_all(NEW.as_bytes()),
        Writer::Created => create_new(path)?.write_all(NEW.as_bytes()),
    }
}

/// Whether the writer may succeed there.
fn may_write(writer: Writer, premade: Premade) -> bool {
    use Premade::*;
    match writer {
        Writer::Followed => matches!(
            premade,
            Nothing | LooseFile | StrictFile | Link | DanglingLink | LinkWithin | OtherOwner
        ),
        Writer::WithinFolder => matches!(premade, Nothing | LooseFile | StrictFile | LinkWithin | OtherOwner),
        Writer::Replaced => premade != Folder,
        // A superuser opens a file in spite of its mode.
        Writer::Appended | Writer::Locked | Writer::Opened => match premade {
            StrictFile => user() == 0,
            Nothing => writer != Writer::Opened,
            LooseFile => true,
            _ => false,
        },
        Writer::Created => premade == Nothing,
    }
}

#[test]
fn no_writer_is_led_astray_by_what_stands_at_its_target() {
    let mut looked_at = 0;
    for access in [FileAccess::Private, FileAccess::Kept] {
        for writer in WRITERS {
            for premade in PREMADE {
                let Some(fixture) = fixture(premade) else { continue };
                let case = format!("{writer:?} {premade:?} {access:?}");
                let written = write(writer, &fixture, access);
                assert_eq!(written.is_ok(), may_write(writer, premade), "{case}: {written:?}");
                let follows = writer == Writer::Followed && premade == Premade::Link;
                let victim = std::fs::read_to_string(&fixture.victim).unwrap();
                assert_eq!(victim, if follows { NEW } else { OLD }, "{case}");
                let made = writer == Writer::Followed && premade == Premade::DanglingLink;
                assert_eq!(fixture.project.parent().unwrap().join("nothing").exists(), made, "{case}");
                let left = std::fs::read_dir(&fixture.project).unwrap().map_while(Result::ok);
                let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
                assert!(
                    !left.iter().any(|name| name.to_string_lossy().contains("partial")),
                    "{case}: {left:?}"
                );
                if written.is_ok() {
                    let found = std::fs::metadata(&fixture.target).unwrap();
                    let mode = found.mode() & 0o777;
                    let before = match premade {
                        Premade::LooseFile | Premade::OtherOwner => 0o666,
                        Premade::StrictFile => 0o400,
                        Premade::LinkWithin if writer != Writer::Replaced => 0o644,
                        Premade::Link if follows => 0o640,
                        _ => 0o600,
                    };
                    let is_whole =
                        matches!(writer, Writer::Followed | Writer::WithinFolder | Writer::Replaced);
                    let keeps = is_whole && access == FileAccess::Kept;
                    assert_eq!(mode, if keeps { before } else { before & 0o600 }, "{case}");
                    assert_eq!(found.uid() == 4321, premade == Premade::OtherOwner, "{case}");
                    let text = std::fs::read_to_string(&fixture.target).unwrap();
                    let adds = writer == Writer::Appended && premade != Premade::Nothing;
                    assert_eq!(text, if adds { format!("{OLD}{NEW}") } else { NEW.to_owned() }, "{case}");
                } else if let Err(error) = written {
                    assert!(!error.to_string().is_empty(), "{case}");
                }
                looked_at += 1;
            }
        }
    }
    assert!(looked_at >= 96, "{looked_at}");
}

/// Folders of a project that are links, and paths with `..`.
#[test]
fn folders_do_not_lead_out_of_a_project_either() {
    let fixture = fixture(Premade::Nothing).unwrap();
    let outside = fixture.project.parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, fixture.project.join("link")).unwrap();
    std::fs::create_dir(fixture.project.join("real")).unwrap();
    std::os::unix::fs::symlink("../../outside/x", fixture.project.join("real/up")).unwrap();
    for (name, is_well) in [
        ("real/a", true),
        ("new/deep/a", true),
        ("link/a", false),
        ("link/new/a", false),
        ("../outside/a", false),
        ("new/../../outside/a", false),
        ("real/up", false),
    ] {
        let path = fixture.project.join(name);
        let written = replace(&path, b"x", LinkRule::Within(&fixture.project), FileAccess::Kept);
        assert_eq!(written.is_ok(), is_well, "{name}: {written:?}");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

/// Files under the old, predictable names have no effect.
#[test]
fn names_that_were_guessed_beforehand_are_of_no_use() {
    let fixture = fixture(Premade::Nothing).unwrap();
    for end in [".partial", ".ptc-backup.partial", ".ptc-partial"] {
        let guessed = fixture.target.with_file_name(format!("target{end}"));
        std::os::unix::fs::symlink(&fixture.victim, guessed).unwrap();
    }
    replace(&fixture.target, b"x", LinkRule::Follow, FileAccess::Private).unwrap();
    assert_eq!(std::fs::read_to_string(&fixture.victim).unwrap(), OLD);
    assert_eq!(std::fs::symlink_metadata(&fixture.target).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn only_files_and_streams_that_were_handed_over_are_read() {
    for premade in PREMADE {
        let Some(fixture) = fixture(premade) else { continue };
        let read = read_text(&fixture.target);
        let is_text = matches!(
            premade,
            Premade::LooseFile
                | Premade::StrictFile
                | Premade::Link
                | Premade::LinkWithin
                | Premade::OtherOwner
        );
        assert_eq!(read.is_ok(), is_text, "{premade:?}: {read:?}");
        if premade == Premade::Pipe {
            assert_eq!(read.unwrap_err().to_string(), "it is a named pipe, not a regular file");
        }
    }
    for device in ["/dev/zero", "/dev/tty", "/dev/full"].map(Path::new) {
        if device.exists() {
            assert_eq!(read_text(device).unwrap_err().to_string(), "it is a device, not a regular file");
        }
    }
    assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"text").unwrap();
    drop(writer);
    let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
    assert_eq!(read_text(Path::new(&format!("/dev/fd/{number}"))).unwrap(), "text");
}
