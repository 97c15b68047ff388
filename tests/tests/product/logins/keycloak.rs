//! A login at a realm of Keycloak: metadata below the path of the issuer, its endpoints, and answers in its shape.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use serde_json::{Value, json};

const REALM: &str = "/realms/corp";
const OWN: &str = "/realms/corp/protocol/openid-connect";
/// What manages the registration of a client.
const MANAGES: &str = "registration-access-token-Zq7Xw9Kd2Lm";

fn document(server: &OAuthServer) -> Value {
    let at = |path: &str| server.url(&format!("{OWN}{path}"));
    json!({
        "issuer": server.url(REALM),
        "authorization_endpoint": at("/auth"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/certs"),
        "revocation_endpoint": at("/revoke"),
        "device_authorization_endpoint": at("/auth/device"),
        "registration_endpoint": server.url("/realms/corp/clients-registrations/openid-connect"),
        "response_types_supported": ["code", "none", "id_token", "token", "code id_token token"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_basic", "client_secret_post", "none"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "scopes_supported": ["openid", "microprofile-jwt", "address", "roles", "profile", "offline_access", "email", "read"],
        "require_pushed_authorization_requests": false,
        "authorization_response_iss_parameter_supported": true,
    })
}

/// The request as the usual server knows it.
fn usual(server: &OAuthServer, asked: &Asked, path: &str) -> Reply {
    let mut asked = asked.clone();
    path.clone_into(&mut asked.path);
    server.usual(&asked)
}

fn realm() -> OAuthServer {
    let server = OAuthServer::answering(Habits::default(), |server, asked| {
        let path = asked.path.as_str();
        Some(match path.strip_prefix(OWN).unwrap_or(path) {
            "/.well-known/oauth-protected-resource/mcp" => {
                Reply::json(&server.resource()).with(&json!({ "authorization_servers": [server.url(REALM)] }))
            }
            // There is metadata in the OpenID form alone, below the path of the realm.
            "/realms/corp/.well-known/openid-configuration" => Reply::json(&document(server)),
            "/.well-known/oauth-authorization-server" => Reply::status(404),
            "/realms/corp/clients-registrations/openid-connect" => {
                let address = server.url("/realms/corp/clients-registrations/openid-connect/id");
                let more =
                    json!({ "registration_access_token": MANAGES, "registration_client_uri": address });
                usual(server, asked, "/register").with(&more)
            }
            "/auth" => usual(server, asked, "/authorize"),
            "/token" => usual(server, asked, "/token").with(&json!({
                "refresh_expires_in": 1800, "not-before-policy": 0, "id_token": "e30.e30.e30",
                "session_state": "d2a8a3de-6a34-45f1-9a3f-0b5a1b1c9c11",
            })),
            "/revoke" => usual(server, asked, "/revoke"),
            _ => return None,
        })
    });
    let issuer = server.url(REALM);
    server.set(|habits| habits.metadata = json!({ "issuer": issuer }));
    server
}

#[test]
fn a_login_at_a_realm_is_made_renewed_and_revoked() {
    let server = realm();
    let user = User::of(&server);
    let said = user.login(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let login = &user.stored()[0].1;
    assert_eq!(
        (&login["issuer"], &login["requested"]),
        (&json!(server.url(REALM)), &json!("read offline_access"))
    );
    assert!(!login.to_string().contains(MANAGES), "{login}");
    assert_echoed(&user.echo());
    server.end_access();
    assert_echoed(&user.echo());
    let renewed: Vec<Asked> = server.asked(&format!("{OWN}/token"));
    assert_eq!(renewed.last().unwrap().field("grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(user.run(&["logout", "hosted", "--revoke"]).code, Some(0));
    assert_eq!(server.asked(&format!("{OWN}/revoke")).len(), 2);
}
