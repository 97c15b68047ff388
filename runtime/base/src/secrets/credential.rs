//! A secret value that cannot be printed or serialized, and that is registered for redaction when it is made. Of a
//! value that is composed of secrets, these are registered.

use super::registry::SecretHold;
use super::{Protection, SecretRegistry};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;

/// A secret, for example the key of a model. It can be neither printed nor serialized: it implements neither `Debug` nor
/// `Display` nor `Serialize`.
#[derive(Clone)]
pub struct Credential {
    value: SecretString,
    /// Held while this value or a clone of it exists.
    _hold: Option<Arc<SecretHold>>,
}

impl Credential {
    /// Registers every form of a value as a secret, and returns how well that protects it.
    #[doc(hidden)]
    pub fn secret(value: impl Into<String>, secrets: &SecretRegistry) -> (Credential, Protection) {
        let credential = Credential::composed(value);
        let protection = secrets.register(credential.expose());
        (credential, protection)
    }

    /// A token that a server has chosen, or a value that is as good for a time. It is redacted while it is used and some
    /// time after that, if it has the shape of a token: a short plain word would hide ordinary text.
    pub fn token(value: impl Into<String>, secrets: &SecretRegistry) -> Credential {
        let value = value.into();
        let hold = secrets.hold(&value).map(Arc::new);
        Credential { value: SecretString::from(value), _hold: hold }
    }

    /// A value that contains secrets; these are registered as credentials of their own.
    pub fn composed(value: impl Into<String>) -> Credential {
        Credential { value: SecretString::from(value.into()), _hold: None }
    }

    /// The value, for the code that sends it.
    pub fn expose(&self) -> &str {
        self.value.expose_secret()
    }
}
