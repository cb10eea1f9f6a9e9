//! Findings: rows that contradict the records.

use std::fmt;

use domain::ids::EnvironmentId;

use crate::{Table, layout};

/// The result of comparing the indexes of a store with its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableCheck {
    /// The number of records.
    pub records: u64,
    /// The number of index entries.
    pub entries: u64,
    /// The first thousand findings. Empty if the store is sound.
    pub findings: Vec<TableFinding>,
    /// `false` if the callback has ended the comparison.
    pub is_finished: bool,
}

/// A row of a table that cannot be read, or that contradicts the records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFinding {
    /// The name of the table.
    pub table: &'static str,
    /// The key of the row.
    pub key: Vec<u8>,
    /// The environment of the row. `None` if its key names none.
    pub environment: Option<EnvironmentId>,
    /// The contradiction.
    pub problem: Problem,
}

/// A contradiction between a row and the records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The record cannot be decoded, or belongs under another key.
    Unreadable {
        /// The reason.
        reason: String,
    },
    /// The environment has no record of its own, and there are others that belong to it, or it has no key
    /// of its unsubscribe links.
    Gone,
    /// A record has this entry, and the index does not.
    Missing,
    /// The index has this entry, and no record does.
    Extra,
    /// The counters of a subscriber's messages are not those of the messages, or the number of a list
    /// is not that of its records.
    Miscounted,
    /// The lane does not begin with its first task.
    Misplaced,
    /// The row has other notifications than those with its outcome.
    Outdated,
    /// Two records have this entry.
    Contested,
    /// The entry of a message has another signature than its message, and hides it from queries.
    WrongSignature,
    /// The record waits for a task of the delivery queue, and there is none: a delay never ends, or a
    /// message is never sent.
    Stalled,
}

impl TableCheck {
    const FINDINGS: usize = 1_000;

    pub(crate) fn add(&mut self, finding: TableFinding) {
        if self.findings.len() < Self::FINDINGS {
            self.findings.push(finding);
        }
    }
}

impl TableFinding {
    pub(crate) fn new(table: Table, key: &[u8], problem: Problem) -> Self {
        let environment = layout::environment_of(table, key);
        Self { table: table.name(), key: key.to_vec(), environment, problem }
    }
}

impl fmt::Display for TableFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, key) = (self.table, self.key.escape_ascii());
        match &self.problem {
            Problem::Unreadable { reason } => write!(f, "{table} {key}: {reason}"),
            Problem::Gone => {
                write!(f, "{table} {key}: the record is gone, and others need it")
            }
            Problem::Missing => write!(f, "{table} {key}: the entry is missing"),
            Problem::Extra => write!(f, "{table} {key}: the entry leads to no record that has it"),
            Problem::Miscounted => {
                write!(f, "{table} {key}: the counters are not those of the records")
            }
            Problem::Misplaced => {
                write!(f, "{table} {key}: the lane does not begin with its first task")
            }
            Problem::Outdated => {
                write!(f, "{table} {key}: the row is not that of the notifications")
            }
            Problem::WrongSignature => {
                write!(f, "{table} {key}: the signature is not that of the message")
            }
            Problem::Contested => write!(f, "{table} {key}: two records have the entry"),
            Problem::Stalled => write!(f, "{table} {key}: the task that it waits for is missing"),
        }
    }
}
