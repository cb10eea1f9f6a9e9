//! PostgreSQL, with the schema that SQLite has, in its own terms.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls, Statement};

use crate::list::facts::{Fact, Transaction, channels};
use crate::list::sql::{Dialect, Way};
use crate::list::system::{Peer, System};

/// How many notifications are put into it: more would take longer than everything else together.
pub(crate) const MOST: u64 = 1_100_000;

const TABLES: [&str; 5] = ["notifications", "channels", "topics", "subscriptions", "transactions"];
const CREATE: &str = "
DROP SCHEMA IF EXISTS tidings_bench CASCADE;
CREATE SCHEMA tidings_bench;
SET search_path = tidings_bench;
CREATE TABLE notifications (ordinal bigint NOT NULL, created_at bigint NOT NULL,
  subscriber int NOT NULL, contexts int NOT NULL, workflow smallint NOT NULL,
  severity smallint NOT NULL, channels smallint NOT NULL);
CREATE TABLE channels (ordinal bigint NOT NULL, channel int NOT NULL, subscriber int NOT NULL,
  contexts int NOT NULL, workflow smallint NOT NULL, severity smallint NOT NULL,
  channels smallint NOT NULL);
CREATE TABLE topics (ordinal bigint NOT NULL, topic int NOT NULL, subscriber int NOT NULL,
  contexts int NOT NULL, workflow smallint NOT NULL, severity smallint NOT NULL,
  channels smallint NOT NULL);
CREATE TABLE subscriptions (ordinal bigint NOT NULL, subscription int NOT NULL,
  subscriber int NOT NULL, contexts int NOT NULL, workflow smallint NOT NULL,
  severity smallint NOT NULL, channels smallint NOT NULL);
CREATE TABLE transactions (name text NOT NULL, first bigint NOT NULL, last bigint NOT NULL);
";
const INDEXES: &str = "
ALTER TABLE notifications ADD PRIMARY KEY (ordinal);
CREATE INDEX by_time ON notifications (created_at, ordinal);
CREATE INDEX by_subscriber ON notifications (subscriber, ordinal)
  INCLUDE (contexts, workflow, severity, channels);
CREATE INDEX by_workflow ON notifications (workflow, ordinal)
  INCLUDE (subscriber, contexts, severity, channels);
CREATE INDEX by_contexts ON notifications (contexts, ordinal)
  INCLUDE (subscriber, workflow, severity, channels);
CREATE INDEX by_severity ON notifications (severity, ordinal)
  INCLUDE (subscriber, contexts, workflow, channels) WHERE severity > 0;
CREATE INDEX in_channel ON channels (channel, ordinal)
  INCLUDE (subscriber, contexts, workflow, severity, channels);
CREATE INDEX in_topic ON topics (topic, ordinal)
  INCLUDE (subscriber, contexts, workflow, severity, channels);
CREATE INDEX in_subscription ON subscriptions (subscription, ordinal)
  INCLUDE (subscriber, contexts, workflow, severity, channels);
CREATE INDEX by_name ON transactions (name) INCLUDE (first, last);
";
const SETTINGS: &str = "
SET search_path = tidings_bench;
SET synchronous_commit = off;
SET jit = off;
SET random_page_cost = 1.1;
SET max_parallel_workers_per_gather = 0;
SET maintenance_work_mem = '512MB';
SET work_mem = '64MB';
SET client_min_messages = warning;
";

/// A schema of a server, which is dropped in the end.
pub(crate) struct Postgres {
    client: Client,
    url: String,
}

impl Postgres {
    pub(crate) fn create(url: &str) -> Self {
        let mut client = connect(url);
        client.batch_execute(CREATE).unwrap();
        Self { client, url: url.into() }
    }
}

impl Peer for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn append(&mut self, triggered: &[Transaction]) {
        let mut lines: [String; 5] = Default::default();
        for one in triggered {
            write(one, &mut lines);
        }
        let mut transaction = self.client.transaction().unwrap();
        for (table, lines) in TABLES.iter().zip(&lines) {
            let mut copy = transaction.copy_in(&format!("COPY {table} FROM STDIN")).unwrap();
            copy.write_all(lines.as_bytes()).unwrap();
            copy.finish().unwrap();
        }
        transaction.commit().unwrap();
    }

    fn index(&mut self) {
        self.client.batch_execute(INDEXES).unwrap();
    }

    fn settle(&mut self) -> u64 {
        for table in TABLES {
            self.client.batch_execute(&format!("VACUUM (ANALYZE) {table}")).unwrap();
        }
        self.client.batch_execute("CHECKPOINT").unwrap();
        let sql = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                   WHERE relnamespace = 'tidings_bench'::regnamespace AND relkind = 'r'";
        let bytes: i64 = self.client.query_one(sql, &[]).unwrap().get(0);
        u64::try_from(bytes).unwrap()
    }

    fn reopen(&self, way: &Way) -> Duration {
        let start = Instant::now();
        connect(&self.url).query(way.sql.as_str(), &[]).unwrap();
        start.elapsed()
    }

    fn index_combinations(&mut self) -> bool {
        false
    }

    fn prepare<'s>(&'s mut self, ways: &[&Way]) -> Box<dyn System + 's> {
        let prepare = |way: &&Way| self.client.prepare(&way.sql).unwrap();
        let statements = ways.iter().map(prepare).collect();
        Box::new(Prepared { client: &mut self.client, statements })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // What is left there is dropped by the next run.
        drop(self.client.batch_execute("DROP SCHEMA IF EXISTS tidings_bench CASCADE"));
    }
}

fn connect(url: &str) -> Client {
    let mut client = Client::connect(url, NoTls).unwrap();
    client.batch_execute(SETTINGS).unwrap();
    client
}

// One line for each row, by table.
fn write(Transaction { name, facts }: &Transaction, lines: &mut [String; 5]) {
    let [notifications, in_channels, in_topics, in_subscriptions, transactions] = lines;
    let (first, last) = (facts[0].ordinal, facts[facts.len() - 1].ordinal);
    writeln!(transactions, "{name}\t{first}\t{last}").unwrap();
    for fact in facts {
        let Fact { ordinal, created_at, .. } = *fact;
        writeln!(notifications, "{ordinal}\t{created_at}\t{}", columns(fact)).unwrap();
        let link = |lines: &mut String, key: i64| {
            writeln!(lines, "{ordinal}\t{key}\t{}", columns(fact)).unwrap();
        };
        channels(fact.channels).for_each(|channel| link(in_channels, channel));
        for (topic, subscription) in &fact.topics {
            link(in_topics, *topic);
            link(in_subscriptions, *subscription);
        }
    }
}

fn columns(fact: &Fact) -> String {
    let Fact { subscriber, contexts, workflow, severity, channels, .. } = fact;
    format!("{subscriber}\t{contexts}\t{workflow}\t{severity}\t{channels}")
}

struct Prepared<'p> {
    client: &'p mut Client,
    statements: Vec<Statement>,
}

impl System for Prepared<'_> {
    fn find(&mut self, shape: usize) -> Vec<i64> {
        let rows = self.client.query(&self.statements[shape], &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}
