//! Extends `Mutex` and `RwLock` with methods that ignore poisoning, so that their data stays usable after a panic.
//!
//! Data under these locks is changed in steps that leave it whole, so a poisoned lock says nothing about it.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Takes a mutex.
pub trait Locked<T: ?Sized> {
    /// Waits for the mutex and takes it.
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T: ?Sized> Locked<T> for Mutex<T> {
    #[inline]
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a lock with many readers or one writer.
pub trait RwLocked<T: ?Sized> {
    /// Waits until there is no writer, and takes the lock for reading.
    fn read_locked(&self) -> RwLockReadGuard<'_, T>;
    /// Waits until the lock is free, and takes it for writing.
    fn write_locked(&self) -> RwLockWriteGuard<'_, T>;
}

impl<T: ?Sized> RwLocked<T> for RwLock<T> {
    #[inline]
    fn read_locked(&self) -> RwLockReadGuard<'_, T> {
        self.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn write_locked(&self) -> RwLockWriteGuard<'_, T> {
        self.write().unwrap_or_else(PoisonError::into_inner)
    }
}
