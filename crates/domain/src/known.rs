//! What templates and conditions know: the subscriber, the payload, the contexts and the workflow.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::json::Object;
use crate::subscriber::Subscriber;
use crate::workflow::Workflow;

/// The names that templates may start with.
pub(crate) const ROOTS: [&str; 7] =
    ["payload", "subscriber", "actor", "context", "workflow", "steps", "t"];
/// What is known of a subscriber.
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
/// What is known of a workflow.
pub(crate) const WORKFLOW_FIELDS: [&str; 2] = ["name", "identifier"];
/// What is known of a context.
pub(crate) const CONTEXT_FIELDS: [&str; 2] = ["id", "data"];

/// What templates and conditions know, under the names that they use.
#[derive(Debug, Serialize)]
pub(crate) struct Known<'a> {
    subscriber: &'a Object,
    payload: &'a Object,
    context: Map<String, Value>,
    workflow: KnownWorkflow<'a>,
}

#[derive(Debug, Serialize)]
struct KnownWorkflow<'a> {
    name: &'a str,
    identifier: &'a str,
}

impl<'a> Known<'a> {
    /// What is known of these. `subscriber` is what [`about`] says.
    pub(crate) fn new(
        subscriber: &'a Object,
        payload: &'a Object,
        contexts: &[Context],
        workflow: &'a Workflow,
    ) -> Self {
        let (name, identifier) = (workflow.name.as_str(), workflow.identifier().as_str());
        let context = contexts.iter().map(by_type).collect();
        Self { subscriber, payload, context, workflow: KnownWorkflow { name, identifier } }
    }

    /// The same as data for conditions.
    pub(crate) fn data(&self) -> Value {
        Object::of(self).into()
    }
}

/// What is known of a subscriber: everything but the channel settings, for they hold secrets.
pub(crate) fn about(subscriber: &Subscriber) -> Object {
    let mut subscriber = subscriber.clone();
    subscriber.profile.channels.clear();
    Object::of(subscriber)
}

fn by_type(context: &Context) -> (String, Value) {
    let id = Value::from(context.key.id());
    let data = Value::from(context.data.clone());
    (context.key.kind().into(), Map::from_iter([("id".into(), id), ("data".into(), data)]).into())
}

#[cfg(test)]
mod tests;
