//! The same rows by hand in SQLite.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::{Connection, OpenFlags};
use tidings::ids::SubscriberId;

use crate::write::disk;
use crate::write::group::Group;
use crate::write::rows::Numbers;
use crate::write::sqlite::rows::Rows;
use crate::write::system::{Call, System};

pub(crate) use crate::write::sqlite::rows::Lists;

mod rows;

const SETTINGS: &str = "
PRAGMA page_size = 4096;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 2147418112;
PRAGMA cache_size = -262144;
";
/// A database in a file, with the group commit of a careful host.
pub(crate) struct Sqlite {
    name: &'static str,
    path: PathBuf,
    checkpoint: Checkpoint,
    group: Group,
    writer: Mutex<Writer>,
}

/// Number of pages in the log after which SQLite moves them into the database.
#[derive(Clone, Copy)]
pub(crate) enum Checkpoint {
    /// The default: 4 MB, with short pauses.
    Often = 1_000,
    /// 32 MB, with long pauses.
    Rarely = 8_000,
}

struct Writer {
    connection: Connection,
    numbers: Numbers,
}

impl Writer {
    fn write(&mut self, calls: &[Call]) {
        self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut rows = Rows::new(&self.connection, &mut self.numbers);
        calls.iter().flat_map(|call| call.iter()).for_each(|trigger| rows.insert(trigger));
        drop(rows);
        self.connection.execute_batch("COMMIT").unwrap();
    }
}

impl Sqlite {
    pub(crate) fn create(
        name: &'static str,
        path: &Path,
        checkpoint: Checkpoint,
        lists: Lists,
    ) -> Self {
        let connection = open(path, checkpoint);
        rows::create(&connection, lists);
        let writer = Writer { connection, numbers: Numbers::default() };
        let (path, writer) = (path.into(), Mutex::new(writer));
        Self { name, path, checkpoint, group: Group::default(), writer }
    }

    fn texts(&self, sql: &str, subscriber: &SubscriberId) -> Vec<String> {
        let writer = self.writer.lock().unwrap();
        let mut statement = writer.connection.prepare_cached(sql).unwrap();
        let rows = statement.query_map([subscriber.as_str()], |row| row.get(0)).unwrap();
        let mut texts: Vec<String> = rows.map(Result::unwrap).collect();
        texts.sort();
        texts
    }
}

fn open(path: &Path, checkpoint: Checkpoint) -> Connection {
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).unwrap();
    connection.execute_batch(SETTINGS).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", checkpoint as i64).unwrap();
    connection.set_prepared_statement_cache_capacity(64);
    connection
}

impl System for Sqlite {
    fn name(&self) -> &'static str {
        self.name
    }

    fn write(&self, call: &Call) {
        self.group.write(call, |calls| self.writer.lock().unwrap().write(calls));
    }

    // The log keeps its length, so that no call has to extend it.
    fn fill(&mut self, calls: &mut dyn Iterator<Item = Call>) {
        let writer = self.writer.get_mut().unwrap();
        writer.connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
        calls.for_each(|call| writer.write(&[call]));
        let settle = "PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(RESTART);";
        writer.connection.execute_batch(settle).unwrap();
    }

    fn has_a_file(&self) -> bool {
        true
    }

    fn reopen(&mut self) {
        let writer = self.writer.get_mut().unwrap();
        writer.connection = Connection::open_in_memory().unwrap();
        disk::forget(&self.path);
        writer.connection = open(&self.path, self.checkpoint);
    }

    fn inbox(&self, subscriber: &SubscriberId) -> Vec<String> {
        let sql = "SELECT m.content FROM subscribers s JOIN messages m ON m.subscriber = s.id
            WHERE s.name = ?1 ORDER BY m.id DESC LIMIT 100";
        self.texts(sql, subscriber)
    }

    fn listed(&self, subscriber: &SubscriberId) -> Vec<String> {
        let writer = self.writer.lock().unwrap();
        let sql = "SELECT n.workflow, n.contexts, t.payload -> '$.order',
            n.jobs ->> '$[0].executionDetails[0].detail'
            FROM subscribers s JOIN notifications n ON n.subscriber = s.id
            JOIN triggers t ON t.id = n.trigger
            WHERE s.name = ?1 ORDER BY n.id DESC LIMIT 50";
        let mut statement = writer.connection.prepare_cached(sql).unwrap();
        let line = |row: &rusqlite::Row<'_>| {
            let (workflow, contexts): (i64, _) =
                (row.get(0)?, writer.numbers.contexts(row.get(1)?));
            let (order, detail): (String, String) = (row.get(2)?, row.get(3)?);
            Ok(format!("Workflow {workflow}, {contexts}, {order}, {detail}"))
        };
        let lines = statement.query_map([subscriber.as_str()], line).unwrap();
        let mut lines: Vec<String> = lines.map(Result::unwrap).collect();
        lines.sort();
        lines
    }
}
