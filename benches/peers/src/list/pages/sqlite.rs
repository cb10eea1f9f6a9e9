//! Whole pages in SQLite: the notifications as JSON beside the lists, and the addresses of the
//! subscribers with their trigrams.

use std::hint::black_box;

use domain::notification::Notification;
use rusqlite::{Row, Statement, params};

use crate::list::sql::Way;
use crate::list::sqlite::{self, Sqlite};
use crate::list::system::System;

const TABLES: &str = "
CREATE TABLE bodies (ordinal INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE VIRTUAL TABLE addresses USING fts5 (address, tokenize = 'trigram');
";
const OPTIMIZE: &str = "
INSERT INTO addresses (addresses) VALUES ('optimize');
PRAGMA wal_checkpoint(TRUNCATE);
";

/// Puts whole notifications, and the addresses of subscribers by their numbers, beside the lists.
pub(super) fn fill(
    sqlite: &Sqlite,
    notifications: impl Iterator<Item = Notification>,
    addresses: impl Iterator<Item = (i64, String)>,
) {
    sqlite.connection.execute_batch(TABLES).unwrap();
    let transaction = sqlite.connection.unchecked_transaction().unwrap();
    let insert = |sql| sqlite.connection.prepare(sql).unwrap();
    let mut bodies = insert("INSERT INTO bodies VALUES (?1, ?2)");
    for one in notifications {
        let body = serde_json::to_vec(&one).unwrap();
        bodies.execute(params![ordinal(&one), body]).unwrap();
    }
    let mut named = insert("INSERT INTO addresses (rowid, address) VALUES (?1, ?2)");
    for address in addresses {
        named.execute(address).unwrap();
    }
    transaction.commit().unwrap();
    sqlite.connection.execute_batch(OPTIMIZE).unwrap();
}

/// The way to search for a part of an address.
pub(super) fn search(part: &str, limit: u32) -> Way {
    let sql = format!(
        "SELECT n.ordinal FROM addresses a JOIN notifications n INDEXED BY by_subscriber \
         ON n.subscriber = a.rowid WHERE a.address MATCH '\"{part}\"' \
         ORDER BY n.ordinal DESC LIMIT {}",
        limit + 1
    );
    Way { name: "addresses".into(), sql }
}

/// Statements that find the notifications of pages, and the sizes of the pages.
pub(super) struct Whole<'c> {
    pages: Vec<(Statement<'c>, usize)>,
    body: Statement<'c>,
}

impl<'c> Whole<'c> {
    pub(super) fn new(
        sqlite: &'c Sqlite,
        pages: impl IntoIterator<Item = (&'c Way, usize)>,
    ) -> Self {
        let prepare = |sql| sqlite.connection.prepare(sql).unwrap();
        let pages = pages.into_iter().map(|(way, limit)| (prepare(&way.sql), limit)).collect();
        Self { pages, body: prepare("SELECT body FROM bodies WHERE ordinal = ?1") }
    }

    fn page(&mut self, question: usize) -> Vec<Notification> {
        let (find, limit) = &mut self.pages[question];
        let mut ordinals = sqlite::find(find);
        ordinals.truncate(*limit);
        let parse = |row: &Row<'_>| {
            let body = row.get_ref(0)?.as_blob()?;
            Ok(serde_json::from_slice(body).unwrap())
        };
        let read = |ordinal| self.body.query_row([ordinal], parse).unwrap();
        ordinals.into_iter().map(read).collect()
    }
}

impl System for Whole<'_> {
    fn find(&mut self, question: usize) -> Vec<i64> {
        self.page(question).iter().map(ordinal).collect()
    }

    fn run(&mut self, question: usize) {
        black_box(self.page(question));
    }
}

/// The ordinal of a notification.
pub(super) fn ordinal(notification: &Notification) -> i64 {
    i64::try_from(notification.id.ordinal().get()).unwrap()
}
