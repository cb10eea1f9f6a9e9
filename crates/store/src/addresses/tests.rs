use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use domain::environment::Home;
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::time::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::memory::MemoryStore;
use crate::{Error, Order, ReadBody, Store, WriteBody, check, read, write};

const EMAIL: &str = "[abAB0ıİßẞÄä]{1,6}@[abAÄ]{1,3}\\.[cC]{1,2}";
const PART: &str = "[abAB0ıİßẞÄä@.cC]{0,5}|[cC]\\x00[ab]|[a-c]{2}@[a-c]{2}";

fn environment() -> EnvironmentId {
    Uuid::from_u128(1).into()
}

fn subscriber(number: u8, email: &str) -> Subscriber {
    let home = Home { organization_id: "acme".parse().unwrap(), environment_id: environment() };
    let create = SubscriberCreate::new(format!("subscriber-{number}")).unwrap();
    let id = Uuid::from_u128(u128::from(number) + 7).into();
    Subscriber::new(id, &home, create.email(email).unwrap(), Timestamp::from_millis(0))
}

fn rebuilt(store: &dyn Store) -> Result<()> {
    rebuild(store, environment(), &mut |_, _| ControlFlow::Continue(())).map(drop)
}

// Gives subscribers addresses, or removes them.
fn apply(store: &MemoryStore, model: &mut BTreeMap<u8, String>, steps: &[(u8, Option<String>)]) {
    for (number, email) in steps {
        let old = match email {
            Some(email) => model.insert(*number, email.clone()),
            None => model.remove(number),
        };
        let old = old.map(|email| subscriber(*number, &email));
        let new = email.as_ref().map(|email| subscriber(*number, email));
        write(store, |txn| match (&old, &new) {
            (Some(old), Some(new)) => txn.replace(old, new),
            (Some(old), None) => txn.remove(old),
            (None, Some(new)) => txn.insert(new),
            (None, None) => Ok(()),
        })
        .unwrap();
    }
}

fn found(store: &MemoryStore, part: &str) -> Result<Vec<InternalSubscriberId>> {
    let mut found = Vec::new();
    read(store, |snapshot| {
        find(snapshot, environment(), &EmailPart::new(part), &mut |id| found.push(id))
    })?;
    found.sort_unstable();
    Ok(found)
}

fn expected(model: &BTreeMap<u8, String>, part: &str) -> Vec<InternalSubscriberId> {
    let has = |(_, email): &(&u8, &String)| fold(email).contains(&fold(part));
    model.iter().filter(has).map(|(number, email)| subscriber(*number, email).id).collect()
}

fn rows(store: &MemoryStore) -> usize {
    read(store, |snapshot| snapshot.count(&layout::address_rows(environment()), None)).unwrap()
}

fn steps(most: usize) -> impl Strategy<Value = Vec<(u8, Option<String>)>> {
    prop::collection::vec((any::<u8>(), prop::option::weighted(0.8, EMAIL)), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn every_part_finds_what_a_look_at_all_addresses_finds(
        first in steps(700),
        second in steps(200),
        parts in prop::collection::vec(PART, 12),
    ) {
        let (store, mut model) = (MemoryStore::default(), BTreeMap::new());
        for steps in [first, second] {
            apply(&store, &mut model, &steps);
            // Whole addresses are found as well, and those that were there.
            let emails = steps.iter().filter_map(|(_, email)| email.clone()).take(20);
            for part in parts.iter().cloned().chain(emails) {
                prop_assert_eq!(found(&store, &part).unwrap(), expected(&model, &part), "{}", part);
            }
            let check = read(&store, check::check).unwrap();
            prop_assert!(check.findings.is_empty(), "{:?}", check.findings);
        }
        rebuilt(&store).unwrap();
        for part in &parts {
            prop_assert_eq!(found(&store, part).unwrap(), expected(&model, part));
        }
        prop_assert!(read(&store, check::check).unwrap().findings.is_empty());
        // Each address that goes away is followed by another one: rows do not become more.
        for _ in 0..4 {
            let all: Vec<_> = model.clone().into_iter().collect();
            let gone: Vec<_> = all.iter().map(|(number, _)| (*number, None)).collect();
            apply(&store, &mut model, &gone);
            let back: Vec<_> = all.into_iter().map(|(number, email)| (number, Some(email))).collect();
            apply(&store, &mut model, &back);
        }
        prop_assert!(rows(&store) <= 4 * usize::from(ROWS), "{}", rows(&store));
    }

    #[test]
    fn a_damaged_entry_is_no_panic(
        numbers in 200..255_u8,
        (at, byte, cut) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()),
        flip in 1..=u8::MAX,
    ) {
        let (store, mut model) = (MemoryStore::default(), BTreeMap::new());
        let steps: Vec<_> = (0..numbers).map(|it| (it, Some(format!("user-{it}@b.cc")))).collect();
        apply(&store, &mut model, &steps);
        let table = Table::Addresses;
        let prefix = layout::addresses(environment());
        let mut entries = Vec::new();
        read(&store, |snapshot| {
            snapshot.scan_bytes(&prefix.range(), Order::Ascending, None, &mut |key, value| {
                entries.push((key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })
        })
        .unwrap();
        let (key, mut value) = entries[at.index(entries.len())].clone();
        let byte = byte.index(value.len());
        if cut { value.truncate(byte) } else { value[byte] ^= flip }
        write(&store, |txn| txn.put(table, &key, &value)).unwrap();
        let whole = numbers - 1;
        for part in ["user-1", "r-19", "@", &format!("user-{whole}@b.cc")] {
            let _ = found(&store, part);
        }
        let old = subscriber(whole, &model[&whole]);
        let _ = write(&store, |txn| txn.remove(&old));
        let _ = write(&store, |txn| txn.insert(&subscriber(255, "new@b.cc")));
        if cut {
            prop_assert!(!read(&store, check::check).unwrap().findings.is_empty());
        }
        rebuilt(&store).unwrap();
        prop_assert!(found(&store, "user-17").is_ok_and(|found| found.len() == 11));
    }
}

#[test]
fn a_missing_row_is_corrupt() {
    let (store, mut model) = (MemoryStore::default(), BTreeMap::new());
    let steps: Vec<_> = (0..250).map(|it| (it, Some(format!("user-{it}@b.cc")))).collect();
    apply(&store, &mut model, &steps);
    assert!(rows(&store) > usize::from(ROWS));
    for row in 0..ROWS {
        write(&store, |txn| txn.delete_key(&row_key(environment(), (0, row)))).unwrap();
    }
    assert!(matches!(found(&store, "user-1"), Err(Error::Corrupt { .. })));
    let check = read(&store, check::check).unwrap();
    assert!(check.findings.iter().any(|finding| finding.problem == check::Problem::Missing));
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

/// Wherever a rebuild ends, each address is found, the index is sound, and changes are right. The
/// next one leaves nothing of it behind.
#[test]
fn a_rebuild_that_is_interrupted_leaves_a_sound_index() {
    let agrees = |store: &MemoryStore, model: &BTreeMap<u8, String>, when: &str| {
        for part in ["user-1", "r-19", "@", "b.cc", "user-17@b.cc", "new"] {
            let mut found = found(store, part).unwrap();
            found.dedup();
            assert_eq!(found, expected(model, part), "{part} {when}");
        }
        let check = read(store, check::check).unwrap();
        assert!(check.findings.is_empty(), "{when}: {:?}", check.findings);
    };
    let steps: Vec<_> = (0..=255).map(|it| (it, Some(format!("user-{it}@b.cc")))).collect();
    let mut sizes = BTreeSet::new();
    for writes in 0.. {
        let (store, mut model) = (MemoryStore::default(), BTreeMap::new());
        apply(&store, &mut model, &steps);
        let mortal = Mortal { below: store.clone(), left: AtomicUsize::new(writes) };
        let has_ended = rebuilt(&mortal).is_ok();
        agrees(&store, &model, &format!("after {writes} transactions"));
        let change = |number: u8| (number, number.is_multiple_of(2).then(|| "new@b.cc".to_owned()));
        let changes: Vec<_> = (0..200).step_by(3).map(change).collect();
        apply(&store, &mut model, &changes);
        agrees(&store, &model, &format!("after {writes} transactions and changes"));
        rebuilt(&store).unwrap();
        agrees(&store, &model, "after another rebuild");
        sizes.insert(rows(&store));
        if has_ended {
            break;
        }
    }
    assert_eq!(sizes.len(), 1, "rows are left behind: {sizes:?}");
}
