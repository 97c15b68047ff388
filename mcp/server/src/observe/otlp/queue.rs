//! Limits how many OpenTelemetry spans may wait for export to the collector; further ones are dropped, and counted.
//! Written spans are counted as well.

use crate::observe::writer::SinkCounts;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use ptc_base::sync::Locked;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Most waiting spans, unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise. The batch processor has the same limit, but does
/// not say what it drops.
const MOST_WAITING: u64 = 2_048;

/// Counts of spans.
#[derive(Debug)]
pub(super) struct SpanCounts {
    most: u64,
    waiting: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl SpanCounts {
    /// No spans yet, of which so many may wait.
    pub(super) fn new(most: Option<u64>) -> SpanCounts {
        SpanCounts {
            most: most.unwrap_or(MOST_WAITING),
            waiting: AtomicU64::new(0),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            last_error: Mutex::default(),
        }
    }

    /// Counts a span that is about to be queued; false when there is no room, so that it is dropped.
    pub(super) fn enter(&self) -> bool {
        if self.waiting.load(Ordering::Relaxed) >= self.most {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.failed("too many spans wait for the collector".to_owned());
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The counts, as those of other sinks.
    pub(super) fn report(&self) -> SinkCounts {
        SinkCounts {
            name: super::SINK,
            written: self.written.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            last_error: self.last_error.locked().clone(),
        }
    }

    fn failed(&self, error: String) {
        *self.last_error.locked() = Some(error);
    }

    /// Counts the end of a batch.
    fn leave(&self, spans: u64, outcome: &OTelSdkResult) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        match outcome {
            Ok(()) => self.written.fetch_add(spans, Ordering::Relaxed),
            Err(error) => {
                self.failed(error.to_string());
                self.dropped.fetch_add(spans, Ordering::Relaxed)
            }
        };
    }
}

/// An exporter whose batches are counted.
#[derive(Debug)]
pub(super) struct CountedExporter<E> {
    pub(super) exporter: E,
    pub(super) counts: Arc<SpanCounts>,
}

impl<E: SpanExporter> SpanExporter for CountedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let outcome = self.exporter.export(batch).await;
        self.counts.leave(spans, &outcome);
        outcome
    }

    fn shutdown_with_timeout(&self, patience: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(patience)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
