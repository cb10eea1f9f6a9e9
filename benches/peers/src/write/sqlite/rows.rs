//! The rows of a trigger, by hand.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bench_data::Calls;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use tidings::context::{ContextKey, ContextSet, ContextValue};
use tidings::trigger::Trigger;

// What is the same for all recipients is stored once. Rows and index entries that need no order go
// to the ends of their trees. Subscribers are random, so two entries of a notification are.
const TABLES: &str = "
CREATE TABLE subscribers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE triggers (id INTEGER PRIMARY KEY, transaction_id TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL, workflow INTEGER NOT NULL, contexts INTEGER NOT NULL,
  payload TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE INDEX triggers_by_time ON triggers (created_at);
CREATE TABLE notifications (id INTEGER PRIMARY KEY, trigger INTEGER NOT NULL,
  subscriber INTEGER NOT NULL, workflow INTEGER NOT NULL, contexts INTEGER NOT NULL,
  severity INTEGER NOT NULL, channels INTEGER NOT NULL, jobs TEXT NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY, notification INTEGER NOT NULL,
  subscriber INTEGER NOT NULL, state INTEGER NOT NULL, created_at INTEGER NOT NULL,
  subject TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX inbox ON messages (subscriber, state);
";
const LEAN: &str = "
CREATE INDEX by_subscriber ON notifications (subscriber);
CREATE INDEX by_workflow ON notifications (workflow);
CREATE INDEX by_contexts ON notifications (contexts);
CREATE INDEX by_severity ON notifications (severity) WHERE severity > 0;
";
// As in the section `list`, but for topics, of which the triggers have none.
const COVERING: &str = "
CREATE INDEX by_subscriber
  ON notifications (subscriber, id, contexts, workflow, severity, channels);
CREATE INDEX by_workflow
  ON notifications (workflow, id, subscriber, contexts, severity, channels);
CREATE INDEX by_contexts
  ON notifications (contexts, id, subscriber, workflow, severity, channels);
CREATE INDEX by_severity
  ON notifications (severity, id, subscriber, contexts, workflow, channels) WHERE severity > 0;
CREATE TABLE channels (channel INTEGER, id INTEGER, subscriber INTEGER NOT NULL,
  contexts INTEGER NOT NULL, workflow INTEGER NOT NULL, severity INTEGER NOT NULL,
  channels INTEGER NOT NULL, PRIMARY KEY (channel, id)) WITHOUT ROWID;
CREATE TRIGGER in_channel AFTER INSERT ON notifications BEGIN
  INSERT INTO channels VALUES
    (0, new.id, new.subscriber, new.contexts, new.workflow, new.severity, new.channels);
END;
";

/// Lists of notifications.
#[derive(Clone, Copy)]
pub(crate) enum Lists {
    /// The fewest indexes with which no list reads every notification.
    Lean,
    /// Indexes with every column that is searched for, as fast lists need them.
    Covering,
}

/// Makes the tables.
pub(super) fn create(connection: &Connection, lists: Lists) {
    connection.execute_batch(TABLES).unwrap();
    let indexes = match lists {
        Lists::Lean => LEAN,
        Lists::Covering => COVERING,
    };
    connection.execute_batch(indexes).unwrap();
}

// The bit of the only channel.
const IN_APP: i64 = 1;

/// Numbers of workflows and context sets, and of the next notification. The host has them in memory.
pub(super) struct Numbers {
    // With the severity.
    workflows: HashMap<String, (i64, i64)>,
    contexts: HashMap<String, i64>,
    notifications: i64,
}

impl Default for Numbers {
    fn default() -> Self {
        let workflows = Calls::workflows().zip(0..);
        let workflows = workflows.map(|(workflow, number)| {
            (workflow.workflow_id.to_string(), (number, workflow.severity as i64))
        });
        Self { workflows: workflows.collect(), contexts: HashMap::new(), notifications: 1 }
    }
}

impl Numbers {
    /// Returns the name of the context set of that number.
    pub(super) fn contexts(&self, number: i64) -> &str {
        let mut contexts = self.contexts.iter();
        contexts.find(|(_, one)| **one == number).map(|(name, _)| name.as_str()).unwrap()
    }

    fn of_contexts(&mut self, trigger: &Trigger) -> i64 {
        let contexts = trigger.context.iter().flat_map(|contexts| &contexts.0);
        let key = |(kind, value): (&String, &ContextValue)| {
            let ContextValue::Id(id) = value else { panic!("a context is an id") };
            ContextKey::new(kind.as_str(), id.as_str()).unwrap()
        };
        let next = i64::try_from(self.contexts.len()).unwrap();
        let contexts: ContextSet = contexts.map(key).collect();
        *self.contexts.entry(contexts.canonical().to_owned()).or_insert(next)
    }
}

/// Statements that insert the rows of triggers.
pub(super) struct Rows<'c> {
    numbers: &'c mut Numbers,
    find_subscriber: CachedStatement<'c>,
    subscriber: CachedStatement<'c>,
    trigger: CachedStatement<'c>,
    notification: CachedStatement<'c>,
    message: CachedStatement<'c>,
}

impl<'c> Rows<'c> {
    pub(super) fn new(connection: &'c Connection, numbers: &'c mut Numbers) -> Self {
        let prepare = |sql| connection.prepare_cached(sql).unwrap();
        Self {
            numbers,
            find_subscriber: prepare("SELECT id FROM subscribers WHERE name = ?1"),
            subscriber: prepare("INSERT INTO subscribers (name) VALUES (?1)"),
            trigger: prepare("INSERT INTO triggers VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
            notification: prepare(
                "INSERT INTO notifications VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            ),
            message: prepare("INSERT INTO messages VALUES (?1, ?1, ?2, 0, ?3, ?4, ?5)"),
        }
    }

    /// Inserts the rows of a trigger. A transaction id that was used before is an error.
    pub(super) fn insert(&mut self, trigger: &Trigger) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let now = i64::try_from(now).unwrap();
        let (workflow, severity) = self.numbers.workflows[trigger.workflow.as_str()];
        let contexts = self.numbers.of_contexts(trigger);
        let text = |field: &str| trigger.payload[field].as_str().unwrap();
        let (order, city) = (text("order"), text("city"));
        let subject = format!("Order {order}");
        let content = format!("Your order {order} is on its way to {city}.");
        let audience = trigger.audience().unwrap().subscribers;
        let first = self.numbers.notifications;
        let last = first + i64::try_from(audience.len()).unwrap() - 1;
        let payload = serde_json::to_string(&trigger.payload).unwrap();
        let transaction_id = trigger.transaction_id.as_ref().unwrap().as_str();
        let row = params![transaction_id, now, workflow, contexts, payload, first, last];
        let trigger = self.trigger.insert(row).unwrap();
        for (id, recipient) in (first..).zip(audience) {
            let subscriber = self.subscriber(recipient.subscriber_id().as_str());
            let jobs = jobs(id, workflow, now);
            let row = params![id, trigger, subscriber, workflow, contexts, severity, IN_APP, jobs];
            self.notification.execute(row).unwrap();
            self.message.execute(params![id, subscriber, now, subject, content]).unwrap();
        }
        self.numbers.notifications = last + 1;
    }

    fn subscriber(&mut self, name: &str) -> i64 {
        let found = self.find_subscriber.query_row([name], |row| row.get(0)).optional().unwrap();
        found.unwrap_or_else(|| self.subscriber.insert([name]).unwrap())
    }
}

// The job of a notification with its log. The message has the number of the notification.
fn jobs(id: i64, workflow: i64, now: i64) -> String {
    format!(
        r#"[{{"_id":{id},"type":"in_app","step":{workflow},"providerId":"svc","status":"completed","executionDetails":[{{"_id":{id},"createdAt":{now},"status":"Success","detail":"message_created","isRetry":false,"isTest":false,"source":"Internal"}}]}}]"#
    )
}
