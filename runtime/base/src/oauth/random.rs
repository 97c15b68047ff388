//! Makes unguessable values for OAuth logins: `state` parameters, and PKCE verifiers with their challenges.

use crate::digest::sha256;
use crate::oauth::{OAuthFault, Result};
use crate::secrets::{Credential, SecretRegistry};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes of a value: 43 letters of base64, the shortest verifier that PKCE allows.
const BYTES: usize = 32;

/// A new value, which is a registered secret from now on.
pub(super) fn secret(secrets: &SecretRegistry) -> Result<Credential> {
    Ok(Credential::token(unregistered()?.expose(), secrets))
}

/// A new value, which is not redacted until it is registered.
pub(super) fn unregistered() -> Result<Credential> {
    let mut bytes = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| OAuthFault::unavailable("the system gives no random numbers"))?;
    Ok(Credential::composed(URL_SAFE_NO_PAD.encode(bytes)))
}

/// The challenge of a verifier by the method S256 (RFC 7636, section 4.2).
pub(super) fn challenge(verifier: &Credential) -> String {
    URL_SAFE_NO_PAD.encode(sha256(verifier.expose().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = Credential::composed("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let secrets = SecretRegistry::new();
        let fresh = secret(&secrets).ok().unwrap();
        assert_eq!(fresh.expose().len(), 43);
        assert_eq!(secrets.scrub(fresh.expose()), crate::secrets::REDACTED);
    }
}
