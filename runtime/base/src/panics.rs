//! Catches panics in code that must not end the thread or task that runs it, such as functions of the application, and
//! extracts their messages.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

/// The text of a panic that was caught.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown")
}

/// Runs work that must not end its thread, and catches its panic. The caller does not use again what the work has
/// changed, so a panic halfway through a change is not seen.
///
/// # Errors
/// The panic, for [`panic_text`].
pub fn caught<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
    catch_unwind(AssertUnwindSafe(work))
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// True while a panic of this thread means that a file is damaged. The caller gets that as an error, so the panic
/// handler prints nothing.
pub fn takes_panics_for_damage() -> bool {
    GUARDED.get()
}

/// Runs work on a file of the embedded database, which panics when pages contradict each other. `None`: it did.
pub fn caught_as_damage<T>(work: impl FnOnce() -> T) -> Option<T> {
    let outer = GUARDED.replace(true);
    let done = caught(work);
    GUARDED.set(outer);
    done.ok()
}

/// A future that catches its own panics, including those of its drop: work of an application must not end the
/// task that it shares.
pub fn contained<F: Future + ?Sized>(work: Pin<Box<F>>) -> Contained<F> {
    Contained(Some(work))
}

/// See [`contained`].
pub struct Contained<F: ?Sized>(Option<Pin<Box<F>>>);

impl<F: ?Sized> Contained<F> {
    fn end(&mut self) {
        let work = self.0.take();
        let _ = caught(|| drop(work));
    }
}

impl<F: Future + ?Sized> Future for Contained<F> {
    type Output = thread::Result<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Polled after its end, it is never ready.
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let polled = match caught(|| work.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        self.end();
        Poll::Ready(polled)
    }
}

impl<F: ?Sized> Drop for Contained<F> {
    fn drop(&mut self) {
        self.end();
    }
}
