//! The same rows by hand: what a call of the engine has written, written again by a host that knows the
//! rows beforehand, in two round trips.

use std::collections::HashSet;

use futures_util::future::{try_join, try_join4};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

const TABLES: &str = "
DROP SCHEMA IF EXISTS same_rows CASCADE;
CREATE SCHEMA same_rows;
SET search_path = same_rows;
CREATE TABLE entries (LIKE {}.tidings_entries INCLUDING ALL);
INSERT INTO entries SELECT * FROM {}.tidings_entries;
CREATE TABLE heads (id int2 PRIMARY KEY, commits int8 NOT NULL);
INSERT INTO heads VALUES (1, 0);
";

const WRITTEN: &str = "SELECT tbl, head, hash, rest, value FROM {}.tidings_entries
  WHERE xmin = (SELECT xmin FROM {}.tidings_commits ORDER BY number DESC LIMIT 1)";

const LOCK: &str = "SELECT commits FROM heads WHERE id = 1 FOR UPDATE";

const INSERT: &str = "INSERT INTO entries SELECT * FROM
  unnest($1::int2[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[])";

const REPLACE: &str = "UPDATE entries AS entry SET value = new.value FROM
  unnest($1::int2[], $2::bytea[], $3::bytea[], $4::bytea[]) AS new (tbl, head, hash, value)
  WHERE (entry.tbl, entry.head, entry.hash) = (new.tbl, new.head, new.hash)";

const COUNT: &str = "UPDATE heads SET commits = commits + 1 WHERE id = 1";

/// A connection, with the rows of a call.
pub(crate) struct SameRows {
    runtime: Runtime,
    client: Client,
    statements: [Statement; 4],
    inserted: Vec<Row>,
    replaced: Vec<Row>,
    calls: u64,
}

#[derive(Clone)]
struct Row {
    table: i16,
    head: Vec<u8>,
    hash: Vec<u8>,
    rest: Vec<u8>,
    value: Vec<u8>,
}

impl SameRows {
    /// Takes the rows of `call`, which is made twice. Rows that both have written are replaced, and the
    /// others are inserted.
    pub(crate) fn of(url: &str, schema: &str, call: impl Fn()) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        let of_schema = |sql: &str| sql.replace("{}", &format!("\"{schema}\""));
        let rows = || {
            call();
            let rows = runtime.block_on(client.query(&of_schema(WRITTEN), &[]));
            rows.unwrap().iter().map(Row::of).collect::<Vec<Row>>()
        };
        let before: HashSet<_> = rows().iter().map(Row::key).collect();
        let (replaced, inserted) = rows().into_iter().partition(|row| before.contains(&row.key()));
        let statements = runtime.block_on(async {
            client.batch_execute(&of_schema(TABLES)).await.unwrap();
            let mut statements = Vec::new();
            for sql in [LOCK, INSERT, REPLACE, COUNT] {
                statements.push(client.prepare(sql).await.unwrap());
            }
            statements.try_into().unwrap()
        });
        Self { runtime, client, statements, inserted, replaced, calls: 0 }
    }

    /// One transaction: the lock, and then all rows.
    pub(crate) fn write(&mut self) {
        self.calls += 1;
        let [lock, insert, replace, count] = &self.statements;
        let inserted = self.inserted.iter().cloned().map(|row| row.of_call(self.calls));
        let inserted = Columns::of(inserted);
        let replaced = Columns::of(self.replaced.iter().cloned());
        let insert_params: [&(dyn ToSql + Sync); 5] = [
            &inserted.tables,
            &inserted.heads,
            &inserted.hashes,
            &inserted.rests,
            &inserted.values,
        ];
        let replace_params: [&(dyn ToSql + Sync); 4] =
            [&replaced.tables, &replaced.heads, &replaced.hashes, &replaced.values];
        let client = &self.client;
        let written = self.runtime.block_on(async {
            try_join(client.batch_execute("BEGIN"), client.query(lock, &[])).await?;
            try_join4(
                client.execute(insert, &insert_params),
                client.execute(replace, &replace_params),
                client.execute(count, &[]),
                client.batch_execute("COMMIT"),
            )
            .await
        });
        let (inserted, replaced, ..) = written.unwrap();
        assert_eq!(
            [inserted, replaced],
            [&self.inserted, &self.replaced].map(|it| it.len() as u64)
        );
    }
}

impl Row {
    fn of(row: &tokio_postgres::Row) -> Self {
        let [head, hash, rest, value] = [1, 2, 3, 4].map(|column| row.get(column));
        Self { table: row.get(0), head, hash, rest, value }
    }

    fn key(&self) -> (i16, Vec<u8>, Vec<u8>) {
        (self.table, self.head.clone(), self.hash.clone())
    }

    // The row of another call, whose key is behind that of the call before.
    fn of_call(mut self, number: u64) -> Self {
        self.head.extend(number.to_be_bytes());
        self
    }
}

#[derive(Default)]
struct Columns {
    tables: Vec<i16>,
    heads: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
    rests: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Columns {
    fn of(rows: impl Iterator<Item = Row>) -> Self {
        let mut columns = Self::default();
        for Row { table, head, hash, rest, value } in rows {
            columns.tables.push(table);
            columns.heads.push(head);
            columns.hashes.push(hash);
            columns.rests.push(rest);
            columns.values.push(value);
        }
        columns
    }
}
