//! Turns: the jobs of a notification go on, planned on a snapshot.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use domain::digest::WindowEvent;
use domain::ids::{DigestWindowId, NotificationId, StepId};
use domain::job::{DigestType, JobDigest, JobStatus};
use domain::notification::Notification;
use domain::plan::{self, Action, DigestedEvents};
use domain::step::{DigestEvent, StepKind};
use domain::task::Work;
use domain::time::Timestamp;
use domain::workflow::Workflow;
use store::{Kept, Order, ReadRecords, layout};

use super::lease::Leased;
use super::task_result::{ResultSize, TaskResult};
use crate::pipeline::facts::RunFacts;
use crate::pipeline::live_events::LiveEvents;
use crate::resources::notifications;
use crate::tx::{Reading, View};
use crate::{Engine, Result};

/// A planned turn of a notification.
#[derive(Debug)]
pub(super) struct Turn {
    /// Notification whose jobs go on.
    pub(super) notification_id: NotificationId,
    pub(super) source: Source,
    /// The workflow as it was read. `None` if it was deleted.
    pub(super) workflow: Option<Arc<Workflow>>,
    /// Statuses of the jobs that the plan depends on.
    pub(super) statuses: Vec<JobStatus>,
    /// `true` if the event was canceled.
    pub(super) canceled: bool,
    pub(super) actions: Vec<Action>,
    pub(super) size: ResultSize,
}

/// Origin of the jobs of a turn.
#[derive(Debug)]
pub(super) enum Source {
    /// The notification as it was read.
    Notification(Kept<Notification>),
    /// A window whose jobs the notification takes over.
    Window(Box<Closed>),
}

/// A window that has closed.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) step_id: StepId,
    /// Settings of the digest, and its events.
    pub(super) digest: JobDigest,
}

impl Source {
    /// Returns the notification as it was read. Returns `None` if a window has closed.
    pub(super) fn read(&self) -> Option<&Kept<Notification>> {
        match self {
            Self::Notification(read) => Some(read),
            Self::Window(_) => None,
        }
    }

    /// Returns the window that has closed, if any.
    pub(super) fn closed(&self) -> Option<&Closed> {
        match self {
            Self::Notification(_) => None,
            Self::Window(closed) => Some(closed),
        }
    }
}

/// Plans the turn of a notification.
pub(super) fn plan(
    engine: &Engine,
    leased: &Leased,
    notification_id: NotificationId,
) -> Result<TaskResult> {
    let (home, now) = (leased.task.home(), leased.now(engine));
    engine.read_pure(|snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let Some(read) = notifications::find_kept(&view, notification_id)? else {
            return Ok(TaskResult::Dropped);
        };
        // The end of a window has a task of its own.
        let waits = !read.is_collecting() && !read.has_turn_before_delay();
        if let Some(until) = read.waits_until(now).filter(|_| waits) {
            return Ok(TaskResult::Early(until));
        }
        let facts = RunFacts::of(&view, &read, read.next_job(), &LiveEvents::unbounded(now))?;
        if facts.is_workflow_paused() {
            return Ok(TaskResult::WorkflowPaused);
        }
        let notification = Arc::clone(read.record());
        let source = Source::Notification(read);
        let turn = of(&view, Cow::Borrowed(&*notification), facts, now, source)?;
        Ok(TaskResult::Turned(Box::new(turn)))
    })
}

/// Plans the turn after the window of a digest has closed, unless no event is left.
pub(super) fn close(engine: &Engine, leased: &Leased) -> Result<TaskResult> {
    let Work::Close { notification_id, step_id, window_id, .. } = leased.task.work else {
        return Ok(TaskResult::Dropped);
    };
    let (home, now) = (leased.task.home(), leased.now(engine));
    engine.read_pure(|snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let (first, events) = events(&view, window_id, step_id, now)?;
        let Some(notification) = carrier(&view, notification_id, first)? else {
            return Ok(TaskResult::Dropped);
        };
        if let Some(until) = notification.waits_until(now) {
            return Ok(TaskResult::Early(until));
        }
        let digest = notification.job_of(step_id);
        let mut facts = RunFacts::of(&view, &notification, digest, &LiveEvents::unbounded(now))?;
        if events.count > 0 {
            facts.keep_alive();
        }
        if facts.is_workflow_paused() {
            return Ok(TaskResult::WorkflowPaused);
        }
        let mut digest = digest_of(&view, &facts, notification_id, step_id)?;
        digest.collect(&events);
        digest.window_id = Some(window_id);
        let source = Source::Window(Box::new(Closed { step_id, digest }));
        let turn = of(&view, Cow::Owned(notification), facts, now, source)?;
        Ok(TaskResult::Turned(Box::new(turn)))
    })
}

fn of(
    view: &dyn View,
    mut notification: Cow<'_, Notification>,
    facts: RunFacts,
    now: Timestamp,
    source: Source,
) -> Result<Turn> {
    let statuses = notification.jobs.iter().map(|job| job.status).collect();
    let closed = source.closed();
    if let Some(Closed { step_id, digest }) = closed {
        notification.to_mut().take_over(*step_id, digest.clone(), now);
    }
    let run = facts.run(view, &notification)?;
    let actions = match closed {
        Some(closed) => plan::close(&run, notification.job_of(closed.step_id), facts.facts(now)),
        None => plan::turn(&run, facts.facts(now)),
    };
    let (id, canceled) = (notification.id, facts.is_canceled());
    let size = size_of(&notification, closed, &actions);
    let workflow = facts.workflow;
    Ok(Turn { notification_id: id, source, workflow, statuses, canceled, actions, size })
}

fn size_of(notification: &Notification, closed: Option<&Closed>, actions: &[Action]) -> ResultSize {
    let messages = plan::messages_size(notification.size(), actions);
    let events = closed.map_or(0, |closed| closed.digest.size());
    ResultSize { messages, content: notification.size() + events + messages, tasks: 0 }
}

// Returns the settings of a digest: those of the job that opened the window, or those of the step as
// it is now.
fn digest_of(
    view: &dyn View,
    facts: &RunFacts,
    opener: NotificationId,
    step_id: StepId,
) -> Result<JobDigest> {
    let opener = notifications::find(view, opener)?;
    let mut jobs = opener.iter().flat_map(|opener| &opener.jobs);
    let of_job = jobs.find(|job| job.step.id == step_id).and_then(|job| job.digest.clone());
    let step = facts.workflow.as_ref().and_then(|workflow| workflow.step(step_id));
    let of_step = || {
        let StepKind::Digest { metadata } = &step?.definition.kind else { return None };
        Some(JobDigest::of(metadata))
    };
    Ok(of_job.or_else(of_step).unwrap_or(JobDigest::new(DigestType::Regular)))
}

// Returns the notification whose jobs go on behind a digest: that of the first event that is left. If
// none is left, that of the opener, whose jobs end as canceled or expired, unless they have ended.
fn carrier(
    view: &dyn View,
    opener: NotificationId,
    first: Option<Notification>,
) -> Result<Option<Notification>> {
    if first.is_some() {
        return Ok(first);
    }
    Ok(notifications::find(view, opener)?.filter(Notification::is_collecting))
}

// Returns the events of a window that are left, and the notification of the first one.
fn events(
    view: &dyn View,
    window: DigestWindowId,
    step: StepId,
    now: Timestamp,
) -> Result<(Option<Notification>, DigestedEvents)> {
    let LeftEvents { first, mut last, count } = left_events(view, window, step, now)?;
    let (mut opening, mut digested) = (None, DigestedEvents::of(count));
    for event in &first {
        let Some((event, notification)) = with_payload(view, event)? else { continue };
        if !digested.add(event) {
            last = last.or_else(|| first.last().cloned());
            break;
        }
        opening.get_or_insert(notification);
    }
    let last = last.map_or(Ok(None), |event| with_payload(view, &event))?;
    digested.last = last.map(|(event, _)| event);
    Ok((opening, digested))
}

// Events of a window that are left: the first ones, the last one behind them, and the number of all.
#[derive(Default)]
struct LeftEvents {
    first: Vec<WindowEvent>,
    last: Option<WindowEvent>,
    count: u32,
}

impl LeftEvents {
    fn add(&mut self, event: WindowEvent) {
        self.count = self.count.saturating_add(1);
        if self.first.len() < JobDigest::MAX_EVENTS {
            self.first.push(event);
        } else {
            self.last = Some(event);
        }
    }
}

fn left_events(
    view: &dyn View,
    window: DigestWindowId,
    step: StepId,
    now: Timestamp,
) -> Result<LeftEvents> {
    let range = layout::digest_events(view.environment_id(), window).range();
    let live_events = LiveEvents::unbounded(now);
    let (mut left, mut looked) = (LeftEvents::default(), Ok(()));
    view.each::<WindowEvent>(&range, Order::Ascending, |event| {
        match live_events.is_left(view, &event, step, usize::MAX) {
            Ok(true) => left.add(event),
            Ok(false) => {}
            Err(error) => looked = Err(error),
        }
        if looked.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    looked.map(|()| left)
}

// Returns the event with the payload of its notification, and the notification. Returns `None` if the
// notification is gone.
fn with_payload(
    view: &dyn View,
    event: &WindowEvent,
) -> Result<Option<(DigestEvent, Notification)>> {
    let notification = notifications::find(view, event.notification_id)?;
    Ok(notification.map(|notification| (event.with_payload(&notification), notification)))
}
