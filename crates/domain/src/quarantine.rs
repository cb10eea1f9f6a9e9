//! Quarantine: records that cannot be read, and tasks of the delivery queue that cannot be done without
//! them.

mod requeue;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{EnvironmentId, QuarantineId};
use crate::setters::setters;
use crate::task::Task;
use crate::time::Timestamp;

pub use requeue::RequeueRefusal;

/// A record that cannot be read. If a task needs it, the delivery queue moves the task here and copies the
/// record, such as a notification or a subscriber, which stays in its table. A task that cannot be read
/// itself is moved here. A repair moves any record here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Quarantined {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: QuarantineId,
    /// Environment of the record. The nil id if its key names none.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Table of the record that cannot be read.
    pub table: String,
    /// Key of the record in its table, with escapes for bytes that are not printable ASCII.
    pub key: String,
    /// Bytes of the record, with the same escapes. They may hold secrets.
    pub value: String,
    /// Reason for which the record cannot be read.
    pub reason: String,
    /// Time at which the record or its task was put here.
    pub quarantined_at: Timestamp,
    /// The task that needs the record, as JSON. `None` if the record is a task itself, or was moved here by
    /// a repair or a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Value>,
}

/// Query of the quarantine, oldest entry first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantineQuery {
    /// Last entry of the page before.
    pub after: Option<QuarantineId>,
    /// Maximum number of entries on the page: at least 1, 100 by default.
    pub limit: Option<usize>,
}

setters! { QuarantineQuery:
    /// Lists the entries behind this one.
    after: exact(QuarantineId);
    /// Sets the maximum number of entries on the page: at least 1.
    limit: exact(usize);
}

impl QuarantineQuery {
    /// Default size of a page.
    pub const DEFAULT_LIMIT: usize = 100;
}

/// An entry of a table that cannot be read.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Name of the table.
    pub table: &'static str,
    /// Key of the entry.
    pub key: Vec<u8>,
    /// Value of the entry.
    pub value: Vec<u8>,
    /// Reason.
    pub reason: String,
}

impl Quarantined {
    /// Returns the entry of a task that `unreadable` keeps from being done.
    #[doc(hidden)]
    pub fn new(
        (id, quarantined_at): (QuarantineId, Timestamp),
        environment_id: EnvironmentId,
        unreadable: &Unreadable,
        task: Option<Value>,
    ) -> Self {
        Self {
            id,
            environment_id,
            table: unreadable.table.into(),
            key: unreadable.key.escape_ascii().to_string(),
            value: unreadable.value.escape_ascii().to_string(),
            reason: unreadable.reason.clone(),
            quarantined_at,
            task,
        }
    }

    /// Returns the key and the value of the record. Returns `None` if their texts are cut off.
    #[doc(hidden)]
    pub fn record(&self) -> Option<[Vec<u8>; 2]> {
        Some([unescaped(&self.key)?, unescaped(&self.value)?])
    }

    /// Returns the task.
    #[doc(hidden)]
    pub fn readable_task(&self) -> Result<Task, RequeueRefusal> {
        let task = self.task.clone().ok_or(RequeueRefusal::Unreadable)?;
        serde_json::from_value(task).map_err(|_| RequeueRefusal::Unreadable)
    }
}

// The bytes that `escape_ascii` has made a text of.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b't' => b'\t',
                b'r' => b'\r',
                b'n' => b'\n',
                b'x' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
                quoted => quoted,
            },
            plain => plain,
        });
    }
    Some(bytes)
}

// The bytes of a record, and the message in a task, may hold secrets.
impl fmt::Debug for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, environment_id, table, key, reason, quarantined_at, .. } = self;
        f.debug_struct("Quarantined")
            .field("id", id)
            .field("environment_id", environment_id)
            .field("table", table)
            .field("key", key)
            .field("reason", reason)
            .field("quarantined_at", quarantined_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_bytes_of_its_record() {
        let bytes: Vec<u8> = (0..=u8::MAX).chain(*b"\\x41").collect();
        assert_eq!(unescaped(&bytes.escape_ascii().to_string()), Some(bytes));
        for cut in ["\\", "\\x", "\\x4", "\\xzz"] {
            assert_eq!(unescaped(cut), None, "{cut}");
        }
    }
}
