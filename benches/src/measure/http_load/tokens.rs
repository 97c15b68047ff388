//! Measures what a signed token costs: requests a second with an access token of an issuer (JWT) against a static token.

use super::{BODY, LoadServer, ROUND, flood, median, request};
use crate::measure::programs::Program;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const STATIC: &str = "static-static-static-static-static-static";
const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://ptc.example/mcp";

/// Arguments of `ptc-bench http-tokens`.
#[derive(Debug, clap::Args)]
pub struct TokenBenchArgs {
    /// Connections that ask at once
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Rounds of a second for each token, in turn; the median counts
    #[arg(long, default_value_t = 11)]
    pub rounds: usize,
}

/// Runs the measurement and passes each line of the report to `say`.
///
/// # Errors
/// A server that does not start, or answers something else; errors of `say`.
pub fn report<E: From<io::Error>>(
    args: &TokenBenchArgs,
    say: impl Fn(&str) -> Result<(), E>,
) -> Result<(), E> {
    let folder = std::env::temp_dir().join(format!("ptc-bench-tokens-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure(args, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let [fixed, signed, ratio] = measured?;
    say(&format!(
        "| {} keep-alive connections, lisp_eval (+ 1 2) | requests a second |\n|---|---|\n\
         | static token | {fixed:.0} |\n| JWT, ES256 | {signed:.0}, {ratio:.3} of it |",
        args.connections
    ))
}

/// Requests a second with the static token and with the JWT, and the median of their ratio in the same round.
fn measure(args: &TokenBenchArgs, folder: &Path) -> io::Result<[f64; 3]> {
    let (jwt, keys) = signed()?;
    let hash = ptc_server::server::http::access::hash(STATIC)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    let write = |name: &str, text: String| -> io::Result<String> {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        path.to_str().map(str::to_owned).ok_or_else(|| io::Error::other("no UTF-8 path"))
    };
    let tokens = write("tokens.toml", format!("[static]\nsha256 = \"{hash}\"\n"))?;
    write("keys.json", keys)?;
    let oauth = write(
        "oauth.toml",
        format!(
            "resource = \"{AUDIENCE}\"\n[[issuer]]\nissuer = \"{ISSUER}\"\nalgorithms = [\"ES256\"]\n\
             jwks_file = \"keys.json\"\n[[grant]]\n"
        ),
    )?;
    let flags = ["serve", "--http", "127.0.0.1:0", "--http-tokens", &tokens, "--http-oauth", &oauth];
    let server = LoadServer::start(Program::Product, &flags, None)?;
    let sides = [STATIC, jwt.as_str()]
        .map(|token| request(&server.address, &format!("authorization: Bearer {token}\r\n"), BODY));
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..=args.rounds.max(1) {
        for (request, rates) in sides.iter().zip(&mut rates) {
            let begun = Instant::now();
            let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
            let flooded = std::thread::scope(|scope| {
                let flood = scope.spawn(|| flood(&server, args.connections, request, &stop, &count));
                std::thread::sleep(ROUND);
                stop.store(true, Ordering::Relaxed);
                flood.join()
            });
            flooded.map_err(|_| io::Error::other("a client has failed"))??;
            // The first round warms up, and verifies the signature.
            if round > 0 {
                rates.push(count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64());
            }
        }
    }
    let ratio = median(rates[0].iter().zip(&rates[1]).map(|(fixed, signed)| signed / fixed));
    let [fixed, signed] = rates.map(|rates| median(rates.into_iter()));
    Ok([fixed, signed, ratio])
}

/// An access token of this moment, and the keys of its issuer.
fn signed() -> io::Result<(String, String)> {
    let random = SystemRandom::new();
    let failed = |_| io::Error::other("no key");
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(failed)?;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pair.as_ref(), &random)
        .map_err(|_| io::Error::other("no key"))?;
    // An uncompressed point: 4, x, y.
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let keys = format!(
        r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256","x":"{}","y":"{}"}}]}}"#,
        encoded(x),
        encoded(y)
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_secs();
    let header = encoded(br#"{"alg":"ES256","typ":"at+jwt","kid":"k"}"#);
    let claims = format!(
        r#"{{"iss":"{ISSUER}","sub":"ann","aud":"{AUDIENCE}","iat":{now},"exp":{},"scope":"mcp"}}"#,
        now + 3_600
    );
    let text = format!("{header}.{}", encoded(claims.as_bytes()));
    let signature = pair.sign(&random, text.as_bytes()).map_err(failed)?;
    Ok((format!("{text}.{}", encoded(signature.as_ref())), keys))
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
