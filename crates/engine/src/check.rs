//! Search for contradictions in a store.

use std::fmt;

pub use activity::{Disagreement, IndexCheck, Term};
use domain::environment::Environment;
use domain::ids::EnvironmentId;
use store::Snapshot;
pub use store::check::{Problem, TableFinding};

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

/// A contradiction in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A record is not readable, or an index entry contradicts the records.
    Table(TableFinding),
    /// The activity index of an environment contradicts the notifications.
    /// [`rebuild_index`](crate::Notifications::rebuild_index) mends that.
    Activity {
        /// The environment.
        environment: EnvironmentId,
        /// The contradiction.
        disagreement: Disagreement,
    },
    /// The activity index of an environment, or a notification in it, is not readable.
    /// [`rebuild_index`](crate::Notifications::rebuild_index) mends an index.
    UnreadableActivity {
        /// The environment.
        environment: EnvironmentId,
        /// The reason.
        reason: String,
    },
}

impl Engine {
    /// Compares the indexes of the store with its records. The comparison reads all of both from
    /// one snapshot. Other operations continue meanwhile.
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
        trace::operation("engine.check", None, || self.checked())
    }

    fn checked(&self) -> Result<StoreCheck> {
        self.read(|snapshot| {
            let store::check::TableCheck { records, entries, findings } =
                store::check::check(snapshot)?;
            let mut findings: Vec<_> = findings.into_iter().map(Finding::Table).collect();
            for environment in store::check::readable::<Environment>(snapshot)? {
                findings.extend(self.check_activity(snapshot, environment.id)?);
            }
            Ok(StoreCheck { records, entries, findings })
        })
    }

    fn check_activity(
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
