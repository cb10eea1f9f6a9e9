//! The relations of a store, and the statements on them.
//!
//! ```text
//! tidings_format    one row: the format
//! tidings_heads     rows that writers lock, each with the number of commits that have changed its keys
//! tidings_tables    the number of each table
//! tidings_entries   table, key and value of every entry
//! tidings_commits   the latest commits of each head: their changed keys, which other processes forget
//! ```
//!
//! An index takes keys of about 2,600 bytes. A key is therefore its first bytes, its other bytes, and
//! their hash. The first bytes and the hash are the primary key, and the others only sort.

use std::time::{Instant, SystemTime};

use deadpool_postgres::Client;
use sha2::{Digest, Sha256};
use store::{Table, backfill};
use tokio_postgres::Error;

use crate::clock::Reading;
use crate::heads::Head;

/// The format of the relations and of the entries in them: one less than that of the entries.
pub(crate) const FORMAT: i32 = 2;

const _: () = assert!(FORMAT.unsigned_abs() + 1 == store::layout::FORMAT, "they change together");

/// Number of bytes of a key that are in the index.
const HEAD: usize = 1_024;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS tidings_format (
    one bool PRIMARY KEY DEFAULT true CHECK (one),
    format int4 NOT NULL
);
CREATE TABLE IF NOT EXISTS tidings_heads (
    id int2 PRIMARY KEY,
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
    head int2 NOT NULL,
    number int8 NOT NULL,
    batch bytea NOT NULL,
    keys bytea,
    PRIMARY KEY (head, number)
);
";

/// Begins a transaction that writes. Each of its statements sees what was committed before it.
pub(crate) const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Locks heads, in the order of their numbers.
pub(crate) const LOCK: &str = "SELECT id, commits, pg_postmaster_start_time()
    FROM tidings_heads WHERE id = ANY ($1) ORDER BY id FOR UPDATE";

/// A statement that reads heads with other counts than are known, and their later commits, with these
/// keys. Of another server, or one that was started again, it reads all heads. A count that is not known
/// has no news, and neither has one that is behind by more than so many commits. A commit has no keys if as
/// many from each would be more than so many bytes. The process then forgets what is in memory, which takes
/// less than to follow all of them.
macro_rules! news {
    ($own:literal, $commits:literal, $bytes:literal, $of:literal) => {
        concat!(
            "SELECT head.id, head.commits, pg_postmaster_start_time(),
                news.number, news.keys, news.batch
            FROM tidings_heads AS head LEFT JOIN LATERAL (
                SELECT number, CASE ",
            $own,
            " WHEN octet_length(keys) * (head.commits - ($1::int8[])[head.id + 1]) <= ",
            $bytes,
            " THEN keys END AS keys, batch FROM tidings_commits
                WHERE head = head.id AND number > ($1::int8[])[head.id + 1]
                AND head.commits <= ($1::int8[])[head.id + 1] + ",
            $commits,
            " ORDER BY number
            ) AS news ON true
            WHERE (head.commits IS DISTINCT FROM ($1::int8[])[head.id + 1]
                OR pg_postmaster_start_time() <> $2::timestamptz)",
            $of
        )
    };
}

/// The news of all heads.
pub(crate) const NEWS: &str = news!("", "256", "1048576", "");

/// The news of all heads, without the keys of the commits whose batches begin with an id. The thread that asks
/// for news runs it all the time, and wakes all waiting callers if there are too many keys.
pub(crate) const NEWS_OF_OTHERS: &str =
    news!("WHEN substr(batch, 1, 8) = $3 THEN ''::bytea", "1024", "4194304", "");

/// The news of some heads.
pub(crate) const NEWS_OF: &str = news!("", "256", "1048576", " AND head.id = ANY ($3)");

pub(crate) const COMMIT_ID: &str =
    "SELECT batch FROM tidings_commits WHERE head = $1 AND number = $2";

pub(crate) const GET: &str =
    "SELECT value FROM tidings_entries WHERE tbl = $1 AND head = $2 AND hash = $3";

pub(crate) const GET_MANY: &str = "SELECT head, rest, value FROM tidings_entries
    WHERE tbl = $1 AND head = ANY ($2)";

pub(crate) const GET_WANTED: &str = "SELECT entry.tbl, entry.head, entry.rest, entry.value
    FROM unnest($1::int2[], $2::bytea[], $3::bytea[]) AS wanted (tbl, head, hash)
    JOIN tidings_entries AS entry USING (tbl, head, hash)";

/// The first entries of spans, with the places of the spans.
pub(crate) const FIRST_OF: &str = "SELECT first.head, first.rest, first.value, span.place
    FROM unnest($1::int4[], $2::int2[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[])
        AS span (place, tbl, head, rest, end_head, end_rest)
    CROSS JOIN LATERAL (
        SELECT head, rest, value FROM tidings_entries
        WHERE tbl = span.tbl AND (head, rest) >= (span.head, span.rest)
        AND (head, rest) < (span.end_head, span.end_rest)
        ORDER BY head, rest LIMIT 1
    ) AS first";

/// Writes and deletes the entries of a commit, and notes it for other processes. Returns the number of
/// its heads, or writes no entry and returns less if the count of one is another one than that before the
/// commit, or if the server was started at another time. It locks the heads, and is a transaction if there
/// is no other one.
///
/// Parameters 11 to 15 are entries whose keys are taken for new. It fails if one is there: an insertion
/// that need not look for its key first takes half of the time.
pub(crate) const WRITE: &str = "WITH head AS (
        UPDATE tidings_heads SET commits = new.number
        FROM unnest($1::int2[], $2::int8[]) AS new (head, number)
        WHERE id = new.head AND commits = new.number - 1
        AND pg_postmaster_start_time() = $5::timestamptz
        RETURNING id
    ), noted AS (
        INSERT INTO tidings_commits (head, number, batch, keys)
        SELECT head, number, $4, keys
        FROM unnest($1::int2[], $2::int8[], $3::bytea[]) AS new (head, number, keys)
        WHERE (SELECT count(*) FROM head) = cardinality($1)
    ), put AS (
        INSERT INTO tidings_entries (tbl, head, hash, rest, value)
        SELECT * FROM unnest($6::int2[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[])
        WHERE (SELECT count(*) FROM head) = cardinality($1)
        ON CONFLICT (tbl, head, hash) DO UPDATE SET value = excluded.value
    ), added AS (
        INSERT INTO tidings_entries (tbl, head, hash, rest, value)
        SELECT * FROM unnest($11::int2[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[])
        WHERE (SELECT count(*) FROM head) = cardinality($1)
    ), deleted AS (
        DELETE FROM tidings_entries AS entry
        USING unnest($16::int2[], $17::bytea[], $18::bytea[]) AS gone (tbl, head, hash)
        WHERE entry.tbl = gone.tbl AND entry.head = gone.head AND entry.hash = gone.hash
        AND (SELECT count(*) FROM head) = cardinality($1)
    )
    SELECT count(*) FROM head";

macro_rules! write_free {
    ($pruned:literal) => {
        concat!(
            "WITH free AS (
        SELECT id FROM tidings_heads WHERE id = ANY ($1) ORDER BY id FOR UPDATE SKIP LOCKED
    ), head AS (
        UPDATE tidings_heads SET commits = new.number
        FROM free JOIN unnest($1::int2[], $2::int8[], $5::timestamptz[])
            AS new (head, number, start) ON new.head = free.id
        WHERE tidings_heads.id = free.id AND commits = new.number - 1
        AND pg_postmaster_start_time() = new.start
        RETURNING tidings_heads.id
    ), noted AS (
        INSERT INTO tidings_commits (head, number, batch, keys)
        SELECT head, number, batch, keys
        FROM unnest($1::int2[], $2::int8[], $4::bytea[], $3::bytea[])
            AS new (head, number, batch, keys)
        WHERE head = ANY (ARRAY(SELECT id FROM head))
    ), put AS (
        INSERT INTO tidings_entries (tbl, head, hash, rest, value)
        SELECT tbl, head, hash, rest, value
        FROM unnest($6::int2[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $19::int2[])
            AS new (tbl, head, hash, rest, value, owner)
        WHERE owner = ANY (ARRAY(SELECT id FROM head))
        ON CONFLICT (tbl, head, hash) DO UPDATE SET value = excluded.value
    ), added AS (
        INSERT INTO tidings_entries (tbl, head, hash, rest, value)
        SELECT tbl, head, hash, rest, value
        FROM unnest($11::int2[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[], $20::int2[])
            AS new (tbl, head, hash, rest, value, owner)
        WHERE owner = ANY (ARRAY(SELECT id FROM head))
    ), deleted AS (
        DELETE FROM tidings_entries AS entry
        USING unnest($16::int2[], $17::bytea[], $18::bytea[], $21::int2[])
            AS gone (tbl, head, hash, owner)
        WHERE entry.tbl = gone.tbl AND entry.head = gone.head AND entry.hash = gone.hash
        AND gone.owner = ANY (ARRAY(SELECT id FROM head))
    )",
            $pruned,
            " SELECT id, id IN (SELECT id FROM head) FROM free"
        )
    };
}

/// Writes commits of several heads, without those that another transaction has locked, and without those whose
/// counts are other ones. Returns for each head that it has locked whether its changes are made. A batch and
/// a start belong to each head, and parameters 19 to 21 are the heads of the entries.
pub(crate) const WRITE_FREE: &str = write_free!("");

/// Does as [`WRITE_FREE`], and removes the notes of old commits of the heads that it has changed.
pub(crate) const WRITE_FREE_AND_PRUNE: &str = write_free!(
    ", pruned AS (
        DELETE FROM tidings_commits AS old
        USING unnest($1::int2[], $2::int8[]) AS kept (head, number)
        WHERE old.head = kept.head AND old.number <= kept.number - $22
        AND old.head = ANY (ARRAY(SELECT id FROM head))
    )"
);

pub(crate) const PRUNE: &str = "DELETE FROM tidings_commits AS old
    USING unnest($1::int2[], $2::int8[]) AS kept (head, number)
    WHERE old.head = kept.head AND old.number <= kept.number - $3";

/// Removes the changed keys of the commits of heads. It locks the heads, as those do who remove commits.
pub(crate) const FORGET: &str = "WITH locked AS (
        SELECT id FROM tidings_heads WHERE id = ANY ($1) ORDER BY id FOR UPDATE
    )
    UPDATE tidings_commits SET keys = NULL FROM locked WHERE head = id AND keys IS NOT NULL";

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

/// What an open schema has.
pub(crate) struct Opened {
    pub(crate) format: i32,
    /// When the server was started.
    pub(crate) start: SystemTime,
    /// Numbers of commits, by the numbers of the heads.
    pub(crate) commits: Vec<(i16, i64)>,
    pub(crate) clock: Reading,
}

/// Creates what is missing in the schema. Returns `None`, and has changed nothing, if the connection does not
/// have the search path of the store. The connection is in a transaction if it fails.
pub(crate) async fn migrate(
    client: &Client,
    schema: &str,
    tables: &[&'static str],
) -> Result<Option<Opened>, Error> {
    // Two that create the same relation at once are in each other's way, and one tries again.
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let is_there = "SELECT to_regclass(format('%I.tidings_format', $1::text)) IS NOT NULL";
    let is_there: bool = client.query_one(is_there, &[&schema]).await?.try_get(0)?;
    if !is_there {
        create_schema(client, schema).await?;
    }
    // Statements name no schema. Relations would be made in one of others.
    let is_own = "SELECT current_schema() IS NOT DISTINCT FROM $1::text::name";
    if !client.query_one(is_own, &[&schema]).await?.try_get::<_, bool>(0)? {
        client.batch_execute("ROLLBACK").await?;
        return Ok(None);
    }
    if !is_there {
        create(client).await?;
    }
    let format = "SELECT format, pg_postmaster_start_time() FROM tidings_format FOR UPDATE";
    let row = client.query_one(format, &[]).await?;
    let (mut format, start) = (row.try_get(0)?, row.try_get(1)?);
    let mut commits = Vec::new();
    if format <= FORMAT {
        client.execute(NAME_TABLES, &[&tables]).await?;
        if format < FORMAT {
            upgrade(client, format).await?;
            format = FORMAT;
        }
        let rows = client.query("SELECT id, commits FROM tidings_heads", &[]).await?;
        for row in rows {
            commits.push((row.try_get(0)?, row.try_get(1)?));
        }
    }
    client.batch_execute("COMMIT").await?;
    Ok(Some(Opened { format, start, commits, clock: clock(client).await? }))
}

async fn create_schema(client: &Client, schema: &str) -> Result<(), Error> {
    // Also with `IF NOT EXISTS`, a statement that creates a schema needs the right to create one.
    let is_there = "SELECT to_regnamespace(quote_ident($1::text)) IS NOT NULL";
    if !client.query_one(is_there, &[&schema]).await?.try_get::<_, bool>(0)? {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema));
        client.batch_execute(&create).await?;
    }
    Ok(())
}

async fn create(client: &Client) -> Result<(), Error> {
    client.batch_execute(CREATE).await?;
    let format = "INSERT INTO tidings_format (format) VALUES ($1) ON CONFLICT DO NOTHING";
    client.execute(format, &[&FORMAT]).await?;
    let heads: Vec<i16> = Head::all().map(Head::number).collect();
    let insert = "INSERT INTO tidings_heads (id, commits) SELECT id, 0 FROM unnest($1::int2[]) AS id \
        ON CONFLICT DO NOTHING";
    client.execute(insert, &[&heads]).await.map(drop)
}

// Gives a store of an older format the present one. Entries that it lacks are put later.
async fn upgrade(client: &Client, found: i32) -> Result<(), Error> {
    let marks = backfill::marks(found.unsigned_abs() + 1);
    let keys: Vec<Vec<u8>> = marks.map(|mark| mark.as_bytes().to_vec()).collect();
    let mark = "INSERT INTO tidings_entries (tbl, head, hash, rest, value)
        SELECT id, key, '', '', '' FROM tidings_tables, unnest($1::bytea[]) AS key
        WHERE name = $2 ON CONFLICT (tbl, head, hash) DO NOTHING";
    client.execute(mark, &[&keys, &Table::Backfills.name()]).await?;
    client.execute("UPDATE tidings_format SET format = $1", &[&FORMAT]).await.map(drop)
}

/// Asks for the time.
pub(crate) async fn clock(client: &Client) -> Result<Reading, Error> {
    let clock = client.prepare_cached("SELECT clock_timestamp()").await?;
    let asked = Instant::now();
    let server = client.query_one(&clock, &[]).await?.try_get(0)?;
    Ok(Reading { server, asked, answered: Instant::now() })
}

/// A statement for a connection whose search path has other schemas.
pub(crate) fn qualified(statement: &str, schema: &str) -> String {
    statement.replace("tidings_", &format!("{}.tidings_", quoted(schema)))
}

/// Returns `true` if the server takes `name` for the name of a schema. It cuts longer ones, and `$user`
/// stands for the name of the role in a search path.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len()) && !name.contains('\0') && name != "$user"
}

/// A name between quotation marks.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing else in a statement looks like the name of a relation.
    #[test]
    fn a_qualified_statement_names_relations() {
        let scans = [(false, false), (false, true), (true, false), (true, true)];
        let scans = scans.map(|(has_end, is_descending)| scan(has_end, is_descending));
        for (statement, relations) in [(LOCK, 1), (GET_MANY, 1), (GET_WANTED, 1), (WRITE, 5)]
            .into_iter()
            .chain(scans.map(|scan| (scan, 1)))
        {
            let found = statement.split("tidings_").skip(1);
            let names = ["heads ", "commits ", "entries ", "entries\n"];
            let is_relation = |rest: &str| names.iter().any(|name| rest.starts_with(name));
            assert!(found.clone().all(is_relation), "{statement}");
            assert_eq!(found.count(), relations, "{statement}");
            let qualified = qualified(statement, "a \"schema\"");
            assert_eq!(qualified.matches("\"a \"\"schema\"\"\".tidings_").count(), relations);
        }
    }
}
