//! Which tests have what they need. One that has not is reported as ignored, not as passed:
//! `#[cfg_attr(not(third_party), ignore = "…")]`.

use std::path::Path;

/// By cfg: a path, from the root of the workspace.
const BESIDE: &[(&str, &str)] =
    &[("corpus", "../shared/conformance"), ("specification", "../shared/spec/language.md")];

fn main() {
    println!("cargo::rerun-if-env-changed=PTC_SKIP_THIRD_PARTY");
    println!("cargo::rerun-if-changed=build.rs");
    have("third_party", std::env::var_os("PTC_SKIP_THIRD_PARTY").is_none_or(|value| value != "1"));
    for (name, path) in BESIDE {
        let path = Path::new("..").join(path);
        // One that is missing is not watched: cargo would build everything anew each time.
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
