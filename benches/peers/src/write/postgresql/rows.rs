//! The rows of triggers, by hand: all rows of a group with one statement, in columns.

use std::collections::{BTreeSet, HashMap};

use postgres::{Client, Statement};
use tidings::trigger::Trigger;

use crate::write::rows::{IN_APP, Numbers};
use crate::write::system::Call;

// The leanest schema that SQLite is given.
const TABLES: &str = "
CREATE SCHEMA tidings_bench;
SET search_path = tidings_bench;
CREATE TABLE subscribers (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE triggers (id bigint PRIMARY KEY, transaction_id text NOT NULL UNIQUE,
  created_at bigint NOT NULL, workflow bigint NOT NULL, contexts bigint NOT NULL,
  payload text NOT NULL, first bigint NOT NULL, last bigint NOT NULL);
CREATE INDEX triggers_by_time ON triggers (created_at);
CREATE TABLE notifications (id bigint PRIMARY KEY, trigger bigint NOT NULL,
  subscriber bigint NOT NULL, workflow bigint NOT NULL, contexts bigint NOT NULL,
  severity bigint NOT NULL, channels bigint NOT NULL, jobs text NOT NULL);
CREATE INDEX by_subscriber ON notifications (subscriber);
CREATE INDEX by_workflow ON notifications (workflow);
CREATE INDEX by_contexts ON notifications (contexts);
CREATE INDEX by_severity ON notifications (severity) WHERE severity > 0;
CREATE TABLE messages (id bigint PRIMARY KEY, notification bigint NOT NULL,
  subscriber bigint NOT NULL, state bigint NOT NULL, created_at bigint NOT NULL,
  subject text NOT NULL, content text NOT NULL);
CREATE INDEX inbox ON messages (subscriber, state);
";

const FIND: &str = "SELECT name, id FROM subscribers WHERE name = ANY ($1)";

const ADD: &str = "INSERT INTO subscribers (name) SELECT unnest($1::text[]) RETURNING name, id";

const INSERT: &str = "
WITH of_triggers AS (
  INSERT INTO triggers SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[],
    $5::bigint[], $6::text[], $7::bigint[], $8::bigint[])
), of_notifications AS (
  INSERT INTO notifications SELECT * FROM unnest($9::bigint[], $10::bigint[], $11::bigint[],
    $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[])
)
INSERT INTO messages SELECT id, id, subscriber, 0, created_at, subject, content
  FROM unnest($9::bigint[], $11::bigint[], $17::bigint[], $18::text[], $19::text[])
    AS m (id, subscriber, created_at, subject, content)";

/// A connection with its statements, and the numbers of the next rows.
pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) numbers: Numbers,
    triggers: i64,
    find: Statement,
    add: Statement,
    insert: Statement,
}

impl Writer {
    pub(super) fn create(mut client: Client) -> Self {
        client.batch_execute(TABLES).unwrap();
        let [find, add, insert] = [FIND, ADD, INSERT].map(|sql| client.prepare(sql).unwrap());
        Self { client, numbers: Numbers::default(), triggers: 0, find, add, insert }
    }

    /// Inserts the rows of calls in one transaction.
    pub(super) fn write(&mut self, calls: &[Call]) {
        let mut columns = Columns::default();
        for trigger in calls.iter().flat_map(|call| call.iter()) {
            self.triggers += 1;
            columns.add(self.triggers, trigger, &mut self.numbers);
        }
        let subscribers = self.subscribers(&columns.recipients);
        let subscribers: Vec<i64> =
            columns.recipients.iter().map(|name| subscribers[name]).collect();
        let Columns { triggers, notifications, .. } = &columns;
        self.client
            .execute(
                &self.insert,
                &[
                    &triggers.id,
                    &triggers.transaction_id,
                    &triggers.now,
                    &triggers.workflow,
                    &triggers.contexts,
                    &triggers.payload,
                    &triggers.first,
                    &triggers.last,
                    &notifications.id,
                    &notifications.trigger,
                    &subscribers,
                    &notifications.workflow,
                    &notifications.contexts,
                    &notifications.severity,
                    &vec![IN_APP; subscribers.len()],
                    &notifications.jobs,
                    &notifications.now,
                    &notifications.subject,
                    &notifications.content,
                ],
            )
            .unwrap();
    }

    // The numbers of subscribers, who are created if they are new.
    fn subscribers(&mut self, names: &[String]) -> HashMap<String, i64> {
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let of = |row: postgres::Row| (row.get(0), row.get(1));
        let all: Vec<&str> = names.iter().copied().collect();
        let found = self.client.query(&self.find, &[&all]).unwrap();
        let mut found: HashMap<String, i64> = found.into_iter().map(of).collect();
        let new: Vec<&str> = names.into_iter().filter(|name| !found.contains_key(*name)).collect();
        if !new.is_empty() {
            let added = self.client.query(&self.add, &[&new]).unwrap();
            found.extend(added.into_iter().map(of));
        }
        found
    }
}

/// The rows of a group, by column.
#[derive(Default)]
struct Columns {
    triggers: Triggers,
    notifications: Notifications,
    recipients: Vec<String>,
}

#[derive(Default)]
struct Triggers {
    id: Vec<i64>,
    transaction_id: Vec<String>,
    now: Vec<i64>,
    workflow: Vec<i64>,
    contexts: Vec<i64>,
    payload: Vec<String>,
    first: Vec<i64>,
    last: Vec<i64>,
}

/// The message of a notification has its number, its subscriber and its time.
#[derive(Default)]
struct Notifications {
    id: Vec<i64>,
    trigger: Vec<i64>,
    now: Vec<i64>,
    workflow: Vec<i64>,
    contexts: Vec<i64>,
    severity: Vec<i64>,
    jobs: Vec<String>,
    subject: Vec<String>,
    content: Vec<String>,
}

impl Columns {
    fn add(&mut self, id: i64, trigger: &Trigger, numbers: &mut Numbers) {
        let row = numbers.take(trigger);
        let of = &mut self.triggers;
        of.id.push(id);
        of.transaction_id.push(row.transaction_id.to_owned());
        of.now.push(row.now);
        of.workflow.push(row.workflow);
        of.contexts.push(row.contexts);
        of.payload.push(row.payload.clone());
        of.first.push(row.first);
        of.last.push(row.last());
        let of = &mut self.notifications;
        for number in row.first..=row.last() {
            of.id.push(number);
            of.trigger.push(id);
            of.now.push(row.now);
            of.workflow.push(row.workflow);
            of.contexts.push(row.contexts);
            of.severity.push(row.severity);
            of.jobs.push(row.jobs(number));
            of.subject.push(row.subject.clone());
            of.content.push(row.content.clone());
        }
        self.recipients.extend(row.recipients);
    }
}
