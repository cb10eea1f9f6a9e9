//! Digests that are over, as the jobs behind them know them.

use std::slice;

use super::Run;
use crate::ids::StepId;
use crate::job::{Job, JobDigest};
use crate::json;
use crate::step::{DigestEvent, Digested};

/// Events of a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestedEvents {
    /// First events, in the order of their arrival.
    pub events: Vec<DigestEvent>,
    /// Last event of all, if it is none of the first ones.
    pub last: Option<DigestEvent>,
    /// Number of all events.
    pub count: u32,
    // Size of the first events, in bytes.
    size: usize,
}

impl DigestedEvents {
    /// Returns the digest of `count` events, which has none of them yet.
    pub fn of(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    /// Adds the next one of the first events. Returns `false` if a job has no room for it.
    #[must_use]
    pub fn add(&mut self, event: DigestEvent) -> bool {
        let size = self.size + json::size(&event);
        let is_within =
            self.events.len() < JobDigest::MAX_EVENTS && size <= JobDigest::MAX_EVENTS_SIZE;
        let has_room = is_within || self.events.is_empty();
        if has_room {
            self.events.push(event);
            self.size = size;
        }
        has_room
    }
}

impl Run<'_> {
    /// Returns the run of an event that passes a digest in front of the job of that number.
    pub(super) fn passing(mut self, behind: usize) -> Self {
        if self.passed.as_ref().is_none_or(|(first, _)| behind < *first) {
            self.passed = Some((behind, self.alone()));
        }
        self
    }

    /// Returns the event of a digest that the event passes.
    pub(super) fn alone(&self) -> DigestEvent {
        let payload = self.payload.clone().into_owned();
        DigestEvent { id: self.transaction_id.clone(), time: self.created_at, payload }
    }

    /// Returns the events that the job of a step tells of: those of the latest digest before it that has
    /// closed, or else the event that has passed one before it. A job that is decided late, or sent again,
    /// may be in front of digests that are over.
    pub(super) fn digested_before(&self, step: StepId) -> Option<Digested<'_>> {
        let number = self.jobs.iter().position(|job| job.step == step)?;
        let closed = self.closed.iter().rev().find(|(digest, _)| *digest < number);
        let passed = self.passed.as_ref().filter(|(behind, _)| *behind <= number);
        closed.map(|(_, events)| *events).or(passed.map(|(_, event)| only(event)))
    }
}

/// Returns the events of a digest job. Returns `None` if the job has none.
pub(super) fn collected(job: &Job) -> Option<Digested<'_>> {
    let digest = job.digest.as_ref()?;
    let count = digest.event_count?;
    Some(Digested::new(&digest.events, digest.last_event.as_ref(), count.into()))
}

/// Returns the event as that of a digest which it passes.
pub(super) fn only(event: &DigestEvent) -> Digested<'_> {
    Digested::new(slice::from_ref(event), None, 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::job::{DigestType, JobStatus};
    use crate::sample;

    #[derive(Clone, Copy, Debug)]
    enum End {
        Open,
        Closed(u32),
        Passed,
        Inactive,
    }

    /// One row per end of two digests among three messages: the number of events that each message tells of.
    #[test]
    fn a_message_tells_of_the_latest_digest_before_it() {
        use End::{Closed, Inactive, Open, Passed};
        for (ends, expected) in [
            ([Open, Open], [None, None, None]),
            ([Closed(5), Open], [None, Some(5), Some(5)]),
            ([Closed(5), Closed(2)], [None, Some(5), Some(2)]),
            // The events of an earlier digest stay.
            ([Closed(5), Passed], [None, Some(5), Some(5)]),
            ([Closed(5), Inactive], [None, Some(5), Some(5)]),
            ([Passed, Closed(2)], [None, Some(1), Some(2)]),
            ([Inactive, Closed(2)], [None, Some(1), Some(2)]),
            ([Passed, Inactive], [None, Some(1), Some(1)]),
            ([Inactive, Passed], [None, Some(1), Some(1)]),
            ([Open, Inactive], [None, None, Some(1)]),
        ] {
            let message = json!({ "type": "in_app", "template": { "body": "Hello" } });
            let metadata = json!({ "type": "regular", "amount": 1, "unit": "hours" });
            let [first, second] = ends.map(|end| {
                let active = !matches!(end, Inactive);
                json!({ "type": "digest", "active": active, "metadata": metadata })
            });
            let steps = json!([message, first, message, second, message]);
            let workflow = sample::workflow(steps);
            let subscriber = sample::subscriber(json!({}));
            let mut notification = sample::notification(&workflow, &subscriber, json!({}));
            let event = Run::of(&notification).alone();
            for (place, end) in [1, 3].into_iter().zip(ends) {
                let step = workflow.steps[place].id;
                let job = notification.jobs.iter_mut().find(|job| job.step.id == step);
                let Some(job) = job else { continue };
                match end {
                    Open | Inactive => {}
                    Passed => job.status = JobStatus::Skipped,
                    Closed(count) => {
                        let mut digested = DigestedEvents::of(count);
                        assert!((0..count).all(|_| digested.add(event.clone())));
                        let mut digest = JobDigest::new(DigestType::Regular);
                        digest.collect(&digested);
                        job.digest = Some(digest);
                    }
                }
            }
            let run = Run::of(&notification).past_digests_without_jobs(&workflow);
            let found = [0, 2, 4].map(|place| {
                let digested = run.digested_before(workflow.steps[place].id);
                digested.map(|digested| digested.events.len())
            });
            assert_eq!(found, expected, "{ends:?}");
        }
    }
}
