//! A process that dies of the first message that it sends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tidings::store::{ReadBody, Store, WriteBody};
use tidings::{Delivery, Provider, ProviderReceipt, SendError};

use crate::world::Shared;

/// The store and the provider of such a process. The provider shows the message to `watch`.
pub fn mortal(
    store: Shared,
    watch: impl Fn(&Delivery) + Send + Sync + 'static,
) -> (impl Store, impl Provider) {
    let dead = Arc::new(AtomicBool::new(false));
    let provider = Dying { dead: Arc::clone(&dead), watch: Box::new(watch) };
    (Mortal { store, dead }, provider)
}

// A store that is out of reach once its process is dead.
#[derive(Debug)]
struct Mortal {
    store: Shared,
    dead: Arc<AtomicBool>,
}

impl Mortal {
    fn reach(&self) -> tidings::store::Result<&dyn Store> {
        if self.dead.load(Relaxed) {
            let source = "the process is dead".into();
            return Err(tidings::store::Error::Backend {
                backend: "mortal",
                action: "go on",
                source,
            });
        }
        Ok(&self.store)
    }
}

impl Store for Mortal {
    fn read(&self, body: &mut ReadBody<'_>) -> tidings::store::Result<()> {
        self.reach()?.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> tidings::store::Result<()> {
        self.reach()?.write(body)
    }
}

struct Dying {
    dead: Arc<AtomicBool>,
    watch: Box<dyn Fn(&Delivery) + Send + Sync>,
}

impl fmt::Debug for Dying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dying")
    }
}

impl Provider for Dying {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        (self.watch)(delivery);
        self.dead.store(true, Relaxed);
        Ok(ProviderReceipt::default())
    }
}
