//! Flags that limit how many tools of upstream servers are listed in the descriptions of ptc's own MCP tools.

use super::variables;
use ptc_server::console::Abort;
use ptc_server::tools::catalog::{CatalogMode, CatalogStyle};

/// How much of the upstreams' tools `tools/list` shows.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CatalogFlags {
    /// What the descriptions of our tools list: inline all tools, lazy servers only, auto whichever fits
    /// [default: auto]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    catalog_mode: Option<CatalogMode>,
    /// Characters of a list of tools that auto shows [default: 800]
    #[arg(long, value_name = "N", value_parser = variables::positive)]
    catalog_inline_max_chars: Option<usize>,
    /// Tools of a list that auto shows [default: 8]
    #[arg(long, value_name = "N", value_parser = variables::positive)]
    catalog_inline_max_tools: Option<usize>,
}

impl CatalogFlags {
    /// The style from flags, then environment variables, then defaults.
    pub fn style(&self) -> Result<CatalogStyle, Abort> {
        let default = CatalogStyle::default();
        let number = |given, flag| variables::given_or_read(given, flag, variables::positive);
        let mode = variables::given_or_read(self.catalog_mode, "catalog-mode", variables::word)?;
        let chars = number(self.catalog_inline_max_chars, "catalog-inline-max-chars")?;
        let tools = number(self.catalog_inline_max_tools, "catalog-inline-max-tools")?;
        Ok(CatalogStyle {
            mode: mode.unwrap_or(default.mode),
            inline_max_chars: chars.unwrap_or(default.inline_max_chars),
            inline_max_tools: tools.unwrap_or(default.inline_max_tools),
        })
    }
}
