//! Names of tools beside those of other servers, as Claude Code writes them.

/// `mcp__<server>__<tool>`, with `_` for every character that no name of a programming language has.
pub fn qualified_name(server: &str, tool: &str) -> String {
    let plain = |name: &str| -> String {
        name.chars().map(|c| if c.is_alphabetic() || c.is_ascii_digit() { c } else { '_' }).collect()
    };
    format!("mcp__{}__{}", plain(server), plain(tool))
}
