//! The rows of a trigger, by hand.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use tidings::trigger::Trigger;

use crate::write::rows::{IN_APP, Numbers, TriggerRow};

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
        let row = self.numbers.take(trigger);
        let TriggerRow { transaction_id, now, workflow, contexts, severity, .. } = row;
        let (first, last) = (row.first, row.last());
        let values = params![transaction_id, now, workflow, contexts, row.payload, first, last];
        let trigger = self.trigger.insert(values).unwrap();
        for (id, recipient) in (first..).zip(&row.recipients) {
            let subscriber = self.subscriber(recipient);
            let jobs = row.jobs(id);
            let values =
                params![id, trigger, subscriber, workflow, contexts, severity, IN_APP, jobs];
            self.notification.execute(values).unwrap();
            self.message.execute(params![id, subscriber, now, row.subject, row.content]).unwrap();
        }
    }

    fn subscriber(&mut self, name: &str) -> i64 {
        let found = self.find_subscriber.query_row([name], |row| row.get(0)).optional().unwrap();
        found.unwrap_or_else(|| self.subscriber.insert([name]).unwrap())
    }
}
