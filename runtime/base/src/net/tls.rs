//! Makes the TLS configuration of connections: trusted certificates, and the client certificate. One TLS stack: rustls
//! with ring.

use super::{NetError, NetFault};
use crate::files;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Certificates that are trusted in addition to those of the system, and the client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM file of certificate authorities to trust as well.
    pub ca_file: Option<PathBuf>,
    /// Shown to servers that ask for one.
    pub client_certificate: Option<ClientCertificate>,
}

/// A client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// PEM file of the certificate and its chain.
    pub certificate: PathBuf,
    /// PEM file of its key; may be the same file.
    pub key: PathBuf,
}

impl TlsOptions {
    /// The configuration of a connection.
    pub(crate) fn config(&self) -> Result<ClientConfig, NetError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.ca_file {
            None => system_verifier(&provider),
            Some(file) => Arc::new(
                Verifier::new_with_extra_roots(certificates("ca_file", file)?, provider.clone())
                    .map_err(|error| setup(format!("ca_file {}: {error}", file.display())))?,
            ),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.client_certificate {
            None => builder.with_no_client_auth(),
            Some(ClientCertificate { certificate, key: file }) => {
                let chain = certificates("client certificate", certificate)?;
                let wrong =
                    |error: &dyn std::fmt::Display| setup(format!("client key {}: {error}", file.display()));
                let text = files::read(file).map_err(|error| wrong(&error))?;
                let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| wrong(&error))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    setup(format!("client certificate {}: {error}", certificate.display()))
                })?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificates of the system, read once.
fn system_verifier(provider: &Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    static SYSTEM: OnceLock<Arc<dyn ServerCertVerifier>> = OnceLock::new();
    SYSTEM
        .get_or_init(|| match Verifier::new(provider.clone()) {
            Ok(verifier) => Arc::new(verifier),
            // Connections without TLS work without certificates.
            Err(_) => Arc::new(TrustsNobody(provider.clone())),
        })
        .clone()
}

fn certificates(what: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let wrong = |error: &dyn std::fmt::Display| setup(format!("{what} {}: {error}", file.display()));
    let text = files::read(file).map_err(|error| wrong(&error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong(&"no certificate in it (it must be PEM)")),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(&error)),
    }
}

fn setup(text: String) -> NetError {
    NetError::new(NetFault::Setup, text)
}

/// The error on a machine without certificate authorities.
#[derive(Debug)]
struct TrustsNobody(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustsNobody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(rustls::Error::General("this machine knows no certificate authorities".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
