//! Loads the TLS certificate and key of the HTTP server, and reloads them when their files change.

use ptc_base::files;
use ptc_base::files::{FollowedFiles, ReloadSignal};
use ptc_base::sync::RwLocked;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use tokio_rustls::TlsAcceptor;

/// The certificate that clients are shown.
pub struct Tls {
    files: [PathBuf; 2],
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads a certificate chain and the key of its first certificate (PEM).
    ///
    /// # Errors
    /// What is wrong with them, in a line.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, String> {
        let files = [certificate.to_owned(), key.to_owned()];
        let config = RwLock::new(config(&files)?);
        Ok(Tls { files, config })
    }

    /// An acceptor for one connection, with the current certificate.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.config.read_locked().clone().into()
    }

    /// Watches both files: later connections get the new certificate. Never ends.
    pub(super) async fn follow(&self, reloads: ReloadSignal) {
        let read = |_: &[PathBuf]| match config(&self.files) {
            Ok(config) => {
                *self.config.write_locked() = config;
                tracing::info!("certificate reloaded");
            }
            Err(wrong) => tracing::error!("the new certificate is not used, the one before stays: {wrong}"),
        };
        FollowedFiles::read(self.files.to_vec()).follow(reloads, read).await;
    }
}

fn config([certificate, key]: &[PathBuf; 2]) -> Result<Arc<ServerConfig>, String> {
    let wrong = |path: &Path, error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let read = |path: &Path| files::read(path).map_err(|error| wrong(path, &error));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| wrong(key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| wrong(key, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
