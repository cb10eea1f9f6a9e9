//! The same rows by hand in PostgreSQL.

use std::sync::Mutex;

use postgres::{Client, NoTls};
use tidings::ids::SubscriberId;

use crate::write::group::Group;
use crate::write::postgresql::rows::Writer;
use crate::write::system::{Call, System};

mod rows;

/// The schemas of the systems that are compared, which are dropped in the end.
pub(crate) struct Schemas(Client);

impl Schemas {
    pub(crate) const OF_TIDINGS: &str = "tidings_bench_store";

    /// Drops what an earlier run has left there.
    pub(crate) fn create(url: &str) -> Self {
        let mut schemas = Self(Client::connect(url, NoTls).unwrap());
        schemas.clear().unwrap();
        schemas
    }

    fn clear(&mut self) -> Result<(), postgres::Error> {
        self.0.batch_execute(
            "SET client_min_messages = warning;
            DROP SCHEMA IF EXISTS tidings_bench CASCADE;
            DROP SCHEMA IF EXISTS tidings_bench_store CASCADE;",
        )
    }
}

impl Drop for Schemas {
    fn drop(&mut self) {
        // What is left there is dropped by the next run.
        drop(self.clear());
    }
}

/// A connection, with the group commit of a careful host.
pub(crate) struct Postgres {
    group: Group,
    writer: Mutex<Writer>,
}

impl Postgres {
    /// Makes the tables.
    pub(crate) fn create(url: &str) -> Self {
        let client = Client::connect(url, NoTls).unwrap();
        Self { group: Group::default(), writer: Mutex::new(Writer::create(client)) }
    }
}

impl System for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn write(&self, call: &Call) {
        self.group.write(call, |calls| self.writer.lock().unwrap().write(calls));
    }

    fn fill(&mut self, calls: &mut dyn Iterator<Item = Call>) {
        let writer = self.writer.get_mut().unwrap();
        writer.client.batch_execute("SET synchronous_commit = off").unwrap();
        calls.for_each(|call| writer.write(&[call]));
        let settle = "SET synchronous_commit = on; VACUUM ANALYZE subscribers, notifications;";
        settle.split_inclusive(';').for_each(|sql| writer.client.batch_execute(sql).unwrap());
        writer.client.batch_execute("CHECKPOINT").unwrap();
    }

    fn has_a_file(&self) -> bool {
        false
    }

    fn reopen(&mut self) {
        unreachable!("the server keeps its cache");
    }

    fn inbox(&self, subscriber: &SubscriberId) -> Vec<String> {
        let sql = "SELECT m.content FROM subscribers s JOIN messages m ON m.subscriber = s.id
            WHERE s.name = $1 ORDER BY m.id DESC LIMIT 100";
        let rows = self.writer.lock().unwrap().client.query(sql, &[&subscriber.as_str()]).unwrap();
        let mut texts: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        texts.sort();
        texts
    }

    fn listed(&self, subscriber: &SubscriberId) -> Vec<String> {
        let sql = "SELECT n.workflow, n.contexts, t.payload::json -> 'order',
            n.jobs::json #>> '{0,executionDetails,0,detail}'
            FROM subscribers s JOIN notifications n ON n.subscriber = s.id
            JOIN triggers t ON t.id = n.trigger
            WHERE s.name = $1 ORDER BY n.id DESC LIMIT 50";
        let mut writer = self.writer.lock().unwrap();
        let rows = writer.client.query(sql, &[&subscriber.as_str()]).unwrap();
        let line = |row: &postgres::Row| {
            let contexts = writer.numbers.contexts(row.get(1));
            let (workflow, detail): (i64, String) = (row.get(0), row.get(3));
            let order: serde_json::Value = row.get(2);
            format!("Workflow {workflow}, {contexts}, {order}, {detail}")
        };
        let mut lines: Vec<_> = rows.iter().map(line).collect();
        lines.sort();
        lines
    }
}
