//! The relations of a store, and the statements on them.
//!
//! ```text
//! tidings_head      one row: the format, and the number of commits; its lock makes writers go one by one
//! tidings_tables    the number of each table
//! tidings_entries   table, key and value of every entry
//! tidings_commits   the latest commits: their changed keys, which other processes forget then
//! ```
//!
//! An index takes keys of about 2,600 bytes. A key is therefore its first bytes, its other bytes, and
//! their hash. The first bytes and the hash are the primary key, and the others only sort.

use deadpool_postgres::Client;
use sha2::{Digest, Sha256};
use tokio_postgres::Error;

/// The format of the relations.
pub(crate) const FORMAT: i32 = 1;

/// Number of bytes of a key that are in the index.
const HEAD: usize = 1_024;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS tidings_head (
    one bool PRIMARY KEY DEFAULT true CHECK (one),
    format int4 NOT NULL,
    commits int8 NOT NULL
);
CREATE TABLE IF NOT EXISTS tidings_tables (
    id int2 PRIMARY KEY,
    name text NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS tidings_entries (
    tbl int2 NOT NULL,
    head bytea NOT NULL,
    hash bytea NOT NULL,
    rest bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (tbl, head, hash)
);
CREATE TABLE IF NOT EXISTS tidings_commits (
    number int8 PRIMARY KEY,
    batch bytea NOT NULL,
    keys bytea
);
";

pub(crate) const LOCK: &str = "SELECT commits FROM tidings_head FOR UPDATE";

pub(crate) const COMMITS: &str = "SELECT commits FROM tidings_head";

pub(crate) const NEWS: &str =
    "SELECT number, keys FROM tidings_commits WHERE number > $1 ORDER BY number";

pub(crate) const BATCH: &str = "SELECT batch FROM tidings_commits WHERE number = $1";

pub(crate) const GET: &str =
    "SELECT value FROM tidings_entries WHERE tbl = $1 AND head = $2 AND hash = $3";

pub(crate) const GET_MANY: &str = "SELECT head, rest, value FROM tidings_entries
    WHERE tbl = $1 AND head = ANY ($2)";

pub(crate) const PUT: &str = "INSERT INTO tidings_entries (tbl, head, hash, rest, value)
    SELECT * FROM unnest($1::int2[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[])
    ON CONFLICT (tbl, head, hash) DO UPDATE SET value = excluded.value";

pub(crate) const DELETE: &str = "DELETE FROM tidings_entries AS entry
    USING unnest($1::int2[], $2::bytea[], $3::bytea[]) AS gone (tbl, head, hash)
    WHERE entry.tbl = gone.tbl AND entry.head = gone.head AND entry.hash = gone.hash";

pub(crate) const NOTE: &str = "WITH noted AS (
        INSERT INTO tidings_commits (number, batch, keys) VALUES ($1, $2, $3)
    )
    UPDATE tidings_head SET commits = $1";

pub(crate) const PRUNE: &str = "DELETE FROM tidings_commits WHERE number <= $1";

const NAME_TABLES: &str = "INSERT INTO tidings_tables (id, name)
    SELECT (SELECT coalesce(max(id), 0) FROM tidings_tables) + row_number() OVER (), name
    FROM unnest($1::text[]) AS name
    WHERE name NOT IN (SELECT name FROM tidings_tables)";

/// The statement of a scan: of keys from a start on, and before an end if there is one.
pub(crate) fn scan(has_end: bool, is_descending: bool) -> &'static str {
    match (has_end, is_descending) {
        (false, false) => {
            "SELECT head, rest, value FROM tidings_entries
             WHERE tbl = $1 AND (head, rest) >= ($2, $3)
             ORDER BY head, rest LIMIT $4"
        }
        (false, true) => {
            "SELECT head, rest, value FROM tidings_entries
             WHERE tbl = $1 AND (head, rest) >= ($2, $3)
             ORDER BY head DESC, rest DESC LIMIT $4"
        }
        (true, false) => {
            "SELECT head, rest, value FROM tidings_entries
             WHERE tbl = $1 AND (head, rest) >= ($2, $3) AND (head, rest) < ($5, $6)
             ORDER BY head, rest LIMIT $4"
        }
        (true, true) => {
            "SELECT head, rest, value FROM tidings_entries
             WHERE tbl = $1 AND (head, rest) >= ($2, $3) AND (head, rest) < ($5, $6)
             ORDER BY head DESC, rest DESC LIMIT $4"
        }
    }
}

/// A key as it is stored.
pub(crate) struct StoredKey {
    pub(crate) head: Vec<u8>,
    pub(crate) rest: Vec<u8>,
    /// Hash of the rest. It is empty if there is no rest.
    pub(crate) hash: Vec<u8>,
}

impl StoredKey {
    pub(crate) fn of(key: &[u8]) -> Self {
        let (head, rest) = key.split_at(key.len().min(HEAD));
        let hash = if rest.is_empty() { Vec::new() } else { Sha256::digest(rest).to_vec() };
        Self { head: head.to_vec(), rest: rest.to_vec(), hash }
    }
}

/// The row of `tidings_head`.
pub(crate) struct Head {
    pub(crate) format: i32,
    pub(crate) commits: i64,
}

/// Creates what is missing in the schema. The connection is in a transaction if it
/// fails.
pub(crate) async fn migrate(
    client: &Client,
    schema: &str,
    tables: &[&'static str],
) -> Result<Head, Error> {
    // Two that create the same relation at once are in each other's way, and one tries again.
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let is_there = "SELECT to_regclass(format('%I.tidings_head', $1::text)) IS NOT NULL";
    if !client.query_one(is_there, &[&schema]).await?.try_get::<_, bool>(0)? {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema));
        client.batch_execute(&create).await?;
        client.batch_execute(CREATE).await?;
        let head = "INSERT INTO tidings_head (format, commits) VALUES ($1, 0) \
            ON CONFLICT DO NOTHING";
        client.execute(head, &[&FORMAT]).await?;
    }
    let head = "SELECT format, commits FROM tidings_head FOR UPDATE";
    let head = client.query_one(head, &[]).await?;
    let head = Head { format: head.try_get(0)?, commits: head.try_get(1)? };
    if head.format == FORMAT {
        client.execute(NAME_TABLES, &[&tables]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(head)
}

/// A name between quotation marks.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
