//! Work that may take several transactions.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;

use crate::{OnRows, Result, Store, Table, Transaction, run};

/// Result of one of the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether there is more to do"]
pub enum Step<S = (), T = ()> {
    /// The work goes on from here in another one.
    More(S),
    /// The work is done.
    Done(T),
}

impl Step {
    /// The step of work that goes on if there `is_more` to do.
    pub fn of(is_more: bool) -> Self {
        if is_more { Self::More(()) } else { Self::Done(()) }
    }
}

impl<S, T> Step<S, T> {
    /// Returns `true` if there is more to do.
    pub fn is_more(&self) -> bool {
        matches!(self, Self::More(_))
    }

    /// Returns the step with another state from which the work goes on.
    pub fn map_more<U>(self, map: impl FnOnce(S) -> U) -> Step<U, T> {
        match self {
            Self::More(state) => Step::More(map(state)),
            Self::Done(result) => Step::Done(result),
        }
    }
}

/// Transactions that make the rows of a table of an environment anew.
pub(crate) struct TableRebuild<'r> {
    pub(crate) store: &'r dyn Store,
    pub(crate) environment: EnvironmentId,
    pub(crate) table: Table,
}

impl TableRebuild<'_> {
    /// Runs `step` in one transaction after another, from `first` on. `step` returns the number of rows that it
    /// has looked at, and the place of the next transaction, or `None` at the end. Ends if `progress` breaks.
    pub(crate) fn run<P>(
        &self,
        first: P,
        progress: &mut OnRows<'_>,
        mut step: impl FnMut(&mut dyn Transaction, &P) -> Result<(u64, Option<P>)>,
    ) -> Result<ControlFlow<()>> {
        let mut next = Some(first);
        while let Some(place) = next {
            let (rows, end) = run::write_in(self.store, self.environment, |txn| step(txn, &place))?;
            if rows > 0 && progress(self.table, rows).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            next = end;
        }
        Ok(ControlFlow::Continue(()))
    }
}
