//! Search for contradictions in a store.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};

pub use activity::{Disagreement, IndexCheck, Term};
use domain::ids::EnvironmentId;
use serde::{Serialize, Serializer};
pub use store::check::{Problem, TableFinding};
use store::{OnProgress, OnRows, Snapshot, Table};

use crate::{Engine, Progress, Result, trace};

/// The result of comparing the indexes of a store with its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use = "it has the contradictions, and says whether everything was compared"]
pub struct StoreCheck {
    /// The number of records.
    pub records: u64,
    /// The number of index entries, without the activity indexes.
    pub entries: u64,
    /// The contradictions: at most a thousand in the tables, and at most a thousand in each
    /// activity index. Empty if the store is sound. JSON has their texts.
    #[serde(serialize_with = "as_texts")]
    pub findings: Vec<Finding>,
    /// `true` if everything was compared; `false` if `progress` has ended the check.
    pub is_finished: bool,
}

/// Result of making the indexes of the activity list of an environment anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use = "it says whether the rebuild is finished"]
pub struct IndexRebuild {
    /// Number of rows that were looked at.
    pub rows: u64,
    /// `true` if the new indexes are in use; `false` if `progress` has ended the rebuild.
    pub is_finished: bool,
}

fn as_texts<S: Serializer>(findings: &[Finding], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(findings.iter().map(ToString::to_string))
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
    /// Compares the rows of the store with its records, and looks for records that wait for a task which
    /// is missing. The comparison reads everything from one snapshot. Other operations continue
    /// meanwhile. The e-mail addresses, and then the names, of one environment after the other are held in
    /// memory, and all other rows in small parts.
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
        self.check_with(|_| ControlFlow::Continue(()))
    }

    /// [`check`](Self::check) that calls `progress` after each 256 rows at most, and ends if `progress`
    /// breaks. The findings are those so far. These steps look at more rows: an index of texts is compared
    /// with all subscribers of an environment, a number with all messages of an inbox or all entries of a
    /// list, a row of outcomes with 1,024 notifications, and the activity index with 61,440 at a time.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_with(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<StoreCheck> {
        trace::operation("engine.check", None, || {
            self.read(|snapshot| self.checked(snapshot, &mut progress))
        })
    }

    fn checked(
        &self,
        snapshot: &dyn Snapshot,
        progress: &mut OnProgress<'_>,
    ) -> Result<StoreCheck> {
        let mut rows = 0;
        let mut progress = summed(&mut rows, progress);
        let store::check::TableCheck { records, entries, findings, is_finished } =
            store::check::check_with(snapshot, &mut progress)?;
        let findings = findings.into_iter().map(Finding::Table).collect();
        let mut check = StoreCheck { records, entries, findings, is_finished };
        if !is_finished {
            return Ok(check);
        }
        for environment in store::check::listed_environments(snapshot)? {
            let (found, next) = self.check_activity(snapshot, environment, &mut progress)?;
            check.findings.extend(found);
            if next.is_break() {
                return Ok(StoreCheck { is_finished: false, ..check });
            }
        }
        Ok(check)
    }

    // Returns what is wrong, and whether to go on.
    pub(crate) fn check_activity(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        progress: &mut OnRows<'_>,
    ) -> Result<(Vec<Finding>, ControlFlow<()>)> {
        match self.activity().check(snapshot, environment, progress) {
            Ok(check) => {
                let disagreements = check.disagreements.into_iter();
                let found = |disagreement| Finding::Activity { environment, disagreement };
                let next = if check.is_finished { Continue(()) } else { Break(()) };
                Ok((disagreements.map(found).collect(), next))
            }
            Err(store::Error::Corrupt { table, source }) => {
                let reason = format!("{table}: {source}");
                Ok((vec![Finding::UnreadableActivity { environment, reason }], Continue(())))
            }
            Err(other) => Err(other.into()),
        }
    }
}

/// Returns a function that adds to `rows`, and tells `progress` the sum.
pub(crate) fn summed(
    rows: &mut u64,
    progress: &mut OnProgress<'_>,
) -> impl FnMut(Table, u64) -> ControlFlow<()> {
    move |table, more| {
        *rows += more;
        progress(Progress::of_rows(table, *rows))
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
