//! SQLite, with an index for each list.

use std::path::Path;

use rusqlite::{Connection, params};
use tidings::content::MessageContent;
use tidings::message::Message;

use crate::inbox::system::{MOST, Page, System};
use crate::sqlite;

// The state is 0 for unseen, 1 for seen and 2 for read.
const TABLES: &str = "
CREATE TABLE messages (id INTEGER PRIMARY KEY, subscriber INTEGER NOT NULL,
  state INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE counters (subscriber INTEGER PRIMARY KEY, messages INTEGER NOT NULL,
  unseen INTEGER NOT NULL, unread INTEGER NOT NULL);
";
const INDEXES: &str = "
CREATE INDEX inbox ON messages (subscriber);
CREATE INDEX unread ON messages (subscriber) WHERE state < 2;
CREATE INDEX unseen ON messages (subscriber) WHERE state = 0;
PRAGMA wal_checkpoint(RESTART);
ANALYZE;
";
const ADA: i64 = 1;

/// Where totals come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Totals {
    /// A row that each mark keeps up to date.
    Counters,
    /// `count(*)`, which is counted at each call.
    Counted,
}

/// A database in a file.
pub(crate) struct Sqlite {
    connection: Connection,
    totals: Totals,
    // Ids of the unread messages.
    unread: Vec<i64>,
}

impl Sqlite {
    /// Fills an inbox with so many messages like that one, of which these are unread.
    pub(crate) fn create(
        path: &Path,
        totals: Totals,
        (size, unread, like): (usize, &[usize], &Message),
    ) -> Self {
        let connection = sqlite::create(path, TABLES);
        let sqlite = Self { connection, totals, unread: unread.iter().copied().map(int).collect() };
        sqlite.fill(int(size), like.clone());
        sqlite.connection.execute_batch(INDEXES).unwrap();
        sqlite
    }

    fn fill(&self, size: i64, mut message: Message) {
        let transaction = self.connection.unchecked_transaction().unwrap();
        let sql = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.connection.prepare(sql).unwrap();
        for order in 0..size {
            let text = format!("Your order {order} is on its way.");
            message.content = Some(MessageContent::Text(text));
            let state = if self.unread.contains(&order) { 0 } else { 2 };
            let body = serde_json::to_vec(&message).unwrap();
            insert.execute(params![order, ADA, state, body]).unwrap();
        }
        let unread = int(self.unread.len());
        let sql = "INSERT INTO counters VALUES (?1, ?2, ?3, ?3)";
        self.connection.execute(sql, params![ADA, size, unread]).unwrap();
        transaction.commit().unwrap();
    }

    fn number(&self, sql: &str) -> usize {
        let mut statement = self.connection.prepare_cached(sql).unwrap();
        count(statement.query_row([ADA], |row| row.get(0)).unwrap())
    }

    fn page(&self, sql: &str, counter: &str, count: &str) -> Page {
        let mut statement = self.connection.prepare_cached(sql).unwrap();
        let bodies = statement.query_map([ADA], |row| {
            Ok(serde_json::from_slice::<Message>(row.get_ref(0)?.as_blob()?).unwrap())
        });
        let messages: Vec<Message> = bodies.unwrap().map(Result::unwrap).collect();
        let total = match self.totals {
            Totals::Counters => self.number(counter),
            Totals::Counted => self.number(count),
        };
        let texts = messages.iter().map(|one| one.text().unwrap().to_owned()).collect();
        Page { texts, total: total.min(MOST) }
    }
}

fn int(number: usize) -> i64 {
    i64::try_from(number).unwrap()
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap()
}

impl System for Sqlite {
    fn name(&self) -> &'static str {
        match self.totals {
            Totals::Counters => "SQLite, counters",
            Totals::Counted => "SQLite, count(*)",
        }
    }

    fn page(&self) -> Page {
        self.page(
            "SELECT body FROM messages INDEXED BY inbox WHERE subscriber = ?1
             ORDER BY id DESC LIMIT 10",
            "SELECT messages FROM counters WHERE subscriber = ?1",
            "SELECT count(*) FROM messages INDEXED BY inbox WHERE subscriber = ?1",
        )
    }

    fn unread(&self) -> Page {
        self.page(
            "SELECT body FROM messages INDEXED BY unread WHERE subscriber = ?1 AND state < 2
             ORDER BY id DESC LIMIT 10",
            "SELECT unread FROM counters WHERE subscriber = ?1",
            "SELECT count(*) FROM messages INDEXED BY unread WHERE subscriber = ?1 AND state < 2",
        )
    }

    fn counts(&self) -> [usize; 2] {
        let sql = match self.totals {
            Totals::Counters => "SELECT unseen, unread FROM counters WHERE subscriber = ?1",
            Totals::Counted => {
                "SELECT
                   (SELECT count(*) FROM messages INDEXED BY unseen
                     WHERE subscriber = ?1 AND state = 0),
                   (SELECT count(*) FROM messages INDEXED BY unread
                     WHERE subscriber = ?1 AND state < 2)"
            }
        };
        let mut statement = self.connection.prepare_cached(sql).unwrap();
        let counts = statement.query_row([ADA], |row| Ok([row.get(0)?, row.get(1)?]));
        counts.unwrap().map(count)
    }

    // Every message that is marked is unseen or read.
    fn mark(&self, number: usize, is_read: bool) {
        let transaction = self.connection.unchecked_transaction().unwrap();
        let (state, more) = if is_read { (2, -1) } else { (0, 1) };
        let sql = "UPDATE messages SET state = ?1 WHERE id = ?2 AND state <> ?1";
        let mut update = self.connection.prepare_cached(sql).unwrap();
        let changed = update.execute(params![state, self.unread[number]]).unwrap();
        if self.totals == Totals::Counters && changed > 0 {
            let sql = "UPDATE counters SET unseen = unseen + ?1, unread = unread + ?1 WHERE subscriber = ?2";
            let mut update = self.connection.prepare_cached(sql).unwrap();
            update.execute(params![more, ADA]).unwrap();
        }
        transaction.commit().unwrap();
    }
}
