//! Tokens, keys and metadata in the shape of a realm of Keycloak.

use super::issued_tokens::servers;
use super::issuer::{Guarded, Issuer, RESOURCE, now, written};
use ptc_tests::processes::eventually;
use serde_json::{Value, json};

const REALM: &str = "/realms/corp";
const OWN: &str = "/realms/corp/protocol/openid-connect";

/// An issuer with the documents of a realm: its metadata is below its path, and one of its keys is for encryption.
fn realm() -> Issuer {
    let issuer = Issuer::start();
    let at = |path: &str| format!("{}{OWN}{path}", issuer.url);
    issuer.publish(
        "/realms/corp/.well-known/openid-configuration",
        json!({
            "issuer": format!("{}{REALM}", issuer.url),
            "authorization_endpoint": at("/auth"),
            "token_endpoint": at("/token"),
            "introspection_endpoint": at("/token/introspect"),
            "userinfo_endpoint": at("/userinfo"),
            "end_session_endpoint": at("/logout"),
            "jwks_uri": at("/certs"),
            "check_session_iframe": at("/login-status-iframe.html"),
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
            "id_token_signing_alg_values_supported": ["PS384", "RS384", "EdDSA", "ES384", "HS256", "HS512", "RS256"],
            "code_challenge_methods_supported": ["plain", "S256"],
            "tls_client_certificate_bound_access_tokens": true,
            "mtls_endpoint_aliases": { "token_endpoint": at("/token") },
            "authorization_response_iss_parameter_supported": true,
        }),
    );
    let mut sign = issuer.rsa_key("FJ86GcF3jTbNLOco4NvZkUCIUmfYCqoqtOQeMfbhNlE");
    let mut encrypt = issuer.rsa_key("KPxkvCS8XWpQ3cNdHYFzgzJGHZ3Wx8tKXbcdeqf2nyY");
    for (key, algorithm, purpose) in [(&mut sign, "RS256", "sig"), (&mut encrypt, "RSA-OAEP", "enc")] {
        key["alg"] = json!(algorithm);
        key["use"] = json!(purpose);
        key["x5c"] = json!(["MIICmzCCAYMCBgGPw"]);
        key["x5t"] = json!("9cXnd8PjqGSXoRWBkLnoPS5mFmA");
    }
    issuer.publish(&format!("{OWN}/certs"), json!({ "keys": [encrypt, sign] }));
    issuer
}

fn claims(issuer: &Issuer) -> Value {
    let now = now();
    json!({
        "exp": now + 300, "iat": now, "auth_time": now, "jti": "onrtac:0f3c8a52-54a5-4b7f-9f0e-5ab7f7d6f4a1",
        "iss": format!("{}{REALM}", issuer.url), "aud": [RESOURCE, "account"],
        "sub": "1f2a7bb6-0f0b-4c3c-8b27-3a9fb0b7b6a1", "typ": "Bearer", "azp": "mcp-client",
        "sid": "d2a8a3de-6a34-45f1-9a3f-0b5a1b1c9c11", "acr": "1", "allowed-origins": ["*"],
        "realm_access": { "roles": ["offline_access", "default-roles-corp", "uma_authorization"] },
        "resource_access": {
            "ptc": { "roles": ["operator"] },
            "account": { "roles": ["manage-account", "view-profile"] },
        },
        "scope": "openid mcp:open profile email", "email_verified": true, "preferred_username": "ann",
    })
}

fn signed(issuer: &Issuer, claims: &Value) -> String {
    let header = json!({
        "alg": "RS256", "typ": "JWT", "kid": "FJ86GcF3jTbNLOco4NvZkUCIUmfYCqoqtOQeMfbhNlE",
    });
    issuer.signed_by_rsa(&header, claims)
}

#[test]
fn tokens_of_a_realm_allow_what_their_scopes_and_roles_say() {
    let issuer = realm();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let grants = "[[grant]]\nscope = \"mcp:open\"\nservers = [\"open\"]\n\
        [[grant]]\nclaim = \"/resource_access/ptc/roles\"\nhas = \"operator\"\nservers = [\"shut\"]\n";
    std::fs::write(&guarded.file, written(&format!("{}{REALM}", issuer.url), grants)).unwrap();
    let good = claims(&issuer);
    // Refused tokens would block the address of the client.
    eventually("the edit is read", || {
        let metadata = guarded.server.get("/.well-known/oauth-protected-resource").json();
        metadata["authorization_servers"] == json!([format!("{}{REALM}", issuer.url)])
    });
    assert_eq!(guarded.servers(&signed(&issuer, &good)), "[\"open\" \"shut\"]");
    let mut other = good.clone();
    other["resource_access"]["ptc"]["roles"] = json!(["viewer"]);
    assert_eq!(guarded.servers(&signed(&issuer, &other)), "[\"open\"]");
    // Without a mapper of the kind "Audience": no `aud`, or that of the account console alone.
    let mut bare = good.clone();
    bare.as_object_mut().unwrap().remove("aud");
    let mut account = good.clone();
    account["aud"] = json!("account");
    // A token of the realm next to it, and the ID token of the same login.
    let mut neighbour = good.clone();
    neighbour["iss"] = json!(format!("{}/realms/other", issuer.url));
    let mut identity = good.clone();
    identity["nonce"] = json!("cad6a2c2-6fcb-4f4e-9b6b-6b7f8a1d5f0e");
    identity["typ"] = json!("ID");
    identity["at_hash"] = json!("H9mHbkkLzLd3wM8d2bR5Yg");
    for refused in [bare, account, neighbour, identity] {
        let answer = guarded.answer(&signed(&issuer, &refused), "1");
        assert_eq!(answer.status, 401, "{refused}");
    }
    // The key for encryption signs nothing.
    let header =
        json!({ "alg": "RS256", "typ": "JWT", "kid": "KPxkvCS8XWpQ3cNdHYFzgzJGHZ3Wx8tKXbcdeqf2nyY" });
    assert_ne!(guarded.answer(&issuer.signed_by_rsa(&header, &good), "1").status, 200);
}
