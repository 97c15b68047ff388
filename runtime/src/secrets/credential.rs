//! A value that must not leave the process.

use super::{Protection, SecretRegistry};
use secrecy::{ExposeSecret, SecretString};

/// A resolved value of the configuration. It can be neither printed nor serialised:
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
    /// Registers every form of a value; says what that achieves.
    pub fn secret(value: impl Into<String>, secrets: &SecretRegistry) -> (Credential, Protection) {
        let credential = Credential(SecretString::from(value.into()));
        let protection = secrets.register(credential.0.expose_secret());
        (credential, protection)
    }

    /// A value whose secret parts, if any, are credentials of their own.
    pub fn composed(value: impl Into<String>) -> Credential {
        Credential(SecretString::from(value.into()))
    }

    /// The value, for the one place that needs it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}
