//! Results of several events in one call.

use std::ops::Deref;
use std::vec;

use domain::trigger::TriggerReceipt;
use serde::Serialize;

use crate::{Error, Result};

/// Results of [`trigger_bulk`](crate::Events::trigger_bulk), in the order of the events.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::trigger::Trigger;
/// # use tidings::{step::Step, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// let events = [Trigger::new("greeting", "ada")?, Trigger::new("greting", "bob")?];
/// let receipts = env.events().trigger_bulk(&events)?;
/// for (index, error) in receipts.refused() {
///     eprintln!("{}: {error}", events[index].workflow);
/// }
/// assert_eq!(receipts.refused().count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Serialize)]
#[serde(transparent)]
#[must_use = "some of the events may be refused"]
pub struct BulkReceipts(Vec<Result<TriggerReceipt>>);

impl BulkReceipts {
    pub(crate) fn new(receipts: impl Iterator<Item = Result<TriggerReceipt>>) -> Self {
        Self(receipts.collect())
    }

    /// Refusals, with the index of each refused event.
    pub fn refused(&self) -> impl Iterator<Item = (usize, &Error)> {
        let receipts = self.0.iter().enumerate();
        receipts.filter_map(|(index, receipt)| Some((index, receipt.as_ref().err()?)))
    }

    /// Returns the receipts of all events.
    ///
    /// # Errors
    ///
    /// The first refusal. The other events have happened.
    pub fn all(self) -> Result<Vec<TriggerReceipt>> {
        self.0.into_iter().collect()
    }
}

impl Deref for BulkReceipts {
    type Target = [Result<TriggerReceipt>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl IntoIterator for BulkReceipts {
    type Item = Result<TriggerReceipt>;
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'r> IntoIterator for &'r BulkReceipts {
    type Item = &'r Result<TriggerReceipt>;
    type IntoIter = std::slice::Iter<'r, Result<TriggerReceipt>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
