//! Resident memory of this process, as the kernel counts it.

/// Resident bytes (Linux).
///
/// # Errors
/// No `/proc`.
pub(super) fn resident() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| format!("unexpected {line:?}"))
}
