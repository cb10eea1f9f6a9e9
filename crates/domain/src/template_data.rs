//! Data for templates and conditions: subscriber, payload, contexts, workflow, results of earlier
//! steps and events of a digest.

mod variables;

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub(crate) use self::variables::Shared;

use crate::condition::Rule;
use crate::contact::TimeZone;
use crate::context::{Context, ContextKey};
use crate::error::Reason;
use crate::ids::WorkflowIdentifier;
use crate::json::Object;
use crate::step::{Digested, Parts, StepResults};
use crate::subscriber::Subscriber;
use crate::suggest::nearest;
use crate::unsubscribe::Link;
use crate::workflow::Workflow;

/// Roots of the variables of templates.
pub(crate) const ROOTS: [&str; 12] = [
    "payload",
    "subscriber",
    "actor",
    "context",
    "workflow",
    "steps",
    "events",
    "first",
    "last",
    "total_count",
    "unsubscribeUrl",
    "t",
];
/// Roots of the variables of layouts.
pub(crate) const FRAME_ROOTS: [&str; 8] =
    ["content", "payload", "subscriber", "actor", "context", "workflow", "unsubscribeUrl", "t"];
/// Variables of the latest digest.
pub(crate) const DIGEST_ROOTS: [&str; 4] = ["events", "first", "last", "total_count"];
/// Fields of a subscriber.
pub(crate) const SUBSCRIBER_FIELDS: [&str; 18] = [
    "subscriberId",
    "firstName",
    "lastName",
    "email",
    "phone",
    "avatar",
    "locale",
    "timezone",
    "data",
    "topics",
    "isOnline",
    "lastOnlineAt",
    "deleted",
    "createdAt",
    "updatedAt",
    "_id",
    "_organizationId",
    "_environmentId",
];
/// Fields of a workflow.
pub(crate) const WORKFLOW_FIELDS: [&str; 2] = ["name", "identifier"];
/// Fields of a context.
pub(crate) const CONTEXT_FIELDS: [&str; 2] = ["id", "data"];

/// Data that a condition sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionRoots {
    /// Data of the conditions of preferences and subscriptions.
    Preference,
    /// Data of the conditions of steps.
    Step,
}

impl ConditionRoots {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Preference => &["payload", "subscriber", "actor", "context", "workflow"],
            Self::Step => &[
                "payload",
                "subscriber",
                "actor",
                "context",
                "workflow",
                "steps",
                "events",
                "first",
                "last",
                "total_count",
            ],
        }
    }
}

/// Refuses a path of a condition that leads nowhere, whatever the data. An empty path and one that
/// starts with a number are valid.
pub(crate) fn check_path(path: &str, roots: ConditionRoots) -> Result<(), Reason> {
    let mut names = path.split('.');
    let (root, second) = (names.next().unwrap_or_default(), names.next());
    let unknown = |name: &str, place: &str, known: &[&'static str]| {
        let meant = nearest(name, known.iter().copied());
        Err(Reason::UnknownVariable {
            variable: path.into(),
            suggestion: meant.map(|meant| format!("{place}{meant}")),
        })
    };
    let field = |name: &str, place: &str, known: &[&'static str]| {
        if known.contains(&name) { Ok(()) } else { unknown(name, place, known) }
    };
    match (root, second) {
        ("subscriber", Some(name)) => field(name, "subscriber.", &SUBSCRIBER_FIELDS),
        ("actor", Some(name)) => field(name, "actor.", &SUBSCRIBER_FIELDS),
        ("workflow", Some(name)) => field(name, "workflow.", &WORKFLOW_FIELDS),
        ("context", Some(kind)) => match names.next() {
            Some(name) => field(name, &format!("context.{kind}."), &CONTEXT_FIELDS),
            None => Ok(()),
        },
        (root, _) if root.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        (root, _) => field(root, "", roots.names()),
    }
}

/// Data for templates and conditions, by root.
#[derive(Debug, Serialize)]
pub struct TemplateData<'a> {
    subscriber: SubscriberData<'a>,
    payload: &'a Object,
    context: ContextsByType<'a>,
    workflow: KnownWorkflow<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<SubscriberData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Parts<'a>>,
    #[serde(flatten)]
    digested: Option<Digested<'a>>,
    // Templates have it, and conditions do not.
    #[serde(skip)]
    link: Option<&'a Link>,
    // Time zone of a subscriber without one.
    #[serde(skip)]
    default_zone: TimeZone,
}

/// Variable with the name of the time zone of a subscriber without one. No template can write it.
pub(crate) const DEFAULT_ZONE: &str = "default zone";

// Contexts by their types.
#[derive(Debug)]
struct ContextsByType<'a>(Vec<(&'a ContextKey, &'a Object)>);

#[derive(Serialize)]
struct KnownContext<'a> {
    id: &'a str,
    data: &'a Object,
}

#[derive(Debug, Serialize)]
struct KnownWorkflow<'a> {
    name: &'a str,
    identifier: &'a str,
}

/// Fields of a subscriber, without the channel settings.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a value lasts for one rendering")]
pub enum SubscriberData<'a> {
    /// Record without the channel settings.
    Record(Cow<'a, Subscriber>),
    /// Result of [`subscriber_data`].
    Object(&'a Object),
}

/// Owned copy of a [`SubscriberData`].
#[derive(Debug)]
enum SubscriberDataOwned {
    Record(Box<Subscriber>),
    Object(Object),
}

impl SubscriberData<'_> {
    fn to_static(&self) -> SubscriberDataOwned {
        match self {
            Self::Record(subscriber) => {
                SubscriberDataOwned::Record(Box::new(Subscriber::clone(subscriber)))
            }
            Self::Object(data) => SubscriberDataOwned::Object(Object::clone(data)),
        }
    }
}

impl<'a> From<&'a Object> for SubscriberData<'a> {
    fn from(data: &'a Object) -> Self {
        Self::Object(data)
    }
}

impl<'a> From<&'a Subscriber> for SubscriberData<'a> {
    fn from(subscriber: &'a Subscriber) -> Self {
        Self::Record(without_channels(subscriber))
    }
}

impl<'a> TemplateData<'a> {
    /// Returns the data.
    pub fn new(
        subscriber: impl Into<SubscriberData<'a>>,
        payload: &'a Object,
        contexts: &'a [Context],
        workflow: &'a Workflow,
    ) -> Self {
        let contexts = contexts.iter().map(|context| (&context.key, &context.data));
        Self::of_parts(subscriber, payload, contexts, (&workflow.name, workflow.identifier()))
    }

    /// Returns the data of contexts and of a workflow that are not stored. The workflow has a name
    /// and an identifier.
    pub fn of_parts(
        subscriber: impl Into<SubscriberData<'a>>,
        payload: &'a Object,
        contexts: impl IntoIterator<Item = (&'a ContextKey, &'a Object)>,
        (name, identifier): (&'a str, &'a WorkflowIdentifier),
    ) -> Self {
        let context = ContextsByType(contexts.into_iter().collect());
        let workflow = KnownWorkflow { name, identifier: identifier.as_str() };
        let (subscriber, actor, steps, digested) = (subscriber.into(), None, None, None);
        let (link, default_zone) = (None, TimeZone::UTC);
        Self { subscriber, payload, context, workflow, actor, steps, digested, link, default_zone }
    }

    /// Adds the subscriber that has caused the event, if there is one.
    #[must_use]
    pub fn with_actor(self, actor: Option<impl Into<SubscriberData<'a>>>) -> Self {
        Self { actor: actor.map(Into::into), ..self }
    }

    /// Adds the results of earlier steps.
    #[must_use]
    pub fn with_steps(self, steps: &'a StepResults) -> Self {
        Self { steps: Some(steps.parts()), ..self }
    }

    /// Adds the events of the latest digest.
    #[must_use]
    pub fn with_digest(self, digested: Digested<'a>) -> Self {
        Self { digested: Some(digested), ..self }
    }

    /// Adds the unsubscribe link of a message.
    #[must_use]
    pub fn with_link(self, link: Option<&'a Link>) -> Self {
        Self { link, ..self }
    }

    /// Sets the time zone of times in texts for a subscriber without one.
    #[must_use]
    pub fn with_default_zone(self, default_zone: TimeZone) -> Self {
        Self { default_zone, ..self }
    }

    /// Returns the data as a value, for conditions.
    pub fn data(&self) -> Value {
        Object::of(self).into()
    }

    /// Returns the data for `rule`, without the events of a digest and the parts of results that it does
    /// not name: a digest may have megabytes of them.
    pub(crate) fn data_for(mut self, rule: &Rule) -> Value {
        let (paths, is_any) = rule.paths();
        // A path also names what is behind it.
        let names = |place: &[&str]| {
            let is_named =
                |path: &&str| path.split('.').zip(place).all(|(one, other)| one == *other);
            is_any || paths.iter().any(is_named)
        };
        if let Some(digested) = self.digested.as_mut().filter(|_| !names(&["events"])) {
            digested.events = &[];
        }
        for (name, parts) in self.steps.iter_mut().flatten() {
            parts.retain(|part, _| names(&["steps", name, part]));
        }
        self.data()
    }
}

/// Returns the fields of a subscriber, without the channel settings.
pub fn subscriber_data(subscriber: &Subscriber) -> Object {
    Object::of(without_channels(subscriber))
}

// The channel settings hold secrets.
fn without_channels(subscriber: &Subscriber) -> Cow<'_, Subscriber> {
    let mut subscriber = Cow::Borrowed(subscriber);
    if !subscriber.profile.channels.is_empty() {
        subscriber.to_mut().profile.channels.clear();
    }
    subscriber
}

impl Serialize for ContextsByType<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.iter();
        to.collect_map(entries.map(|(key, data)| (key.kind(), KnownContext { id: key.id(), data })))
    }
}

#[cfg(test)]
mod tests;
