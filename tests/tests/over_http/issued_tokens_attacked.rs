//! Attacks with forged, foreign and malformed tokens: each is refused, and none costs the issuer much.

use super::issued_tokens::servers;
use super::issuer::{Guarded, Issuer, RESOURCE, encoded, now, signed_by_secret};
use serde_json::{Value, json};

/// Claims with one member changed, or removed.
fn but(claims: &Value, name: &str, value: Option<Value>) -> Value {
    let mut claims = claims.clone();
    match value {
        Some(value) => claims[name] = value,
        None => drop(claims.as_object_mut().map(|members| members.remove(name))),
    }
    claims
}

#[test]
fn no_forged_token_is_accepted() {
    let (issuer, other) = (Issuer::start(), Issuer::start());
    // No limit on attempts, which would hide the reason.
    let guarded = Guarded::start(&issuer, servers(), &["--http-auth-rate-limit", "false"]);
    let good = issuer.claims("ann", "mcp:open");
    let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": "e1" });
    let with = |name: &str, value: Value| but(&header, name, Some(value));
    let (text, now) = (good.to_string(), now());
    let rest = text.trim_start_matches('{');
    let token = issuer.token(&good);
    let parts: Vec<&str> = token.split('.').collect();
    let none = format!("{}.{}.", encoded(json!({ "alg": "none" }).to_string().as_bytes()), parts[1]);
    let admin = encoded(but(&good, "scope", Some(json!("mcp:shut"))).to_string().as_bytes());
    let changed = |name: &str, value: Value| issuer.token(&but(&good, name, Some(value)));
    let without = |name: &str| issuer.token(&but(&good, name, None));
    let secret = issuer.rsa_public_bytes();
    let malformed = "the token is malformed";
    let algorithm = "the algorithm of the token is not accepted";
    let audience = "the token is not for this server";
    let attacks: Vec<(&str, String, &str)> = vec![
        // The first, since the keys are fetched for it: later it would be a reason to wait.
        (
            "an unknown key",
            issuer.signed(&with("kid", json!("../../e1")), &good),
            "the key of the token is not known",
        ),
        ("alg none", none, algorithm),
        ("alg none, signed", issuer.signed(&with("alg", json!("none")), &good), algorithm),
        ("alg in another case", issuer.signed(&with("alg", json!("es256")), &good), algorithm),
        (
            "public key as secret",
            signed_by_secret(&json!({ "alg": "HS256", "kid": "r1" }), &good, &secret),
            algorithm,
        ),
        (
            "secret of the RSA key under its algorithm",
            signed_by_secret(&json!({ "alg": "RS256", "kid": "r1" }), &good, &secret),
            "the signature of the token is wrong",
        ),
        (
            "an algorithm that is not configured",
            issuer.signed(&with("alg", json!("RS512")), &good),
            algorithm,
        ),
        (
            "the key of another algorithm",
            issuer.signed(&with("kid", json!("r1")), &good),
            "the key of the token is not known",
        ),
        ("another key of the same name", other.token(&good), "the signature of the token is wrong"),
        (
            "other claims under a signature",
            format!("{}.{admin}.{}", parts[0], parts[2]),
            "the signature of the token is wrong",
        ),
        ("no signature", format!("{}.{}.", parts[0], parts[1]), "the signature of the token is wrong"),
        (
            "a key in the header",
            other.signed(&with("jwk", other.elliptic_key("e1")), &good),
            "the signature of the token is wrong",
        ),
        ("a name of a key that is no text", issuer.signed(&with("kid", json!(["e1"])), &good), malformed),
        ("an endless name of a key", issuer.signed(&with("kid", json!("k".repeat(4_000))), &good), malformed),
        (
            "crit",
            issuer.signed(&with("crit", json!(["exp"])), &good),
            "the token needs an extension that is not understood",
        ),
        (
            "another type",
            issuer.signed(&with("typ", json!("logout+jwt")), &good),
            "the token is of another type",
        ),
        (
            "an assertion",
            issuer.signed(&with("typ", json!("oauth-id-jag+jwt")), &good),
            "the token is of another type",
        ),
        ("another issuer", changed("iss", json!(other.url)), "the issuer of the token is not accepted"),
        (
            "an issuer with a slash",
            changed("iss", json!(format!("{}/", issuer.url))),
            "the issuer of the token is not accepted",
        ),
        ("no issuer", without("iss"), "the issuer of the token is not accepted"),
        ("another audience", changed("aud", json!("https://ptc.example")), audience),
        ("an audience with a slash", changed("aud", json!(format!("{RESOURCE}/"))), audience),
        ("no audience", without("aud"), audience),
        ("no audience in a list", changed("aud", json!([])), audience),
        ("expired", changed("exp", json!(now - 61)), "the token has expired"),
        ("no end", without("exp"), "a claim of the token is absent or malformed"),
        (
            "an end as text",
            changed("exp", json!((now + 600).to_string())),
            "a claim of the token is absent or malformed",
        ),
        ("not yet", changed("nbf", json!(now + 300)), "the token is not valid yet"),
        ("issued in the future", changed("iat", json!(now + 300)), "the token is not valid yet"),
        ("no subject", without("sub"), "a claim of the token is absent or malformed"),
        ("an ID token", changed("nonce", json!("n")), "this is an ID token, not an access token"),
        (
            "a claim twice",
            issuer.signed_text(&header.to_string(), &format!("{{\"aud\":\"x\",{rest}")),
            malformed,
        ),
        (
            "a member of the header twice",
            issuer.signed_text("{\"alg\":\"none\",\"alg\":\"ES256\",\"kid\":\"e1\"}", &text),
            malformed,
        ),
        ("claims that are a list", issuer.signed_text(&header.to_string(), "[]"), malformed),
        ("a header that is no JSON", issuer.signed_text("x", &text), malformed),
        ("padding", format!("{}=.{}.{}", parts[0], parts[1], parts[2]), malformed),
        ("too long", changed("x", json!("x".repeat(13_000))), "the token is too long"),
    ];
    for (name, token, why) in attacks {
        let answer = guarded.answer(&token, "1");
        assert_eq!(answer.status, 401, "{name}: {answer:?}");
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        assert!(challenge.starts_with("Bearer error=\"invalid_token\""), "{name}: {challenge}");
        assert!(challenge.contains(&format!("error_description=\"{why}\"")), "{name}: {challenge}");
    }
    // None of them is remembered for the good one, which has not changed.
    assert_eq!(guarded.servers(&token), "[\"open\"]");
    assert_eq!(other.asked("/keys"), 0);
}

#[test]
fn a_flood_of_unknown_keys_asks_the_issuer_once() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let good = issuer.claims("ann", "mcp:open");
    let unknown = |number: usize| {
        let header = json!({ "alg": "ES256", "kid": format!("unknown-{number}") });
        guarded.answer(&issuer.signed(&header, &good), "1")
    };
    assert_eq!(unknown(0).status, 401);
    // The key may be a new one. Until keys may be fetched again the client waits, and does not count as a stranger.
    for number in 1..100 {
        let answer = unknown(number);
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")), "{answer:?}");
    }
    assert_eq!(guarded.servers(&issuer.token(&good)), "[\"open\"]");
    assert_eq!(issuer.asked("/keys"), 1);
}

#[test]
fn guesses_block_an_address_and_expired_tokens_do_not() {
    let (issuer, other) = (Issuer::start(), Issuer::start());
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let good = issuer.claims("ann", "mcp:open");
    let expired = issuer.token(&but(&good, "exp", Some(json!(now() - 100))));
    for _ in 0..20 {
        assert_eq!(guarded.answer(&expired, "1").status, 401);
    }
    let forged = other.token(&good);
    let statuses: Vec<u16> = (0..8).map(|_| guarded.answer(&forged, "1").status).collect();
    assert_eq!((statuses[0], statuses[7]), (401, 429), "{statuses:?}");
    assert_eq!(guarded.answer(&expired, "1").status, 401, "it has to see that it is expired");
    assert_eq!(guarded.servers(&issuer.token(&good)), "[\"open\"]");
}

#[test]
fn redirects_to_another_origin_bring_no_keys() {
    for path in ["/keys", "/.well-known/openid-configuration"] {
        let (issuer, other) = (Issuer::start(), Issuer::start());
        other.pretend(&issuer.url);
        let guarded = Guarded::start(&issuer, servers(), &[]);
        issuer.redirect(path, &format!("{}{path}", other.url));
        let answer = guarded.answer(&other.token(&issuer.claims("ann", "mcp:open")), "1");
        assert_eq!((answer.status, other.asked(path)), (503, 0), "{path}: {answer:?}");
        assert_eq!(issuer.asked(path), 1, "{path}");
    }
}

#[test]
fn a_token_that_never_ends_is_accepted() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    let endless = but(&issuer.claims("ann", "mcp:open"), "exp", Some(json!(i64::MAX)));
    let token = issuer.token(&endless);
    for _ in 0..2 {
        assert_eq!(guarded.servers(&token), "[\"open\"]");
    }
}

#[test]
fn an_issuer_cannot_lead_elsewhere() {
    let issuer = Issuer::start();
    let guarded = Guarded::start(&issuer, servers(), &[]);
    issuer.pretend("https://other.example");
    let token = issuer.token(&issuer.claims("ann", "mcp:open"));
    assert_eq!(guarded.answer(&token, "1").status, 503);
    assert_eq!(issuer.asked("/keys"), 0);
    for address in [
        "http://169.254.169.254/latest",
        "ftp://x/keys",
        "http://user:pw@127.0.0.1/keys",
        "http://10.0.0.1/keys",
    ] {
        let issuer = Issuer::start();
        let guarded = Guarded::start(&issuer, servers(), &[]);
        issuer.point_to(address);
        assert_eq!(
            guarded.answer(&issuer.token(&issuer.claims("ann", "mcp:open")), "1").status,
            503,
            "{address}"
        );
    }
}
