//! Sends: a message is made for an attempt and handed to its provider. No transaction is open.

use std::ops::ControlFlow::{self, Break, Continue};

use domain::ids::{IntegrationId, MessageId, NotificationId};
use domain::integration::OnUnknown;
use domain::job::Detail;
use domain::message::Message;
use domain::notification::Notification;
use domain::plan::{self, Content, Dispatch, Facts};
use domain::task::Task;
use domain::time::Timestamp;
use domain::unsubscribe::{Link, LinkTo};
use domain::vocabulary::JobType;

use store::{ReadRecords, Record, Snapshot, WriteRecords, layout};

use super::claim::Leased;
use super::provider::{Delivery, SendError};
use super::send_result::{self, SendFailure, SendResult};
use super::settle::{Done, JobResult};
use crate::Engine;
use crate::Result;
use crate::host::{self, Panicked};
use crate::pipeline::facts::RunFacts;
use crate::pipeline::left::LiveEvents;
use crate::pipeline::texts::{self, Wanted};
use crate::resources::{integrations, notifications, unsubscribe};
use crate::trace;
use crate::tx::{Reading, View};

/// Decides an attempt on a snapshot. Breaks with the result if the message is not handed to a provider.
pub(super) fn prepare(
    engine: &Engine,
    leased: &Leased,
    notification_id: NotificationId,
    kept: Option<&Message>,
) -> Result<ControlFlow<Done, Box<Delivery>>> {
    let (home, now) = (leased.task.home(), leased.now(engine));
    let random = engine.parts.settings.seeds.draw(now).start().random();
    let decide_on = |snapshot: &dyn Snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let Some(notification) = notifications::find(&view, notification_id)? else {
            return Ok(Break(Done::Dropped));
        };
        let Some(number) = leased.task.work.job_in(&notification) else {
            return Ok(Break(Done::Dropped));
        };
        let kind = notification.jobs.get(number).map_or(JobType::Trigger, |job| job.kind);
        let facts = RunFacts::of(&view, &notification, number, &LiveEvents::unbounded(now))?;
        let facts = facts.with_endpoints(&view, &notification, kind)?;
        let facts = facts.with_suppressions(&view, kind, now)?;
        let shared = match kept {
            Some(_) => None,
            None => shared(&view, leased, (&notification, number))?,
        };
        let kept = kept.or(shared.as_ref());
        decide(&view, leased, (&notification, number), &facts, (kept, now, random))
    };
    unsubscribe::with_key(engine, (&home, now), || engine.read(decide_on))
}

// The message that another destination of the integration was called with, as this one is called with the same
// content. Returns `None` if none was called.
fn shared(
    view: &dyn View,
    leased: &Leased,
    (notification, number): (&Notification, usize),
) -> Result<Option<Message>> {
    let Some((target, job)) = leased.task.target().zip(notification.jobs.get(number)) else {
        return Ok(None);
    };
    let Some(id) = job.message_called_with(target.integration_id) else { return Ok(None) };
    let found = view.find::<Message>(&layout::message(notification.environment_id, id.place()))?;
    Ok(found.filter(|message| message.id == id).map(Message::to_another))
}

fn decide(
    view: &dyn View,
    leased: &Leased,
    (notification, number): (&Notification, usize),
    facts: &RunFacts,
    (kept, now, random): (Option<&Message>, Timestamp, u64),
) -> Result<ControlFlow<Done, Box<Delivery>>> {
    let mut run = facts.run(view, notification)?;
    run.tries = leased.task.tries();
    run.open = view.engine().parts.settings.circuits.open(now);
    run.target = leased.task.target().cloned();
    let content = if kept.is_some() { Content::Kept } else { Content::New };
    let Some(job) = run.jobs.get(number).copied() else { return Ok(Break(Done::Dropped)) };
    let known = facts.facts(now);
    let framed = match (content, &facts.workflow) {
        (Content::New, Some(workflow)) => {
            let choice = plan::layout(&run, job, known);
            texts::framed(view, choice, workflow, facts.subscriber.as_ref())?
        }
        (Content::New, None) | (Content::Kept, _) => Wanted::Bare,
    };
    let link = link(view, (notification, job.kind), facts)?;
    let known = Facts { framed: framed.as_framed(), link: link.as_ref(), ..known };
    let over = |result| Ok(Break(Done::Job(result)));
    let dispatch = match plan::attempt(&run, job, known, content) {
        Ok(plan::Attempt::Send(dispatch)) => dispatch,
        Ok(plan::Attempt::FanOut(targets)) => return over(JobResult::FannedOut(targets)),
        Ok(plan::Attempt::Defer { due_at }) => return over(JobResult::Deferred(due_at)),
        Ok(plan::Attempt::WorkflowPaused) => return over(JobResult::WorkflowPaused),
        Ok(plan::Attempt::IntegrationPaused(id)) => return over(JobResult::IntegrationPaused(id)),
        Err(refusal) => {
            // The message may be one for an integration that cannot be read. It waits for a repair.
            if refusal.detail == Detail::NoActiveIntegration {
                integrations::check_readable(view)?;
            }
            return over(JobResult::Refused(refusal));
        }
    };
    let (link, made) = (link.map(|link| link.to_url()), (kept, now, random));
    let decided = (*dispatch, link, run.open);
    let delivery = Delivery::of(leased, (notification, number), facts, decided, made);
    Ok(delivery.map_or(Break(Done::Dropped), |delivery| Continue(Box::new(delivery))))
}

impl Delivery {
    // The attempt of a job that was decided. Returns `None` if the workflow or the subscriber is gone,
    // or if there is no message.
    fn of(
        leased: &Leased,
        (notification, number): (&Notification, usize),
        facts: &RunFacts,
        (dispatch, unsubscribe_url, open): (Dispatch, Option<String>, Vec<IntegrationId>),
        (kept, now, random): (Option<&Message>, Timestamp, u64),
    ) -> Option<Self> {
        let Dispatch { integration, others, address, rendered, target, overrides } = dispatch;
        let job = notification.jobs.get(number)?;
        let (workflow, subscriber) = facts.workflow.as_deref().zip(facts.subscriber.as_ref())?;
        let variant = rendered.as_ref().and_then(|rendered| rendered.variant.clone());
        let warnings = rendered.iter().flat_map(|rendered| &rendered.warnings).cloned().collect();
        let made = rendered.and_then(|rendered| {
            let content = (workflow, integration.channel);
            Message::of_job(notification, number, content, rendered, (now, random))
        });
        let mut message = made.or_else(|| kept.cloned())?;
        let (send, mut tries) = (leased.task.send_id(), leased.task.tries());
        if send.is_none() {
            tries = tries.with_called(target.clone());
        } else {
            let place = number + job.message_offset(integration.id);
            message.id = MessageId::new(now, notification.place_of_message(place), random);
        }
        Some(Self {
            message: message.addressed(&integration.provider_id, &address),
            integration,
            address,
            subscriber: subscriber.clone(),
            overrides,
            notification: notification.clone(),
            variant,
            warnings,
            unsubscribe_url,
            job: job.id,
            others,
            open,
            tries,
            target,
            send,
            attempts: leased.attempt(),
        })
    }
}

// The unsubscribe link of a message. It is the same in every attempt.
fn link(
    view: &dyn View,
    (notification, kind): (&Notification, JobType),
    facts: &RunFacts,
) -> Result<Option<Link>> {
    match (facts.workflow.as_deref(), kind.channel()) {
        (Some(workflow), Some(channel)) if !workflow.critical => {
            let (subscriber, since) = (notification.subscriber_id, notification.created_at);
            let contexts = &notification.context_keys;
            let to = LinkTo { subscriber, contexts, channel, since };
            unsubscribe::link(view, workflow, to)
        }
        _ => Ok(None),
    }
}

/// Stores that a message is about to be handed to its provider, with its content, if the integration wants
/// that known after a crash. Returns `false` if another worker has the task.
pub(super) fn store_call(engine: &Engine, leased: &Leased, delivery: &Delivery) -> Result<bool> {
    let integration = &delivery.integration;
    let calling = delivery.tries.calling(integration.id, integration.on_unknown);
    if integration.on_unknown == OnUnknown::Resend || calling == leased.task.tries() {
        return Ok(true);
    }
    let home = leased.task.home();
    engine.write_in(&home, engine.now(), |tx| {
        let found = tx.find::<Task>(&leased.task.key())?;
        let Some(task) = found.filter(|task| leased.is_current(task)) else {
            return Ok(false);
        };
        let message = Some(Box::new(delivery.message.clone()));
        let calling = task.clone().with_tries(calling.clone()).with_message(message);
        tx.draft.writer.replace(&task, &calling)?;
        Ok(true)
    })
}

/// Hands a message to its provider. The panic of a provider affects its own message only.
pub(super) fn send(engine: &Engine, delivery: &Delivery) -> SendResult {
    let provider_id = &delivery.integration.provider_id;
    let provider =
        engine.parts.settings.providers.of(provider_id).ok_or(SendFailure::NoProvider)?;
    let answer = trace::provider_call(&delivery.integration, send_result::word, || {
        let panicked = |Panicked| Err(SendError::unknown("the provider panicked"));
        host::call(|| provider.send(delivery)).unwrap_or_else(panicked)
    });
    Ok(answer?)
}
