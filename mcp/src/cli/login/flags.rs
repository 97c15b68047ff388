//! Flags for OAuth logins at upstream servers: where tokens are stored, and the address of the document that describes
//! `ptc` as a client.

use crate::cli::flags::variables;
use ptc_base::files;
use ptc_base::oauth::{LoginOptions, TokenStore};
use ptc_server::console::Abort;

/// Flags of every command that may call servers with logins.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LoginFlags {
    /// Where logins are stored: file, in ~/.local/state/ptc/tokens, or helper:NAME, the keyring that the program
    /// docker-credential-NAME reaches [default: file]
    #[arg(long, value_name = "STORE")]
    token_store: Option<String>,
    /// The https address of a document that describes this client to authorization servers (Client ID Metadata Document)
    #[arg(long, value_name = "URL")]
    client_metadata_url: Option<String>,
    /// Callers have different tokens. No flag: `serve` sets it.
    #[arg(skip)]
    pub serves_many: bool,
    /// Callers show one token. No flag: `serve` sets it.
    #[arg(skip)]
    pub callers_log_in: bool,
}

impl LoginFlags {
    /// What the flags and their variables say.
    pub fn options(&self) -> Result<LoginOptions, Abort> {
        let store = variables::given_or_read(self.token_store.clone(), "token-store", variables::text)?;
        let url = self.client_metadata_url.clone();
        let client_metadata_url = variables::given_or_read(url, "client-metadata-url", variables::text)?;
        if let Some(url) = client_metadata_url.as_ref().filter(|url| !url.starts_with("https://")) {
            return Err(Abort::usage(format!("--client-metadata-url {url}: write an https address")));
        }
        let files = files::state_folder().map(|folder| TokenStore::in_state_folder(&folder));
        let store = match store.as_deref() {
            None | Some("file") => files,
            Some(other) => {
                let is_name = |name: &&str| !name.is_empty() && !name.contains(['/', '\0']);
                let name = other.strip_prefix("helper:").filter(is_name).ok_or_else(|| {
                    Abort::usage(format!("--token-store {other}: write file or helper:NAME"))
                })?;
                files.map(|store| store.with_helper(name))
            }
        };
        let LoginFlags { serves_many, callers_log_in, .. } = *self;
        Ok(LoginOptions { store, client_metadata_url, serves_many, callers_log_in, owner: None })
    }
}
