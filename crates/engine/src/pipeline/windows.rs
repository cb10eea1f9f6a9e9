//! Digests and throttles: what many events contend for is decided in the transaction. A digest does
//! not look at the events in its window, and a throttle looks at its places only.

use std::ops::ControlFlow;

use domain::digest::{BucketId, DigestBucket, OpenWindow, ThrottleSlot, WindowEvent};
use domain::explain::{DigestResult, EvidenceKind};
use domain::ids::DigestWindowId;
use domain::job::{Detail, JobDigest, JobStatus};
use domain::plan::{self, DigestAction, Refusal, RefusalKind, ThrottleAction};
use domain::step::{Admission, Arrival, DigestState, EventKey, Slot};
use domain::subscriber::Subscriber;
use domain::task::{Task, Work};
use domain::time::Timestamp;
use store::{Order, ReadRecords, WriteRecords, layout};

use super::notification_tx::NotificationTx;
use crate::Result;
use crate::resources::subscribers;
use crate::tx::View;

impl NotificationTx<'_, '_> {
    /// Lets the event join the window of a digest, open one, or pass.
    pub(super) fn digest(&mut self, job: usize, digest: &DigestAction) -> Result<ControlFlow<()>> {
        let step = self.notification.jobs.get(job).map(|job| job.step.id);
        let id = step.and_then(|step| BucketId::of(&self.notification, step, digest.key));
        let Some(id) = id else { return Ok(ControlFlow::Break(())) };
        let before = self.tx.find::<DigestBucket>(&layout::digest_bucket(&id))?;
        let latest = before.as_ref().and_then(|bucket| bucket.window);
        let window = latest.map_or(Ok(None), |latest| self.if_open(latest))?;
        let window_end = window.map(|window| window.until);
        let closed_at = latest.map(|window| window.until).filter(|_| window.is_none());
        let last_event = before.as_ref().map(|bucket| bucket.last_event);
        let (state, now) = (DigestState { window_end, closed_at, last_event }, self.tx.now());
        let (window, result) = match (digest.metadata.arrival(state, now, digest.zone), window) {
            (Ok(Arrival::Joins), Some(window)) => {
                let result = DigestResult::joins(window.until, window.events);
                (Some(self.join(job, window, digest)?), result)
            }
            (Ok(Arrival::Opens(until)), _) => {
                (Some(self.open(job, until, digest)?), DigestResult::opens(until))
            }
            (Ok(Arrival::Passes | Arrival::Joins), _) => (None, DigestResult::Passes),
            (Err(no_end), _) => {
                return self.fail_window(job, Detail::DigestNotPossible, no_end.to_string());
            }
        };
        self.note(job, || EvidenceKind::Digest { result })?;
        let after = DigestBucket { id, window, last_event: state.last_event_behind(now) };
        match &before {
            Some(before) => self.tx.replace(before, &after)?,
            None => self.tx.insert(&after)?,
        }
        if window.is_some() {
            return Ok(ControlFlow::Break(()));
        }
        self.refuse(job, Refusal::new(RefusalKind::Skip, Detail::DigestPassed));
        Ok(ControlFlow::Continue(()))
    }

    // The window, if events may join it. The time of a call that has waited for its transaction,
    // and that of a clock that has gone back, may be before the end of a window that is being
    // closed.
    fn if_open(&self, window: OpenWindow) -> Result<Option<OpenWindow>> {
        let task = layout::task(self.tx.environment_id(), window.id.into());
        let is_open = match self.tx.find::<Task>(&task)? {
            Some(task) => !task.state.is_leased(),
            // A rehearsal does not have the tasks of other events, and no other call closes its
            // windows.
            None => self.tx.engine().parts.is_rehearsal(),
        };
        Ok(is_open.then_some(window))
    }

    // The event joins a window. The notification of the first event does the rest.
    fn join(
        &mut self,
        job: usize,
        window: OpenWindow,
        digest: &DigestAction,
    ) -> Result<OpenWindow> {
        self.add_event(window)?;
        self.log(job, Detail::DigestMerged, Some(window.notification_id.to_string()));
        self.note_window(job, window, digest);
        for job in job..self.notification.jobs.len() {
            self.move_job(job, JobStatus::Merged);
        }
        self.notification.digested_notification_id = Some(window.notification_id);
        Ok(OpenWindow { events: window.events.saturating_add(1), ..window })
    }

    fn open(&mut self, job: usize, until: Timestamp, digest: &DigestAction) -> Result<OpenWindow> {
        let notification_id = self.notification.id;
        let window = OpenWindow { id: self.tx.id(), notification_id, until, events: 0 };
        self.add_event(window)?;
        self.log(job, Detail::DigestOpened, Some(until.to_string()));
        self.move_job(job, JobStatus::Delayed { until });
        self.note_window(job, window, digest);
        let Some(job) = self.notification.jobs.get(job) else { return Ok(window) };
        let (step_id, window_id, key) = (job.step.id, window.id, digest.key);
        let work = Work::Close { notification_id, step_id, window_id, key };
        // The task has the id of the window, which is open while there is the task.
        self.queue(window.id.into(), until, work)?;
        Ok(OpenWindow { events: 1, ..window })
    }

    // Names the window in the job of the digest.
    fn note_window(&mut self, job: usize, window: OpenWindow, action: &DigestAction) {
        let mut digest = JobDigest::of(&action.metadata);
        digest.window_id = Some(window.id);
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.digest = Some(digest);
        }
    }

    fn add_event(&mut self, window: OpenWindow) -> Result<()> {
        Ok(self.tx.insert(&WindowEvent {
            environment_id: self.notification.environment_id,
            window_id: window.id,
            number: window.events,
            notification_id: self.notification.id,
            transaction_id: self.notification.transaction_id.clone(),
            created_at: self.notification.created_at,
            expires_at: self.notification.expires_at,
        })?)
    }

    /// Moves the end of a window, unless a later event has opened another one.
    pub(crate) fn prolong(
        &mut self,
        job: usize,
        window_id: DigestWindowId,
        key: EventKey,
        until: Timestamp,
    ) -> Result<()> {
        let step = self.notification.jobs.get(job).map(|job| job.step.id);
        let id = step.and_then(|step| BucketId::of(&self.notification, step, key));
        let Some(id) = id else { return Ok(()) };
        let Some(before) = self.tx.find::<DigestBucket>(&layout::digest_bucket(&id))? else {
            return Ok(());
        };
        let Some(window) = before.window.filter(|window| window.id == window_id) else {
            return Ok(());
        };
        let window = Some(OpenWindow { until, ..window });
        Ok(self.tx.replace(&before, &DigestBucket { window, ..before.clone() })?)
    }

    /// Takes a place in a window of a throttle, or ends the run.
    pub(super) fn throttle(
        &mut self,
        job: usize,
        throttle: &ThrottleAction,
    ) -> Result<ControlFlow<()>> {
        let step = self.notification.jobs.get(job).map(|job| job.step.id);
        let id = step.and_then(|step| BucketId::of(&self.notification, step, throttle.key));
        let Some(id) = id.map(BucketId::of_any_context) else { return Ok(ControlFlow::Break(())) };
        let taken = self.taken(&id, throttle.metadata.limit() as usize)?;
        let payload = self.notification.payload.clone().unwrap_or_default();
        let now = self.tx.now();
        let admission = throttle.metadata.admit(&taken, now, &payload, throttle.zone);
        if let Ok(admission) = &admission {
            self.note(job, || {
                EvidenceKind::throttle(&throttle.metadata, taken.len(), *admission, now)
            })?;
        }
        match admission {
            Ok(Admission::Admitted(slot)) => {
                if slot.until > now {
                    self.tx.insert(&ThrottleSlot::new(id, slot, &self.notification, now))?;
                }
                self.complete(job, Detail::ThrottlePassed, None);
                Ok(ControlFlow::Continue(()))
            }
            Ok(Admission::Refused { until }) => {
                let refusal = Refusal::new(RefusalKind::Skip, Detail::ThrottleLimitExceeded);
                self.refuse(job, refusal.because(until.to_string()));
                self.stop(job, &plan::PASSED_OVER)?;
                Ok(ControlFlow::Break(()))
            }
            Err(no_end) => self.fail_window(job, Detail::ThrottleNotPossible, no_end.to_string()),
        }
    }

    // Fails a digest or a throttle that has no window, and ends the run.
    fn fail_window(
        &mut self,
        job: usize,
        detail: Detail,
        reason: String,
    ) -> Result<ControlFlow<()>> {
        self.refuse(job, Refusal::new(RefusalKind::Fail, detail).because(reason));
        self.stop(job, &plan::STOPPED)?;
        Ok(ControlFlow::Break(()))
    }

    // Takes note of what a decision was made from, if this is a rehearsal.
    fn note(&self, job: usize, kind: impl FnOnce() -> EvidenceKind) -> Result<()> {
        let Some(evidence) = self.tx.engine().parts.evidence() else { return Ok(()) };
        if let Some((subscriber, job)) = self.reader()?.zip(self.notification.jobs.get(job)) {
            evidence.note((subscriber.subscriber_id, job.step.id), self.tx.now(), kind());
        }
        Ok(())
    }

    /// Forgets what the jobs behind this one were decided from, if this is a rehearsal: they are decided anew, or
    /// not at all.
    pub(super) fn drop_evidence_behind(&self, job: usize) -> Result<()> {
        let Some(evidence) = self.tx.engine().parts.evidence() else { return Ok(()) };
        let Some(subscriber) = self.reader()? else { return Ok(()) };
        for behind in self.notification.jobs.iter().skip(job + 1) {
            evidence.take((subscriber.subscriber_id.clone(), behind.step.id));
        }
        Ok(())
    }

    fn reader(&self) -> Result<Option<Subscriber>> {
        subscribers::find_by_id(self.tx, self.notification.subscriber_id)
    }

    // The places that are taken: of all that there are, those that are free last. There are more if the
    // throttle had more places before. Some of those that are free again are removed, and all of a clock
    // that was ahead.
    fn taken(&mut self, id: &BucketId, places: usize) -> Result<Vec<Slot>> {
        // Each event takes one place, so the number of free ones falls.
        const AT_A_TIME: usize = 4;
        let now = self.tx.now();
        let free = layout::free_throttle_slots(id, now);
        for slot in self.tx.first::<ThrottleSlot>(&free, Order::Ascending, AT_A_TIME)? {
            self.tx.remove(&slot)?;
        }
        let taken = layout::taken_throttle_slots(id, now);
        loop {
            let found = self.tx.first::<ThrottleSlot>(&taken, Order::Descending, places)?;
            let (ahead, sound): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|slot| slot.is_of_clock_ahead(now));
            if ahead.is_empty() {
                return Ok(sound.into_iter().map(|slot| Slot { until: slot.until }).collect());
            }
            ahead.iter().try_for_each(|slot| self.tx.remove(slot))?;
        }
    }
}
