//! The locks of what the tests run under a scheduler too.

pub(crate) use parking_lot::{Condvar, Mutex};

/// Runs `body` where these locks work: anywhere.
#[cfg(test)]
pub(crate) fn scheduled(body: impl Fn() + Send + Sync + 'static) {
    body();
}
