//! Sources of the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::time::Timestamp;
use store::Store;

/// A source of the time. The engine asks for it while it holds no transaction open.
///
/// A panic of a clock ends the call that has asked, and is no failure of the store. If a delivery has
/// called providers by then, the results that are not stored yet are lost: those messages are sent again,
/// with the same idempotency keys.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time at this moment.
    fn now(&self) -> Timestamp;

    // The clock, if it does not go by itself: a simulation sets it, and no thread can wait for a
    // time.
    #[doc(hidden)]
    fn as_manual(&self) -> Option<&ManualClock> {
        None
    }
}

// Each function is passed on, because the trait has defaults.
macro_rules! clock_behind {
    ($($pointer:ident),+) => {$(
        #[deny(clippy::missing_trait_methods)]
        impl<C: Clock + ?Sized> Clock for $pointer<C> {
            fn now(&self) -> Timestamp {
                (**self).now()
            }

            fn as_manual(&self) -> Option<&ManualClock> {
                (**self).as_manual()
            }
        }
    )+};
}

clock_behind!(Arc, Box);

/// The clock of a store that several processes share, or the operating system's.
#[derive(Debug)]
pub(crate) struct StoreClock(pub(crate) Arc<dyn Store>);

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        timestamp(self.0.now().unwrap_or_else(SystemTime::now))
    }
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that only `set` and `advance` change. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        timestamp(SystemTime::now())
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    time.max(UNIX_EPOCH).into()
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn as_manual(&self) -> Option<&ManualClock> {
        Some(self)
    }
}

impl ManualClock {
    /// A clock that shows `time`.
    pub fn at(time: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(time.as_millis())))
    }

    /// Moves the clock to `time`.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.as_millis(), Ordering::Relaxed);
    }

    /// Moves the clock forward by `span`.
    pub fn advance(&self, span: Duration) {
        let later = |millis| Some(Timestamp::from_millis(millis).after(span).as_millis());
        // The function always returns a time, so that this always succeeds.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}
