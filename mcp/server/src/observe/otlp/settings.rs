//! Reads the standard variables of OpenTelemetry exporters
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter>, <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables>).

use super::message::{Encoding, Message, attribute};
use super::{OtlpOptions, variable};
use percent_encoding::percent_decode_str;
use ptc_base::net::{Headers, Url};
use ptc_base::secrets::{Credential, SecretRegistry};
use std::str::FromStr;
use std::time::Duration;

/// Where a collector listens if nothing says so.
const ENDPOINT: &str = "http://localhost:4318";

/// Time limit of one request with its repetitions.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most spans that may wait, whatever the variable says.
const MOST_WAITING: usize = 1 << 20;

/// What is exported.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// The value of `OTEL_EXPORTER_OTLP_TRACES_<name>` or that for metrics, or else of `OTEL_EXPORTER_OTLP_<name>`.
    fn variable(self, name: &str) -> Option<String> {
        let own = match self {
            Signal::Traces => "TRACES",
            Signal::Metrics => "METRICS",
        };
        variable(&format!("OTEL_EXPORTER_OTLP_{own}_{name}"))
            .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    /// The address: a flag wins over the variable of the signal, which is a whole address.
    fn url(self, options: &OtlpOptions) -> Result<Url, String> {
        let (own, path) = match self {
            Signal::Traces => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "traces"),
            Signal::Metrics => ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "metrics"),
        };
        let text = match (&options.endpoint, variable(own)) {
            (None, Some(whole)) => whole,
            (endpoint, _) => {
                let shared = endpoint.clone().or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
                let base = shared.unwrap_or_else(|| ENDPOINT.to_owned());
                format!("{}/v1/{path}", base.trim_end_matches('/'))
            }
        };
        // The text may have a password, so no message has it.
        let wrong =
            |why: &str| format!("the address of the collector {why}; write it as {ENDPOINT}/v1/{path}");
        let url = Url::parse(text.trim()).map_err(|error| wrong(&format!("is none: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("has a user or a password, which belong in OTEL_EXPORTER_OTLP_HEADERS"));
        }
        match url.scheme() {
            "http" | "https" => Ok(url),
            _ => Err(wrong("begins with neither http:// nor https://")),
        }
    }
}

/// Where and how one signal is exported.
#[derive(Clone)]
pub(super) struct SignalSettings {
    pub(super) url: Url,
    /// Headers of a request, with the media type.
    pub(super) headers: Headers,
    pub(super) encoding: Encoding,
    pub(super) is_compressed: bool,
    /// Time limit of one request with its repetitions.
    pub(super) patience: Duration,
}

impl SignalSettings {
    /// The settings by the options and the variables.
    ///
    /// # Errors
    /// A variable that cannot be read.
    pub(super) fn read(signal: Signal, options: &OtlpOptions) -> Result<SignalSettings, String> {
        let (encoding, media_type) = match signal.variable("PROTOCOL").as_deref().map(str::trim) {
            Some("http/protobuf") => (Encoding::Protobuf, "application/x-protobuf"),
            _ => (Encoding::Json, "application/json"),
        };
        let is_compressed = match signal.variable("COMPRESSION").as_deref().map(str::trim) {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(other) => {
                return Err(format!("OTEL_EXPORTER_OTLP_COMPRESSION is {other}, not gzip or none"));
            }
        };
        let mut headers = Headers::default();
        let unusable = |name: &str, error| format!("the header {name} for the collector {error}");
        headers.plain("content-type", media_type).map_err(|error| unusable("content-type", error))?;
        if is_compressed {
            headers.plain("content-encoding", "gzip").map_err(|error| unusable("content-encoding", error))?;
        }
        for (name, value) in pairs(&signal.variable("HEADERS").unwrap_or_default()) {
            headers.secret(&name, &Credential::composed(value)).map_err(|error| unusable(&name, error))?;
        }
        let patience = signal.variable("TIMEOUT").and_then(|text| text.trim().parse().ok());
        Ok(SignalSettings {
            url: signal.url(options)?,
            headers,
            encoding,
            is_compressed,
            patience: patience.map_or(PATIENCE, Duration::from_millis),
        })
    }
}

/// When batches of spans and metrics are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Most spans that wait.
    pub(super) most_waiting: usize,
    /// Most spans in one request.
    pub(super) most_spans: usize,
    /// How long a span may wait for others.
    pub(super) delay: Duration,
    /// Time between two exports of metrics.
    pub(super) interval: Duration,
}

impl Schedule {
    /// The schedule by the variables.
    pub(super) fn read() -> Schedule {
        let most_waiting = number("OTEL_BSP_MAX_QUEUE_SIZE").unwrap_or(2_048).clamp(1, MOST_WAITING);
        Schedule {
            most_waiting,
            most_spans: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(512).clamp(1, most_waiting),
            delay: Duration::from_millis(number("OTEL_BSP_SCHEDULE_DELAY").unwrap_or(5_000)),
            interval: Duration::from_millis(number("OTEL_METRIC_EXPORT_INTERVAL").unwrap_or(60_000).max(1)),
        }
    }
}

fn number<N: FromStr>(name: &str) -> Option<N> {
    variable(name)?.trim().parse().ok()
}

/// The service (`Resource`).
pub(super) fn resource() -> Message {
    let mut attributes = pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
    let mut default = |name: &str, value: &str| {
        if !attributes.iter().any(|(other, _)| other == name) {
            attributes.push((name.to_owned(), value.to_owned()));
        }
    };
    default("service.name", "ptc");
    default("service.version", env!("CARGO_PKG_VERSION"));
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        attributes
            .iter_mut()
            .filter(|(other, _)| other == "service.name")
            .for_each(|(_, is)| is.clone_from(&name));
    }
    let attributes = attributes.iter().map(|(name, value)| attribute(name, value.as_str())).collect();
    Message::default().messages(1, "attributes", attributes)
}

/// Headers may hold the key of a collector: makes their values secrets.
pub(super) fn register_headers(secrets: &SecretRegistry) {
    for name in ["HEADERS", "TRACES_HEADERS", "METRICS_HEADERS"] {
        let text = variable(&format!("OTEL_EXPORTER_OTLP_{name}")).unwrap_or_default();
        for (_, value) in pairs(&text) {
            let _ = secrets.register(&value);
            // Of `Bearer KEY` the key alone is a secret, too.
            let _ = secrets.register(value.rsplit(' ').next().unwrap_or(&value));
        }
    }
}

/// Names and values of `name=value,name=value`. Values are percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = |value: &str| percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
    pairs.map(|(name, value)| (name.trim().to_owned(), decoded(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_percent_encoded_and_what_is_no_pair_is_left_out() {
        let read = pairs("authorization=Bearer%20a%3Db, x = %zz%4,alone,=,é=%C3%A9+");
        let read: Vec<(&str, &str)> = read.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(read, [("authorization", "Bearer a=b"), ("x", "%zz%4"), ("", ""), ("é", "é+")]);
    }
}
