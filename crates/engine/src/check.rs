//! Search for contradictions in a store.

use std::fmt;

pub use activity::{Disagreement, IndexCheck, Term};
use domain::ids::EnvironmentId;
pub use store::check::{Problem, TableFinding};
use store::{Snapshot, Table};

use crate::{Engine, Result, trace};

/// The result of comparing the indexes of a store with its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCheck {
    /// The number of records.
    pub records: u64,
    /// The number of index entries, without the activity indexes.
    pub entries: u64,
    /// The contradictions: at most a thousand in the tables, and at most a thousand in each
    /// activity index. Empty if the store is sound.
    pub findings: Vec<Finding>,
}

/// Progress of a check or of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Name of the table that is looked at.
    pub table: &'static str,
    /// Number of rows that were looked at so far, in all tables.
    pub rows: u64,
}

/// A contradiction in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A record is not readable, or a row contradicts the records. [`Engine::repair`] mends that.
    Table(TableFinding),
    /// The activity index of an environment contradicts the notifications. [`Engine::repair`] and
    /// [`rebuild_index`](crate::Notifications::rebuild_index) mend that.
    Activity {
        /// The environment.
        environment: EnvironmentId,
        /// The contradiction.
        disagreement: Disagreement,
    },
    /// The activity index of an environment is not readable. [`Engine::repair`] and
    /// [`rebuild_index`](crate::Notifications::rebuild_index) mend that.
    UnreadableActivity {
        /// The environment.
        environment: EnvironmentId,
        /// The reason.
        reason: String,
    },
}

impl Engine {
    /// Compares the rows of the store with its records. The comparison reads all of both from one
    /// snapshot. Other operations continue meanwhile. The e-mail addresses of one environment after
    /// the other are held in memory, and all other rows in small parts.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = tidings::Engine::in_memory();
    /// engine.organization("acme")?.development()?;
    ///
    /// let check = engine.check()?;
    /// assert_eq!(check.findings, []);
    /// assert_eq!(check.records, 3); // the environment, its API key and the key of its links
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store), if the backend fails. Damage is a finding.
    pub fn check(&self) -> Result<StoreCheck> {
        self.check_with(|_| {})
    }

    /// [`check`](Self::check) that calls `progress` after each 256 rows at most.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_with(&self, mut progress: impl FnMut(Progress)) -> Result<StoreCheck> {
        trace::operation("engine.check", None, || {
            self.read(|snapshot| self.checked(snapshot, &mut progress))
        })
    }

    fn checked(
        &self,
        snapshot: &dyn Snapshot,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<StoreCheck> {
        let mut rows = 0;
        let mut at = |table: Table, so_far| {
            rows = so_far;
            progress(Progress { table: table.name(), rows });
        };
        let store::check::TableCheck { records, entries, findings } =
            store::check::check_with(snapshot, &mut at)?;
        let mut findings: Vec<_> = findings.into_iter().map(Finding::Table).collect();
        for environment in store::check::listed_environments(snapshot)? {
            progress(Progress { table: Table::ActivitySegments.name(), rows });
            findings.extend(self.check_activity(snapshot, environment)?);
        }
        Ok(StoreCheck { records, entries, findings })
    }

    pub(crate) fn check_activity(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
    ) -> Result<Vec<Finding>> {
        match self.activity().check(snapshot, environment) {
            Ok(check) => {
                let disagreements = check.disagreements.into_iter();
                let found = |disagreement| Finding::Activity { environment, disagreement };
                Ok(disagreements.map(found).collect())
            }
            Err(store::Error::Corrupt { table, source }) => {
                let reason = format!("{table}: {source}");
                Ok(vec![Finding::UnreadableActivity { environment, reason }])
            }
            Err(other) => Err(other.into()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(finding) => finding.fmt(f),
            Self::Activity { environment, disagreement } => {
                write!(f, "activity index of {environment}: {disagreement:?}")
            }
            Self::UnreadableActivity { environment, reason } => {
                write!(f, "activity index of {environment}: {reason}")
            }
        }
    }
}
