//! Spans and metrics in Protocol Buffers are read by the messages that OpenTelemetry publishes.

#![allow(clippy::unwrap_used, reason = "a broken export should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::collector::{Collector, Export, attribute};
use ptc_tests::serve::Server;
use ptc_tests::third_party::python;
use ptc_tests::upstreams::{Upstreams, probe_server};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// What the published messages read in the compressed body of an export.
fn decoded(export: &Export, signal: &str) -> Value {
    let mut command = Command::new(python());
    command.arg(workspace().join("tests/third_party/otlp_decode.py")).arg(signal);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&export.bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{export:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_published_messages_read_what_is_exported() {
    let collector = Collector::start();
    let upstreams = Upstreams::default().add("probe", probe_server(&[]));
    let config = upstreams.write();
    let mut command = ptc(&[&["serve"], &config.flags(&["--otlp", collector.url()])[..]].concat());
    command.env("OTEL_BSP_SCHEDULE_DELAY", "20").env("OTEL_METRIC_EXPORT_INTERVAL", "50");
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf").env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test%20bench");
    let mut server = Server::from_command(command);
    server.run("(tool/call {:server \"probe\" :tool \"echo\" :args {}})");
    assert_eq!(server.end(), Some(0));
    let exports = collector.rest();
    let of = |path: &str| exports.iter().rfind(|export| export.path == path).unwrap();
    let traces = decoded(of("/v1/traces"), "traces");
    let resource = &traces["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "deployment.environment"), Some(&json!("test bench")), "{resource}");
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let kinds: Vec<&Value> = spans.iter().map(|span| &span["kind"]).collect();
    assert_eq!(kinds, ["SPAN_KIND_SERVER", "SPAN_KIND_INTERNAL", "SPAN_KIND_CLIENT"], "{traces:#}");
    assert_eq!(spans[2]["parentSpanId"], spans[1]["spanId"]);
    assert_eq!(attribute(&spans[2], "ptc.upstream"), Some(&json!("probe")));
    let metrics = decoded(of("/v1/metrics"), "metrics");
    let metrics = metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let point = &metrics[1]["histogram"]["dataPoints"][0];
    assert_eq!(
        (&metrics[1]["name"], &point["count"]),
        (&json!("mcp.client.operation.duration"), &json!("1"))
    );
    assert_eq!(attribute(point, "ptc.upstream"), Some(&json!("probe")), "{point}");
}
