//! `ptc batch --farm URL`: distributes the input lines of a batch over any number of processes, through a database, and
//! collects the answers.
//!
//! Without another flag lines are put in. `--work` takes lines until all of them have an answer, `--collect` writes the
//! answers in the order of the input, `--delete` removes all. Each of these can be stopped and started again.

use super::{BatchArgs, MAX_LINE_BYTES, evaluated, line, unreadable};
use crate::cli::cores;
use crate::cli::runs::state::StateLocation;
use indicatif::ProgressBar;
use ptc_base::store::{FarmJob, JobProgress, NumberedLine, StoreError};
use ptc_calls::options::RunOptions;
use ptc_server::answer::outcome::OutcomeJson;
use ptc_server::console::progress;
use ptc_server::console::{Abort, Exit};
use ptc_server::redact::{self, Form, shapes};
use ptc_server::server::lines;
use ptc_server::server::mailbox::Mailbox;
use ptc_server::server::output::Output;
use ptc_server::tools::lisp_eval::Evaluator;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval, sleep};

/// Flags of `ptc batch --farm`.
#[derive(Debug, clap::Args)]
pub(super) struct FarmFlags {
    /// Work with other processes: a database has the lines. Alone it puts the input in
    #[arg(long, value_name = "URL", requires = "job")]
    farm: Option<String>,
    /// Which lines of the database
    #[arg(long, value_name = "NAME", requires = "farm")]
    job: Option<String>,
    /// Run programs of the job until all lines have an answer
    #[arg(long, requires = "farm")]
    work: bool,
    /// Write the answers in the order of the input, as they come
    #[arg(long, requires = "farm", conflicts_with = "work")]
    pub(super) collect: bool,
    /// Remove the job, its lines and its answers
    #[arg(long, requires = "farm", conflicts_with_all = ["work", "collect"])]
    delete: bool,
}

/// Lines in one statement.
const CHUNK: usize = 1_000;
/// Bytes of lines in one statement.
const CHUNK_BYTES: usize = 4 << 20;
/// Lines per core that a worker takes at once.
const TAKEN_PER_CORE: usize = 32;
/// How long a line stays with a worker that has died.
const LEASE: Duration = Duration::from_secs(60);
/// Pause before the next look at a job that others work on.
const PAUSE: Duration = Duration::from_millis(500);
/// How often answers are written again when the database is away.
const TRIES: usize = 20;
/// Longest time that answers wait to be written together.
const GATHERED: Duration = Duration::from_millis(50);

fn refused(error: StoreError) -> Abort {
    Abort::usage(format!("--farm: {error}"))
}

impl FarmFlags {
    /// True if the lines are in a database.
    pub(super) fn is_given(&self) -> bool {
        self.farm.is_some()
    }
}

/// Does what the flags say.
pub(super) async fn run(args: BatchArgs) -> Result<Exit, Abort> {
    let FarmFlags { farm, job, work, collect, delete } = &args.farm;
    let (Some(url), Some(name)) = (farm, job) else {
        return Err(Abort::usage("--farm URL and --job NAME belong together"));
    };
    if !matches!(StateLocation::new(url), Ok(StateLocation::Database(_))) {
        return Err(Abort::usage("--farm is the address of a database: postgres://USER@HOST/DATABASE"));
    }
    let job = FarmJob::open(url, name).await.map_err(refused)?;
    match (work, collect, delete) {
        (true, ..) => work_on(&job, args).await?,
        (_, true, _) => collected(&job).await?,
        (.., true) => job.delete().await.map_err(refused)?,
        _ => put(&job).await?,
    }
    Ok(Exit::Ok)
}

/// Puts the lines of the input in. Empty lines are left out, as without a farm.
async fn put(job: &FarmJob) -> Result<(), Abort> {
    let (mut input, end) = lines::spawn_reader(std::io::stdin(), MAX_LINE_BYTES)?;
    let (mut first, mut chunk, mut bytes) = (0, Vec::new(), 0);
    while let Some(batch) = input.recv().await {
        let Some(text) = batch.into_bytes() else {
            return Err(Abort::usage(format!("a line is longer than {MAX_LINE_BYTES} bytes")));
        };
        for line in lines::split_ends(&text).filter_map(|(line, _)| line::content(line)) {
            bytes += line.len();
            chunk.push(line.to_vec());
            if chunk.len() == CHUNK || bytes > CHUNK_BYTES {
                job.put(first, &chunk).await.map_err(refused)?;
                first += chunk.len() as u64;
                (chunk, bytes) = (Vec::new(), 0);
            }
        }
    }
    end.result().map_err(unreadable)?;
    job.put(first, &chunk).await.map_err(refused)?;
    job.close(first + chunk.len() as u64).await.map_err(refused)
}

/// True when all lines are in and have an answer.
///
/// # Errors
/// There is no such job.
fn is_done(progress: JobProgress) -> Result<bool, StoreError> {
    let JobProgress { lines, answered, is_whole } = progress;
    if lines == 0 && !is_whole {
        return Err(StoreError::Unavailable("there is no such job: put its lines in first".to_owned()));
    }
    Ok(is_whole && answered == lines)
}

fn show(bar: &ProgressBar, JobProgress { lines, answered, .. }: JobProgress) {
    bar.set_length(lines);
    bar.set_position(answered);
}

/// Writes the answers in order, as they come.
async fn collected(job: &FarmJob) -> Result<(), Abort> {
    let output = Output::spawn(redact::stdout(Form::Json(&shapes::REPORT)))?;
    let (bar, mut written) = (progress::counted(), 0);
    loop {
        let progress = job.progress().await.map_err(refused)?;
        show(&bar, progress);
        loop {
            let answers = job.answers(written, CHUNK).await.map_err(refused)?;
            if answers.is_empty() {
                break;
            }
            written += answers.len() as u64;
            output.send(&mut answers.concat());
            while !output.has_room() && !output.is_closed() {
                output.progress().await;
            }
        }
        let is_done = is_done(progress).map_err(refused)?;
        if (is_done && written >= progress.lines) || output.is_closed() {
            break;
        }
        sleep(PAUSE).await;
    }
    bar.finish_and_clear();
    Ok(output.finish().await?)
}

/// Takes lines and answers them until all have an answer.
async fn work_on(job: &FarmJob, args: BatchArgs) -> Result<(), Abort> {
    let (booted, options) = evaluated(args).await?;
    let worker = Worker {
        job,
        name: format!("{}-{:016x}", std::process::id(), getrandom::u64().unwrap_or_default()),
        evaluator: &*booted.runtime,
        options,
        ended: Arc::default(),
        running: HashSet::new(),
        bar: progress::counted(),
    };
    let done = worker.work().await;
    booted.runtime.shutdown().await;
    done.map_err(refused)
}

struct Worker<'w> {
    job: &'w FarmJob,
    name: String,
    evaluator: &'w dyn Evaluator,
    options: RunOptions,
    ended: Arc<Mailbox<(usize, Vec<u8>)>>,
    /// Numbers of the lines that it has.
    running: HashSet<u64>,
    bar: ProgressBar,
}

impl Worker<'_> {
    async fn work(mut self) -> Result<(), StoreError> {
        let mut renewals = interval(LEASE / 3);
        let window = TAKEN_PER_CORE * cores();
        loop {
            if self.running.len() <= window / 2 {
                let taken = self.job.take(&self.name, window - self.running.len(), LEASE).await?;
                let is_idle = taken.is_empty() && self.running.is_empty();
                taken.into_iter().for_each(|taken| self.begin(taken));
                let progress = self.job.progress().await?;
                show(&self.bar, progress);
                let is_done = is_done(progress)?;
                if is_idle {
                    if is_done {
                        self.bar.finish_and_clear();
                        return Ok(());
                    }
                    // Other workers have the rest, or have died with it; or more lines come.
                    sleep(PAUSE).await;
                    continue;
                }
            }
            tokio::select! {
                () = self.ended.arrival(), if !self.running.is_empty() => self.answer().await?,
                _ = renewals.tick() => self.job.renew(&self.name, LEASE).await?,
            }
        }
    }

    /// Starts the program of a line.
    fn begin(&mut self, (number, text): NumberedLine) {
        self.running.insert(number);
        // Numbers of lines are those of slots.
        let slot = usize::try_from(number).unwrap_or(usize::MAX);
        let (id, request) = line::read(&text, self.options.limits.max_context_bytes);
        match request {
            Err(message) => self.refuse(id, slot, &message),
            Ok((program, context)) => {
                let watcher = super::LineWatcher::new(id, slot, &self.ended);
                let options = RunOptions { context: context.map(str::to_owned), ..self.options.clone() };
                drop(self.evaluator.submit(program.into_owned(), options, Box::new(watcher)));
            }
        }
    }

    fn refuse(&self, id: &RawValue, slot: usize, message: &str) {
        let mut answer = Vec::new();
        super::write(&OutcomeJson::refused(id, message), &mut answer);
        self.ended.push((slot, answer));
    }

    /// Writes the answers that there are, those of the next moments with them.
    async fn answer(&mut self) -> Result<(), StoreError> {
        let mut answers: Vec<NumberedLine> = Vec::new();
        let until = Instant::now() + GATHERED;
        loop {
            answers.extend(self.ended.take().into_iter().map(|(slot, answer)| (slot as u64, answer)));
            if answers.len() >= self.running.len()
                || tokio::time::timeout_at(until, self.ended.arrival()).await.is_err()
            {
                break;
            }
        }
        for (number, answer) in &mut answers {
            self.running.remove(number);
            // What leaves the process has no secrets in it.
            *answer = redact::clean(std::mem::take(answer), Form::Json(&shapes::REPORT)).into_bytes();
        }
        answers.sort_unstable_by_key(|(number, _)| *number);
        // What a program has computed is worth more than one try.
        for _ in 0..TRIES {
            if self.job.answer(&self.name, &answers).await.is_ok() {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        self.job.answer(&self.name, &answers).await
    }
}
