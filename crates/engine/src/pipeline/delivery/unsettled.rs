//! Results that the store did not take when they were settled, such as those that met a full disk.
//! They are settled before the next claim, so that what was sent is not sent again.

use std::cell::RefCell;
use std::mem;

use parking_lot::ReentrantMutex;

use super::DeliveryReport;
use super::lease::Leased;
use super::settle;
use super::task_result::TaskResult;
use crate::{Engine, Error, Result};

// Results that are kept at most. The tasks of further ones are due again after their leases. The
// calls that are under way when the store fails make few: nothing is claimed meanwhile.
const KEPT: usize = 4_096;

/// Results that wait for the store. A restart loses them, and their tasks are due again after their
/// leases.
// The lock is held while they are settled, so that no other thread claims their tasks meanwhile. Code
// of the host that hears of the commit may call the queue on the same thread.
#[derive(Debug, Default)]
pub(crate) struct Unsettled(ReentrantMutex<RefCell<Vec<(Leased, TaskResult)>>>);

impl Unsettled {
    /// Keeps results that were not stored because of `error`, unless the store fails for good.
    pub(super) fn keep(
        &self,
        error: &Error,
        results: impl IntoIterator<Item = (Leased, TaskResult)>,
    ) {
        if !may_go_on(error) {
            return;
        }
        let kept = self.0.lock();
        let mut kept = kept.borrow_mut();
        let room = KEPT.saturating_sub(kept.len());
        kept.extend(results.into_iter().take(room));
    }

    /// Settles the results that are kept. Those of superseded attempts are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], and then the results are kept if the store may go on.
    pub(crate) fn settle(&self, engine: &Engine, report: &mut DeliveryReport) -> Result<()> {
        let kept = self.0.lock();
        // Code of the host that hears of the commit finds none, and may keep others.
        let mut taken = Taken { results: kept.take(), from: &kept };
        let settled = settle::settle(engine, &mut taken.results, report);
        if settled.as_ref().is_err_and(|error| !may_go_on(error)) {
            taken.results.clear();
        }
        settled
    }
}

// Returns `true` if the store may take results later. A server that refuses a role or a password now does so
// again until an operator mends it, and what has been sent must not be sent again then.
fn may_go_on(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::Store(store::Error::Refused { .. }))
}

/// Results that are being settled. Those that are left at the end are kept, also if the clock of the
/// host panics.
struct Taken<'k> {
    results: Vec<(Leased, TaskResult)>,
    from: &'k RefCell<Vec<(Leased, TaskResult)>>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut kept = self.from.borrow_mut();
        self.results.append(&mut kept);
        self.results.truncate(KEPT);
        *kept = mem::take(&mut self.results);
    }
}

#[cfg(test)]
mod tests {
    use domain::step::Step;
    use domain::subscriber::SubscriberCreate;
    use domain::trigger::Trigger;
    use domain::workflow::WorkflowCreate;
    use store::memory::MemoryStore;

    use super::super::claim;
    use super::*;

    #[test]
    fn kept_results_are_settled_in_parts() {
        let engine = Engine::builder().build(MemoryStore::default());
        let env = engine.organization("acme").unwrap().development().unwrap();
        let mail = WorkflowCreate::new("mail", "Mail").unwrap();
        env.workflows().create(&mail.step(Step::email("Hello", "Hello").unwrap())).unwrap();
        let ada = SubscriberCreate::new("ada").unwrap();
        for _ in 0..600 {
            env.events().trigger(&Trigger::new("mail", ada.clone()).unwrap()).unwrap();
        }
        let claimed = claim::claim_at_once(&engine, 600).unwrap();
        let results: Vec<_> = claimed.leased.into_iter().map(Leased::put_back_last).collect();

        let parts: Vec<_> = settle::parts_of(&results).map(<[_]>::len).collect();
        assert_eq!(parts, [256, 256, 88]);

        let failed = store::Error::Unavailable { backend: "disk", source: "full".into() }.into();
        engine.parts.unsettled.keep(&failed, results);
        engine.parts.unsettled.settle(&engine, &mut DeliveryReport::default()).unwrap();
        assert_eq!(engine.delivery().stats().unwrap().total().waiting, 600);
    }
}
