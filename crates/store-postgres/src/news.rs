//! A thread that tells listeners of commits.

use std::fmt;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Listener, Table};

use crate::Shared;
use crate::cache::News;
use crate::failure::Failure;
use crate::schema;
use crate::view::told;

/// The functions that are told of commits.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Mutex<Vec<Listener>>,
}

impl Listeners {
    /// Adds a listener. The first one starts the thread, which ends with the store.
    pub(crate) fn add(&self, shared: &Arc<Shared>, listener: Listener, pause: Duration) {
        let mut all = self.all.lock();
        all.push(listener);
        if all.len() == 1 {
            let (known, shared) = (shared.cache.commits(), Arc::downgrade(shared));
            let thread = thread::Builder::new().name("tidings-postgres-news".to_owned());
            // Without the thread, who waits finds out what has changed when the wait is over.
            drop(thread.spawn(move || tell(&shared, known, pause)));
        }
    }

    /// Tells all listeners. Returns `false` if there are none left.
    fn tell(&self, keys: Option<&[(Table, Vec<u8>)]>) -> bool {
        // A listener runs code of the host, which may add another one.
        let mut told = std::mem::take(&mut *self.all.lock());
        told.retain_mut(|listener| listener(keys).is_continue());
        let mut all = self.all.lock();
        told.append(&mut all);
        *all = told;
        !all.is_empty()
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

fn tell(shared: &Weak<Shared>, mut known: u64, pause: Duration) {
    loop {
        thread::sleep(pause);
        let Some(shared) = shared.upgrade() else { return };
        // While the server is away, there is no news.
        let Ok(news) = ask(&shared, known) else { continue };
        let Some(last) = news.last() else { continue };
        let is_whole = news.iter().zip(known + 1..).all(|(news, next)| news.commit == next);
        known = last.commit;
        let keys: Option<Vec<_>> = news.into_iter().map(|news| news.keys).collect();
        let keys = keys.filter(|_| is_whole).map(|keys| keys.concat());
        if !shared.listeners.tell(keys.as_deref()) {
            return;
        }
    }
}

/// The commits after the first `known` ones.
fn ask(shared: &Shared, known: u64) -> Result<Vec<News>, Failure> {
    let client = shared.server.connect()?;
    let known = known.cast_signed();
    let news = shared.server.ask("ask for commits", async move {
        let news = client.prepare_cached(schema::NEWS).await?;
        told(&client.query(&news, &[&known]).await?)
    })?;
    Ok(News::read(&shared.tables, news))
}
