//! Work of a run on its way to the I/O runtime.
//!
//! A program with a thousand calls hands out a thousand pieces of work within microseconds. A task for each would cost more
//! than most of them, so pieces leave together in a *batch*, and what comes of them comes back together. A batch knows its
//! pieces by bits of a word: which have to be polled, which nobody waits for any more. Calls of functions of the application
//! are pieces that lie in the batch as they are, and share a timer.

use super::{CallId, Reply, ReplySink};
use crate::broker::DirectCall;
use crate::run::RunId;
use futures_util::task::AtomicWaker;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::time::Sleep;

/// Most pieces in one batch: few enough that the threads of the I/O runtime share what a program hands out.
const MOST: u32 = u32::BITS;

/// The bit of the waker that all pieces have until they have been polled twice.
const SHARED: u64 = 1 << MOST;

/// One piece.
pub(super) enum Departure {
    Work(Pin<Box<dyn Future<Output = Reply> + Send>>),
    Call(DirectCall),
}

/// A batch, as its task and those who wait for it know it.
#[derive(Default)]
struct PieceBits {
    /// Bits of the wakers that were woken.
    woken: AtomicU64,
    /// Bits of the pieces that nobody waits for any more.
    stopped: AtomicU32,
    /// Bits of the pieces that are over.
    over: AtomicU32,
    task: AtomicWaker,
}

impl PieceBits {
    fn set(&self, bit: u64) {
        self.woken.fetch_or(bit, Ordering::AcqRel);
        self.task.wake();
    }
}

impl Wake for PieceBits {
    fn wake(self: Arc<PieceBits>) {
        self.set(SHARED);
    }

    fn wake_by_ref(self: &Arc<PieceBits>) {
        self.set(SHARED);
    }
}

/// Wakes one piece.
struct PieceWaker {
    batch: Arc<PieceBits>,
    bit: u64,
}

impl Wake for PieceWaker {
    fn wake(self: Arc<PieceWaker>) {
        self.batch.set(self.bit);
    }

    fn wake_by_ref(self: &Arc<PieceWaker>) {
        self.batch.set(self.bit);
    }
}

/// Work under way. Dropping it stops the work.
pub struct Errand {
    batch: Arc<PieceBits>,
    bit: u32,
}

impl Drop for Errand {
    fn drop(&mut self) {
        if self.batch.over.load(Ordering::Acquire) & self.bit == 0 {
            self.batch.stopped.fetch_or(self.bit, Ordering::AcqRel);
            self.batch.task.wake();
        }
    }
}

/// What a run has handed out in this turn and is not on its way yet.
pub(crate) struct Departures {
    io: Handle,
    mailbox: Arc<dyn ReplySink>,
    run: RunId,
    waiting: RefCell<Leaving>,
}

#[derive(Default)]
struct Leaving {
    batch: Arc<PieceBits>,
    pieces: Vec<Piece>,
}

/// A piece until it is over.
struct Piece {
    call: CallId,
    departure: Option<Departure>,
    /// Its own, once it has been polled a second time.
    waker: Option<Waker>,
}

impl Departures {
    pub(crate) fn new(io: Handle, mailbox: Arc<dyn ReplySink>, run: RunId) -> Departures {
        Departures { io, mailbox, run, waiting: RefCell::default() }
    }

    pub(super) fn add(&self, call: CallId, departure: Departure) -> Errand {
        let mut waiting = self.waiting.borrow_mut();
        let bit = 1 << waiting.pieces.len();
        waiting.pieces.push(Piece { call, departure: Some(departure), waker: None });
        let errand = Errand { batch: waiting.batch.clone(), bit };
        if waiting.pieces.len() == MOST as usize {
            drop(waiting);
            self.leave();
            // There will be as many again.
            self.waiting.borrow_mut().pieces.reserve_exact(MOST as usize);
        }
        errand
    }

    /// Sends off whatever waits. Asked for at the end of each turn, wherever the run was suspended.
    pub(crate) fn leave(&self) {
        if self.waiting.borrow().pieces.is_empty() {
            return;
        }
        let Leaving { batch, pieces } = self.waiting.take();
        let left = u32::MAX >> (MOST as usize - pieces.len());
        self.io.spawn(BatchTask {
            mailbox: self.mailbox.clone(),
            run: self.run,
            shared: Waker::from(batch.clone()),
            batch,
            pieces,
            left,
            sharing: left,
            begun: false,
            timer: None,
        });
    }
}

/// Works a batch off.
struct BatchTask {
    mailbox: Arc<dyn ReplySink>,
    run: RunId,
    batch: Arc<PieceBits>,
    /// The waker of all pieces that are polled for the first time: most are over, or woken together, before they need one
    /// of their own.
    shared: Waker,
    pieces: Vec<Piece>,
    /// Bits of those that are not over.
    left: u32,
    /// Bits of those that have the shared waker.
    sharing: u32,
    begun: bool,
    /// When the first of the calls is out of time.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The places of the bits of a word.
fn places(bits: u32) -> impl Iterator<Item = usize> {
    (0..MOST as usize).filter(move |place| bits & (1 << place) != 0)
}

impl BatchTask {
    /// Drops what nobody waits for any more.
    fn drop_stopped(&mut self) {
        let stopped = self.batch.stopped.load(Ordering::Acquire) & self.left;
        for place in places(stopped) {
            let departure = self.pieces[place].departure.take();
            // It may be work of an application, which may panic at that.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(departure)));
        }
        self.left &= !stopped;
    }

    /// Polls a piece; what came of it, or that nothing ever will.
    fn poll_piece(&mut self, place: usize) -> Poll<Option<Reply>> {
        let bit = 1_u32 << place;
        let piece = &mut self.pieces[place];
        let waker = if !self.begun {
            &self.shared
        } else {
            self.sharing &= !bit;
            piece.waker.get_or_insert_with(|| {
                Waker::from(Arc::new(PieceWaker { batch: self.batch.clone(), bit: u64::from(bit) }))
            })
        };
        let cx = &mut Context::from_waker(waker);
        match &mut piece.departure {
            Some(Departure::Call(call)) => call.poll(cx).map(|answer| Some(Reply::Answer(answer))),
            Some(Departure::Work(work)) => {
                match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                    Ok(polled) => polled.map(Some),
                    // What has met a defect has no reply.
                    Err(_) => Poll::Ready(None),
                }
            }
            None => Poll::Ready(None),
        }
    }

    /// Ends the calls that are out of time, and waits for the next that will be.
    fn time_out(&mut self, cx: &mut Context<'_>, replies: &mut Vec<(CallId, Reply)>) {
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_pending()
        {
            return;
        }
        let (now, had_timer) = (Instant::now(), self.timer.take().is_some());
        let mut next: Option<Instant> = None;
        for place in places(self.left) {
            let piece = &mut self.pieces[place];
            let Some(Departure::Call(call)) = &mut piece.departure else { continue };
            if had_timer && call.until() <= now {
                let answer = call.time_out();
                replies.push((piece.call, Reply::Answer(answer)));
                self.end(place);
            } else {
                next = Some(next.map_or(call.until(), |next| next.min(call.until())));
            }
        }
        if let Some(next) = next {
            let mut timer = Box::pin(tokio::time::sleep_until(next.into()));
            if timer.as_mut().poll(cx).is_ready() {
                // It is for the next turn of this task.
                cx.waker().wake_by_ref();
            }
            self.timer = Some(timer);
        }
    }

    fn end(&mut self, place: usize) {
        let departure = self.pieces[place].departure.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(departure)));
        self.left &= !(1 << place);
    }
}

impl Future for BatchTask {
    type Output = ();

    fn poll(self: Pin<&mut BatchTask>, cx: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        task.batch.task.register(cx.waker());
        task.drop_stopped();
        let woken = task.batch.woken.swap(0, Ordering::AcqRel);
        let mut due = woken as u32;
        if !task.begun || woken & SHARED != 0 {
            due |= task.sharing;
        }
        due &= task.left;
        let mut replies = Vec::with_capacity(due.count_ones() as usize);
        for place in places(due) {
            if let Poll::Ready(reply) = task.poll_piece(place) {
                replies.extend(reply.map(|reply| (task.pieces[place].call, reply)));
                task.end(place);
            }
        }
        task.begun = true;
        task.time_out(cx, &mut replies);
        let all = u32::MAX >> (MOST as usize - task.pieces.len());
        task.batch.over.store(all & !task.left, Ordering::Release);
        if !replies.is_empty() {
            task.mailbox.deliver(task.run, replies);
        }
        if task.left == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}
