//! A secret value that cannot be printed or serialized.

use super::{Protection, SecretRegistry};
use secrecy::{ExposeSecret, SecretString};

/// A resolved secret of the configuration. It can be neither printed nor serialized:
///
/// ```compile_fail
/// let secrets = ptc_runtime::secrets::SecretRegistry::new();
/// println!("{:?}", ptc_runtime::secrets::Credential::secret("x", &secrets).0);
/// ```
///
/// ```compile_fail
/// let secrets = ptc_runtime::secrets::SecretRegistry::new();
/// println!("{}", ptc_runtime::secrets::Credential::secret("x", &secrets).0);
/// ```
#[derive(Clone)]
pub struct Credential(SecretString);

impl Credential {
    /// Registers every form of a value as a secret, and returns how well that protects it.
    pub fn secret(value: impl Into<String>, secrets: &SecretRegistry) -> (Credential, Protection) {
        let credential = Credential(SecretString::from(value.into()));
        let protection = secrets.register(credential.0.expose_secret());
        (credential, protection)
    }

    /// A value that contains secrets; these are registered as credentials of their own.
    pub fn composed(value: impl Into<String>) -> Credential {
        Credential(SecretString::from(value.into()))
    }

    /// The value, for the code that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}
