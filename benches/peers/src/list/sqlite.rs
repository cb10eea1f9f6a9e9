//! SQLite, with a schema that is made for these questions.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Statement, params};

use crate::list::facts::{Fact, Transaction, channels};
use crate::list::sql::{Dialect, Way};
use crate::list::system::{Peer, System};

// A rowid is an ordinal. A list has every column that is searched for behind its key, so that a
// search never leaves it. The lists of what a notification can have several of are tables, and the
// others are indexes, which are made when most rows are there.
const TABLES: &str = "
CREATE TABLE notifications (ordinal INTEGER PRIMARY KEY, created_at INTEGER NOT NULL,
  subscriber INTEGER NOT NULL, contexts INTEGER NOT NULL, workflow INTEGER NOT NULL,
  severity INTEGER NOT NULL, channels INTEGER NOT NULL);
CREATE TABLE channels (channel INTEGER, ordinal INTEGER, subscriber INTEGER NOT NULL,
  contexts INTEGER NOT NULL, workflow INTEGER NOT NULL, severity INTEGER NOT NULL,
  channels INTEGER NOT NULL, PRIMARY KEY (channel, ordinal)) WITHOUT ROWID;
CREATE TABLE topics (topic INTEGER, ordinal INTEGER, subscriber INTEGER NOT NULL,
  contexts INTEGER NOT NULL, workflow INTEGER NOT NULL, severity INTEGER NOT NULL,
  channels INTEGER NOT NULL, PRIMARY KEY (topic, ordinal)) WITHOUT ROWID;
CREATE TABLE subscriptions (subscription INTEGER, ordinal INTEGER, subscriber INTEGER NOT NULL,
  contexts INTEGER NOT NULL, workflow INTEGER NOT NULL, severity INTEGER NOT NULL,
  channels INTEGER NOT NULL, PRIMARY KEY (subscription, ordinal)) WITHOUT ROWID;
CREATE TABLE transactions (name TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL)
  WITHOUT ROWID;
";
const INDEXES: &str = "
CREATE INDEX by_time ON notifications (created_at);
CREATE INDEX by_subscriber
  ON notifications (subscriber, ordinal, contexts, workflow, severity, channels);
CREATE INDEX by_workflow
  ON notifications (workflow, ordinal, subscriber, contexts, severity, channels);
CREATE INDEX by_contexts
  ON notifications (contexts, ordinal, subscriber, workflow, severity, channels);
CREATE INDEX by_severity
  ON notifications (severity, ordinal, subscriber, contexts, workflow, channels)
  WHERE severity > 0;
ANALYZE;
";
// Lists for the combinations of terms that are asked for. Nobody has one for every combination.
const COMBINATIONS: &str = "
CREATE TABLE workflow_channels (workflow INTEGER, channel INTEGER, ordinal INTEGER,
  subscriber INTEGER NOT NULL, PRIMARY KEY (workflow, channel, ordinal)) WITHOUT ROWID;
INSERT INTO workflow_channels SELECT workflow, channel, ordinal, subscriber FROM channels
  ORDER BY 1, 2, 3;
CREATE INDEX by_three ON notifications (contexts, workflow, severity, ordinal, channels);
ANALYZE;
";
const SETTINGS: &str = "
PRAGMA page_size = 4096;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 8192;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 2147418112;
PRAGMA cache_size = -524288;
";
const LINK: &str = "(?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// A database in a file.
pub(crate) struct Sqlite {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    pub(crate) fn create(path: &Path) -> Self {
        let sqlite = Self::open(path);
        sqlite.connection.execute_batch(TABLES).unwrap();
        sqlite
    }

    pub(crate) fn open(path: &Path) -> Self {
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).unwrap();
        connection.execute_batch(SETTINGS).unwrap();
        connection.set_prepared_statement_cache_capacity(64);
        Self { connection, path: path.into() }
    }

    fn append_one(&self, Transaction { name, facts }: &Transaction) {
        let sql = "INSERT INTO transactions VALUES (?1, ?2, ?3)";
        let ordinals = (facts[0].ordinal, facts[facts.len() - 1].ordinal);
        let mut insert = self.connection.prepare_cached(sql).unwrap();
        insert.execute(params![name, ordinals.0, ordinals.1]).unwrap();
        let into = |table| {
            let sql = format!("INSERT INTO {table} VALUES {LINK}");
            self.connection.prepare_cached(&sql).unwrap()
        };
        let mut notifications = into("notifications");
        let mut lists = [into("channels"), into("topics"), into("subscriptions")];
        for fact in facts {
            let Fact { ordinal, created_at, subscriber, contexts, workflow, severity, .. } = *fact;
            let row = params![
                ordinal,
                created_at,
                subscriber,
                contexts,
                workflow,
                severity,
                fact.channels
            ];
            notifications.execute(row).unwrap();
            let [in_channels, in_topics, in_subscriptions] = &mut lists;
            channels(fact.channels).for_each(|channel| link(in_channels, channel, fact));
            for (topic, subscription) in &fact.topics {
                link(in_topics, *topic, fact);
                link(in_subscriptions, *subscription, fact);
            }
        }
    }
}

fn link(list: &mut Statement<'_>, key: i64, fact: &Fact) {
    let Fact { ordinal, subscriber, contexts, workflow, severity, channels, .. } = *fact;
    let row = params![key, ordinal, subscriber, contexts, workflow, severity, channels];
    list.execute(row).unwrap();
}

pub(crate) fn find(statement: &mut Statement<'_>) -> Vec<i64> {
    let found = statement.query_map([], |row| row.get(0)).unwrap();
    found.map(Result::unwrap).collect()
}

impl Peer for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn append(&mut self, triggered: &[Transaction]) {
        let transaction = self.connection.unchecked_transaction().unwrap();
        for one in triggered {
            self.append_one(one);
        }
        transaction.commit().unwrap();
    }

    fn index(&mut self) {
        self.connection.execute_batch(INDEXES).unwrap();
    }

    fn index_combinations(&mut self) -> bool {
        self.connection.execute_batch(COMBINATIONS).unwrap();
        true
    }

    fn settle(&mut self) -> u64 {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA optimize;";
        self.connection.execute_batch(sql).unwrap();
        let count = |sql: &str| self.connection.query_row(sql, [], |row| row.get(0));
        let [pages, free, size]: [i64; 3] =
            ["PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA page_size"]
                .map(|sql| count(sql).unwrap());
        u64::try_from((pages - free) * size).unwrap()
    }

    fn reopen(&self, way: &Way) -> Duration {
        let start = Instant::now();
        let again = Self::open(&self.path);
        find(&mut again.connection.prepare(&way.sql).unwrap());
        start.elapsed()
    }

    fn prepare<'s>(&'s mut self, ways: &[&Way]) -> Box<dyn System + 's> {
        let prepare = |way: &&Way| self.connection.prepare(&way.sql).unwrap();
        Box::new(Prepared(ways.iter().map(prepare).collect()))
    }
}

struct Prepared<'c>(Vec<Statement<'c>>);

impl System for Prepared<'_> {
    fn find(&mut self, shape: usize) -> Vec<i64> {
        find(&mut self.0[shape])
    }
}
