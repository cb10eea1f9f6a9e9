//! Places of a segment whose notifications have one of several outcomes.

use std::collections::BTreeSet;
use std::ops::Range;

use domain::ids::EnvironmentId;
use domain::notification::NotificationOutcome;
use store::outcomes::{self, IN_ROW, Row, row_of};
use store::{Result, Snapshot};

use crate::set::{Set, View};

/// Maximum number of rows that are looked up one by one. A scan of more is quicker.
const LOOKED_UP: usize = 8;

/// Places of a segment with certain outcomes.
#[derive(Clone, Debug)]
pub(crate) enum Allowed {
    /// Every place.
    All,
    /// Every place that is not in the set.
    Without(Set),
    /// The places in the set.
    Only(Set),
}

/// Places of a segment that are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The ordinal of the first place of the segment.
    pub(crate) start: u64,
    /// Those that are asked for.
    pub(crate) range: &'a Range<u32>,
    /// Only these of them, if they are few.
    pub(crate) few: Option<View<'a>>,
}

/// The places that have one of `outcomes`, as far as they are asked for.
pub(crate) fn allowed(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    places: Places<'_>,
    outcomes: &[NotificationOutcome],
) -> Result<Allowed> {
    let of = |outcome| places.of(snapshot, environment, outcome);
    let mut others: Option<Set> = None;
    for outcome in outcomes.iter().filter(|one| **one != NotificationOutcome::Delivered) {
        if let Some(set) = of(*outcome)? {
            match &mut others {
                Some(all) => all.unite(set.view()),
                None => others = Some(set),
            }
        }
    }
    if outcomes.is_empty() {
        return Ok(Allowed::All);
    }
    if !outcomes.contains(&NotificationOutcome::Delivered) {
        return Ok(Allowed::Only(others.unwrap_or_default()));
    }
    let Some(mut undelivered) = of(NotificationOutcome::Delivered)? else {
        return Ok(Allowed::All);
    };
    if let Some(others) = others {
        undelivered.leave_out(others.view());
    }
    Ok(Allowed::Without(undelivered))
}

impl Allowed {
    /// Returns `true` if no place is left.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Only(set) => set.view().is_empty(),
            Self::All | Self::Without(_) => false,
        }
    }
}

impl Places<'_> {
    // The places in the rows of an outcome. Returns `None` if there are no rows.
    fn of(
        self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        outcome: NotificationOutcome,
    ) -> Result<Option<Set>> {
        let mut all = None;
        let mut add = |number: u32, row: &Row| {
            let first = u64::from(number) * IN_ROW;
            let all = all.get_or_insert_with(Set::roomy);
            for (place, word) in row.words() {
                all.add_word(first + place, self.start, word);
            }
        };
        let numbers = self.rows();
        match numbers.as_slice() {
            [] => {}
            few if self.few.is_some() && few.len() <= LOOKED_UP => {
                for number in few {
                    let row = outcomes::find(snapshot, environment, outcome, *number)?;
                    if row != Row::default() {
                        add(*number, &row);
                    }
                }
            }
            [first, ..] => {
                let end = numbers.last().unwrap_or(first).saturating_add(1);
                outcomes::each(snapshot, environment, (outcome, *first..end), &mut add)?;
            }
        }
        Ok(all)
    }

    // The numbers of the rows that are read, in order: if all are, of the first and the last.
    fn rows(&self) -> Vec<u32> {
        let row = |place: u32| row_of(self.start + u64::from(place));
        match self.few {
            Some(few) => {
                let within = few.places().map(u32::from).filter(|place| self.range.contains(place));
                within.map(row).collect::<BTreeSet<u32>>().into_iter().collect()
            }
            None if self.range.is_empty() => Vec::new(),
            None => vec![row(self.range.start), row(self.range.end - 1)],
        }
    }
}
