//! Group commit: one sync makes the changes of everybody durable who is waiting for one.
//!
//! Bodies run one after the other, each on its caller's thread. What they change is gathered in
//! the pending batch. One of the callers in it becomes its leader and writes it to disk, while the
//! bodies of the next batch are running already. Everybody waits for the batch with the latest
//! change that he may have seen, and for the body that is running when it is on disk: bodies have
//! to be short.

use std::mem;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::changes::Changes;
use super::failure::Failure;

/// What is on its way to the disk.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pending: Batch,
    committing: Option<Batch>,
}

/// Changes that become durable together, or not at all.
#[derive(Debug, Default)]
struct Batch {
    changes: Arc<Changes>,
    ticket: Arc<Ticket>,
}

/// Where the callers of one batch wait.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    news: Mutex<Option<News>>,
    changed: Condvar,
}

/// What ends the wait.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// One of the callers has to commit the batch. It ends the wait of one only.
    Lead,
    /// The batch is durable, or has failed.
    Over(Result<(), Failure>),
}

impl Queue {
    /// The changes that are not on disk yet, latest first.
    pub(super) fn layers(&self) -> Vec<&Changes> {
        let batches = [Some(&self.pending), self.committing.as_ref()];
        batches.into_iter().flatten().map(|batch| &*batch.changes).collect()
    }

    /// Takes in the changes of a body that has ended, and says where its caller has to wait.
    pub(super) fn join(&mut self, changes: Changes) -> Option<Arc<Ticket>> {
        if !changes.is_empty() {
            let first = self.pending.changes.is_empty();
            Arc::make_mut(&mut self.pending.changes).then(changes);
            if first && self.committing.is_none() {
                self.pending.ticket.tell(News::Lead);
            }
        }
        self.latest().map(|batch| Arc::clone(&batch.ticket))
    }

    /// Closes the pending batch, and hands its changes to its leader.
    pub(super) fn take(&mut self) -> Arc<Changes> {
        let batch = mem::take(&mut self.pending);
        Arc::clone(&self.committing.insert(batch).changes)
    }

    /// Takes note of what became of the batch that was taken.
    pub(super) fn settle(&mut self, outcome: &Result<(), Failure>) {
        let batch = self.committing.take();
        if outcome.is_ok() {
            self.pending.ticket.tell(News::Lead);
        } else {
            // These bodies may have seen what is not there any more.
            mem::take(&mut self.pending).ticket.tell(News::Over(outcome.clone()));
        }
        if let Some(batch) = batch {
            batch.ticket.tell(News::Over(outcome.clone()));
        }
    }

    /// The batch with the latest change.
    fn latest(&self) -> Option<&Batch> {
        let pending = Some(&self.pending).filter(|batch| !batch.changes.is_empty());
        pending.or(self.committing.as_ref())
    }
}

impl Ticket {
    /// Waits for news.
    pub(super) fn wait(&self) -> News {
        let mut news = self.news.lock();
        loop {
            match &*news {
                Some(News::Over(outcome)) => return News::Over(outcome.clone()),
                Some(News::Lead) => {
                    *news = None;
                    return News::Lead;
                }
                None => self.changed.wait(&mut news),
            }
        }
    }

    fn tell(&self, news: News) {
        let one = matches!(news, News::Lead);
        *self.news.lock() = Some(news);
        if one {
            self.changed.notify_one();
        } else {
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::Table;

    #[test]
    fn one_of_a_batch_leads() {
        let mut queue = Queue::default();
        let first = queue.join(change("a")).unwrap();
        let second = queue.join(change("b")).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(matches!(first.wait(), News::Lead));

        queue.take();
        queue.settle(&Ok(()));

        // The second one did not have to lead, nor does he now.
        assert!(matches!(second.wait(), News::Over(Ok(()))));
        assert!(matches!(first.wait(), News::Over(Ok(()))));
    }

    #[test]
    fn one_of_the_next_batch_leads_after_that() {
        let mut queue = Queue::default();
        queue.join(change("a")).unwrap().wait();
        queue.take();
        let next = queue.join(change("b")).unwrap();

        queue.settle(&Ok(()));

        assert!(matches!(next.wait(), News::Lead));
    }

    #[test]
    fn who_changes_nothing_waits_for_the_latest_change() {
        let mut queue = Queue::default();
        assert!(queue.join(Changes::default()).is_none());

        let first = queue.join(change("a")).unwrap();
        assert!(Arc::ptr_eq(&first, &queue.join(Changes::default()).unwrap()));
        queue.take();
        assert!(Arc::ptr_eq(&first, &queue.join(Changes::default()).unwrap()));

        let second = queue.join(change("b")).unwrap();
        assert!(Arc::ptr_eq(&second, &queue.join(Changes::default()).unwrap()));
    }

    #[test]
    fn a_batch_that_fails_takes_the_next_one_with_it() {
        let mut queue = Queue::default();
        let first = queue.join(change("a")).unwrap();
        first.wait();
        queue.take();
        let second = queue.join(change("b")).unwrap();

        queue.settle(&Err(Failure::damaged(io::Error::other("on purpose"))));

        assert!(matches!(first.wait(), News::Over(Err(_))));
        assert!(matches!(second.wait(), News::Over(Err(_))));
        assert!(queue.layers().into_iter().all(Changes::is_empty));
        assert!(matches!(queue.join(change("c")).unwrap().wait(), News::Lead));
    }

    fn change(key: &str) -> Changes {
        let mut changes = Changes::default();
        changes.set(Table::ALL[0], key.as_bytes(), None);
        changes
    }
}
