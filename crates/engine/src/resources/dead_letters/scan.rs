//! Scans of the index of dead letters.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::dead_letter::{DeadLetter, DeadLetterQuery, LetterFacts};
use domain::ids::{DeadLetterId, IntegrationId, IntegrationIdentifier, WorkflowId};
use domain::workflow::Workflow;
use store::{Order, ReadRecords, layout};

use crate::Result;
use crate::damage::if_readable;
use crate::resources::{integrations, workflows};
use crate::tx::View;

/// What a query selects, with the ids of what it names.
pub(super) struct Selection<'q> {
    query: &'q DeadLetterQuery,
    // `None` if each one is selected.
    workflows: Option<BTreeSet<WorkflowId>>,
    integrations: Option<BTreeSet<IntegrationId>>,
}

/// Dead letters that a scan has found.
#[derive(Debug, Default)]
pub(super) struct LetterBatch {
    /// Their ids, oldest failure first.
    pub(super) entries: Vec<DeadLetterId>,
    /// The dead letter behind which the next scan goes on. `None` if there is none behind it.
    pub(super) next: Option<DeadLetterId>,
}

impl<'q> Selection<'q> {
    /// Looks up what `query` names. An unknown name selects nothing.
    pub(super) fn of(view: &dyn View, query: &'q DeadLetterQuery) -> Result<Self> {
        Ok(Self {
            query,
            workflows: named_workflows(view, query)?,
            integrations: named(view, query)?,
        })
    }

    fn has(&self, facts: &LetterFacts) -> bool {
        self.query.matches(facts)
            && self
                .workflows
                .as_ref()
                .is_none_or(|selected| facts.workflow_id.is_some_and(|id| selected.contains(&id)))
            && self.integrations.as_ref().is_none_or(|selected| {
                facts.integration_id.is_some_and(|id| selected.contains(&id))
            })
    }

    /// Returns at most `limit` dead letters behind `behind` and up to `through`. Looks at
    /// [`DeadLetterQuery::MAX_SCANNED`] entries at most.
    pub(super) fn scan(
        &self,
        view: &dyn View,
        behind: Option<DeadLetterId>,
        through: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<LetterBatch> {
        let (mut found, mut last) = (LetterBatch::default(), None);
        let mut left = DeadLetterQuery::MAX_SCANNED;
        let range = layout::dead_letters_behind(view.environment_id(), behind);
        view.scan_bytes(&range, Order::Ascending, None, &mut |entry, _| {
            let Some(facts) = layout::letter_of(entry) else { return ControlFlow::Continue(()) };
            if through.is_some_and(|through| facts.id > through) {
                return ControlFlow::Break(());
            }
            if left == 0 || found.entries.len() == limit {
                found.next = last;
                return ControlFlow::Break(());
            }
            left -= 1;
            last = Some(facts.id);
            found.entries.extend(Some(facts.id).filter(|_| self.has(&facts)));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Returns the number of all dead letters that are selected, behind the cursor of the query.
    pub(super) fn count(&self, view: &dyn View) -> Result<u64> {
        let mut count = 0;
        let range = layout::dead_letters_behind(view.environment_id(), self.query.cursor);
        view.scan_bytes(&range, Order::Ascending, None, &mut |entry, _| {
            count += u64::from(layout::letter_of(entry).is_some_and(|facts| self.has(&facts)));
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}

/// The newest dead letter. Returns `None` if there is none.
pub(super) fn newest(view: &dyn View) -> Result<Option<DeadLetterId>> {
    let range = layout::dead_letters_behind(view.environment_id(), None);
    let id = |entry: &[u8]| layout::letter_of(entry).map(|facts| facts.id);
    Ok(view.first_known(&range, Order::Descending, id)?)
}

/// The dead letters with these ids, and the number of those that cannot be read.
pub(super) fn read(view: &dyn View, ids: &[DeadLetterId]) -> Result<(Vec<DeadLetter>, usize)> {
    let (mut letters, mut unreadable) = (Vec::with_capacity(ids.len()), 0);
    for id in ids {
        match if_readable(super::find(view, *id))? {
            Some(letter) => letters.extend(letter),
            None => unreadable += 1,
        }
    }
    Ok((letters, unreadable))
}

fn named_workflows(
    view: &dyn View,
    query: &DeadLetterQuery,
) -> Result<Option<BTreeSet<WorkflowId>>> {
    if query.workflows.is_empty() {
        return Ok(None);
    }
    let mut found = BTreeSet::new();
    for name in &query.workflows {
        // The dead letters of a workflow that was deleted are still found by its id and its slug.
        let known = if_readable(workflows::find(view, name.as_str()))?.flatten().map(|one| one.id);
        found.extend(known.or_else(|| Workflow::id_in(name.as_str())));
    }
    Ok(Some(found))
}

fn named(view: &dyn View, query: &DeadLetterQuery) -> Result<Option<BTreeSet<IntegrationId>>> {
    if query.integrations.is_empty() {
        return Ok(None);
    }
    let mut found = BTreeSet::new();
    for name in &query.integrations {
        let known = match IntegrationIdentifier::new(name.as_str()) {
            Ok(identifier) => {
                if_readable(integrations::find_by_identifier(view, &identifier))?.flatten()
            }
            Err(_) => None,
        };
        found.extend(known.map(|known| known.id).or_else(|| name.as_str().parse().ok()));
    }
    Ok(Some(found))
}
