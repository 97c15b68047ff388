//! Builds the qualified names of tools, `mcp__<server>__<tool>`, as Claude Code writes them.

/// `mcp__<server>__<tool>`, with `_` for every character that is not allowed in identifiers.
pub fn qualified_name(server: &str, tool: &str) -> String {
    let plain = |name: &str| -> String {
        name.chars().map(|c| if c.is_alphabetic() || c.is_ascii_digit() { c } else { '_' }).collect()
    };
    format!("mcp__{}__{}", plain(server), plain(tool))
}
