//! Hardens this process: hides its memory, environment and descriptors from programs that it starts, and can drop a
//! thread's rights to files and networks (Landlock).
//!
//! Linux only; on other systems nothing is done.

use std::io;

/// Protects this process from the programs that it starts: its memory, its environment and its inherited
/// descriptors. Programs of the same user could otherwise read them. Call it first thing in a process, before
/// any program is started. Afterwards only a superuser can debug it, and there are no core dumps.
pub fn harden() {
    // A process whose attribute cannot be changed runs on as it is.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    close_on_exec();
}

/// True if [`harden`] cannot hide the environment: a superuser can read that of any process.
pub fn is_readable_by_children() -> bool {
    crate::files::user() == 0
}

/// Marks all inherited descriptors to be closed when a program is started.
#[cfg(target_os = "linux")]
fn close_on_exec() {
    const FIRST: libc::c_uint = 3;
    // SAFETY: it sets a flag of descriptors; it closes none.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return;
    }
    // `close_range` with this flag needs Linux 5.11.
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().map_while(Result::ok);
    let numbers: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number >= 3) {
        // SAFETY: as above; for a number that is no longer open the call fails and changes nothing.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

#[cfg(not(target_os = "linux"))]
fn close_on_exec() {}

/// Removes, for good, all rights of this thread and the threads that it starts to files, networks, and
/// signals to other processes. Open descriptors stay. Returns false where the system does not support it.
///
/// # Errors
/// The system supports it, and refuses.
#[cfg(target_os = "linux")]
pub fn give_up_files() -> io::Result<bool> {
    /// `struct landlock_ruleset_attr`.
    #[repr(C)]
    struct Ruleset {
        files: u64,
        network: u64,
        scopes: u64,
    }
    const VERSION: libc::c_ulong = 1;
    let none = std::ptr::null::<Ruleset>();
    // SAFETY: the call asks for a version; it reads nothing at the address.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    if version < 1 {
        return Ok(false);
    }
    // Rights by version of the Landlock ABI: files; refer; truncate; net; ioctl; scopes.
    let later = [(2, 1 << 13), (3, 1 << 14), (5, 1 << 15)];
    let later = later.iter().filter(|(since, _)| version >= *since).fold(0, |rights, (_, bit)| rights | bit);
    let rules = Ruleset {
        files: ((1 << 13) - 1) | later,
        network: if version >= 4 { 3 } else { 0 },
        scopes: if version >= 6 { 3 } else { 0 },
    };
    let size: usize = match version {
        6.. => 24,
        4.. => 16,
        _ => 8,
    };
    // SAFETY: the address is that of a structure of at least `size` bytes that outlives the call.
    let made = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const rules, size, 0 as libc::c_ulong)
    };
    let ruleset =
        i32::try_from(made).ok().filter(|number| *number >= 0).ok_or_else(io::Error::last_os_error)?;
    // Without it, the next call is refused.
    let _ = rustix::thread::set_no_new_privs(true);
    // SAFETY: the call changes an attribute of this thread; the descriptor was made above and is closed once.
    let (done, error) = unsafe {
        let done = libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0 as libc::c_ulong);
        let error = io::Error::last_os_error();
        libc::close(ruleset);
        (done, error)
    };
    if done == 0 { Ok(true) } else { Err(error) }
}

/// Not supported on this system.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn give_up_files() -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_rights_opens_nothing_and_the_others_go_on() {
        let held = std::thread::spawn(|| {
            let is_held = give_up_files().expect("held or not there");
            (is_held, crate::files::open("/proc/self/status".as_ref()).is_ok())
        });
        let (is_held, opens) = held.join().expect("ended");
        assert_ne!(is_held, opens);
        assert!(crate::files::open("/proc/self/status".as_ref()).is_ok());
    }
}
