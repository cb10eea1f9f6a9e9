//! The commit of a transaction.

use futures_util::future::try_join5;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use crate::rows::{Note, Rows};
use crate::schema;
use crate::server::Client;

/// What a commit writes.
pub(crate) struct Commit {
    pub(crate) rows: Rows,
    pub(crate) note: Note,
    /// What identifies the changes.
    pub(crate) batch: [u8; 16],
    /// Number of commits of a head that other processes can look back.
    pub(crate) kept: i64,
}

impl Commit {
    /// Makes the changes durable, in one round trip. `begin` begins the transaction, if it has not begun.
    /// Returns `false` if another one has changed its heads meanwhile. Then nothing is changed.
    pub(crate) async fn make(
        &self,
        client: &Client,
        begin: Option<&'static str>,
    ) -> Result<bool, Error> {
        let Self { rows, note, batch, kept } = self;
        let writing = client.prepare_cached(schema::WRITE).await?;
        let deleting = client.prepare_cached(schema::DELETE).await?;
        let pruning = client.prepare_cached(schema::PRUNE).await?;
        let batch = &batch[..];
        let is_pruned = note.numbers.iter().any(|number| number % (kept / 4) == 0);
        let has_deletes = !rows.deletes.is_empty();
        // A statement is a transaction, too.
        let is_alone = begin.is_some() && !is_pruned && !has_deletes;
        let [tables, heads, hashes, rests, values] = rows.puts.of_put();
        let write: [&(dyn ToSql + Sync); 9] =
            [&note.heads, &note.numbers, &note.keys, &batch, tables, heads, hashes, rests, values];
        let [tables, heads, hashes] = rows.deletes.of_keys();
        let (head, number) = (note.heads.first(), note.numbers.first());
        let delete: [&(dyn ToSql + Sync); 6] = [tables, heads, hashes, &head, &number, &batch];
        let prune: [&(dyn ToSql + Sync); 3] = [&note.heads, &note.numbers, kept];
        let run = async |sql: Option<&str>| match sql.filter(|_| !is_alone) {
            Some(sql) => client.batch_execute(sql).await,
            None => Ok(()),
        };
        // All are sent at once, in this order.
        let ((), written, _, _, ()) = try_join5(
            run(begin),
            client.query_one(&writing, &write),
            async { if has_deletes { client.execute(&deleting, &delete).await } else { Ok(0) } },
            async { if is_pruned { client.execute(&pruning, &prune).await } else { Ok(0) } },
            run(Some("COMMIT")),
        )
        .await?;
        let written: i64 = written.try_get(0)?;
        Ok(usize::try_from(written) == Ok(note.heads.len()))
    }
}
