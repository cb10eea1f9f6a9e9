//! A thread that tells listeners of commits.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Listener, Table};

use crate::Shared;
use crate::calls::Ears;
use crate::failure::Failure;
use crate::heads::Counts;
use crate::schema;
use crate::told::{Told, changed_keys};

/// The functions that are told of commits.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Mutex<Vec<Listener>>,
    started: OnceLock<()>,
    /// A commit of this process may be made, and its callers do not know.
    is_in_doubt: AtomicBool,
}

impl Listeners {
    /// Adds a listener. The first one starts the thread, which ends with the store.
    pub(crate) fn add(&self, shared: &Arc<Shared>, listener: Listener, pause: Duration) {
        self.all.lock().push(listener);
        self.started.get_or_init(|| {
            let (wake, woken) = mpsc::sync_channel(1);
            shared.server.listen(Ears::new(&shared.schema, wake));
            let (known, shared) = (shared.cache.counts(), Arc::downgrade(shared));
            let thread = thread::Builder::new().name("tidings-postgres-news".to_owned());
            // Without the thread, waiting callers see changes only after the timeouts of their waits.
            drop(thread.spawn(move || tell(&shared, known, (pause, woken))));
        });
    }

    /// Tells listeners soon that anything may have changed.
    pub(crate) fn doubt(&self) {
        self.is_in_doubt.store(true, Ordering::SeqCst);
    }

    fn are_none(&self) -> bool {
        self.all.lock().is_empty()
    }

    fn tell(&self, keys: Option<&[(Table, Vec<u8>)]>) {
        // A listener runs code of the host, which may add another one.
        let mut told = std::mem::take(&mut *self.all.lock());
        told.retain_mut(|listener| listener(keys).is_continue());
        let mut all = self.all.lock();
        told.append(&mut all);
        *all = told;
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

fn tell(shared: &Weak<Shared>, mut known: Counts, (pause, woken): (Duration, Receiver<()>)) {
    loop {
        if woken.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            thread::sleep(pause);
        }
        let Some(shared) = shared.upgrade() else { return };
        if shared.listeners.are_none() {
            continue;
        }
        // While the server is away, there is no news.
        let Ok(told) = ask(&shared, &known) else { continue };
        let is_in_doubt = shared.listeners.is_in_doubt.swap(false, Ordering::SeqCst);
        let keys = follow(&shared, &mut known, &told).filter(|_| !is_in_doubt);
        if keys.as_ref().is_none_or(|keys| !keys.is_empty()) {
            shared.listeners.tell(keys.as_deref());
        }
    }
}

/// Follows what the server has told. Returns the keys that have changed, or `None` if they are not known.
fn follow(shared: &Shared, known: &mut Counts, told: &Told) -> Option<Vec<(Table, Vec<u8>)>> {
    if !told.goes_on_from(known) {
        shared.cache.end(known.era, told.start);
    }
    let in_memory = shared.cache.counts();
    if in_memory.era != known.era {
        *known = in_memory;
        return None;
    }
    let mut keys = Some(Vec::new());
    for (head, after) in told.counts.iter().copied() {
        let before = known.get(head);
        // A head is told with each of its commits.
        if before == Some(after) {
            continue;
        }
        let more = before.and_then(|before| changed_keys(&told.news, (head, before, after)));
        keys = keys.zip(more).map(|(mut keys, more)| {
            keys.extend(more);
            keys
        });
        known.set(head, after);
    }
    keys
}

/// The commits behind those that are known. Commits of this store have no keys: what they mean for its
/// engines is done when they return, and comes too late here.
fn ask(shared: &Shared, known: &Counts) -> Result<Told, Failure> {
    let (since, start) = (known.to_row(), known.era.start);
    let own = shared.id().to_vec();
    let is_due = shared.clock.is_due();
    let asked = shared.server.begin_aside("ask for commits", move |client| async move {
        let news = client.prepare_cached(schema::NEWS_OF_OTHERS).await?;
        let rows = client.query(&news, &[&since, &start, &own]).await?;
        Ok((rows, if is_due { Some(schema::clock(&client).await?) } else { None }))
    });
    let (_, (rows, reading)) = asked?;
    if let Some(reading) = reading {
        shared.clock.learn(reading);
    }
    Told::read(&shared.tables, &rows)
}
