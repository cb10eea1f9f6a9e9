//! Explanations: a trigger and its delivery are rehearsed on a fork of the store.

use std::sync::Arc;
use std::time::Duration;

use domain::explain::{
    EventOutcome, EvidenceLog, ExplainedCrowd, ExplainedRecipient, ExplainedStep, Explanation,
};
use domain::ids::{TransactionId, WorkflowIdentifier};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::trigger::{Trigger, TriggerReceipt, TriggerStatus};
use store::{Order, ReadRecords, layout};

use crate::pipeline::crowd::{CrowdRange, CrowdSource};
use crate::pipeline::trigger::find_accepted;
use crate::resources::{messages, subscribers};
use crate::tx::View;
use crate::{Events, Result, Scope};

/// Simulated time.
const HORIZON: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// Largest number of subscribers of a crowd that are counted.
const COUNTED: usize = 10_000;

/// Number of subscribers that are counted at once.
const AT_ONCE: usize = 1_000;

impl Events<'_> {
    /// Explains what would become of an event at the time `at`, for each recipient and each step.
    /// Nothing is written, and neither providers nor functions of the host are called.
    ///
    /// The engine simulates the trigger and its delivery on the present records. The result is that of
    /// [`trigger`](Self::trigger) and [`run_until`](crate::DeliveryQueue::run_until) under these assumptions: the
    /// clock starts at `at`, providers accept every message, functions of custom steps return nothing, no message is
    /// read, and there are no other events. Each step lists the assumptions on which it depends.
    ///
    /// The explanation has the recipients that the trigger names, and up to 100 members of its topics. If there are
    /// more members, they are only counted, up to 10,000. The simulated time ends 400 days after `at`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// use tidings::filter::Filter;
    /// use tidings::job::Detail;
    /// use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
    ///
    /// let step = Step::in_app("Tomorrow")?.only_if(Filter::payload("express").equals(true));
    /// env.workflows().create(&WorkflowCreate::new("shipped", "Shipped")?.step(step.name("bell")))?;
    ///
    /// let shipped = Trigger::new("shipped", "ada")?;
    /// let explanation = env.events().explain(&shipped, "2026-12-24T18:00:00.000Z".parse()?)?;
    /// let bell = explanation.recipient("ada").and_then(|ada| ada.step("bell")).unwrap();
    /// assert_eq!(bell.reason, Some(Detail::FilteredByStepConditions));
    /// println!("{explanation}");
    /// assert_eq!(env.notifications().count(&Default::default())?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`trigger`](Self::trigger). The messages of all steps count as content.
    pub fn explain(&self, trigger: &Trigger, at: Timestamp) -> Result<Explanation> {
        self.scope.operation("events.explain", || self.explained(trigger, at))
    }

    fn explained(&self, trigger: &Trigger, at: Timestamp) -> Result<Explanation> {
        if let Some(id) = &trigger.transaction_id
            && self.is_repeated(id, &trigger.workflow)?
        {
            let outcome = EventOutcome::repeated(id.clone());
            return Ok(Explanation::new(trigger.workflow.clone(), at, outcome));
        }
        let engine = self.scope.engine.parts.rehearsal(at);
        let rehearsal = Scope::inside(engine, self.scope.home.clone());
        let receipt = rehearsal.events().accept(trigger)?;
        let outcome = EventOutcome::of(receipt.status);
        let mut explanation = Explanation::new(trigger.workflow.clone(), at, outcome);
        if receipt.status != TriggerStatus::Processed {
            return Ok(explanation);
        }
        let end = at.after(HORIZON);
        rehearsal.engine.delivery().run_until(end)?;
        explanation.recipients = self.recipients(&rehearsal, &receipt)?;
        explanation.crowd = if receipt.continues { Some(self.crowd(trigger)?) } else { None };
        explanation.filtered = receipt.topics.filtered;
        let evidence = rehearsal.engine.parts.evidence().map(Arc::as_ref);
        explanation.filtered_members = evidence.map(EvidenceLog::take_filtered).unwrap_or_default();
        explanation.missing_topics = receipt.missing_topics;
        Ok(explanation.cut_at(end))
    }

    // Returns `true` if an event of the workflow was accepted under this transaction id.
    fn is_repeated(&self, id: &TransactionId, workflow: &WorkflowIdentifier) -> Result<bool> {
        let accepted = self.scope.view(|view| find_accepted(view, id))?;
        Ok(accepted.is_some_and(|accepted| accepted.may_be_of(workflow)))
    }

    // The notifications of a rehearsal, in their order.
    fn recipients(
        &self,
        rehearsal: &Scope,
        receipt: &TriggerReceipt,
    ) -> Result<Vec<ExplainedRecipient>> {
        let evidence = rehearsal.engine.parts.evidence().map(Arc::as_ref);
        let explained = rehearsal.view(|view| {
            let Some(accepted) = find_accepted(view, &receipt.transaction_id)? else {
                return Ok(Vec::new());
            };
            let range = layout::notifications_between(view.environment_id(), accepted.ordinals);
            let made: Vec<Notification> = view.first(&range, Order::Ascending, usize::MAX)?;
            let explained = made.iter().map(|notification| recipient(view, notification, evidence));
            explained.collect::<Result<Vec<_>>>()
        })?;
        let mut explained: Vec<_> = explained.into_iter().flatten().collect();
        self.scope.view(|view| {
            for recipient in &mut explained {
                recipient.is_new = subscribers::find(view, &recipient.subscriber_id)?.is_none();
            }
            Ok(())
        })?;
        Ok(explained)
    }

    // The subscribers in the topics of a trigger.
    fn crowd(&self, trigger: &Trigger) -> Result<ExplainedCrowd> {
        let audience = trigger.audience()?;
        self.scope.view(|view| {
            let (source, _) = CrowdSource::topics(view, audience.topic_keys())?;
            let (mut subscribers, mut behind) = (0, None);
            while subscribers < COUNTED {
                let members =
                    source.members(view, CrowdRange { behind, before: None, limit: AT_ONCE })?;
                let notified = members.found.iter().filter(|member| !member.is_excluded(&audience));
                subscribers += notified.count();
                if members.all {
                    return Ok(ExplainedCrowd::new(subscribers, true));
                }
                behind = members.behind;
            }
            Ok(ExplainedCrowd::new(subscribers, false))
        })
    }
}

// Explains the notification of a recipient. Returns `None` if the subscriber is gone.
fn recipient(
    view: &dyn View,
    notification: &Notification,
    evidence: Option<&EvidenceLog>,
) -> Result<Option<ExplainedRecipient>> {
    let found = subscribers::find_by_id(view, notification.subscriber_id)?;
    let Some(subscriber) = found else { return Ok(None) };
    let topics = notification.topics.iter().map(|topic| topic.topic_key.clone()).collect();
    let subscriber_id = subscriber.subscriber_id;
    let mut explained = ExplainedRecipient::new(subscriber_id.clone(), false, topics);
    for job in &notification.jobs {
        let message = job.message_id.map_or(Ok(None), |id| messages::find_by_id(view, id))?;
        let of = (subscriber_id.clone(), job.step.id);
        let found = evidence.map(|evidence| evidence.take(of)).unwrap_or_default();
        let at = notification.created_at;
        explained.steps.push(ExplainedStep::new(job, at, found, message.as_ref()));
    }
    Ok(Some(explained))
}
