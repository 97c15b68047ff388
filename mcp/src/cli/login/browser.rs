//! Opens the address of a login in the user's web browser, if one can be opened.

use ptc_upstream::resolve_command;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// The program that opens an address.
fn opener() -> Option<OsString> {
    if let Some(browser) = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty()) {
        return Some(browser);
    }
    let has = |variable: &str| std::env::var_os(variable).is_some();
    let name = match cfg!(target_os = "macos") {
        true => "open",
        // Without a display, or at the other end of ssh, a browser would open where no person sees it.
        false if has("SSH_CONNECTION") || !(has("DISPLAY") || has("WAYLAND_DISPLAY")) => return None,
        false => "xdg-open",
    };
    resolve_command(name, None, None).is_some().then(|| name.into())
}

/// True when a browser can be opened.
pub(super) fn is_there() -> bool {
    opener().is_some()
}

/// Opens an address without a secret in it: arguments of programs are visible to all users. A browser that does not start
/// is no error, since the address is shown as well.
pub(super) fn open(address: &str) {
    let Some(opener) = opener() else { return };
    let mut command = Command::new(opener);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        tracing::debug!("no browser: {error}");
    }
}
