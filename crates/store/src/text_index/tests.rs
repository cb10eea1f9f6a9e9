use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use domain::environment::Home;
use domain::folded::fold;
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::time::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::memory::MemoryStore;
use crate::sample::store;
use crate::{Error, Order, ReadBody, Record, Store, WriteBody, backfill, check, read, write};

const EMAIL: &str = "[abAB0ıİßẞÄä]{1,6}@[abAÄ]{1,3}\\.[cC]{1,2}";
const NAME: &str = "[abAB0ıİßẞÄä ]{0,3}|[aA]{1,6} [bßẞ]{1,6}";
const PART: &str = "[abAB0ıİßẞÄä@.cC]{0,5}|[cC]\\x00[ab]|[a-c]{2}@[a-c]{2}";

fn environment() -> EnvironmentId {
    Uuid::from_u128(1).into()
}

fn index(field: SearchedField) -> TextIndex {
    TextIndex { field, environment: environment() }
}

// A subscriber with this text in the field, or in none.
fn subscriber(field: SearchedField, number: u8, text: &str) -> Subscriber {
    let home = Home { organization_id: "acme".parse().unwrap(), environment_id: environment() };
    let create = SubscriberCreate::new(format!("subscriber-{number}")).unwrap();
    let id = Uuid::from_u128(u128::from(number) + 7).into();
    let create = match field {
        SearchedField::Email => create.email(text).unwrap(),
        SearchedField::Name => create.first_name(text),
    };
    Subscriber::new(id, &home, create, Timestamp::from_millis(0))
}

/// Subscribers that get texts, or lose them, one after the other.
type Steps = Vec<(u8, Option<String>)>;

/// Subscribers with texts in a field, and what their index is to find.
struct World {
    field: SearchedField,
    store: MemoryStore,
    texts: BTreeMap<u8, String>,
}

impl World {
    fn of(field: SearchedField, steps: &[(u8, Option<String>)]) -> Self {
        let mut world = Self { field, store: store(), texts: BTreeMap::new() };
        world.apply(steps);
        world
    }

    // Gives subscribers texts, or removes them.
    fn apply(&mut self, steps: &[(u8, Option<String>)]) {
        for (number, text) in steps {
            let old = match text {
                Some(text) => self.texts.insert(*number, text.clone()),
                None => self.texts.remove(number),
            };
            let old = old.map(|text| subscriber(self.field, *number, &text));
            let new = text.as_ref().map(|text| subscriber(self.field, *number, text));
            write(&self.store, |txn| match (&old, &new) {
                (Some(old), Some(new)) => txn.replace(old, new),
                (Some(old), None) => txn.remove(old),
                (None, Some(new)) => txn.insert(new),
                (None, None) => Ok(()),
            })
            .unwrap();
        }
    }

    fn found(&self, part: &str) -> Result<Vec<InternalSubscriberId>> {
        let mut found = Vec::new();
        read(&self.store, |snapshot| {
            find(snapshot, index(self.field), &FoldedPart::new(part), &mut |id| {
                found.push(id);
                ControlFlow::Continue(())
            })
        })?;
        found.sort_unstable();
        Ok(found)
    }

    fn expected(&self, part: &str) -> Vec<InternalSubscriberId> {
        let has = |(_, text): &(&u8, &String)| fold(text).contains(&fold(part));
        let texts = self.texts.iter().filter(has);
        texts.map(|(number, text)| subscriber(self.field, *number, text).id).collect()
    }

    fn rows(&self) -> usize {
        read(&self.store, |snapshot| snapshot.count(&index(self.field).rows(), None)).unwrap()
    }

    fn findings(&self) -> Vec<check::TableFinding> {
        let findings = read(&self.store, check::check).unwrap().findings.into_iter();
        // Nothing counts the subscribers here.
        findings.filter(|finding| finding.table != "list_counts").collect()
    }

    fn rebuild(&self) {
        rebuilt(&self.store, self.field).unwrap();
    }

    // Removes the places of all texts, which an index of an older format does not have.
    fn remove_places(&self) {
        for number in self.texts.keys() {
            let id = subscriber(self.field, *number, "a@b.c").id;
            let key = places::key(index(self.field), id);
            write(&self.store, |txn| txn.delete_key(&key)).unwrap();
        }
    }
}

fn rebuilt(store: &dyn Store, field: SearchedField) -> Result<()> {
    rebuild(store, index(field), &mut |_, _| ControlFlow::Continue(())).map(drop)
}

fn users(numbers: impl IntoIterator<Item = u8>) -> Steps {
    numbers.into_iter().map(|number| (number, Some(format!("user-{number}@b.cc")))).collect()
}

fn steps(most: usize) -> impl Strategy<Value = (SearchedField, Steps, Steps)> {
    let of = |text: &'static str, most| {
        prop::collection::vec((any::<u8>(), prop::option::weighted(0.8, text)), 0..most)
    };
    let fields = [(SearchedField::Email, EMAIL), (SearchedField::Name, NAME)];
    prop::sample::select(fields.to_vec())
        .prop_flat_map(move |(field, text)| (Just(field), of(text, most), of(text, most / 3)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn every_part_finds_what_a_look_at_all_texts_finds(
        (field, first, second) in steps(700),
        parts in prop::collection::vec(PART, 12),
    ) {
        let mut world = World::of(field, &[]);
        for steps in [&first, &second] {
            world.apply(steps);
            // Whole texts are found as well, and those that were there.
            let texts = steps.iter().filter_map(|(_, text)| text.clone()).take(20);
            for part in parts.iter().cloned().chain(texts) {
                prop_assert_eq!(world.found(&part).unwrap(), world.expected(&part), "{}", part);
            }
            prop_assert_eq!(world.findings(), []);
        }
        world.rebuild();
        for part in &parts {
            prop_assert_eq!(world.found(part).unwrap(), world.expected(part));
        }
        prop_assert_eq!(world.findings(), []);
        // Each text that goes away is followed by another one: rows do not become more.
        for _ in 0..4 {
            let all: Vec<_> = world.texts.clone().into_iter().collect();
            let gone: Vec<_> = all.iter().map(|(number, _)| (*number, None)).collect();
            world.apply(&gone);
            let back: Vec<_> = all.into_iter().map(|(number, text)| (number, Some(text))).collect();
            world.apply(&back);
        }
        prop_assert!(world.rows() <= 4 * usize::from(ROWS), "{}", world.rows());
    }

    #[test]
    fn a_damaged_entry_is_no_panic(
        field in prop::sample::select(&SearchedField::ALL[..]),
        numbers in 200..255_u8,
        (at, byte, cut) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()),
        flip in 1..=u8::MAX,
    ) {
        let world = World::of(field, &users(0..numbers));
        let mut entries = Vec::new();
        read(&world.store, |snapshot| {
            let all = index(field).all().range();
            snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, value| {
                entries.push((key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })
        })
        .unwrap();
        let (key, mut value) = entries[at.index(entries.len())].clone();
        let byte = byte.index(value.len());
        if cut { value.truncate(byte) } else { value[byte] ^= flip }
        write(&world.store, |txn| txn.put(field.table(), &key, &value)).unwrap();
        let whole = numbers - 1;
        for part in ["user-1", "r-19", "@", &format!("user-{whole}@b.cc")] {
            let _ = world.found(part);
        }
        let old = subscriber(field, whole, &world.texts[&whole]);
        let _ = write(&world.store, |txn| txn.remove(&old));
        let _ = write(&world.store, |txn| txn.insert(&subscriber(field, 255, "new@b.cc")));
        if cut {
            prop_assert!(!world.findings().is_empty());
        }
        world.rebuild();
        prop_assert!(world.found("user-17").is_ok_and(|found| found.len() == 11));
    }
}

/// Few texts are looked for one by one, and many by a look at all rows.
#[test]
fn texts_are_replaced_together() {
    for field in SearchedField::ALL {
        for lost in [1, 15, 16, 200] {
            let mut world = World::of(field, &users(0..250));
            write(&world.store, |txn| {
                let mut texts = TextChanges::default();
                for number in 0..lost {
                    let old = subscriber(field, number, &world.texts[&number]);
                    let text = format!("other-{number}@b.cc");
                    txn.replace_but_texts(&old, &subscriber(field, number, &text), &mut texts)?;
                    world.texts.insert(number, text);
                }
                texts.make(txn)
            })
            .unwrap();
            assert_eq!(world.findings(), [], "{lost} of {field:?}");
            let found = |part| world.found(part).unwrap().len();
            assert_eq!((found("user-"), found("other-")), (250 - usize::from(lost), lost.into()));
        }
    }
}

#[test]
fn a_missing_row_is_corrupt() {
    for field in SearchedField::ALL {
        let world = World::of(field, &users(0..250));
        assert!(world.rows() > usize::from(ROWS));
        for row in 0..ROWS {
            write(&world.store, |txn| txn.delete_key(&row_key(index(field), (0, row)))).unwrap();
        }
        assert!(matches!(world.found("user-1"), Err(Error::Corrupt { .. })));
        let is_missing = |found: &check::TableFinding| found.problem == check::Problem::Missing;
        assert!(world.findings().iter().any(is_missing));
    }
}

/// A group that has no room has all of its rows, also those that have lost their texts.
#[test]
fn a_missing_row_without_texts_is_found() {
    for field in SearchedField::ALL {
        let mut world = World::of(field, &users(0..250));
        world.apply(&[(0, None), (1, None), (2, None)]);
        let first = row_key(index(field), (0, 0));
        assert_eq!(
            read(&world.store, |view| row(view, index(field), (0, 0))).unwrap(),
            Row::default()
        );
        assert_eq!(world.findings(), []);
        write(&world.store, |txn| txn.delete_key(&first)).unwrap();
        let findings = world.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(
            (&*findings[0].key, &findings[0].problem),
            (first.as_bytes(), &check::Problem::Missing)
        );
        world.rebuild();
        assert_eq!(world.findings(), []);
    }
}

/// Where the head and all rows are lost, the numbers of groups begin anew, and older places name some of them.
#[test]
fn a_rebuild_from_places_alone_leaves_no_older_ones() {
    for field in SearchedField::ALL {
        let world = World::of(field, &users(0..250));
        let mut lost = vec![index(field).part(IndexPart::Head).into_parts().1];
        read(&world.store, |snapshot| {
            let rows = index(field).rows().range();
            snapshot.scan_bytes(&rows, Order::Ascending, None, &mut |key, _| {
                lost.push(key.to_vec());
                ControlFlow::Continue(())
            })
        })
        .unwrap();
        write(&world.store, |txn| lost.iter().try_for_each(|key| txn.delete(field.table(), key)))
            .unwrap();
        assert_ne!(world.findings(), []);
        world.rebuild();
        assert_eq!(world.findings(), []);
        assert_eq!(world.found("user-").unwrap(), world.expected("user-"));
    }
}

/// The head of an index tells that a row is missing, also if no other one is there.
#[test]
fn a_missing_row_is_found_where_all_are_gone() {
    for field in SearchedField::ALL {
        let mut world = World::of(field, &users(0..1));
        world.apply(&[(0, None)]);
        assert_eq!((world.rows(), world.findings()), (1, Vec::new()));
        write(&world.store, |txn| txn.delete_key(&row_key(index(field), (0, 0)))).unwrap();
        assert!(matches!(world.found("user-1"), Err(Error::Corrupt { .. })));
        assert_eq!(world.findings().len(), 1);
        world.rebuild();
        assert_eq!((world.found("user-1").unwrap(), world.findings()), (Vec::new(), Vec::new()));
    }
}

/// The number of the group in a damaged head may be any.
#[test]
fn a_rebuild_goes_on_behind_a_damaged_head() {
    for field in SearchedField::ALL {
        let world = World::of(field, &users(0..250));
        let damaged = Head { group: u32::MAX, rows: 1 }.bytes();
        let key = index(field).part(IndexPart::Head);
        write(&world.store, |txn| txn.put_bytes(&key, &damaged)).unwrap();
        world.rebuild();
        assert_eq!(world.found("user-1").unwrap(), world.expected("user-1"));
        assert_eq!(world.findings(), []);
    }
}

/// A rebuild of an index without places is interrupted. Texts that change leave all of their rows.
#[test]
fn a_rebuild_of_an_older_index_that_is_interrupted_loses_no_place() {
    for field in SearchedField::ALL {
        for writes in 0.. {
            let mut world = World::of(field, &users(0..250));
            world.remove_places();
            let mortal = Mortal { below: world.store.clone(), left: AtomicUsize::new(writes) };
            let has_ended = rebuilt(&mortal, field).is_ok();
            world.apply(&(0..250).step_by(3).map(|number| (number, None)).collect::<Vec<_>>());
            let mut found = world.found("user-").unwrap();
            found.dedup();
            assert_eq!(found, world.expected("user-"), "after {writes} transactions");
            if has_ended {
                assert_eq!(world.findings(), []);
                break;
            }
        }
    }
}

/// The number of a group whose only row is lost is not used again.
#[test]
fn a_rebuild_begins_behind_a_group_that_is_lost() {
    for field in SearchedField::ALL {
        let mut world = World::of(field, &[]);
        for number in 0..=255 {
            world.apply(&users([number]));
            let head = read(&world.store, |snapshot| Head::find(snapshot, index(field))).unwrap();
            if head.is_some_and(|head| (head.group, head.rows) == (1, 1)) {
                break;
            }
        }
        write(&world.store, |txn| txn.delete_key(&row_key(index(field), (1, 0)))).unwrap();
        assert_ne!(world.findings(), []);
        world.rebuild();
        assert_eq!(
            (world.findings(), world.found("user-").unwrap()),
            (vec![], world.expected("user-"))
        );
    }
}

/// Texts of a file of an older format have no places.
#[test]
fn a_text_without_places_is_looked_for() {
    for field in SearchedField::ALL {
        let mut world = World::of(field, &users(0..250));
        world.remove_places();
        assert_eq!(world.findings().len(), 250);
        world.apply(&(0..250).step_by(2).map(|number| (number, None)).collect::<Vec<_>>());
        assert_eq!(world.found("user-").unwrap(), world.expected("user-"));
        assert_eq!(world.findings().len(), 125);
        world.rebuild();
        assert_eq!(world.found("user-").unwrap(), world.expected("user-"));
        assert_eq!(world.findings(), []);
    }
}

/// A file of an older format may have a text in two rows. It leaves both, also while the place of one of
/// them is not known yet.
#[test]
fn a_text_leaves_rows_whose_places_are_not_known_yet() {
    let field = SearchedField::Email;
    let mut world = World::of(field, &users(0..250));
    let again = subscriber(field, 0, &world.texts[&0]).texts();
    write(&world.store, |txn| add_all(txn, &again)).unwrap();
    write(&world.store, |txn| -> Result<()> {
        for number in 0..250 {
            txn.delete_key(&places::key(index(field), subscriber(field, number, "a@b.c").id))?;
        }
        backfill::marks(2).try_for_each(|mark| txn.put_bytes(&mark, b""))
    })
    .unwrap();
    assert_eq!(world.found("user-0@").unwrap().len(), 2);
    let placed = write(&world.store, |txn| places::add_next(txn, field, &[])).unwrap();
    assert_eq!(placed.as_deref(), Some(row_key(index(field), (0, 0)).as_bytes()));
    world.apply(&[(0, None)]);
    assert_eq!(world.found("user-0@").unwrap(), []);
}

/// Places that are wrong are damage, which a rebuild mends.
#[test]
fn a_text_that_is_not_at_its_places_is_corrupt() {
    for field in SearchedField::ALL {
        let mut world = World::of(field, &users(0..250));
        let wrong = subscriber(field, 17, "a@b.c").id;
        write(&world.store, |txn| places::put(txn, index(field), wrong, &[(0, 63)])).unwrap();
        assert_eq!(world.findings().len(), 2, "{:?}", world.findings());
        let old = subscriber(field, 17, &world.texts[&17]);
        let removed = write(&world.store, |txn| txn.remove(&old));
        assert!(matches!(removed, Err(Error::Corrupt { .. })), "{removed:?}");
        world.rebuild();
        assert_eq!(world.findings(), []);
        world.apply(&[(17, None)]);
        assert_eq!(world.found("user-17").unwrap(), world.expected("user-17"));
        assert_eq!(world.findings(), []);
    }
}

/// A store that fails after so many transactions.
#[derive(Debug)]
struct Mortal {
    below: MemoryStore,
    left: AtomicUsize,
}

impl Store for Mortal {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.below.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let one_less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Relaxed, Relaxed, one_less).is_err() {
            let source = "the store is killed".into();
            return Err(Error::Backend { backend: "mortal", action: "write", source });
        }
        self.below.write(body)
    }
}

/// Wherever a rebuild ends, each text is found, the index is sound, and changes are right. The next
/// one leaves nothing of it behind.
#[test]
fn a_rebuild_that_is_interrupted_leaves_a_sound_index() {
    let agrees = |world: &World, when: &str| {
        for part in ["user-1", "r-19", "@", "b.cc", "user-17@b.cc", "new"] {
            let mut found = world.found(part).unwrap();
            found.dedup();
            assert_eq!(found, world.expected(part), "{part} {when}");
        }
        assert_eq!(world.findings(), [], "{when}");
    };
    for field in SearchedField::ALL {
        let mut sizes = BTreeSet::new();
        for writes in 0.. {
            let mut world = World::of(field, &users(0..=255));
            let mortal = Mortal { below: world.store.clone(), left: AtomicUsize::new(writes) };
            let has_ended = rebuilt(&mortal, field).is_ok();
            agrees(&world, &format!("after {writes} transactions"));
            let change =
                |number: u8| (number, number.is_multiple_of(2).then(|| "new@b.cc".to_owned()));
            let changes: Vec<_> = (0..200).step_by(3).map(change).collect();
            world.apply(&changes);
            agrees(&world, &format!("after {writes} transactions and changes"));
            world.rebuild();
            agrees(&world, "after another rebuild");
            sizes.insert(world.rows());
            if has_ended {
                break;
            }
        }
        assert_eq!(sizes.len(), 1, "rows are left behind: {sizes:?}");
    }
}
