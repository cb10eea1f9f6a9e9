//! Many subscribers in one call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use domain::subscriber::{Subscriber, SubscriberCreate, Upserted};
use store::layout::{self, CountedList};
use store::text_index::TextChanges;
use store::{Snapshot, WriteRecords};

use super::{Subscribers, being_deleted, find, made, note_lost, put};
use crate::Result;
use crate::resources::suppressions;
use crate::tx::{Tx, View};

impl Subscribers<'_> {
    /// Creates or changes up to 500 subscribers as [`upsert`](Self::upsert) does, in one transaction: all of
    /// them, or none after a refusal. An import is many times faster than with a call for each. The result
    /// has one item for each of `creates`, in their order.
    ///
    /// An id that is given twice is changed twice, in the order of `creates`, so that the later fields win.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::subscriber::{SubscriberCreate, Upserted};
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// env.subscribers().create(&SubscriberCreate::new("1")?)?;
    /// let people = (1..=1_200).map(|number| {
    ///     SubscriberCreate::new(number.to_string())?.email(format!("{number}@example.org"))
    /// });
    /// let people = people.collect::<Result<Vec<_>, _>>()?;
    /// let mut upserted = Vec::new();
    /// for some in people.chunks(SubscriberCreate::MAX_BULK) {
    ///     upserted.extend(env.subscribers().upsert_bulk(some)?);
    /// }
    /// assert_eq!(upserted[..2], [Upserted::Updated, Upserted::Created]);
    /// assert_eq!(upserted.len(), 1_200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`upsert`](Self::upsert). [`Error::Invalid`](crate::Error::Invalid) names the place of the subscriber, as in
    /// `subscribers[3].firstName`, and is also the error if there is no subscriber, if there are more than
    /// 500, or if they take more than 4 MiB as JSON text.
    pub fn upsert_bulk(&self, creates: &[SubscriberCreate]) -> Result<Vec<Upserted>> {
        self.scope.write("subscribers.upsert_bulk", creates, |tx| {
            SubscriberCreate::check_bulk(creates, tx.limits())?;
            tx.expect_change(CountedList::Subscribers(tx.environment_id()))?;
            let (upserted, planned) = plan(tx, creates)?;
            let changed =
                planned.iter().filter_map(|(before, after)| Some((before.as_ref()?, after)));
            let lost = changed.flat_map(|(before, after)| before.addresses_lost(after));
            suppressions::prefetch(tx, lost)?;
            let mut texts = TextChanges::default();
            for (before, after) in &planned {
                match before {
                    Some(before) => {
                        tx.replace_but_texts(before, after, &mut texts)?;
                        note_lost(tx, before, after)?;
                    }
                    None => put(tx, after)?,
                }
            }
            texts.make(tx)?;
            Ok(upserted)
        })
    }
}

// A subscriber as it is stored, and as it is going to be.
type Planned = (Option<Subscriber>, Subscriber);

// What is going to be stored. Each subscriber is there once. A refusal comes before the first write.
fn plan(tx: &Tx<'_>, creates: &[SubscriberCreate]) -> Result<(Vec<Upserted>, Vec<Planned>)> {
    let environment = tx.environment_id();
    let ids = creates.iter().map(|create| &create.subscriber_id);
    tx.prefetch(&mut ids.map(|id| layout::subscriber(environment, id).into_parts()))?;
    let (mut planned, mut places): (Vec<Planned>, _) = (Vec::new(), HashMap::new());
    let mut upserted = Vec::with_capacity(creates.len());
    for (index, create) in creates.iter().enumerate() {
        let place = match places.entry(&create.subscriber_id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let place = *free.insert(planned.len());
                let before = find(tx, &create.subscriber_id)?;
                let Some(stored) = before else {
                    planned.push((None, made(tx, create)?));
                    upserted.push(Upserted::Created);
                    continue;
                };
                if stored.deleted {
                    return Err(being_deleted(&create.subscriber_id));
                }
                planned.push((Some(stored.clone()), stored));
                place
            }
        };
        let Some((_, after)) = planned.get_mut(place) else { continue };
        let next = after.clone().superseded_by(create, tx.now());
        let next = next.map_err(|invalid| invalid.within(format!("subscribers[{index}]")))?;
        let is_same = next.version == after.version;
        upserted.push(if is_same { Upserted::Unchanged } else { Upserted::Updated });
        *after = next;
    }
    Ok((upserted, planned))
}
