//! Sets a cfg for each thing that some tests need and that this machine may lack. A test without what it needs is
//! reported as ignored, not as passed: `#[cfg_attr(not(third_party), ignore = "…")]`.

use std::path::Path;
use std::process::Command;

/// Exits with 0 where this user may create the namespaces that jail scripts, and the kernel has Landlock.
const JAIL: &str = "import ctypes, os
libc = ctypes.CDLL(None)
made = libc.unshare(0x10000000 | 0x00020000 | 0x20000000 | 0x40000000) == 0
os._exit(0 if made and libc.syscall(444, 0, 0, 1) >= 1 else 1)";

/// Mounts a disk that is visible only inside its own namespace.
const MOUNT: [&str; 7] = ["-Urm", "mount", "-t", "tmpfs", "none", "/proc", "-osize=64k"];

/// A cfg and the path that turns it on, relative to the root of the workspace.
const BESIDE: &[(&str, &str)] = &[
    ("corpus", "../shared/conformance"),
    ("specification", "../shared/spec/language.md"),
    // Made by tests/third_party/eighteen/install.sh.
    ("third_party_eighteen", "target/third_party_eighteen/installed"),
];

fn main() {
    println!("cargo::rerun-if-env-changed=PTC_SKIP_THIRD_PARTY");
    println!("cargo::rerun-if-changed=build.rs");
    have("third_party", std::env::var_os("PTC_SKIP_THIRD_PARTY").is_none_or(|value| value != "1"));
    let jail = Command::new("python3").args(["-I", "-S", "-c", JAIL]).status();
    let jail = jail.is_ok_and(|status| status.success());
    have("jail", jail);
    have("scripts", jail || std::env::var_os("CARGO_FEATURE_MONTY").is_some());
    let disk = Command::new("unshare").args(MOUNT).status();
    have("own_disk", disk.is_ok_and(|status| status.success()));
    for (name, path) in BESIDE {
        let path = Path::new("..").join(path);
        // A missing path is not watched: cargo would rebuild everything each time.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        have(name, path.exists());
    }
}

fn have(name: &str, is_there: bool) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    if is_there {
        println!("cargo::rustc-cfg={name}");
    }
}
