//! `--otlp`: spans and metrics of calls reach an OpenTelemetry collector, and never hold up a call.

use super::{ask, call};
use ptc_tests::binary::ptc;
use ptc_tests::collector::{Collector, attribute};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{Upstreams, probe_server, stdio};
use serde_json::{Value, json};
use std::net::TcpListener;

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A server that exports soon, with these flags and variables.
fn server(flags: &[&str], variables: &[(&str, &str)]) -> Server {
    let mut command = ptc(&[&["serve"], flags].concat());
    command.env("OTEL_BSP_SCHEDULE_DELAY", "20").env("OTEL_METRIC_EXPORT_INTERVAL", "50");
    command.envs(variables.iter().copied());
    Server::from_command(command)
}

fn eval(server: &mut Server, program: &str, meta: Value) -> Value {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program }, "_meta": meta });
    let id = server.begin("tools/call", params);
    // A notification that the list of tools has changed may come first.
    loop {
        let message = server.receive();
        if message["id"] == id {
            return message["result"].clone();
        }
    }
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}: {spans:#?}"))
}

/// Two calls that succeed, of which each upstream says the trace that it got, and one that fails.
const PROGRAM: &str = r#"
    (let [told (pmap (fn [_] (:value (tool/call {:server "probe" :tool "echo" :args {:meta true}}))) [1 2])]
      (tool/call {:server "gone" :tool "echo" :args {}})
      told)"#;

#[test]
fn a_call_is_a_tree_of_spans_that_upstreams_continue() {
    let collector = Collector::start();
    let upstreams =
        Upstreams::default().add("probe", probe_server(&[])).add("gone", stdio("/no/such/command", &[]));
    let config = upstreams.write();
    let mut server = server(&config.flags(&["--otlp", collector.url(), "--startup", "lenient"]), &[]);
    let answer = eval(&mut server, PROGRAM, json!({ "traceparent": CALLER, "tracestate": "a=b" }));
    let spans = collector.spans(5);
    assert_eq!(spans.len(), 5, "{spans:#?}");
    assert!(spans.iter().all(|span| span["traceId"] == CALLER[3..35]));
    let outer = named(&spans, "tools/call lisp_eval");
    assert_eq!((&outer["parentSpanId"], &outer["kind"]), (&json!(CALLER[36..52]), &json!(2)));
    let run = named(&spans, "ptc.run");
    assert_eq!((&run["parentSpanId"], &run["kind"]), (&outer["spanId"], &json!(1)));
    assert!(attribute(run, "ptc.fuel").unwrap().as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(attribute(run, "ptc.program.sha256").unwrap().as_str().unwrap().len(), 64);
    let calls: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 3).collect();
    assert!(calls.iter().all(|call| call["parentSpanId"] == run["spanId"]), "{calls:#?}");
    // Each upstream call carried the id of its own span.
    let text = answer.to_string();
    let told = calls.iter().filter(|call| {
        let parent = format!("00-{}-{}-01", &CALLER[3..35], call["spanId"].as_str().unwrap());
        text.contains(&parent)
    });
    assert_eq!(told.count(), 2, "{text}");
    assert!(text.contains("a=b"), "the state goes on: {text}");
    let failed = calls.iter().find(|call| attribute(call, "ptc.upstream") == Some(&json!("gone"))).unwrap();
    assert_eq!(failed["status"]["code"], 2, "{failed}");
    assert_eq!(attribute(failed, "error.type").unwrap(), "upstream_unavailable");
    let metrics = collector.next("/v1/metrics").body.to_string();
    for name in ["mcp.server.operation.duration", "mcp.client.operation.duration", "ptc.fuel"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
}

#[test]
fn a_trace_begins_here_where_no_caller_has_one() {
    let collector = Collector::start();
    let mut server = server(&["--otlp", collector.url()], &[("OTEL_SERVICE_NAME", "mine")]);
    for _ in 0..2 {
        eval(&mut server, "(/ 1 0)", json!({}));
    }
    let mut exports = vec![collector.next("/v1/traces").body];
    let of = |exports: &[Value]| -> Vec<Value> {
        let scopes = exports.iter().map(|body| &body["resourceSpans"][0]["scopeSpans"][0]["spans"]);
        scopes.flat_map(|spans| spans.as_array().unwrap().clone()).collect()
    };
    while of(&exports).len() < 4 {
        exports.push(collector.next("/v1/traces").body);
    }
    assert!(exports[0]["resourceSpans"][0]["resource"].to_string().contains("mine"), "{exports:?}");
    let spans = of(&exports);
    let outer: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 2).collect();
    assert_ne!(outer[0]["traceId"], outer[1]["traceId"]);
    assert!(outer.iter().all(|span| span["parentSpanId"].as_str().unwrap_or_default().is_empty()));
    assert_eq!(attribute(outer[0], "error.type").unwrap(), "runtime_error");
    assert_eq!(outer[0]["status"]["code"], 2);
}

#[test]
fn a_caller_that_does_not_record_its_trace_gets_no_spans() {
    let collector = Collector::start();
    let config = Upstreams::default().add("probe", probe_server(&[])).write();
    let mut server = server(&config.flags(&["--otlp", collector.url()]), &[]);
    let not_recorded = format!("{}00", &CALLER[..53]);
    let told = eval(
        &mut server,
        "(:value (tool/call {:server \"probe\" :tool \"echo\" :args {:meta true}}))",
        json!({ "traceparent": not_recorded }),
    );
    assert!(told.to_string().contains("-00"), "its flag goes on: {told}");
    eval(&mut server, "(+ 1 2)", json!({ "traceparent": CALLER }));
    let spans = collector.spans(2);
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let ratio = [("OTEL_TRACES_SAMPLER", "always_off")];
    let mut silent = self::server(&["--otlp", collector.url()], &ratio);
    eval(&mut silent, "(+ 1 2)", json!({ "traceparent": CALLER }));
    drop(silent);
    assert!(collector.rest().iter().all(|export| export.path == "/v1/metrics"));
}

#[test]
fn keys_of_the_collector_and_payloads_stay_here() {
    let collector = Collector::start();
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector-key-0123456789")];
    let more = ["--otlp", collector.url(), "--debug-tool"];
    let mut server = server(&more, &headers);
    let answer = eval(&mut server, "(str \"collector-key-\" \"0123456789\" \" planted-payload\")", json!({}));
    assert!(!answer.to_string().contains("collector-key-0123456789"), "{answer}");
    let export = collector.next("/v1/traces");
    assert!(export.head.iter().any(|line| line.contains("Bearer collector-key-0123456789")), "{export:?}");
    let text = export.body.to_string();
    assert!(!text.contains("planted-payload") && !text.contains("collector-key"), "{text}");
}

#[test]
fn a_collector_that_is_down_or_hangs_delays_no_call_and_drops_are_counted() {
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = format!("http://{}", hangs.local_addr().unwrap());
    for url in ["http://127.0.0.1:9", &hanging] {
        let small = [("OTEL_BSP_MAX_QUEUE_SIZE", "8"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")];
        let mut server = server(&["--otlp", url, "--debug-tool"], &small);
        for _ in 0..50 {
            eval(&mut server, "(+ 1 2)", json!({}));
        }
        // The records of those calls are on their way; each look is a call, too.
        ptc_tests::processes::eventually("drops are counted", || {
            call(&mut server, "lisp_eval", json!({ "program": "1" }));
            let stats = ask(&mut server, json!({ "op": "stats" })).to_string();
            stats.contains("\"otlp\"") && !stats.contains("\"dropped\":0")
        });
    }
}

#[test]
fn a_collector_that_is_busy_gets_the_same_spans_again() {
    let collector = Collector::busy(2);
    let mut server = server(&["--otlp", collector.url(), "--debug-tool"], &[]);
    eval(&mut server, "(+ 1 2)", json!({}));
    let bodies = [(); 3].map(|()| collector.next("/v1/traces").body);
    assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2], "{bodies:#?}");
    ptc_tests::processes::eventually("spans are counted once", || {
        let stats = ask(&mut server, json!({ "op": "stats" })).to_string();
        stats.contains("\"otlp\"") && !stats.contains("\"written\":0") && stats.contains("\"dropped\":0")
    });
}

#[test]
fn metrics_count_from_the_start_of_the_process() {
    let collector = Collector::start();
    let mut server = server(&["--otlp", collector.url()], &[]);
    eval(&mut server, "(+ 1 2)", json!({}));
    eval(&mut server, "(/ 1 0)", json!({}));
    assert_eq!(server.end(), Some(0));
    let exports = collector.rest();
    let last = exports.iter().rfind(|export| export.path == "/v1/metrics").unwrap();
    let scope = &last.body["resourceMetrics"][0]["scopeMetrics"][0];
    assert_eq!(scope["scope"]["name"], "ptc");
    let metric = |name: &str| {
        let metrics = scope["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}: {scope:#}"))
    };
    let points = metric("mcp.server.operation.duration")["histogram"]["dataPoints"].as_array().unwrap();
    assert_eq!(points.len(), 2, "with and without a failure: {points:#?}");
    for point in points {
        assert_eq!(point["count"], "1");
        let buckets = point["bucketCounts"].as_array().unwrap();
        assert_eq!(buckets.len(), point["explicitBounds"].as_array().unwrap().len() + 1);
        assert_eq!(buckets.iter().filter(|count| *count == "1").count(), 1);
        assert_eq!((&point["min"], &point["max"]), (&point["sum"], &point["sum"]));
    }
    assert!(points.iter().any(|point| attribute(point, "error.type") == Some(&json!("runtime_error"))));
    let fuel = &metric("ptc.fuel")["sum"];
    assert_eq!((&fuel["isMonotonic"], &fuel["aggregationTemporality"]), (&json!(true), &json!(2)));
    assert!(fuel["dataPoints"][0]["asInt"].as_str().unwrap().parse::<u64>().unwrap() > 0);
}

#[test]
fn what_is_no_collector_or_sampler_is_refused_at_the_start() {
    for (flags, variable, want) in [
        (&["--otlp", "localhost"][..], ("A", "b"), "http://127.0.0.1:4318"),
        (&["--otlp", "http://127.0.0.1:9"], ("OTEL_TRACES_SAMPLER", "xray"), "parentbased_always_on"),
        (&["--otlp", "http://127.0.0.1:9"], ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"), "gzip"),
        (&["--otlp", "http://127.0.0.1:9"], ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=c"), "header"),
    ] {
        let mut command = ptc(&[&["serve"], flags].concat());
        let output = command.env(variable.0, variable.1).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(want), "{said}");
    }
}
