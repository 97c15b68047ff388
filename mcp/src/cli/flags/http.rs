//! Turns the flags of `ptc serve --http` into settings of the HTTP server: addresses, access tokens, TLS, limits,
//! metrics and the web page for people.

use super::limits::{FlagTable, LimitFlags};
use super::variables;
use ptc_server::console::Abort;
use ptc_server::observe::counts::CallCounts;
use ptc_server::redact;
use ptc_server::server::http::access::oauth::OAuthAccess;
use ptc_server::server::http::access::tokens::{self, TokenGrant};
use ptc_server::server::http::access::{SHORTEST_TOKEN, TokenFile, hash};
use ptc_server::server::http::guard::Origin;
use ptc_server::server::http::settings::MetricsSettings;
use ptc_server::server::http::{Access, HttpLimits, HttpSettings, Tls};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

impl FlagTable for HttpLimits {}

const HOST: &str = "127.0.0.1";
const PORT: u16 = 7_332;
const PATH: &str = "/mcp";
const METRICS_PATH: &str = "/metrics";

/// Flags of a server over HTTP.
#[derive(Debug, clap::Args)]
pub struct HttpFlags {
    /// Serve many clients over Streamable HTTP instead of one over standard input: at this HOST:PORT, if one is given
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "true", help_heading = "HTTP")]
    http: Option<String>,
    /// Address to listen at, an IP address or localhost [default: 127.0.0.1]
    #[arg(long, value_name = "HOST", help_heading = "HTTP")]
    http_host: Option<String>,
    /// Port to listen at; 0: any that is free [default: 7332]
    #[arg(long, value_name = "PORT", help_heading = "HTTP")]
    http_port: Option<u16>,
    /// Path that speaks MCP [default: /mcp]
    #[arg(long, value_name = "PATH", help_heading = "HTTP")]
    http_path: Option<String>,
    /// File that names several tokens, each with its hash, and with an end and limits if it says so (TOML)
    #[arg(long, value_name = "FILE", help_heading = "HTTP")]
    http_tokens: Option<PathBuf>,
    /// Accept access tokens of issuers (OAuth): the file names them, and what their tokens allow (TOML); may be next to
    /// other tokens
    #[arg(long, value_name = "FILE", help_heading = "HTTP")]
    http_oauth: Option<PathBuf>,
    /// Speak TLS, with the chain of certificates in this file (PEM); read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "HTTP")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "HTTP")]
    tls_key: Option<PathBuf>,
    /// Clients must show this as their bearer token; better given as PTC_HTTP_AUTH_TOKEN, since others see
    /// arguments
    #[arg(long, value_name = "TOKEN", help_heading = "HTTP")]
    http_auth_token: Option<String>,
    /// Without a token, whatever the variable says; on this machine only
    #[arg(long, help_heading = "HTTP")]
    http_disable_auth: bool,
    /// Listen elsewhere than on this machine without a token, where something else keeps strangers out
    #[arg(long, help_heading = "HTTP")]
    http_allow_unsafe_network: bool,
    /// Web pages that may ask (`https://example.com`), with commas; may be given several times [default: those of this
    /// machine]
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', help_heading = "HTTP")]
    http_allowed_origin: Vec<String>,
    /// Whether addresses that show wrong tokens are refused for a while [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = variables::boolean,
        help_heading = "HTTP")]
    http_auth_rate_limit: Option<bool>,
    /// Show a page of runs, approvals, servers and sessions at /ui; on this machine only, unless --http-oauth is given
    #[arg(long, help_heading = "HTTP")]
    ui: bool,
    /// Show numbers for Prometheus
    #[arg(long, help_heading = "HTTP")]
    http_metrics: bool,
    /// Path of these numbers [default: /metrics]
    #[arg(long, value_name = "PATH", help_heading = "HTTP")]
    http_metrics_path: Option<String>,
    /// Name of this server in logs and by /ready [default: the host's]
    #[arg(long, value_name = "NAME", help_heading = "HTTP")]
    http_instance_label: Option<String>,
    #[command(flatten)]
    limits: LimitFlags<HttpLimits>,
}

/// The address in the value of `--http`.
#[derive(Debug, Default)]
struct ListenAddress {
    host: Option<String>,
    port: Option<u16>,
}

/// Settings of an HTTP server, from flags and variables.
pub struct HttpPlan {
    /// Addresses, paths and limits.
    pub settings: HttpSettings,
    /// The tokens and origins that are allowed.
    pub access: Access,
    /// The certificate, if the server speaks TLS.
    pub tls: Option<Tls>,
}

impl HttpFlags {
    /// The settings of the HTTP server; `None` for a server over standard input. The limit of a body is by
    /// default that of a line.
    pub fn plan(&self, longest_line: u64) -> Result<Option<HttpPlan>, Abort> {
        let Some(given) = self.given()? else {
            return match self.given_in_vain() {
                Some(flag) => Err(Abort::usage(format!("--{flag} does nothing without --http"))),
                None => Ok(None),
            };
        };
        let text =
            |given: &Option<String>, name| variables::given_or_read(given.clone(), name, variables::text);
        let mut limits = self.limits.limits(false)?;
        if limits.body_bytes == 0 {
            limits.body_bytes = longest_line;
        }
        let host = text(&self.http_host.clone().or(given.host), "http-host")?;
        let host = host.unwrap_or_else(|| HOST.into());
        let port = |text: &str| text.parse().map_err(|_| "must be a port".into());
        let port = variables::given_or_read(self.http_port.or(given.port), "http-port", port)?;
        let port = port.unwrap_or(PORT);
        let path = text(&self.http_path, "http-path")?.unwrap_or_else(|| PATH.into());
        let instance = text(&self.http_instance_label, "http-instance-label")?.unwrap_or_else(host_name);
        let metrics = variables::switch(self.http_metrics, "http-metrics")?;
        let metrics_path = text(&self.http_metrics_path, "http-metrics-path")?;
        let metrics_path = checked_path(metrics_path.as_deref().unwrap_or(METRICS_PATH))?;
        let settings = HttpSettings {
            metrics: metrics.then(|| MetricsSettings { path: metrics_path, calls: CallCounts::default() }),
            address: SocketAddr::new(address(&host)?, port),
            path: checked_path(&path)?,
            origins: self.origins()?,
            instance,
            page: variables::switch(self.ui, "ui")?,
            limits,
        };
        if settings.has_path_twice() {
            return Err(Abort::usage("HTTP paths must be distinct, and none may be one of the page (/ui)"));
        }
        let token = text(&self.http_auth_token, "http-auth-token")?;
        let file = variables::given_or_read(self.http_tokens.clone(), "http-tokens", variables::path)?;
        let oauth = variables::given_or_read(self.http_oauth.clone(), "http-oauth", variables::path)?;
        let access = self.access(&settings, token, file, oauth)?;
        if settings.page && !settings.is_local() && !access.accepts_issuers() {
            return Err(Abort::usage("--ui beyond this machine needs --http-oauth"));
        }
        let tls = self.tls()?;
        Ok(Some(HttpPlan { settings, access, tls }))
    }

    /// Whether the flags ask for an HTTP server.
    pub fn is_asked_for(&self) -> Result<bool, Abort> {
        Ok(self.given()?.is_some())
    }

    /// A flag of the command line that only an HTTP server has. Variables may be there for other servers.
    fn given_in_vain(&self) -> Option<&'static str> {
        let given = [
            ("http-host", self.http_host.is_some()),
            ("http-port", self.http_port.is_some()),
            ("http-path", self.http_path.is_some()),
            ("http-tokens", self.http_tokens.is_some()),
            ("http-oauth", self.http_oauth.is_some()),
            ("tls-cert", self.tls_cert.is_some()),
            ("tls-key", self.tls_key.is_some()),
            ("http-auth-token", self.http_auth_token.is_some()),
            ("http-disable-auth", self.http_disable_auth),
            ("http-allow-unsafe-network", self.http_allow_unsafe_network),
            ("http-allowed-origin", !self.http_allowed_origin.is_empty()),
            ("http-auth-rate-limit", self.http_auth_rate_limit.is_some()),
            ("ui", self.ui),
            ("http-metrics", self.http_metrics),
            ("http-metrics-path", self.http_metrics_path.is_some()),
            ("http-instance-label", self.http_instance_label.is_some()),
        ];
        given
            .iter()
            .find(|(_, is_given)| *is_given)
            .map(|(flag, _)| *flag)
            .or_else(|| self.limits.first_given())
    }

    /// Host and port in the value of `--http`.
    fn given(&self) -> Result<Option<ListenAddress>, Abort> {
        let given = variables::given_or_read(self.http.clone(), "http", variables::text)?;
        let Some(given) = given else { return Ok(None) };
        if let Ok(asked) = variables::boolean(&given) {
            return Ok(asked.then(ListenAddress::default));
        }
        let wrong = || {
            let meant = given.parse::<u16>().map(|port| format!("; did you mean 127.0.0.1:{port}?"));
            let meant = meant.unwrap_or_default();
            Abort::usage(format!("--http: expected HOST:PORT, got: {given:?}{meant}"))
        };
        let (host, port) = given.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Some(ListenAddress { host: Some(host), port: Some(port.parse().map_err(|_| wrong())?) }))
    }

    fn tls(&self) -> Result<Option<Tls>, Abort> {
        let file =
            |given: &Option<PathBuf>, name| variables::given_or_read(given.clone(), name, variables::path);
        match (file(&self.tls_cert, "tls-cert")?, file(&self.tls_key, "tls-key")?) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => match Tls::read(&certificate, &key) {
                Ok(tls) => Ok(Some(tls)),
                Err(wrong) => Err(Abort::usage(format!("--tls-cert, --tls-key: {wrong}"))),
            },
            _ => Err(Abort::usage("--tls-cert and --tls-key belong together")),
        }
    }

    fn origins(&self) -> Result<Vec<Origin>, Abort> {
        let more = variables::read("http-allowed-origin", variables::text)?.unwrap_or_default();
        let all = self.http_allowed_origin.iter().map(String::as_str).chain(more.split(','));
        all.filter(|text| !text.trim().is_empty())
            .map(|text| {
                Origin::parse(text)
                    .ok_or_else(|| Abort::usage(format!("--http-allowed-origin: {text:?} is no origin")))
            })
            .collect()
    }

    fn access(
        &self,
        settings: &HttpSettings,
        token: Option<String>,
        file: Option<PathBuf>,
        oauth: Option<PathBuf>,
    ) -> Result<Access, Abort> {
        let disabled = variables::switch(self.http_disable_auth, "http-disable-auth")?;
        let unsafe_network = self.http_allow_unsafe_network;
        let unsafe_network = variables::switch(unsafe_network, "http-allow-unsafe-network")?;
        if disabled && unsafe_network {
            return Err(Abort::usage(
                "--http-disable-auth cannot be combined with --http-allow-unsafe-network",
            ));
        }
        if disabled && oauth.is_some() {
            return Err(Abort::usage("--http-disable-auth cannot be combined with --http-oauth"));
        }
        if disabled && !settings.is_local() {
            return Err(Abort::usage("--http-disable-auth is only permitted on loopback binds"));
        }
        let limits = &settings.limits;
        if disabled || (token.is_none() && file.is_none() && oauth.is_none()) {
            if !settings.is_local() && !unsafe_network {
                return Err(Abort::usage(format!(
                    "HTTP auth token is required for non-loopback binds; {}",
                    make_token()
                )));
            }
            if let Some(variable) = variables::empty("http-auth-token").filter(|_| !disabled) {
                return Err(Abort::usage(format!(
                    "{variable} is set and empty; use --http-disable-auth if nobody is to need a token"
                )));
            }
            if disabled {
                tracing::warn!("http_auth_disabled_loopback: whoever is on this machine may ask");
            }
            return Ok(Access::open(limits));
        }
        if token.as_ref().is_some_and(|token| token.len() < SHORTEST_TOKEN) {
            return Err(Abort::usage(format!(
                "HTTP auth token must be at least {SHORTEST_TOKEN} characters; {}",
                make_token()
            )));
        }
        let fixed: Vec<TokenGrant> = token
            .iter()
            .map(|token| {
                let _ = redact::secrets().register(token);
                TokenGrant::unlimited("http-auth-token", hash(token))
            })
            .collect();
        let is_chosen = self.limits.is_given("http-max-sessions")?
            || self.limits.is_given("http-max-sessions-per-owner")?;
        let is_alone = file.is_none() && oauth.is_none();
        if is_alone && is_chosen && limits.sessions_per_owner < limits.sessions {
            tracing::warn!(
                "http_single_token_owner_cap_below_global: the one token has at most {} of {} sessions",
                limits.sessions_per_owner,
                limits.sessions
            );
        }
        let counts = self.http_auth_rate_limit;
        let counts = variables::given_or_read(counts, "http-auth-rate-limit", variables::boolean)?;
        let counts = counts.unwrap_or(true);
        let mut tokens = fixed.clone();
        if let Some(path) = &file {
            let read = tokens::read_first(path);
            tokens.extend(read.map_err(|wrong| Abort::usage(format!("--http-tokens: {wrong}")))?);
        }
        let file = file.map(|path| TokenFile { path, fixed });
        let access = Access::by_tokens(tokens, file, limits, counts);
        let Some(path) = oauth else { return Ok(access) };
        let issuers = OAuthAccess::read(&path, limits);
        Ok(access.with_issuers(issuers.map_err(|wrong| Abort::usage(format!("--http-oauth: {wrong}")))?))
    }
}

fn address(host: &str) -> Result<IpAddr, Abort> {
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    host.parse().map_err(|_| Abort::usage("HTTP host must be an IP address or localhost"))
}

/// The path with a leading slash.
fn checked_path(path: &str) -> Result<String, Abort> {
    let path = format!("/{}", path.trim_start_matches('/'));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
    match path.chars().all(is_plain) {
        true => Ok(path),
        false => Err(Abort::usage(format!("--http-path: {path:?} is no plain path"))),
    }
}

fn host_name() -> String {
    let name = ptc_base::files::read_text("/proc/sys/kernel/hostname".as_ref()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "ptc".into() } else { name.into() }
}
/// How to give the server a token.
fn make_token() -> String {
    format!("make one with `openssl rand -hex 32` and set {} to it", variables::name("http-auth-token"))
}
