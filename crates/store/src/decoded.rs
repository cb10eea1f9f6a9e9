//! Records that are read again and again, decoded once.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::{Change, ChangeKind, Codec, Order, Prefix, Record, Result, Snapshot};

/// Records, each with the bytes that it was decoded from. If a snapshot has other bytes for a
/// record, they are decoded anew. So the records are always those of the snapshot.
pub struct Decoded<R> {
    records: RwLock<HashMap<Vec<u8>, Known<R>>>,
}

struct Known<R> {
    bytes: Vec<u8>,
    record: Arc<R>,
}

/// Maximum number of records that are kept.
const MANY: usize = 4_096;

impl<R: Record> Decoded<R> {
    /// Every record of the table whose key has `prefix`, in the order of the keys.
    pub fn all(&self, snapshot: &dyn Snapshot, prefix: &Prefix<R>) -> Result<Vec<Arc<R>>> {
        let codec = snapshot.codec();
        let mut records = Vec::new();
        let mut failure = None;
        snapshot.scan(
            R::TABLE,
            prefix.range().bytes(),
            Order::Ascending,
            None,
            &mut |key, bytes| match self.record(codec, key, bytes) {
                Ok(record) => {
                    records.push(record);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        failure.map_or(Ok(records), Err)
    }

    /// Forgets the records that were changed. Their bytes are not those of later snapshots.
    pub fn forget(&self, changes: &[Change]) {
        let gone =
            |change: &&Change| change.table == R::TABLE && change.kind != ChangeKind::Inserted;
        let mut gone = changes.iter().filter(gone).peekable();
        if gone.peek().is_some() {
            let mut records = self.records.write();
            gone.for_each(|change| drop(records.remove(&change.key)));
        }
    }

    fn record(&self, codec: Codec, key: &[u8], bytes: &[u8]) -> Result<Arc<R>> {
        if let Some(known) = self.records.read().get(key)
            && known.bytes == bytes
        {
            return Ok(Arc::clone(&known.record));
        }
        let record = Arc::new(codec.decode(key, bytes)?);
        let mut records = self.records.write();
        if records.len() >= MANY {
            records.clear();
        }
        let known = Known { bytes: bytes.to_vec(), record: Arc::clone(&record) };
        records.insert(key.to_vec(), known);
        Ok(record)
    }
}

impl<R> Default for Decoded<R> {
    fn default() -> Self {
        Self { records: RwLock::default() }
    }
}

// The records may have secrets, so the debug text has their number.
impl<R> fmt::Debug for Decoded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.records.read().len();
        f.debug_struct("Decoded").field("records", &records).finish_non_exhaustive()
    }
}
