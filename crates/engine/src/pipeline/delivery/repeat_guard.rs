//! Guard against a store that does not keep what claims write.

use std::collections::VecDeque;

use domain::ids::TaskId;
use domain::task::Work;

use super::claim::{self, Claimed};
use crate::{Engine, Result};

/// Number of claims in a row that may begin with the same turn. A turn whose jobs have changed since it was
/// planned is due again as it was. If more claims begin with it, the store does not keep what they write.
const REPEATS: u32 = 8;

/// Number of claims whose starts are known: lanes take turns, so that a claim may start as one long before it.
const STARTS: usize = 256;

/// Finds claims that start as earlier ones. It has the starts of the last claims, each with the number of
/// repetitions.
#[derive(Debug, Default)]
pub(crate) struct RepeatGuard(VecDeque<(ClaimStart, u32)>);

/// The first entry of the queue that a claim has read, and a task that is not the same in the next
/// claim, if the store keeps what is written: the first that calls the host application, if any,
/// and the first of all otherwise.
#[derive(Debug, PartialEq)]
struct ClaimStart {
    entry: Vec<u8>,
    task: Option<(TaskId, u32, Work)>,
}

impl RepeatGuard {
    /// Notes what a claim starts with.
    ///
    /// # Errors
    ///
    /// [`store::Error::Corrupt`], if the store does not keep what claims write.
    pub(super) fn note(&mut self, engine: &Engine, claimed: &Claimed) -> Result<()> {
        let leased = &claimed.leased;
        let calling = leased.iter().find(|leased| leased.task.work.calls_the_host());
        let task = calling.or(leased.first());
        let start = claimed.first.clone().map(|entry| ClaimStart {
            entry,
            task: task.map(|leased| (leased.task.id, leased.attempt(), leased.task.work.clone())),
        });
        let Some(start) = start else { return Ok(()) };
        let before = self.0.iter().position(|(before, _)| *before == start);
        let before = before.and_then(|place| self.0.remove(place));
        let (is_same, repeats) = before.map_or((false, 0), |(_, repeats)| (true, repeats + 1));
        self.0.truncate(STARTS - 1);
        self.0.push_front((start, repeats));
        let allowed = match calling {
            // A call that was made is not made again, unless its task was put back meanwhile.
            Some(leased) if is_same && !claim::is_kept(engine, leased)? => 0,
            Some(_) | None => REPEATS,
        };
        if repeats > allowed { Err(claim::corrupt("a claimed task is still due")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use domain::dead_letter::DeadLetterQuery;

    use super::super::claim::tests::mailing;
    use super::super::claim_size::ClaimSize;
    use super::super::lease::Leased;
    use super::super::{DeliveryReport, settle};
    use super::*;
    use crate::SendError;

    #[test]
    fn a_claim_that_is_not_worked_on_is_given_back() {
        let (engine, recorder) = mailing();
        let (queue, mut guard) = (engine.delivery(), RepeatGuard::default());
        let size = ClaimSize::first();
        let mut report = DeliveryReport::default();
        let claimed = claim::claim(&engine, size).unwrap();
        for _ in 0..=REPEATS {
            guard.note(&engine, &claimed).unwrap();
        }
        let mut unused = claimed.leased.into_iter().map(Leased::put_back_last).collect();
        settle::settle(&engine, &mut unused, &mut report).unwrap();

        queue.run_batch(&mut guard, size, &mut report).unwrap_err();

        let total = queue.stats().unwrap().total();
        assert_eq!((total.waiting, total.leased), (1, 0));
        assert_eq!(queue.run_due(1).unwrap().sent, 1);
        assert_eq!(recorder.sent()[0].attempt(), 1);
    }

    /// A worker keeps its state for as long as it runs. The time stands still meanwhile.
    #[test]
    fn a_message_that_is_sent_again_and_again_is_no_claim_that_was_lost() {
        let (engine, recorder) = mailing();
        let env = engine.organization("acme").unwrap().development().unwrap();

        let (queue, mut guard) = (engine.delivery(), RepeatGuard::default());
        let size = ClaimSize::first();
        for redriven in 0..4 {
            recorder.refuse_next(SendError::permanent("no"));
            let mut report = DeliveryReport::default();
            while queue.run_batch(&mut guard, size, &mut report).unwrap().is_some() {}
            assert_eq!(report.failures.len(), 1, "redriven {redriven} times");
            let letters = env.dead_letters().list(&DeadLetterQuery::default()).unwrap();
            env.dead_letters().redrive(letters.data[0].id).unwrap();
        }
    }
}
