//! Flags of the tool list in descriptions of tools.

use super::variables;
use crate::console::exit::Abort;
use crate::tools::catalog::{CatalogMode, CatalogStyle};
use clap::ValueEnum;

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
    /// Flags, then environment variables, then defaults.
    pub fn style(&self) -> Result<CatalogStyle, Abort> {
        let default = CatalogStyle::default();
        let number = |given: Option<usize>, flag, default| match given {
            Some(number) => Ok(number),
            None => variables::read(flag, variables::positive).map(|read| read.unwrap_or(default)),
        };
        Ok(CatalogStyle {
            mode: match self.catalog_mode {
                Some(mode) => mode,
                None => variables::read("catalog-mode", |text| CatalogMode::from_str(text, true))?
                    .unwrap_or(default.mode),
            },
            inline_max_chars: number(
                self.catalog_inline_max_chars,
                "catalog-inline-max-chars",
                default.inline_max_chars,
            )?,
            inline_max_tools: number(
                self.catalog_inline_max_tools,
                "catalog-inline-max-tools",
                default.inline_max_tools,
            )?,
        })
    }
}
