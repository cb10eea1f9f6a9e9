//! Worlds whose records are sealed.
//!
//! With `TIDINGS_SEALED` in the environment, every world is sealed:
//! `TIDINGS_SEALED=1 cargo test --test operations` runs all scenarios over sealed records.

use std::env;
use std::ops::{Bound, ControlFlow};

use store::{KeyRange, Order, Store, Table};
use tidings::Builder;
use tidings::sealing::{KeyId, Keyring, SealingKey};

use crate::world::Dump;

const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

/// The key of that number.
pub fn key(number: u32) -> SealingKey {
    let [a, b, c, d] = number.to_be_bytes();
    SealingKey::from_bytes([a, b, c, d].repeat(8).try_into().expect("32 bytes"))
}

/// Keys of which the first one seals.
///
/// # Panics
///
/// If an id occurs twice, or there is none.
pub fn keyring(ids: &[u32]) -> Keyring {
    let (first, others) = ids.split_first().expect("an id");
    let ring = Keyring::new(*first, key(*first));
    others.iter().fold(ring, |ring, id| ring.and_old(*id, key(*id)).expect("another id"))
}

/// The builder of an engine that can open every world.
pub fn builder() -> Builder {
    if_wanted(Builder::default())
}

/// Returns `true` if every world is sealed. The bytes of its values say nothing then.
pub fn is_wanted() -> bool {
    env::var_os("TIDINGS_SEALED").is_some()
}

/// The builder with the key 1, if every world is sealed.
pub fn if_wanted(builder: Builder) -> Builder {
    if is_wanted() { builder.sealing(keyring(&[1])) } else { builder }
}

/// What two worlds with the same history have in common: everything, or the lengths of the values if
/// every world is sealed, since each value has a nonce of its own.
#[must_use]
pub fn in_common(mut dump: Dump) -> Dump {
    if is_wanted() {
        for value in dump.values_mut() {
            *value = value.len().to_be_bytes().to_vec();
        }
    }
    dump
}

/// The builder with the keys of `store`, if it is sealed.
pub fn like(store: &dyn Store, builder: Builder) -> Builder {
    match keyring_of(store) {
        Some(keyring) => builder.sealing(keyring),
        None => builder,
    }
}

/// The keys of `store`, if it is sealed.
pub fn keyring_of(store: &dyn Store) -> Option<Keyring> {
    let ids: Vec<u32> = marks(store).into_iter().map(KeyId::number).collect();
    (!ids.is_empty()).then(|| keyring(&ids))
}

/// The ids of the keys that values may be sealed with.
///
/// # Panics
///
/// If the store cannot be read.
pub fn marks(store: &dyn Store) -> Vec<KeyId> {
    let mut ids = Vec::new();
    let read = store.read(&mut |snapshot| {
        ids.clear();
        snapshot.scan(Table::Seals, &EVERYTHING, Order::Ascending, None, &mut |key, _| {
            let number = key.try_into().map(u32::from_be_bytes).expect("four bytes");
            ids.push(KeyId::new(number));
            ControlFlow::Continue(())
        })
    });
    read.expect("the store can be read");
    ids
}
