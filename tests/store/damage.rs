//! A byte that has changed behind the store's back is an error or does no harm.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::{ControlFlow, RangeBounds};

use store::redb::{RedbOptions, RedbStore};
use store::{Decision, Error, KeyRange, Order, Store, Table, Transaction};

use crate::{value_of, write_five};
use testkit::dice::Dice;
use testkit::disk::{Disk, PAGE};
use testkit::redb_page::{children, is_branch, lead_astray};
use testkit::scaled;
use testkit::tables::{dump, try_dump};

/// Number of rows of [`a_table`].
const ROWS: u32 = 1_000;

#[test]
fn a_verified_store_shows_nothing_wrong() {
    let bytes = a_store();
    let expected = dump(&Disk::holding(bytes.clone()).open());
    for_each_flip(&bytes, |disk, place| {
        let options = RedbOptions::default().verify(true);
        match RedbStore::open_storage(disk, "flipped", &options).and_then(|store| try_dump(&store))
        {
            Ok(shown) => assert!(shown == expected, "{place} shows something else"),
            Err(
                Error::Damaged { .. }
                | Error::NotOurs { .. }
                | Error::NewerFormat { .. }
                | Error::OlderFormat { .. },
            ) => {}
            Err(error) => panic!("{place}: {error:?}"),
        }
    });
}

#[test]
fn no_damage_brings_a_store_down() {
    for_each_flip(&a_store(), |disk, place| {
        let Ok(store) = disk.try_open() else { return };
        let read = try_dump(&store);
        assert!(
            matches!(read, Ok(_) | Err(Error::Damaged { .. } | Error::Corrupt { .. })),
            "{place}: {read:?}"
        );
        // It may work or not, as long as it comes back.
        drop(write_five(&store, "after"));
    });
}

/// A page that lies in the place of another one has keys of other ranges.
#[test]
fn a_scan_shows_no_key_of_another_range() {
    let bytes = a_store();
    let pages = bytes.len() / PAGE;
    let mut dice = Dice::new(11);
    let mut refused = 0;
    for _ in 0..scaled(400) {
        let disk = Disk::holding(bytes.clone());
        // The first page is the header.
        let mut page = || 1 + dice.below(pages - 1);
        disk.copy_page(page(), page());
        let Ok(store) = disk.try_open() else { continue };
        for (range, order) in tens().zip([Order::Ascending, Order::Descending].into_iter().cycle())
        {
            for table in &Table::ALL[..5] {
                let found = check_keys(&store, *table, &range, order);
                refused += usize::from(matches!(found, Err(Error::Corrupt { .. })));
            }
        }
    }
    assert!(refused > 0, "no page that was copied had keys of another range");
}

/// A page that has become a copy of the page above it leads to itself. A change on this way returns,
/// and `verify` refuses the file.
#[test]
fn a_change_below_a_page_that_leads_to_itself_returns() {
    let bytes = a_table();
    let expected = dump(&Disk::holding(bytes.clone()).open());
    let pages = 1..bytes.len() / PAGE;
    let branches: Vec<_> = pages.clone().filter(|page| is_branch(&bytes[page * PAGE..])).collect();
    let mut circles = 0;
    for (from, to) in branches.iter().flat_map(|from| pages.clone().map(move |to| (*from, to))) {
        let disk = Disk::holding(bytes.clone());
        disk.copy_page(from, to);
        let options = RedbOptions::default().verify(true);
        if let Ok(verified) = disk.after_kill().open_with(&options) {
            assert!(dump(&verified) == expected, "page {from} in the place of {to}");
        }
        let Ok(store) = disk.try_open() else { continue };
        for id in (0..ROWS).step_by(25) {
            let written = store.write(&mut |transaction| {
                let (key, value) = (id.to_be_bytes(), value_of("new"));
                match id % 2 {
                    0 => transaction.put(Table::ALL[0], &key, &value)?,
                    _ => transaction.delete(Table::ALL[0], &key)?,
                }
                Ok(Decision::Commit)
            });
            circles += usize::from(format!("{written:?}").contains("lead to themselves"));
        }
    }
    assert!(circles > 0, "no change has met a page that leads to itself");
}

/// A page that leads behind the end of the file spoils what lies below it, and nothing else.
#[test]
fn what_leads_behind_the_end_of_the_file_spoils_no_other_table() {
    let bytes = a_table();
    let (first, second) = (Table::ALL[0], Table::ALL[1]);
    let mut met = 0;
    for page in 1..bytes.len() / PAGE {
        let branch = &bytes[page * PAGE..][..PAGE];
        if !is_branch(branch) {
            continue;
        }
        for child in children(branch) {
            let mut bytes = bytes.clone();
            lead_astray(&mut bytes, page * PAGE + child);
            let store = match Disk::holding(bytes).try_open() {
                Ok(store) => store,
                // The page leads to the tables themselves.
                Err(Error::Damaged { .. }) => continue,
                Err(error) => panic!("page {page}: {error:?}"),
            };
            for round in ["the first time", "again"] {
                let read = rows(&store, first);
                assert!(matches!(read, Ok(ROWS) | Err(Error::Damaged { .. })), "{read:?}");
                met += usize::from(read.is_err());
                let others = rows(&store, second);
                assert!(matches!(others, Ok(1 | 2)), "page {page}, {round}: {others:?}");
                let put = store.write(&mut |transaction| {
                    transaction.put(second, b"new", b"")?;
                    Ok(Decision::Commit)
                });
                assert!(put.is_ok(), "page {page}, {round}: {put:?}");
            }
        }
    }
    assert!(met > 0, "nothing was read behind the end of the file");
}

fn rows(store: &RedbStore, table: Table) -> store::Result<u32> {
    let mut rows = 0;
    store.read(&mut |snapshot| {
        rows = 0;
        snapshot.scan(table, &(Unbounded, Unbounded), Order::Ascending, None, &mut |_, _| {
            rows += 1;
            ControlFlow::Continue(())
        })
    })?;
    Ok(rows)
}

/// A table with pages that lead to others, and one with a row.
fn a_table() -> Vec<u8> {
    let disk = Disk::new();
    let store = disk.open();
    let put_all = |transaction: &mut dyn Transaction| {
        for id in 0..ROWS {
            transaction.put(Table::ALL[0], &id.to_be_bytes(), &value_of("old"))?;
        }
        transaction.put(Table::ALL[1], b"old", b"")?;
        Ok(Decision::Commit)
    };
    store.write(&mut { put_all }).unwrap();
    drop(store);
    disk.bytes()
}

/// The ranges of ten ids each of those of [`a_store`].
fn tens() -> impl Iterator<Item = KeyRange> {
    let id = |ten: u32| format!("{:04}", ten * 10).into_bytes();
    (0..4).map(move |ten| (Included(id(ten)), Excluded(id(ten + 1))))
}

/// Checks that a scan shows keys of its range, in its order, until it fails or ends.
#[track_caller]
fn check_keys(
    store: &RedbStore,
    table: Table,
    range: &KeyRange,
    order: Order,
) -> store::Result<()> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let scanned = store.read(&mut |snapshot| {
        snapshot.scan(table, range, order, None, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })
    });
    let is_sorted = match order {
        Order::Ascending => keys.is_sorted_by(|one, next| one < next),
        Order::Descending => keys.is_sorted_by(|one, next| one > next),
    };
    assert!(is_sorted && keys.iter().all(|key| range.contains(key)), "{range:?} shows {keys:?}");
    scanned
}

/// What is left of a store after a while.
fn a_store() -> Vec<u8> {
    let disk = Disk::new();
    let store = disk.open();
    for id in 0..40 {
        write_five(&store, &format!("{id:04}")).unwrap();
    }
    store.read(&mut |_| Ok(())).unwrap();
    drop(store);
    disk.bytes()
}

fn for_each_flip(bytes: &[u8], check: impl Fn(Disk, &str)) {
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let mut dice = Dice::new(7);
    for flip in 0..scaled(300) {
        // Damage to the header is rare and interesting.
        let offset = if flip % 4 == 0 { dice.roll(512) } else { dice.roll(used) };
        let bit = dice.roll(8);
        let mut bytes = bytes.to_vec();
        bytes[usize::try_from(offset).unwrap()] ^= 1 << bit;
        check(Disk::holding(bytes), &format!("bit {bit} of byte {offset}"));
    }
}
