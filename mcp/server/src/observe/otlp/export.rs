//! Sends batches of spans as they fill, and metrics at intervals, to the collector, on a thread of its own: a slow
//! collector delays nothing else. What finds no room in the queue of spans is dropped and counted.

use super::message::{self, Message};
use super::meters::Meters;
use super::settings::{Schedule, SignalSettings};
use crate::observe::writer::SinkCounts;
use flate2::Compression;
use flate2::write::GzEncoder;
use ptc_base::net::{ClientOptions, HttpClient, Method, Payload};
use ptc_base::sync::Locked;
use std::io::{self, Write as _};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};

/// Size limit of a collector's answer.
const ANSWER_BYTES: usize = 64 << 10;

/// How often a request is repeated that the collector could not take, and the first pause before that.
const REPETITIONS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is exported where, and when.
pub(super) struct ExportSettings {
    pub(super) resource: Message,
    pub(super) traces: SignalSettings,
    pub(super) metrics: SignalSettings,
    pub(super) schedule: Schedule,
}

/// Counts of spans.
#[derive(Debug, Default)]
pub(super) struct SpanCounts(Mutex<SinkCounts>);

impl SpanCounts {
    /// The counts, as those of other sinks.
    pub(super) fn report(&self) -> SinkCounts {
        SinkCounts { name: super::SINK, ..self.0.locked().clone() }
    }

    fn written(&self, spans: u64) {
        self.0.locked().written += spans;
    }

    fn dropped(&self, spans: u64, error: String) {
        let mut counts = self.0.locked();
        counts.dropped += spans;
        counts.last_error = Some(error);
    }
}

/// The thread that exports.
pub(super) struct Exporter {
    /// `None` once it is closed.
    spans: Option<mpsc::Sender<Message>>,
    counts: Arc<SpanCounts>,
    ended: blocking::Receiver<()>,
}

impl Exporter {
    /// Starts the thread.
    ///
    /// # Errors
    /// The settings of the network cannot be used, or the thread cannot be started.
    pub(super) fn start(
        settings: ExportSettings,
        meters: Arc<Mutex<Meters>>,
        counts: Arc<SpanCounts>,
    ) -> io::Result<Exporter> {
        let http = HttpClient::new(&ClientOptions::default()).map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (spans, waiting) = mpsc::channel(settings.schedule.most_waiting);
        // It ends with the thread.
        let (end, ended) = blocking::channel();
        let theirs = counts.clone();
        std::thread::Builder::new().name("ptc-otlp".into()).spawn(move || {
            let work = Work { http, settings, counts: theirs };
            runtime.block_on(work.run(waiting, &meters));
            drop(end);
        })?;
        Ok(Exporter { spans: Some(spans), counts, ended })
    }

    /// Queues a span if there is room.
    pub(super) fn send(&self, span: Message) {
        let sent = self.spans.as_ref().map(|spans| spans.try_send(span));
        if !matches!(sent, Some(Ok(()))) {
            self.counts.dropped(1, "too many spans wait for the collector".to_owned());
        }
    }

    /// Exports what waits, and the last values; false if that takes longer than `patience`.
    pub(super) fn close(&mut self, patience: Duration) -> bool {
        self.spans = None;
        self.ended.recv_timeout(patience) != Err(blocking::RecvTimeoutError::Timeout)
    }
}

/// What the thread works with.
struct Work {
    http: HttpClient,
    settings: ExportSettings,
    counts: Arc<SpanCounts>,
}

impl Work {
    async fn run(&self, waiting: mpsc::Receiver<Message>, meters: &Mutex<Meters>) {
        let (end, ended) = oneshot::channel();
        tokio::join!(self.export_spans(waiting, end), self.export_metrics(meters, ended));
    }

    /// Exports spans until their senders are gone. `end` is dropped with that.
    async fn export_spans(&self, mut waiting: mpsc::Receiver<Message>, end: oneshot::Sender<()>) {
        let Schedule { most_spans, delay, .. } = self.settings.schedule;
        while let Some(first) = waiting.recv().await {
            let mut batch = vec![first];
            let until = Instant::now() + delay;
            while batch.len() < most_spans
                && let Ok(Some(span)) = timeout_at(until, waiting.recv()).await
            {
                batch.push(span);
            }
            let count = batch.len() as u64;
            let names = ["resourceSpans", "scopeSpans", "spans"];
            let request = message::request(names, &self.settings.resource, batch);
            match self.send(&self.settings.traces, &request).await {
                Ok(()) => self.counts.written(count),
                Err(error) => self.counts.dropped(count, error),
            }
        }
        drop(end);
    }

    /// Exports metrics at intervals, and once more at the end.
    async fn export_metrics(&self, meters: &Mutex<Meters>, mut ended: oneshot::Receiver<()>) {
        let mut ticks = interval(self.settings.schedule.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is due at once.
        ticks.tick().await;
        loop {
            let is_last = tokio::select! {
                _ = ticks.tick() => false,
                _ = &mut ended => true,
            };
            let request = meters.locked().request(&self.settings.resource);
            if let Some(request) = request
                && let Err(error) = self.send(&self.settings.metrics, &request).await
            {
                tracing::debug!(%error, "metrics were not exported");
            }
            if is_last {
                return;
            }
        }
    }

    /// Sends one request, and again while the collector cannot take it, within the time limit of the signal.
    async fn send(&self, signal: &SignalSettings, message: &Message) -> Result<(), String> {
        let mut body = message.encoded(signal.encoding);
        if signal.is_compressed {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&body).map_err(|error| error.to_string())?;
            body = encoder.finish().map_err(|error| error.to_string())?;
        }
        let payload = Payload::new([body.into()]);
        let mut last = None;
        let tried = timeout(signal.patience, async {
            for repetition in 0..=REPETITIONS {
                let (error, pause) = match self.post(signal, payload.clone()).await {
                    Ok(()) => return Ok(()),
                    Err(Refusal { error, pause: None }) => return Err(error),
                    Err(Refusal { error, pause: Some(pause) }) => (error, pause),
                };
                last = Some(error);
                if repetition < REPETITIONS {
                    let jitter = super::random_u64().unwrap_or_default() % 100;
                    sleep(pause.max(FIRST_PAUSE * 2_u32.pow(repetition)) + Duration::from_millis(jitter))
                        .await;
                }
            }
            Err(last.take().unwrap_or_default())
        })
        .await;
        tried.unwrap_or_else(|_| {
            Err(last.unwrap_or_else(|| format!("no answer within {} ms", signal.patience.as_millis())))
        })
    }

    async fn post(&self, signal: &SignalSettings, payload: Payload) -> Result<(), Refusal> {
        let sent = self.http.send(Method::POST, &signal.url, &signal.headers, Some(payload)).await;
        let mut answer =
            sent.map_err(|error| Refusal { error: error.to_string(), pause: Some(Duration::ZERO) })?;
        if answer.status.is_success() {
            // A body that was read leaves the connection to the next request.
            let _ = answer.body.read(ANSWER_BYTES).await;
            return Ok(());
        }
        // By the specification of OTLP only these may be repeated.
        let is_busy = matches!(answer.status.as_u16(), 429 | 502 | 503 | 504);
        let asked = answer.header("retry-after").and_then(|text| text.trim().parse().ok());
        let pause = Duration::from_secs(asked.unwrap_or_default()).min(LONGEST_PAUSE);
        let error = format!("the collector answers with status {}", answer.status);
        Err(Refusal { error, pause: is_busy.then_some(pause) })
    }
}

/// Why a request has no effect.
struct Refusal {
    error: String,
    /// How long to wait at least before it is repeated; `None` if that would not help.
    pause: Option<Duration>,
}
