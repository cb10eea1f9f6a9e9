//! A byte that has changed behind the store's back is an error or does no harm.

use store::redb::{RedbOptions, RedbStore};
use store::{Error, Store};

use crate::{scale, write_five};
use testkit::disk::{Dice, Disk};
use testkit::tables::{dump, try_dump};

#[test]
fn a_verified_store_shows_nothing_wrong() {
    let bytes = a_store();
    let expected = dump(&Disk::holding(bytes.clone()).open());
    for_each_flip(&bytes, |disk, place| {
        let options = RedbOptions { verify: true, ..RedbOptions::default() };
        match RedbStore::open_storage(disk, "flipped", &options).and_then(|store| try_dump(&store))
        {
            Ok(shown) => assert!(shown == expected, "{place} shows something else"),
            Err(Error::Damaged { .. } | Error::NotOurs { .. } | Error::NewerFormat { .. }) => {}
            Err(error) => panic!("{place}: {error:?}"),
        }
    });
}

#[test]
fn no_damage_brings_a_store_down() {
    for_each_flip(&a_store(), |disk, place| {
        let Ok(store) = disk.try_open() else { return };
        let read = try_dump(&store);
        assert!(matches!(read, Ok(_) | Err(Error::Damaged { .. })), "{place}: {read:?}");
        // It may work or not, as long as it comes back.
        drop(write_five(&store, "after"));
    });
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
    for flip in 0..300 * scale() {
        // Damage to the header is rare and interesting.
        let offset = if flip % 4 == 0 { dice.roll(512) } else { dice.roll(used) };
        let bit = dice.roll(8);
        let mut bytes = bytes.to_vec();
        bytes[usize::try_from(offset).unwrap()] ^= 1 << bit;
        check(Disk::holding(bytes), &format!("bit {bit} of byte {offset}"));
    }
}
