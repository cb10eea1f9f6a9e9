//! Calls of functions of the host, which may panic.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The panic of a function of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panicked;

/// Calls a function of the host, or code that calls such functions. Returns an error if it panics.
pub(crate) fn call<T>(function: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|payload| {
        discard(payload);
        Panicked
    })
}

// Drops the payload of a panic if it is a text. Any other type is the host's, and its destructor may panic as
// well, so that it is leaked.
fn discard(payload: Box<dyn Any + Send>) {
    if !payload.is::<&str>() && !payload.is::<String>() {
        mem::forget(payload);
    }
}
