//! A thread that calls listeners when there are commits.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Listener, Table};

use crate::Shared;
use crate::commit_news::{CommitNews, changed_keys};
use crate::failure::Failure;
use crate::heads::Counts;
use crate::notify::NotifyListener;
use crate::schema;

/// The functions that are called when there are commits.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Mutex<Vec<Listener>>,
    /// Number of listeners that were added.
    added: AtomicU64,
    started: OnceLock<()>,
    /// A commit of this process is in doubt: it may be made, and its callers do not know.
    is_in_doubt: AtomicBool,
}

impl Listeners {
    /// Adds a listener. The first one starts the thread, which ends with the store.
    pub(crate) fn add(&self, shared: &Arc<Shared>, listener: Listener, pause: Duration) {
        self.all.lock().push(listener);
        self.added.fetch_add(1, Ordering::SeqCst);
        self.started.get_or_init(|| {
            let (wake, woken) = mpsc::sync_channel(1);
            shared.server.listen(NotifyListener::new(&shared.schema, wake));
            let (known, shared) = (shared.cache.counts(), Arc::downgrade(shared));
            let thread = thread::Builder::new().name("tidings-postgres-news".to_owned());
            // Without the thread, waiting callers see changes only after the timeouts of their waits.
            drop(thread.spawn(move || run(&shared, known, (pause, woken))));
        });
    }

    /// Notes that a commit is in doubt. Listeners learn soon that anything may have changed.
    pub(crate) fn note_in_doubt(&self) {
        self.is_in_doubt.store(true, Ordering::SeqCst);
    }

    fn len(&self) -> usize {
        self.all.lock().len()
    }

    fn notify(&self, keys: Option<&[(Table, Vec<u8>)]>) {
        // A listener runs code of the host, which may add another one.
        let mut called = std::mem::take(&mut *self.all.lock());
        // One that panics is not called again, and keeps no other one from its news.
        called.retain_mut(|listener| {
            let called = panic::catch_unwind(AssertUnwindSafe(|| listener(keys)));
            called.is_ok_and(|flow| flow.is_continue())
        });
        let mut all = self.all.lock();
        called.append(&mut all);
        *all = called;
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

fn run(shared: &Weak<Shared>, mut known: Counts, (pause, woken): (Duration, Receiver<()>)) {
    loop {
        // Nothing wakes the thread without a connection.
        let is_cut = woken.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected);
        if is_cut && shared.strong_count() > 0 {
            thread::sleep(pause);
        }
        let Some(shared) = shared.upgrade() else { return };
        let added = shared.listeners.added.load(Ordering::SeqCst);
        let listeners = shared.listeners.len();
        if listeners == 0 {
            continue;
        }
        // While the server is away, there is no news.
        let Ok(news) = ask(&shared, &known, listeners) else { continue };
        let is_in_doubt = shared.listeners.is_in_doubt.swap(false, Ordering::SeqCst);
        // One that was added meanwhile may be of another engine, for which the news has no keys.
        let is_new = shared.listeners.added.load(Ordering::SeqCst) != added;
        let keys = follow(&shared, &mut known, &news).filter(|_| !is_in_doubt && !is_new);
        if keys.as_ref().is_none_or(|keys| !keys.is_empty()) {
            shared.listeners.notify(keys.as_deref());
        }
    }
}

/// Follows the news. Returns the keys that have changed, or `None` if they are not known.
fn follow(shared: &Shared, known: &mut Counts, news: &CommitNews) -> Option<Vec<(Table, Vec<u8>)>> {
    if !news.goes_on_from(known) {
        shared.cache.end(known.era, news.start);
    }
    let in_memory = shared.cache.counts();
    if in_memory.era != known.era {
        *known = in_memory;
        return None;
    }
    let mut keys = Some(Vec::new());
    for (head, after) in news.counts.iter().copied() {
        let before = known.get(head);
        // The news has a row for each commit of a head.
        if before == Some(after) {
            continue;
        }
        let more = before.and_then(|before| changed_keys(&news.commits, (head, before, after)));
        keys = keys.zip(more).map(|(mut keys, more)| {
            keys.extend(more);
            keys
        });
        known.set(head, after);
    }
    keys
}

/// The commits behind those that are known. Commits of this store have no keys if it has one listener, whose
/// engine knows of them. Several listeners get the keys, since each engine learns of the commits of the others.
fn ask(shared: &Shared, known: &Counts, listeners: usize) -> Result<CommitNews, Failure> {
    let (since, start) = (known.to_row(), known.era.start);
    // An empty id is that of no store.
    let own = if listeners == 1 { shared.id().to_vec() } else { Vec::new() };
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
    CommitNews::read(&shared.tables, &rows)
}
