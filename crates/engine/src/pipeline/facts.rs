//! Records that the plans of a notification depend on.

use std::collections::HashMap;
use std::sync::Arc;

use domain::connection::ChannelConnection;
use domain::contact::{Email, TimeZone};
use domain::context::{Context, ContextSet};
use domain::endpoint::{ChannelEndpoint, Endpoint};
use domain::explain::EvidenceLog;
use domain::ids::{EnvironmentId, InternalSubscriberId, MessageId, TransactionId, WorkflowId};
use domain::integration::Integration;
use domain::layout::FrameRef;
use domain::message::Message;
use domain::notification::Notification;
use domain::page::OrderBy;
use domain::plan::{ConnectedEndpoint, Facts, Run};
use domain::preference::{Preference, SubscriberPreference};
use domain::schedule::Schedule;
use domain::subscriber::Subscriber;
use domain::suppression::{SuppressedAddress, Suppression};
use domain::time::Timestamp;
use domain::translation::Texts;
use domain::vocabulary::{Channel, StepType};
use domain::workflow::Workflow;
use store::{Order, ReadRecords, Table, layout};

use crate::Result;
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::texts;
use crate::resources::{contexts, integrations, subscribers, suppressions, workflows};
use crate::tx::View;

/// Records that the plans of a notification depend on, as of one snapshot.
#[derive(Debug)]
pub(crate) struct RunFacts {
    pub(crate) subscriber: Option<Subscriber>,
    actor: Option<Subscriber>,
    pub(crate) workflow: Option<Arc<Workflow>>,
    contexts: Vec<Context>,
    preferences: Preferences,
    integrations: Vec<Arc<Integration>>,
    texts: Option<Texts>,
    endpoints: Vec<ConnectedEndpoint>,
    suppressions: Vec<Suppression>,
    pub(crate) liveness: Liveness,
}

/// Liveness of the event of a notification, as its jobs depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// The event was not canceled. The plan compares its expiry with the time.
    Live,
    /// The event was canceled, and its digests have no other live event.
    Canceled,
    /// A digest has another live event. The jobs go on for it, also if this one was canceled or has expired.
    KeptAlive,
}

/// Preferences of a subscriber for a set of contexts.
#[derive(Debug)]
pub(crate) struct Preferences {
    global: Option<Preference>,
    specific: Option<Preference>,
    schedule: Option<Schedule>,
    evidence: Option<Arc<EvidenceLog>>,
    default_zone: TimeZone,
}

impl RunFacts {
    /// Returns `true` if the workflow is paused, so that nothing of it goes on.
    pub(crate) fn is_workflow_paused(&self) -> bool {
        self.workflow.as_deref().is_some_and(Workflow::is_paused)
    }

    /// Returns `true` if the jobs are canceled with their event.
    pub(crate) fn is_canceled(&self) -> bool {
        self.liveness == Liveness::Canceled
    }

    /// Lets the jobs behind a window that has closed go on for its live events.
    pub(crate) fn keep_alive(&mut self) {
        self.liveness = Liveness::KeptAlive;
    }

    /// Returns the records of a notification at the time of `live_events`, for the job of that number and those
    /// behind it.
    pub(crate) fn of(
        view: &dyn View,
        notification: &Notification,
        job: usize,
        live_events: &LiveEvents,
    ) -> Result<Self> {
        prefetch(view, notification)?;
        // A scan takes what is prefetched with it, so that a server is asked once.
        let integrations = integrations::all(view)?;
        let canceled = is_canceled(view, &notification.transaction_id)?;
        let is_over = canceled || notification.has_expired(live_events.now());
        let liveness = if is_over && live_events.has_others(view, notification, job)? {
            Liveness::KeptAlive
        } else if canceled {
            Liveness::Canceled
        } else {
            Liveness::Live
        };
        let (subscriber, workflow) = (notification.subscriber_id, notification.workflow_id);
        let find = |id| subscribers::find_by_id(view, id);
        let (reader, known) = (find(subscriber)?, workflow_of(view, notification)?);
        Ok(Self {
            actor: notification.actor_id.map_or(Ok(None), find)?,
            texts: match &known {
                Some(workflow) => texts::of_workflow(view, workflow, reader.as_ref())?,
                None => None,
            },
            subscriber: reader,
            workflow: known,
            contexts: contexts::known(view, &notification.context_keys)?,
            preferences: Preferences::of(view, subscriber, &notification.context_keys, workflow)?,
            integrations,
            endpoints: Vec::new(),
            suppressions: Vec::new(),
            liveness,
        })
    }

    pub(crate) fn facts(&self, now: Timestamp) -> Facts<'_> {
        Facts {
            integrations: &self.integrations,
            endpoints: &self.endpoints,
            suppressions: &self.suppressions,
            canceled: self.is_canceled(),
            actor: self.actor.as_ref(),
            texts: self.texts.as_ref(),
            ..self.preferences.facts(
                self.subscriber.as_ref(),
                self.workflow.as_deref(),
                &self.contexts,
                now,
            )
        }
    }

    /// Adds the endpoints of the subscriber at the integrations of a text, chat or push message,
    /// for the contexts of the notification.
    pub(crate) fn with_endpoints(
        mut self,
        view: &dyn View,
        notification: &Notification,
        kind: StepType,
    ) -> Result<Self> {
        let channel = kind
            .channel()
            .filter(|one| matches!(one, Channel::Sms | Channel::Chat | Channel::Push));
        let (Some(channel), Some(subscriber)) = (channel, &self.subscriber) else {
            return Ok(self);
        };
        let (subscriber, contexts) = (&subscriber.subscriber_id, &notification.context_keys);
        let sending = self.integrations.iter();
        for integration in sending.filter(|one| one.is_active() && one.channel == channel) {
            let (environment, order) = (view.environment_id(), OrderBy::Id);
            let list = layout::channel_list(
                environment,
                order,
                integration.id,
                Some(subscriber),
                Some(contexts),
            );
            let endpoints =
                view.first(&list.range(), Order::Ascending, ChannelEndpoint::MAX_PER_INTEGRATION)?;
            for endpoint in endpoints {
                let connection = connection_of(view, &endpoint)?;
                self.endpoints.push(ConnectedEndpoint { endpoint, connection });
            }
        }
        Ok(self)
    }

    /// Adds the suppressions of the subscriber's addresses on the channel of a message that are in
    /// force at `now`.
    pub(crate) fn with_suppressions(
        mut self,
        view: &dyn View,
        kind: StepType,
        now: Timestamp,
    ) -> Result<Self> {
        let Some(profile) = self.subscriber.as_ref().map(|subscriber| &subscriber.profile) else {
            return Ok(self);
        };
        let endpoints = self.endpoints.iter().map(|one| &one.endpoint.endpoint);
        let (channel, texts): (_, Vec<&str>) = match kind.channel() {
            Some(channel @ Channel::Email) => {
                (channel, profile.email.iter().map(Email::as_str).collect())
            }
            Some(channel @ Channel::Sms) => {
                let numbers = endpoints.filter_map(|endpoint| match endpoint {
                    Endpoint::Phone { phone_number } => Some(phone_number.as_str()),
                    _ => None,
                });
                (channel, numbers.chain(profile.phone.as_deref()).collect())
            }
            Some(Channel::InApp | Channel::Chat | Channel::Push) | None => return Ok(self),
        };
        // A number without a normal form is in no list.
        let known = texts.into_iter().filter_map(|text| SuppressedAddress::new(channel, text).ok());
        for address in known {
            if let Some(mut found) = suppressions::in_force(view, &address, now)? {
                // Of an erased address, the store has a hash.
                found.address = address;
                self.suppressions.push(found);
            }
        }
        Ok(self)
    }

    /// Returns the run of a notification, with the results that its steps refer to.
    pub(crate) fn run<'n>(
        &self,
        view: &dyn View,
        notification: &'n Notification,
    ) -> Result<Run<'n>> {
        let workflow = self.workflow.as_deref();
        let mut run = Run::of(notification);
        run.expires_at = run.expires_at.filter(|_| self.liveness != Liveness::KeptAlive);
        let Some(workflow) = workflow else { return Ok(run) };
        run = run.past_digests_without_jobs(workflow);
        if !workflow.refers_to_results() {
            return Ok(run);
        }
        let ids: Vec<_> = notification.jobs.iter().filter_map(|job| job.message_id).collect();
        let key = |id: &MessageId| layout::message(view.environment_id(), id.place());
        let keys: Vec<_> = ids.iter().map(key).collect();
        let found = view.find_many::<Message>(&keys)?.into_iter().flatten();
        let stages: HashMap<_, _> = found.map(|message| (message.id, message.stage)).collect();
        Ok(run.with_results(notification, workflow, |id| stages.get(&id).copied()))
    }
}

// Tells the store which rows of a notification the facts are read from.
fn prefetch(view: &dyn View, notification: &Notification) -> Result<()> {
    let (environment, subscriber) = (view.environment_id(), notification.subscriber_id);
    let canceled = layout::canceled_trigger(environment, &notification.transaction_id);
    let people = [Some(subscriber), notification.actor_id].into_iter().flatten();
    let people = people.map(|id| layout::subscriber_id(environment, id).into_parts());
    let contexts = &notification.context_keys;
    let preferences = notification
        .workflow_id
        .map(|workflow| Preferences::keys(environment, subscriber, contexts, workflow));
    let preferences = preferences.into_iter().flatten();
    let mut keys = people.chain([canceled.into_parts()]).chain(preferences);
    Ok(view.prefetch(&mut keys)?)
}

impl Preferences {
    /// The keys of the preferences of a subscriber, with their tables.
    pub(crate) fn keys(
        environment: EnvironmentId,
        subscriber: InternalSubscriberId,
        contexts: &ContextSet,
        workflow: WorkflowId,
    ) -> [(Table, Vec<u8>); 3] {
        let everywhere = &ContextSet::default();
        [(contexts, Some(workflow)), (contexts, None), (everywhere, None)].map(|(contexts, of)| {
            layout::preference(environment, subscriber, contexts, of).into_parts()
        })
    }

    /// Returns the preferences of a subscriber.
    pub(crate) fn of(
        view: &dyn View,
        subscriber: InternalSubscriberId,
        contexts: &ContextSet,
        workflow: Option<WorkflowId>,
    ) -> Result<Self> {
        let find = |contexts: &ContextSet, workflow: Option<WorkflowId>| {
            let environment = view.environment_id();
            let key = layout::preference(environment, subscriber, contexts, workflow);
            view.find::<SubscriberPreference>(&key)
        };
        let specific = workflow.map_or(Ok(None), |id| find(contexts, Some(id)))?;
        let global = find(contexts, None)?;
        let mut schedule = global.as_ref().and_then(|global| global.schedule().cloned());
        // Quiet hours are a person's: those without a context hold in every context.
        if schedule.is_none() && !contexts.is_empty() {
            let everywhere = find(&ContextSet::default(), None)?;
            schedule = everywhere.and_then(|global| global.schedule().cloned());
        }
        let preference = |said: Option<SubscriberPreference>| said.map(|said| said.preference);
        let (global, specific) = (preference(global), preference(specific));
        let parts = &view.engine().parts;
        let (evidence, default_zone) = (parts.evidence().cloned(), parts.settings.default_timezone);
        Ok(Self { global, specific, schedule, evidence, default_zone })
    }

    /// Returns the facts of a turn at `now` with these preferences.
    pub(crate) fn facts<'a>(
        &'a self,
        subscriber: Option<&'a Subscriber>,
        workflow: Option<&'a Workflow>,
        contexts: &'a [Context],
        now: Timestamp,
    ) -> Facts<'a> {
        Facts {
            subscriber,
            actor: None,
            workflow,
            contexts,
            global: self.global.as_ref(),
            specific: self.specific.as_ref(),
            integrations: &[],
            endpoints: &[],
            schedule: self.schedule.as_ref(),
            canceled: false,
            evidence: self.evidence.as_deref(),
            texts: None,
            layout: FrameRef::BARE,
            link: None,
            default_zone: self.default_zone,
            suppressions: &[],
            now,
        }
    }
}

// The connection that an endpoint names, or else that of its subscriber or of its contexts.
fn connection_of(view: &dyn View, endpoint: &ChannelEndpoint) -> Result<Option<ChannelConnection>> {
    let environment = view.environment_id();
    if let Some(identifier) = &endpoint.connection_identifier {
        let found: Option<ChannelConnection> =
            view.find(&layout::connection(environment, identifier))?;
        // One that was created again may be another integration's, whose token is not for this one.
        return Ok(found.filter(|found| found.integration_id == endpoint.integration_id));
    }
    for subscriber in [Some(&endpoint.subscriber_id), None] {
        let (integration, contexts) = (endpoint.integration_id, &endpoint.context_keys);
        let key = layout::connection_owner(environment, integration, subscriber, contexts);
        if let Some(found) = view.find(&key)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns `true` if the event was canceled.
pub(crate) fn is_canceled(view: &dyn View, id: &TransactionId) -> Result<bool> {
    Ok(view.contains(&layout::canceled_trigger(view.environment_id(), id))?)
}

/// The workflow of the notification. Returns `None` if it was deleted.
pub(crate) fn workflow_of(
    view: &dyn View,
    notification: &Notification,
) -> Result<Option<Arc<Workflow>>> {
    notification.workflow_id.map_or(Ok(None), |id| workflows::find_by_id(view, id))
}
