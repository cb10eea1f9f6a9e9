//! Watches: futures that wait for a commit which changes the messages of a subscriber, or deletes the
//! subscriber.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;
use store::{Change, ChangeKind, Table};

use crate::host;

/// The futures that wait, by the keys of the counters of their subscribers, and by those of the
/// subscribers. Clones of an engine share them.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    // Number of watches. A commit without watches takes no lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    // A waker is code of the host, which may panic or come back when it is cloned.
    wakers: BTreeMap<(Vec<u8>, u64), Arc<Waker>>,
}

/// A future that waits. It is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    watches: Arc<Watches>,
    place: (Vec<u8>, u64),
}

impl Watches {
    /// Wakes `waker` after each commit from now on that changes what is counted under `key`, or that
    /// removes the subscriber under `key`.
    pub(crate) fn watch(self: &Arc<Self>, key: &[u8], waker: &Waker) -> Watch {
        let waker = Arc::new(waker.clone());
        // Before the caller reads the store: a commit that sees no watch is seen by that read.
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state.lock();
        let place = (key.to_vec(), state.next);
        state.next = state.next.wrapping_add(1);
        state.wakers.insert(place.clone(), waker);
        Watch { watches: Arc::clone(self), place }
    }

    /// Wakes the futures that wait for these changes, which were committed.
    pub(crate) fn wake(&self, changes: &[Change]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let recounts = changes.iter().filter_map(|change| change.recount.as_ref());
        let counted = recounts.map(|recount| recount.key().as_bytes());
        let is_removed = |change: &&Change| {
            change.table == Table::Subscribers && change.kind == ChangeKind::Removed
        };
        let removed = changes.iter().filter(is_removed).map(|change| change.key.as_slice());
        let mut keys: Vec<&[u8]> = counted.chain(removed).collect();
        keys.dedup();
        for key in keys {
            self.wake_those_of(key);
        }
    }

    /// Wakes the futures that wait for what is counted under `key`, or for the subscriber there.
    pub(crate) fn wake_those_of(&self, key: &[u8]) {
        let state = self.state.lock();
        let places = (key.to_vec(), 0)..=(key.to_vec(), u64::MAX);
        let wakers = state.wakers.range(places).map(|(_, waker)| Arc::clone(waker)).collect();
        drop(state);
        wake_each(wakers);
    }

    /// Wakes all futures that wait.
    pub(crate) fn wake_all(&self) {
        let wakers = self.state.lock().wakers.values().cloned().collect();
        wake_each(wakers);
    }
}

/// A waker is code of the host: it may come back, and may panic. The commit is done then, and the
/// others have to know of it.
fn wake_each(wakers: Vec<Arc<Waker>>) {
    for waker in wakers {
        _ = host::call(|| {
            waker.wake_by_ref();
            drop(waker);
        });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.watches.state.lock();
        let waker = state.wakers.remove(&self.place);
        // A waker is code of the host, and may be the last that holds another watch.
        drop(state);
        drop(waker);
        self.watches.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;
    use std::task::{Context, Poll, Wake};
    use std::thread;
    use std::time::Duration;

    use store::Record;

    use super::*;
    use crate::Engine;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A task that holds another watch.
    struct Holder(Watch);

    impl Wake for Holder {
        fn wake(self: Arc<Self>) {
            assert_eq!(self.0.place.0, b"other");
        }
    }

    #[test]
    fn a_waker_that_is_dropped_with_its_watch_may_hold_another_one() {
        let (ended, is_ended) = mpsc::channel();
        thread::spawn(move || {
            let watches = Arc::new(Watches::default());
            let other = watches.watch(b"other", Waker::noop());
            let watch = watches.watch(b"one", &Waker::from(Arc::new(Holder(other))));
            drop(watch);
            ended.send(watches.state.lock().wakers.len())
        });
        assert_eq!(is_ended.recv_timeout(Duration::from_secs(60)), Ok(0));
    }

    #[test]
    fn a_future_is_woken_by_its_commits_and_leaves_nothing_when_it_is_dropped() {
        let engine = Engine::in_memory();
        let env = engine.organization("acme").unwrap().development().unwrap();
        for name in ["ada", "bob"] {
            let create = serde_json::from_value(serde_json::json!({ "subscriberId": name }));
            env.subscribers().create(&create.unwrap()).unwrap();
        }
        let workflow = serde_json::json!({
            "workflowId": "hi", "name": "Hi",
            "steps": [{ "type": "in_app", "template": { "body": "Hi" } }],
        });
        env.workflows().create(&serde_json::from_value(workflow).unwrap()).unwrap();
        let trigger = |to: &str| {
            let trigger = serde_json::json!({ "name": "hi", "to": to });
            env.events().trigger(&serde_json::from_value(trigger).unwrap()).unwrap();
        };
        let inbox = env.inbox("ada").unwrap();
        let cursor = inbox.cursor().unwrap();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let watches = || engine.parts.watches.state.lock().wakers.len();
        {
            let mut changed = pin!(inbox.changed(&cursor));
            for _ in 0..3 {
                assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                // One of the messages, and one of the subscriber.
                assert_eq!(watches(), 2);
            }
            trigger("bob");
            assert_eq!(count.0.load(Ordering::SeqCst), 0, "of another inbox");
            trigger("ada");
            assert_eq!(count.0.load(Ordering::SeqCst), 1);
            let polled = changed.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(matches!(polled, Poll::Ready(Ok(()))));
            assert_eq!(watches(), 0, "it is done");
        }
        let cursor = inbox.cursor().unwrap();
        {
            let mut dropped = Box::pin(inbox.changed(&cursor));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(watches(), 2);
        }
        assert_eq!(watches(), 0);
        assert_eq!(engine.parts.watches.count.load(Ordering::SeqCst), 0);
    }

    /// A subscriber without messages has no counters, and leaves with its environment.
    #[test]
    fn a_future_is_woken_when_another_process_has_removed_the_subscriber() {
        let engine = Engine::in_memory();
        let env = engine.organization("acme").unwrap().development().unwrap();
        let create = serde_json::from_value(serde_json::json!({ "subscriberId": "ada" }));
        let ada = env.subscribers().create(&create.unwrap()).unwrap();
        let inbox = env.inbox("ada").unwrap();
        let cursor = inbox.cursor().unwrap();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut changed = pin!(inbox.changed(&cursor));
        assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());

        engine.parts.follow_foreign_commit(Some(&[ada.key().into_parts()]));

        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }
}
