//! Filter of a search.

use domain::ids::TransactionId;
use domain::notification::NotificationOutcome;
use domain::time::Timestamp;

use crate::facets::Term;
use crate::window::Window;

/// Filter of notifications. A notification matches if it matches every part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub(crate) window: Window,
    pub(crate) transaction: Option<TransactionId>,
    // Groups with the fewest terms come first, as the quickest to look up. Among equals the most
    // selective one comes first. Each group is in order.
    groups: Vec<Vec<Term>>,
    // One of them is enough. None says nothing.
    pub(crate) outcomes: Vec<NotificationOutcome>,
}

impl Filter {
    /// Notifications that were created within these times, both included, by this call of trigger.
    pub fn new(
        after: Option<Timestamp>,
        before: Option<Timestamp>,
        transaction: Option<TransactionId>,
    ) -> Self {
        let all = Window::default();
        let window = Window {
            from: after.map_or(all.from, Timestamp::as_millis),
            to: before.map_or(all.to, Timestamp::as_millis),
        };
        Self { window, transaction, ..Self::default() }
    }

    /// Narrows the filter to notifications that have one of `terms`.
    #[must_use]
    pub fn any_of(mut self, terms: impl IntoIterator<Item = Term>) -> Self {
        let mut group: Vec<Term> = terms.into_iter().collect();
        group.sort_unstable();
        group.dedup();
        let rank = |group: &Vec<Term>| (group.len(), group.first().copied());
        let at = self.groups.partition_point(|other| rank(other) <= rank(&group));
        self.groups.insert(at, group);
        self
    }

    /// Narrows the filter to notifications that have one of `outcomes`, unless there are none.
    #[must_use]
    pub fn with_outcomes(mut self, outcomes: &[NotificationOutcome]) -> Self {
        self.outcomes = outcomes.to_vec();
        self.outcomes.sort_unstable();
        self.outcomes.dedup();
        self
    }

    pub(crate) fn groups(&self) -> &[Vec<Term>] {
        &self.groups
    }
}
