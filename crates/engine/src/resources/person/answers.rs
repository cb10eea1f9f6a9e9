//! Stored answers that are about a person.

use domain::idempotency::{CallOutcome, StoredAnswer};
use domain::person::Erasure;
use store::{ReadRecords, Referent, Step, WriteRecords, if_readable, layout};

use super::{AT_A_TIME, Eraser};
use crate::Result;
use crate::tx::View;

impl Eraser<'_, '_> {
    /// Removes stored answers that are about the person.
    pub(super) fn answers(
        &mut self,
        after: Vec<u8>,
        erased: &mut Erasure,
    ) -> Result<Option<Vec<u8>>> {
        let all = layout::stored_answers(self.tx.environment_id()).range();
        let (rows, after) = self.rows::<StoredAnswer>(all, after)?;
        for answer in &rows {
            self.answer(answer, erased)?;
        }
        Ok(after)
    }

    /// Removes answers that this process has stored since the erasure has begun, whatever the clock
    /// has shown.
    pub(super) fn answered_here(&mut self, seen: &mut usize, erased: &mut Erasure) -> Result<Step> {
        let found = self.person.answers_since.behind(*seen, AT_A_TIME);
        for key in &found {
            let key = layout::stored_answer(self.tx.environment_id(), key);
            // An answer that cannot be read is about nobody that is known.
            if let Some(answer) = if_readable(self.tx.find::<StoredAnswer>(&key))?.flatten() {
                self.answer(&answer, erased)?;
            }
        }
        *seen += found.len();
        self.left = self.left.saturating_sub(found.len());
        Ok(Step::of(found.len() == AT_A_TIME))
    }

    /// Removes answers to calls that have begun since the erasure has.
    pub(super) fn answered(&mut self, after: &mut Vec<u8>, erased: &mut Erasure) -> Result<Step> {
        let since = layout::answers_from(self.tx.environment_id(), self.person.since);
        let rest = since.resumed(after);
        let found = store::index_entries(self.tx, &rest, AT_A_TIME, layout::answer_of)?;
        for entry in &found {
            if let Referent::Record(answer) = &entry.referent {
                self.answer(answer, erased)?;
            }
        }
        self.left = self.left.saturating_sub(found.len());
        let Some(last) = found.last().filter(|_| found.len() == AT_A_TIME) else {
            return Ok(Step::Done(()));
        };
        after.clone_from(&last.key);
        Ok(Step::More(()))
    }

    fn answer(&mut self, answer: &StoredAnswer, erased: &mut Erasure) -> Result<()> {
        let is_about = match &answer.outcome {
            // A call goes on from it, until it expires.
            CallOutcome::Begun | CallOutcome::BegunOn(_) | CallOutcome::BegunAs(_) => {
                answer.has_expired(self.tx.now()) && self.identifiers.are_in_key(&answer.key)
            }
            CallOutcome::Done(json) => {
                self.identifiers.are_in(json) || self.identifiers.are_in_key(&answer.key)
            }
            CallOutcome::Refused(json) => {
                self.identifiers.are_in(json)
                    || self.identifiers.are_named_in(json)
                    || self.identifiers.are_in_key(&answer.key)
            }
        };
        if is_about {
            self.tx.remove(answer)?;
            erased.answers += 1;
        }
        Ok(())
    }
}
