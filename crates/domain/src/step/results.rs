//! Results of the steps of a run, for the conditions and templates of later steps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StepDefinition, StepKind, WorkflowStep};
use crate::ids::TransactionId;
use crate::json::{self, Object};
use crate::time::Timestamp;

/// Number of events in the result of a digest.
pub(super) const EVENT_COUNT: &str = "eventCount";
/// Status in a result.
const STATUS: &str = "status";

/// Results of the steps of a run so far. A result is found by the id of its step, and by the `uuid`
/// and the `name` if the step has them. If several steps of a stored workflow have the same name, the
/// last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepResults(BTreeMap<String, StepResult>);

// The names of a step share the output, and so do clones: the events of a digest may have megabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StepResult {
    status: Value,
    output: Object,
}

/// Parts of the results, by the names of their steps.
pub(crate) type Parts<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Value>>;

/// Result of a step.
#[derive(Clone, Copy, Debug)]
pub enum StepOutput<'a> {
    /// Only the status changes. What the step has so far stays.
    Nothing,
    /// State of a message.
    Message {
        /// `true` if the subscriber has seen it.
        seen: bool,
        /// `true` if the subscriber has read it.
        read: bool,
    },
    /// Value that the handler of a custom step has returned.
    Value(&'a Value),
    /// Events of a digest.
    Digest(Digested<'a>),
}

/// Event that a digest has collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestEvent {
    /// Transaction id of its trigger.
    pub id: TransactionId,
    /// Time of its trigger.
    pub time: Timestamp,
    /// Payload of its trigger.
    pub payload: Object,
}

/// Events that a digest has collected, for templates and conditions: `events`, `first`, `last` and
/// `total_count`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Digested<'a> {
    pub(crate) events: &'a [DigestEvent],
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<&'a DigestEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<&'a DigestEvent>,
    total_count: u64,
}

impl<'a> Digested<'a> {
    /// Returns a digest of `total_count` events. `events` are the first ones, in the order of their
    /// arrival, and `last` is the latest one of all.
    pub fn new(events: &'a [DigestEvent], last: Option<&'a DigestEvent>, total_count: u64) -> Self {
        Self { events, first: events.first(), last: last.or(events.last()), total_count }
    }
}

impl StepResults {
    /// Adds the result of `step`, or changes its status if `output` adds nothing. `status` is the word
    /// of its job's status.
    pub fn insert(&mut self, step: &WorkflowStep, status: &str, output: StepOutput<'_>) {
        let mut result = Object::default();
        match output {
            StepOutput::Nothing => {
                let before = self.0.get(&step.id.to_string());
                result = before.map(|before| before.output.clone()).unwrap_or_default();
            }
            StepOutput::Message { seen, read } => {
                result.insert("seen".into(), seen.into());
                result.insert("read".into(), read.into());
            }
            StepOutput::Value(value) => {
                result.insert("result".into(), value.clone());
            }
            StepOutput::Digest(Digested { events, total_count, .. }) => {
                let events = events.iter().map(|event| Object::of(event).into()).collect();
                result.insert("events".into(), Value::Array(events));
                result.insert(EVENT_COUNT.into(), total_count.into());
            }
        }
        let result = StepResult { status: status.into(), output: result };
        for name in step.names() {
            self.0.insert(name, result.clone());
        }
    }

    /// Returns the value at a path such as `mail.seen`. A step with exactly this name, dots included, comes
    /// first.
    pub(crate) fn find(&self, path: &str) -> Option<Cow<'_, Value>> {
        if let Some(result) = self.0.get(path) {
            return Some(Cow::Owned(Object::of(result.parts()).into()));
        }
        let (name, path) = path.split_once('.')?;
        let (part, inside) = match path.split_once('.') {
            Some((part, inside)) => (part, Some(inside)),
            None => (path, None),
        };
        let part = self.0.get(name)?.part(part)?;
        inside.map_or(Some(part), |inside| json::find(part, inside)).map(Cow::Borrowed)
    }

    /// Returns the parts of all results.
    pub(crate) fn parts(&self) -> Parts<'_> {
        self.0.iter().map(|(name, result)| (name.as_str(), result.parts())).collect()
    }
}

impl StepResult {
    fn part(&self, name: &str) -> Option<&Value> {
        if name == STATUS { Some(&self.status) } else { self.output.get(name) }
    }

    fn parts(&self) -> BTreeMap<&str, &Value> {
        let output = self.output.iter().map(|(name, part)| (name.as_str(), part));
        output.chain([(STATUS, &self.status)]).collect()
    }
}

impl StepKind {
    /// Returns the names in the result of such a step: those that [`StepResults::insert`] writes.
    pub(super) const fn result_parts(&self) -> &'static [&'static str] {
        match self {
            StepKind::InApp { .. }
            | StepKind::Email { .. }
            | StepKind::Sms { .. }
            | StepKind::Chat { .. }
            | StepKind::Push { .. } => &["status", "seen", "read"],
            StepKind::Digest { .. } => &["status", "events", EVENT_COUNT],
            StepKind::Custom { .. } => &["status", "result"],
            StepKind::Delay { .. } | StepKind::Throttle { .. } => &["status"],
        }
    }
}

impl WorkflowStep {
    /// Returns the names by which conditions and templates may refer to the step. The id comes last.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let StepDefinition { name, uuid, .. } = &self.definition;
        let given = [name, uuid].into_iter().flatten().cloned();
        given.chain([self.id.to_string()])
    }

    pub(crate) const fn is_digest(&self) -> bool {
        matches!(self.definition.kind, StepKind::Digest { .. })
    }

    pub(crate) const fn is_inactive_digest(&self) -> bool {
        self.is_digest() && !self.definition.active
    }
}
