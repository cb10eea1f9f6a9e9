//! Sends: a message is made for an attempt and handed to its provider. No transaction is open.

use std::ops::ControlFlow::{self, Break, Continue};

use domain::ids::MessageId;
use domain::integration::OnUnknown;
use domain::job::{Detail, Job};
use domain::message::Message;
use domain::notification::Notification;
use domain::plan::{self, Content, Dispatch, Facts, Run, RunJob};
use domain::step::Rendered;
use domain::task::{SendWork, Task};
use domain::time::Timestamp;
use domain::unsubscribe::{Link, LinkTo};
use domain::vocabulary::{Channel, StepType};

use store::{ReadRecords, Record, Snapshot, WriteRecords};

use super::circuits::Awaited;
use super::lease::Leased;
use super::provider::{Delivery, SendError};
use super::send_result::{self, SendFailure, SendResult};
use super::task_result::{JobResult, TaskResult};
use crate::Engine;
use crate::Result;
use crate::host::{self, Panicked};
use crate::pipeline::facts::RunFacts;
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::texts::{self, ChosenLayout};
use crate::resources::{integrations, messages, notifications, unsubscribe};
use crate::trace;
use crate::tx::{Reading, View};

// An attempt to send the message of a job, with the records that it depends on, as of one snapshot.
struct Attempt<'a> {
    leased: &'a Leased,
    work: &'a SendWork,
    notification: Notification,
    job: usize,
    facts: RunFacts,
    // Message that was made before. The attempt sends it again.
    made: Option<Message>,
    now: Timestamp,
    random: u64,
}

/// Decides an attempt on a snapshot. Breaks with the result if the message is not handed to a provider. `changes` is
/// the number of changes of integrations before the call.
pub(super) fn prepare(
    engine: &Engine,
    leased: &Leased,
    work: &SendWork,
    changes: u64,
) -> Result<ControlFlow<TaskResult, Box<Delivery>>> {
    let (home, now) = (leased.task.home(), leased.now(engine));
    let random = engine.parts.seeds.draw(now).start().random();
    let decide_on = |snapshot: &dyn Snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        match Attempt::find(&view, leased, work, now, random)? {
            Some(attempt) => attempt.decide(&view, changes),
            None => Ok(Break(TaskResult::Dropped)),
        }
    };
    unsubscribe::with_key(engine, &home, now, || engine.read_pure(decide_on))
}

impl<'a> Attempt<'a> {
    // Returns `None` if the notification is gone, or if its job has ended.
    fn find(
        view: &dyn View,
        leased: &'a Leased,
        work: &'a SendWork,
        now: Timestamp,
        random: u64,
    ) -> Result<Option<Self>> {
        let found = notifications::find(view, work.notification_id)?;
        let Some(notification) = found else { return Ok(None) };
        let number = leased.task.work.job_in(&notification);
        let Some((number, job)) = number.and_then(|at| Some((at, notification.jobs.get(at)?)))
        else {
            return Ok(None);
        };
        let facts = RunFacts::of(view, &notification, number, &LiveEvents::unbounded(now))?;
        let facts = facts.with_endpoints(view, &notification, job.kind)?;
        let facts = facts.with_suppressions(view, job.kind, now)?;
        let made = match &work.message {
            Some(message) => Some(Message::clone(message)),
            None => made_for_another(view, work, job)?,
        };
        Ok(Some(Self { leased, work, job: number, facts, made, notification, now, random }))
    }

    fn decide(
        self,
        view: &dyn View,
        changes: u64,
    ) -> Result<ControlFlow<TaskResult, Box<Delivery>>> {
        let mut run = self.facts.run(view, &self.notification)?;
        run.tries = self.work.tries.clone();
        let ids = self.facts.facts(self.now).integrations.iter().map(|one| one.id);
        run.open = view.engine().parts.circuits.open(ids, self.now);
        run.target.clone_from(&self.work.target);
        let Some(job) = run.jobs.get(self.job).copied() else {
            return Ok(Break(TaskResult::Dropped));
        };
        let (layout, link) = (self.chosen_layout(view, &run, job)?, self.link(view, job.kind)?);
        let facts = self.facts.facts(self.now);
        let facts = Facts { layout: layout.as_frame_ref(), link: link.as_ref(), ..facts };
        let content = if self.made.is_some() { Content::Kept } else { Content::New };
        let result = match plan::attempt(&run, job, facts, content) {
            Ok(plan::Attempt::Send(dispatch)) => {
                let delivery = self.delivery(*dispatch, link.map(|link| link.to_url()));
                return Ok(
                    delivery.map_or(Break(TaskResult::Dropped), |one| Continue(Box::new(one)))
                );
            }
            Ok(plan::Attempt::Split(targets)) => JobResult::Split(targets),
            Ok(plan::Attempt::Defer { due_at }) => JobResult::Deferred(due_at),
            Ok(plan::Attempt::WorkflowPaused) => JobResult::WorkflowPaused,
            Ok(plan::Attempt::IntegrationPaused(id)) => JobResult::IntegrationPaused(id),
            Ok(plan::Attempt::CircuitOpen(ids)) => {
                return Ok(Break(TaskResult::CircuitOpen(Awaited { ids, changes })));
            }
            Err(refusal) => {
                // The message may be one for an integration that cannot be read. It waits for a repair.
                if refusal.detail == Detail::NoActiveIntegration {
                    integrations::check_readable(view)?;
                }
                JobResult::Refused(refusal)
            }
        };
        Ok(Break(TaskResult::Job(result)))
    }

    // The layout of a message that is rendered.
    fn chosen_layout(&self, view: &dyn View, run: &Run<'_>, job: RunJob) -> Result<ChosenLayout> {
        match &self.facts.workflow {
            Some(workflow) if self.made.is_none() => {
                let choice = plan::layout(run, job, self.facts.facts(self.now));
                texts::chosen_layout(view, choice, workflow, self.facts.subscriber.as_ref())
            }
            Some(_) | None => Ok(ChosenLayout::default()),
        }
    }

    // The unsubscribe link of the message. It is the same in every attempt.
    fn link(&self, view: &dyn View, kind: StepType) -> Result<Option<Link>> {
        match (self.facts.workflow.as_deref(), kind.channel()) {
            (Some(workflow), Some(channel)) if !workflow.critical => {
                let (subscriber, since) =
                    (self.notification.subscriber_id, self.notification.created_at);
                let contexts = &self.notification.context_keys;
                let to = LinkTo { subscriber, contexts, channel, since };
                unsubscribe::link(view, workflow, to)
            }
            _ => Ok(None),
        }
    }

    // The message that was rendered, or else the one that was made before.
    fn message(&self, channel: Channel, rendered: Option<Rendered>) -> Option<Message> {
        let Some(rendered) = rendered else { return self.made.clone() };
        let content = (self.facts.workflow.as_deref()?, channel);
        Message::of_job(&self.notification, self.job, content, rendered, (self.now, self.random))
    }

    // Returns `None` if the workflow or the subscriber is gone, or if there is no message.
    fn delivery(self, dispatch: Dispatch, unsubscribe_url: Option<String>) -> Option<Delivery> {
        let Dispatch { integration, others, address, rendered, target, overrides } = dispatch;
        let job = self.notification.jobs.get(self.job)?;
        self.facts.workflow.as_ref()?;
        let variant = rendered.as_ref().and_then(|rendered| rendered.variant.clone());
        let warnings = rendered.iter().flat_map(|rendered| &rendered.warnings).cloned().collect();
        let mut message = self.message(integration.channel, rendered)?;
        let (send, mut tries) = (self.leased.task.send_id(), self.work.tries.clone());
        if send.is_none() {
            tries = tries.with_called(target.clone());
        } else {
            let place = self.job + job.message_offset(integration.id);
            let place = self.notification.place_of_message(place);
            message.id = MessageId::new(self.now, place, self.random);
        }
        Some(Delivery {
            message: message.addressed(&integration.provider_id, &address),
            job: job.id,
            notification: self.notification,
            integration,
            address,
            subscriber: self.facts.subscriber?,
            overrides,
            variant,
            warnings,
            unsubscribe_url,
            others,
            tries,
            target,
            send,
            attempts: self.leased.attempt(),
        })
    }
}

// The message that another destination of the integration was called with, as this one is called with the same
// content. Returns `None` if none was called.
fn made_for_another(view: &dyn View, work: &SendWork, job: &Job) -> Result<Option<Message>> {
    let Some(target) = &work.target else { return Ok(None) };
    let Some(id) = job.message_called_with(target.integration_id) else { return Ok(None) };
    Ok(messages::find_by_id(view, id)?.map(Message::to_another))
}

/// Stores that a message is about to be handed to its provider, with its content, if the integration wants
/// that known after a crash. Returns `false` if another worker has the task,
/// or may have it.
pub(super) fn store_call(engine: &Engine, leased: &Leased, delivery: &Delivery) -> Result<bool> {
    let integration = &delivery.integration;
    let calling = delivery.tries.calling(integration.id, integration.on_unknown);
    let is_known = leased.task.send_work().is_some_and(|work| work.tries == calling);
    if integration.on_unknown == OnUnknown::Resend || is_known {
        return Ok(true);
    }
    let home = leased.task.home();
    engine.write_in(&home, engine.now(), |tx| {
        // The lease may have ended while the transaction waited for its turn.
        if leased.lost(engine.now()).is_some() {
            return Ok(false);
        }
        let found = tx.find::<Task>(&leased.task.key())?;
        let task = found.filter(|task| leased.is_current(task, tx.now()));
        let Some((task, work)) = task.as_ref().and_then(|task| Some((task, task.send_work()?)))
        else {
            return Ok(false);
        };
        let work = work.after(delivery.message.clone(), calling.clone());
        tx.draft.writer.replace(task, &task.clone().with_send_work(work))?;
        Ok(true)
    })
}

/// Hands a message to its provider. The panic of a provider affects its own message only.
pub(super) fn send(engine: &Engine, delivery: &Delivery) -> SendResult {
    let provider_id = &delivery.integration.provider_id;
    let provider = engine.parts.callbacks.provider(provider_id).ok_or(SendFailure::NoProvider)?;
    let answer = trace::provider_call(&delivery.integration, send_result::word, || {
        let panicked = |Panicked| Err(SendError::unknown("the provider panicked"));
        host::call(|| provider.send(delivery)).unwrap_or_else(panicked)
    });
    Ok(answer?)
}
