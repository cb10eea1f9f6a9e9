//! SQLite, with an index for each list.

use std::path::Path;

use domain::subscriber::Subscriber;
use rusqlite::{Connection, ToSql, params};
use tidings::Engine;

use crate::sqlite;
use crate::subscribers::people::{People, home};
use crate::subscribers::system::{MOST, Page, Query, System};

const TABLES: &str = "
CREATE TABLE subscribers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, email TEXT, phone TEXT,
  called TEXT, body BLOB NOT NULL);
CREATE VIRTUAL TABLE names USING fts5 (called, content = 'subscribers', content_rowid = 'id',
  tokenize = 'trigram', detail = 'none');
";
const INDEXES: &str = "
CREATE INDEX emails ON subscribers (email);
CREATE INDEX phones ON subscribers (phone);
INSERT INTO names (names) VALUES ('rebuild');
PRAGMA wal_checkpoint(RESTART);
ANALYZE;
";

/// A database in a file.
pub(crate) struct Sqlite {
    connection: Connection,
    people: People,
    like: Subscriber,
}

impl Sqlite {
    pub(crate) fn create(path: &Path, people: People) -> Self {
        let connection = sqlite::create(path, TABLES);
        let scope = Engine::in_memory().organization("acme").unwrap().development().unwrap();
        let like = People::numbered(0).subscriber(&home(&scope), 0);
        let sqlite = Self { connection, people, like };
        let transaction = sqlite.connection.unchecked_transaction().unwrap();
        (0..people.size).for_each(|number| sqlite.insert(number));
        transaction.commit().unwrap();
        sqlite.connection.execute_batch(INDEXES).unwrap();
        sqlite
    }

    fn insert(&self, number: u64) {
        let person = People::numbered(number);
        let create = person.create(number);
        let mut subscriber = self.like.clone();
        (subscriber.subscriber_id, subscriber.profile) = (create.subscriber_id, create.profile);
        self.run(
            "INSERT INTO subscribers VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                int(number),
                People::name(number),
                person.email,
                person.phone,
                person.name(),
                serde_json::to_vec(&subscriber).unwrap(),
            ],
        );
    }

    fn run(&self, sql: &str, values: &[&dyn ToSql]) {
        self.connection.prepare_cached(sql).unwrap().execute(values).unwrap();
    }

    fn get(&self, number: u64) -> Subscriber {
        let sql = "SELECT body FROM subscribers WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql).unwrap();
        let body: Vec<u8> = statement.query_row([int(number)], |row| row.get(0)).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn page(&self, from: &str, value: &str) -> Page {
        let sql = format!("SELECT body {from} ORDER BY id DESC LIMIT 10");
        let mut statement = self.connection.prepare_cached(&sql).unwrap();
        let bodies = statement.query_map([value], |row| {
            Ok(serde_json::from_slice::<Subscriber>(row.get_ref(0)?.as_blob()?).unwrap())
        });
        let names = bodies.unwrap().map(|one| one.unwrap().subscriber_id.to_string()).collect();
        let sql = format!("SELECT count(*) FROM (SELECT 1 {from} LIMIT {MOST})");
        let mut statement = self.connection.prepare_cached(&sql).unwrap();
        let total: i64 = statement.query_row([value], |row| row.get(0)).unwrap();
        Page { names, total: usize::try_from(total).unwrap() }
    }
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}

impl System for Sqlite {
    fn page(&self, query: &Query) -> Page {
        match query {
            Query::All => self.page("FROM subscribers WHERE ?1 = ''", ""),
            Query::Email(email) => self.page("FROM subscribers WHERE email = ?1", email),
            Query::Phone(phone) => self.page("FROM subscribers WHERE phone = ?1", phone),
            Query::Name(name) => self.page(
                "FROM names JOIN subscribers ON id = names.rowid WHERE names.called LIKE ?1",
                &format!("%{name}%"),
            ),
        }
    }

    fn rename(&self, number: u64, is_other: bool) {
        let number = number * 7 % self.people.size;
        let person = People::numbered(number);
        let transaction = self.connection.unchecked_transaction().unwrap();
        let mut subscriber = self.get(number);
        let before = subscriber.profile.full_name();
        let first = if is_other { "Another".into() } else { person.first };
        let after = format!("{first} {}", person.last);
        subscriber.profile.first_name = Some(first);
        let forget = "INSERT INTO names (names, rowid, called) VALUES ('delete', ?1, ?2)";
        self.run(forget, params![int(number), before]);
        self.run("INSERT INTO names (rowid, called) VALUES (?1, ?2)", params![int(number), after]);
        let body = serde_json::to_vec(&subscriber).unwrap();
        let update = "UPDATE subscribers SET called = ?2, body = ?3 WHERE id = ?1";
        self.run(update, params![int(number), after, body]);
        transaction.commit().unwrap();
    }

    fn create(&self, number: u64) {
        let number = self.people.size + number;
        let transaction = self.connection.unchecked_transaction().unwrap();
        self.insert(number);
        let name = People::numbered(number).name();
        self.run("INSERT INTO names (rowid, called) VALUES (?1, ?2)", params![int(number), name]);
        transaction.commit().unwrap();
    }

    fn delete(&self, number: u64) {
        let number = self.people.size + number;
        let transaction = self.connection.unchecked_transaction().unwrap();
        let name = People::numbered(number).name();
        let forget = "INSERT INTO names (names, rowid, called) VALUES ('delete', ?1, ?2)";
        self.run(forget, params![int(number), name]);
        self.run("DELETE FROM subscribers WHERE id = ?1", params![int(number)]);
        transaction.commit().unwrap();
    }
}
