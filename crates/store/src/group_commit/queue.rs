//! The batches of a group commit, and the calls that wait for them.

use std::mem;
use std::sync::Arc;

use super::super::sync::{Condvar, Mutex};
use crate::overlay::Changes;

/// The changes on their way to the base. `F` is the failure of a commit.
#[derive(Debug)]
pub(super) struct Queue<F> {
    pending: Batch<F>,
    committing: Option<Batch<F>>,
}

/// Changes that become durable together, or not at all.
#[derive(Debug)]
struct Batch<F> {
    changes: Arc<Changes>,
    ticket: Arc<Ticket<F>>,
}

/// The place where the callers of one batch wait.
#[derive(Debug)]
pub(super) struct Ticket<F> {
    news: Mutex<Option<News<F>>>,
    changed: Condvar,
}

/// The end of a wait.
#[derive(Clone, Debug)]
pub(super) enum News<F> {
    /// One of the callers has to commit the batch. It ends the wait of one caller.
    Lead,
    /// The batch is durable, or has failed.
    Over(Result<(), F>),
}

impl<F: Clone> Queue<F> {
    /// The changes that the base does not have yet, latest first.
    pub(super) fn layers(&self) -> Vec<&Changes> {
        let batches = [Some(&self.pending), self.committing.as_ref()];
        batches.into_iter().flatten().map(|batch| &*batch.changes).collect()
    }

    /// Adds the changes of a body that has ended. Returns the ticket that its caller waits for, or
    /// `None` if there is nothing to wait for.
    pub(super) fn join(&mut self, changes: Changes) -> Option<Arc<Ticket<F>>> {
        if !changes.is_empty() {
            let first = self.pending.changes.is_empty();
            Arc::make_mut(&mut self.pending.changes).then(changes);
            if first && self.committing.is_none() {
                self.pending.ticket.tell(News::Lead);
            }
        }
        self.latest().map(|batch| Arc::clone(&batch.ticket))
    }

    /// Closes the pending batch. Returns its changes, which its leader commits.
    pub(super) fn take(&mut self) -> Arc<Changes> {
        let batch = mem::take(&mut self.pending);
        Arc::clone(&self.committing.insert(batch).changes)
    }

    /// Notes the outcome of the batch that was taken.
    pub(super) fn settle(&mut self, outcome: &Result<(), F>) {
        let batch = self.committing.take();
        if outcome.is_ok() {
            self.pending.ticket.tell(News::Lead);
        } else {
            // The bodies of this batch may have seen changes that were lost.
            mem::take(&mut self.pending).ticket.tell(News::Over(outcome.clone()));
        }
        if let Some(batch) = batch {
            batch.ticket.tell(News::Over(outcome.clone()));
        }
    }

    /// The batch with the latest change.
    fn latest(&self) -> Option<&Batch<F>> {
        let pending = Some(&self.pending).filter(|batch| !batch.changes.is_empty());
        pending.or(self.committing.as_ref())
    }
}

impl<F: Clone> Ticket<F> {
    /// Waits for news.
    pub(super) fn wait(&self) -> News<F> {
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

    fn tell(&self, news: News<F>) {
        let one = matches!(news, News::Lead);
        *self.news.lock() = Some(news);
        if one {
            self.changed.notify_one();
        } else {
            self.changed.notify_all();
        }
    }
}

impl<F> Default for Queue<F> {
    fn default() -> Self {
        Self { pending: Batch::default(), committing: None }
    }
}

impl<F> Default for Batch<F> {
    fn default() -> Self {
        Self { changes: Arc::default(), ticket: Arc::default() }
    }
}

impl<F> Default for Ticket<F> {
    fn default() -> Self {
        Self { news: Mutex::default(), changed: Condvar::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sync::scheduled;
    use super::*;
    use crate::Table;

    #[test]
    fn one_of_a_batch_leads() {
        scheduled(|| {
            let mut queue = Queue::<&str>::default();
            let first = queue.join(change("a")).unwrap();
            let second = queue.join(change("b")).unwrap();
            assert!(Arc::ptr_eq(&first, &second));
            assert!(matches!(first.wait(), News::Lead));

            queue.take();
            queue.settle(&Ok(()));

            // The second caller does not lead.
            assert!(matches!(second.wait(), News::Over(Ok(()))));
            assert!(matches!(first.wait(), News::Over(Ok(()))));
        });
    }

    #[test]
    fn one_of_the_next_batch_leads_after_that() {
        scheduled(|| {
            let mut queue = Queue::<&str>::default();
            queue.join(change("a")).unwrap().wait();
            queue.take();
            let next = queue.join(change("b")).unwrap();

            queue.settle(&Ok(()));

            assert!(matches!(next.wait(), News::Lead));
        });
    }

    #[test]
    fn a_call_without_changes_waits_for_the_latest_change() {
        scheduled(|| {
            let mut queue = Queue::<&str>::default();
            assert!(queue.join(Changes::default()).is_none());

            let first = queue.join(change("a")).unwrap();
            assert!(Arc::ptr_eq(&first, &queue.join(Changes::default()).unwrap()));
            queue.take();
            assert!(Arc::ptr_eq(&first, &queue.join(Changes::default()).unwrap()));

            let second = queue.join(change("b")).unwrap();
            assert!(Arc::ptr_eq(&second, &queue.join(Changes::default()).unwrap()));
        });
    }

    #[test]
    fn a_batch_that_fails_takes_the_next_one_with_it() {
        scheduled(|| {
            let mut queue = Queue::<&str>::default();
            let first = queue.join(change("a")).unwrap();
            first.wait();
            queue.take();
            let second = queue.join(change("b")).unwrap();

            queue.settle(&Err("on purpose"));

            assert!(matches!(first.wait(), News::Over(Err(_))));
            assert!(matches!(second.wait(), News::Over(Err(_))));
            assert!(queue.layers().into_iter().all(Changes::is_empty));
            assert!(matches!(queue.join(change("c")).unwrap().wait(), News::Lead));
        });
    }

    fn change(key: &str) -> Changes {
        let mut changes = Changes::default();
        changes.set(Table::ALL[0], key.as_bytes(), None);
        changes
    }
}
