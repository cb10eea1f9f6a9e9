//! Rows that an older format did not have.
//!
//! Opening a file of an older format leaves a mark for each later one: records and lists may lack the rows
//! that this one added. The rows are put in small transactions, each of which notes in the mark how far it
//! has come. New records have them from the start.

use domain::subscriber::Subscriber;

use crate::batch::Batch;
use crate::layout::{
    self, CountedList, FORMAT, IndexPart, SUBSCRIBER_IDS, SearchedField, TextIndex,
};
use crate::record::{Entries, IndexEntry, follow_readable};
use crate::{
    Bytes, Key, ReadRecords, Record, Result, Snapshot, Step, Table, Transaction, WriteRecords,
    list_counts, text_index,
};

/// The format whose subscribers are not found by telephone number and by name, whose e-mail addresses have no
/// places in their index, and whose lists are not counted.
const LACKING: u32 = 2;

/// The field whose texts get places in their index.
pub(crate) const PLACED: SearchedField = SearchedField::Email;

/// Number of subscribers that a step looks at. In tests an environment is small.
const STEP: usize = if cfg!(test) { 3 } else { 500 };

/// Number of rows of e-mail addresses that a step looks at. A row has about a hundred.
const ROWS: usize = if cfg!(test) { 2 } else { 8 };

/// Number of lists that a step counts at most, each up to [`STEP`](list_counts::STEP) records.
const LISTS: usize = if cfg!(test) { 2 } else { 8 };

/// The marks of a store that had format `found`.
pub fn marks(found: u32) -> impl Iterator<Item = Key<Bytes>> {
    (found..FORMAT).map(layout::backfill)
}

// Kind of the rows that are put next, and the key behind which they may be missing.
enum Mark {
    // Behind this key of `SUBSCRIBER_IDS`, which has no id or address of the host.
    Subscribers(Vec<u8>),
    Lists(Vec<u8>),
    Places(Vec<u8>),
}

impl Mark {
    const SUBSCRIBERS: u8 = 0;
    const LISTS: u8 = 1;
    const PLACES: u8 = 2;

    fn find(snapshot: &(impl Snapshot + ?Sized)) -> Result<Option<Self>> {
        let mut found = None;
        snapshot.get_bytes(&mark(), &mut |mark| {
            found = Some(match mark {
                [Self::SUBSCRIBERS, behind @ ..] => Self::Subscribers(behind.to_vec()),
                [Self::LISTS, behind @ ..] => Self::Lists(behind.to_vec()),
                [Self::PLACES, behind @ ..] => Self::Places(behind.to_vec()),
                // A new mark has no place. A damaged one begins anew, which does no harm.
                _ => Self::Subscribers(Vec::new()),
            });
        })?;
        Ok(found)
    }

    fn put(&self, transaction: &mut dyn Transaction) -> Result<()> {
        let (tag, behind) = match self {
            Self::Subscribers(behind) => (Self::SUBSCRIBERS, behind),
            Self::Lists(behind) => (Self::LISTS, behind),
            Self::Places(behind) => (Self::PLACES, behind),
        };
        transaction.put_bytes(&mark(), &[&[tag], behind.as_slice()].concat())
    }
}

/// The key of the mark that is there while there may be rows that a [`step`] puts.
pub(crate) fn mark() -> Key<Bytes> {
    layout::backfill(LACKING)
}

/// Returns `true` if there may be rows that a [`step`] puts.
pub fn is_pending(snapshot: &(impl Snapshot + ?Sized)) -> Result<bool> {
    snapshot.contains(&mark())
}

/// Returns `true` if subscribers may lack rows by which they are found.
pub fn lacks_entries(snapshot: &(impl Snapshot + ?Sized)) -> Result<bool> {
    Ok(matches!(Mark::find(snapshot)?, Some(Mark::Subscribers(_))))
}

/// Returns `true` if the row under that key of the table is put by a [`step`].
pub(crate) fn puts(table: Table, key: &[u8]) -> bool {
    match table {
        Table::SubscriberPhones | Table::NameIndex | Table::ListCounts => true,
        Table::EmailIndex => {
            matches!(PLACED.read(key), Some((_, IndexPart::Places(_))))
        }
        _ => false,
    }
}

/// Puts the missing rows of the next subscribers. Behind the last subscriber it counts lists, and behind the
/// last list it puts places of e-mail addresses.
pub fn step(transaction: &mut dyn Transaction) -> Result<Step> {
    let next = match Mark::find(&*transaction)? {
        None => None,
        Some(Mark::Subscribers(behind)) => Some(fill_next(transaction, &behind)?),
        Some(Mark::Lists(behind)) => Some(count_next(transaction, &behind)?),
        Some(Mark::Places(behind)) => place_next(transaction, behind)?,
    };
    let Some(next) = next else {
        transaction.delete_key(&mark())?;
        return Ok(Step::Done(()));
    };
    next.put(transaction)?;
    Ok(Step::More(()))
}

fn fill_next(transaction: &mut dyn Transaction, behind: &[u8]) -> Result<Mark> {
    let rest = SUBSCRIBER_IDS.all().range().resumed(behind);
    let Batch { rows, next } = Batch::read(&*transaction, &rest, STEP)?;
    let found = follow_readable::<Subscriber>(&*transaction, rest.table(), &rows)?;
    for subscriber in found.iter().flatten() {
        fill(transaction, subscriber)?;
    }
    Ok(next.map_or(Mark::Lists(Vec::new()), Mark::Subscribers))
}

// Counts the lists behind that of a key, until one has more records than a transaction counts.
fn count_next(transaction: &mut dyn Transaction, behind: &[u8]) -> Result<Mark> {
    let mut counted = CountedList::read(behind);
    for _ in 0..LISTS {
        let Some(list) = list_counts::next(transaction, counted)? else {
            return Ok(Mark::Places(Vec::new()));
        };
        if list_counts::go_on(transaction, list)?.is_more() {
            break;
        }
        counted = Some(list);
    }
    let behind = counted.map(|list| list.key().as_bytes().to_vec());
    Ok(Mark::Lists(behind.unwrap_or_default()))
}

fn place_next(transaction: &mut dyn Transaction, mut behind: Vec<u8>) -> Result<Option<Mark>> {
    for _ in 0..ROWS {
        let next = text_index::add_next_places(transaction, PLACED, &behind)?;
        let Some(row) = next else { return Ok(None) };
        behind = row;
    }
    Ok(Some(Mark::Places(behind)))
}

// Rows that are there are put once more. A name is in two rows then, which does no harm.
fn fill(transaction: &mut dyn Transaction, subscriber: &Subscriber) -> Result<()> {
    let key = subscriber.key();
    let lacking = |entry: &&IndexEntry<_>| puts(entry.key.table(), entry.key.as_bytes());
    for entry in Entries::of(subscriber).iter().filter(lacking) {
        transaction.put_bytes(&entry.key, &entry.value(&key))?;
    }
    let names = TextIndex { field: SearchedField::Name, environment: subscriber.environment_id };
    let mut texts = subscriber.texts();
    texts.retain(|text| text.is_of(names));
    text_index::add_all(transaction, &texts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;

    use domain::environment::Home;
    use domain::folded::FoldedPart;
    use domain::ids::InternalSubscriberId;
    use domain::subscriber::SubscriberCreate;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::memory::MemoryStore;
    use crate::range::EVERYTHING;
    use crate::sample::{at, store};
    use crate::{Change, ChangeKind, Order, check, read, write};

    // The subscriber of that number, of one of two environments, with one of some names and numbers.
    fn subscriber(number: u8, text: u8) -> Subscriber {
        let environment_id = Uuid::from_u128(u128::from(number % 2) + 1).into();
        let home = Home { organization_id: "acme".parse().unwrap(), environment_id };
        let create = SubscriberCreate::new(format!("subscriber-{number}")).unwrap();
        let create = create.first_name(format!("Name {text}")).phone(format!("+{text}"));
        let create = create.email(format!("{number}@{text}.example.com")).unwrap();
        Subscriber::new(Uuid::from_u128(number.into()).into(), &home, create, at(0))
    }

    fn change(store: &MemoryStore, all: &mut BTreeMap<u8, u8>, (number, text): (u8, Option<u8>)) {
        let old = match text {
            Some(text) => all.insert(number, text),
            None => all.remove(&number),
        };
        let old = old.map(|text| subscriber(number, text));
        let new = text.map(|text| subscriber(number, text));
        write(store, |txn| {
            let kind = match (&old, &new) {
                (Some(old), Some(new)) => txn.replace(old, new).map(|()| ChangeKind::Replaced)?,
                (Some(old), None) => txn.remove(old).map(|()| ChangeKind::Removed)?,
                (None, Some(new)) => txn.insert(new).map(|()| ChangeKind::Inserted)?,
                (None, None) => return Ok(()),
            };
            let Some(key) = old.as_ref().or(new.as_ref()).map(Record::key) else { return Ok(()) };
            let change = Change::new(kind, &key).of(old.as_ref(), new.as_ref());
            list_counts::count(txn, &[change])
        })
        .unwrap();
    }

    // Makes `store` one that was of the older format.
    fn age(store: &MemoryStore) {
        write(store, |txn| -> Result<()> {
            for table in Table::ALL {
                let mut keys = Vec::new();
                txn.scan(table, &EVERYTHING, Order::Ascending, None, &mut |key, _| {
                    keys.extend(puts(table, key).then(|| key.to_vec()));
                    ControlFlow::Continue(())
                })?;
                keys.iter().try_for_each(|key| txn.delete(table, key))?;
            }
            marks(LACKING).try_for_each(|mark| txn.put_bytes(&mark, b""))
        })
        .unwrap();
    }

    fn called(store: &MemoryStore, environment: u128, text: u8) -> Vec<InternalSubscriberId> {
        let environment = Uuid::from_u128(environment).into();
        let (names, mut found) =
            (TextIndex { field: SearchedField::Name, environment }, Vec::new());
        let part = FoldedPart::new(&format!("NAME {text}"));
        read(store, |snapshot| {
            text_index::find(snapshot, names, &part, &mut |id| {
                found.push(id);
                ControlFlow::Continue(())
            })
        })
        .unwrap();
        found.sort_unstable();
        found.dedup();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn all_rows_are_there_at_the_end_whatever_changes_meanwhile(
            before in prop::collection::vec((0..40_u8, 0..4_u8), 0..40),
            meanwhile in prop::collection::vec((0..40_u8, prop::option::of(0..4_u8)), 0..40),
        ) {
            let (store, mut all) = (store(), BTreeMap::new());
            for (number, text) in before {
                change(&store, &mut all, (number, Some(text)));
            }
            age(&store);
            let mut meanwhile = meanwhile.into_iter();
            while write(&store, |txn| step(txn)).unwrap().is_more() {
                meanwhile.by_ref().take(3).for_each(|next| change(&store, &mut all, next));
                prop_assert_eq!(read(&store, check::check).unwrap().findings, []);
            }
            prop_assert!(!read(&store, |snapshot| is_pending(snapshot)).unwrap());
            meanwhile.for_each(|next| change(&store, &mut all, next));
            prop_assert_eq!(read(&store, check::check).unwrap().findings, []);
            for (environment, text) in [(1, 0), (1, 3), (2, 1), (2, 2)] {
                let own = all.iter().filter(|(number, of)| {
                    (u128::from(**number % 2) + 1, **of) == (environment, text)
                });
                let ids: Vec<_> = own.map(|(number, of)| subscriber(*number, *of).id).collect();
                prop_assert_eq!(called(&store, environment, text), ids);
            }
            prop_assert!(!write(&store, |txn| step(txn)).unwrap().is_more());
        }
    }
}
