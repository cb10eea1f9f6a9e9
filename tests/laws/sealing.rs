//! Sealed records are those that plain ones are, whatever happens, and open in their place only.

mod faults;
mod formats;
mod kill;
mod rotating;

use std::sync::Arc;

use domain::idempotency::StoredAnswer;
use domain::message::DeletedMessage;
use domain::trigger::{CanceledTrigger, FanOut, FanOutState};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use store::layout::{Role, environment_of};
use store::memory::MemoryStore;
use store::{Record, Store, Table, WriteRecords};
use testkit::facade::{Op, Process};
use testkit::interposed::{Interposed, Point};
use testkit::sealed::{keyring, marks};
use testkit::tables::{Entry, check_indexes, dump, load, put, records};
use testkit::world::{Backend, World, wire};
use tidings::sealing::KeyId;
use tidings::{Engine, Error};

use crate::{beginning, cases, op, parsed, seeded};

/// The first byte of a sealed value.
const SEALED: u8 = 5;

/// The entries of `store` that are sealed.
fn sealed(store: &dyn Store) -> Vec<Entry> {
    let is_sealed = |(_, _, value): &Entry| value.first() == Some(&SEALED);
    dump(store).into_iter().filter(is_sealed).collect()
}

/// Checks that each value of a record, and nothing else, is sealed with the key `id`.
#[track_caller]
fn check_sealed(store: &dyn Store, id: u32) {
    for (table, key, value) in dump(store) {
        let head = [&[SEALED][..], &id.to_be_bytes()].concat();
        assert_eq!(value.starts_with(&head), is_record(table), "{} {key:?}", table.name());
    }
}

/// Whether the golden world has records in a table: JSON objects.
fn is_record(table: Table) -> bool {
    let is_object =
        |value: &[u8]| store::encoding::json(value).is_ok_and(|json| json.starts_with(b"{"));
    let derived = [Table::MessageCounters];
    let mut of_table = seeded::entries_of(table).filter(|_| !derived.contains(&table));
    table == Table::Seals || of_table.any(|(_, _, value)| is_object(value))
}

proptest! {
    #![proptest_config(cases(6))]

    /// Also when keys are rotated in between, and all values are sealed anew.
    #[test]
    fn sealed_and_plain_stores_agree(ops in vec(op(), 0..30)) {
        let mut plain = Process::in_memory();
        let mut others = Backend::both().map(Process::sealed);
        for (at, op) in beginning().into_iter().chain(ops).chain([Op::Restart]).enumerate() {
            let expected = plain.run(op);
            for sealed in &mut others {
                prop_assert_eq!(&sealed.run(op), &expected, "{:?}", op);
                if at % 8 == 7 {
                    prop_assert!(sealed.world.engine.reseal().unwrap().is_finished);
                }
            }
        }
        for process in &others {
            let store = &process.world.store;
            check_indexes(store);
            let plain: Vec<_> = dump(&plain.world.store).into_iter().map(|(a, b, _)| (a, b)).collect();
            let found: Vec<_> = dump(store).into_iter().map(|(a, b, _)| (a, b)).collect();
            let found: Vec<_> = found.into_iter().filter(|(table, _)| *table != Table::Seals).collect();
            prop_assert!(found == plain, "there are other keys");
        }
    }
}

/// A world of `entries`, sealed as a whole with the key 1.
fn sealed_world(entries: &[Entry]) -> World {
    let store = Interposed::default();
    load(&store, entries);
    let world = World::with(store, |builder| builder.sealing(keyring(&[1])));
    world.clock.set(seeded::world().now());
    assert!(world.engine.reseal().unwrap().is_finished);
    world
}

/// Without the marks, only the values tell an engine without keys that the store is sealed.
#[test]
fn a_repair_without_keys_puts_no_sealed_record_aside() {
    let world = sealed_world(seeded::entries());
    for (table, key, _) in dump(&world.store) {
        if table == Table::Seals {
            put(&world.store, table, &key, None);
        }
    }
    let is_kept = |(table, ..): &Entry| table.role() == Role::Records;
    let kept = || dump(&world.store).into_iter().filter(is_kept).collect::<Vec<_>>();
    let before = kept();

    let report = Engine::builder().build(world.store.clone()).repair().unwrap();

    assert_eq!((report.put_aside, report.replaced), (0, Vec::new()));
    assert!(kept() == before, "a record was changed");
    let engine = Engine::builder().sealing(keyring(&[1])).build(world.store.clone());
    assert_eq!(engine.repair().unwrap().put_aside, 0);
    check_indexes(&world.store);
}

/// A failover to a replica that was behind brings plain records back, and takes the mark of the key away.
#[test]
fn a_record_that_is_plain_again_is_no_damage() {
    for reads_first in [true, false] {
        let (world, below) = seeded::fork();
        let earlier = Arc::new(below.fork());
        let engine = world.engine_with(|builder| builder.sealing(keyring(&[1])));
        assert!(engine.reseal().unwrap().is_finished);
        let env = engine.environment(world.env.environment_id()).unwrap();
        assert!(env.subscribers().get("ada").is_ok());

        world.store.lose(earlier);

        assert!(!reads_first || env.subscribers().get("ada").is_ok());
        env.subscribers().create(&parsed(json!({ "subscriberId": "new" }))).unwrap();
        assert_eq!(marks(&world.store), [KeyId::new(1)]);
        let report = engine.repair().unwrap();
        assert_eq!((report.put_aside, report.mended), (0, 0));
        assert_eq!(engine.reseal().unwrap().unreadable, 0);
        check_sealed(&world.store, 1);
        let forged = seeded::entries().iter().find(|(table, ..)| *table == Table::Subscribers);
        let (table, key, value) = forged.unwrap();
        put(&world.store, *table, key, Some(value));
        assert_eq!(engine.repair().unwrap().put_aside, 1, "a plain record is forged again");
    }
}

/// A resealing whose first transactions are lost looks at everything again.
#[test]
fn a_resealing_seals_what_a_failover_brings_back() {
    for after in [1, 4, 16] {
        let (world, below) = seeded::fork();
        let (store, earlier) = (world.store.clone(), Arc::new(below.fork()));
        let engine = world.engine_with(|builder| builder.sealing(keyring(&[1])));
        world.store.pause(Point::Write, after, move || store.lose(earlier));
        assert!(engine.reseal().unwrap().is_finished);
        check_sealed(&world.store, 1);
        assert_eq!(marks(&world.store), [KeyId::new(1)]);
        check_indexes(&world.store);
    }
}

#[test]
fn every_record_of_a_world_is_sealed() {
    let world = sealed_world(seeded::entries());
    check_sealed(&world.store, 1);
    assert_eq!(marks(&world.store), [KeyId::new(1)]);
    check_indexes(&world.store);
    // Another key, on the way.
    let both = world.engine_with(|builder| builder.sealing(keyring(&[2, 1])));
    assert_eq!(marks(&world.store), [KeyId::new(1)], "nothing is written before the first call");
    let report = both.reseal().unwrap();
    assert_eq!((report.seen, report.unreadable), (report.resealed, 0));
    check_sealed(&world.store, 2);
    assert_eq!(marks(&world.store), [KeyId::new(2)]);
}

/// The place of the record with which the first one is swapped.
type Other = fn(&[&Entry]) -> Option<usize>;

/// The first record of every table with the second one, the last one, and one of another environment.
#[test]
fn no_two_records_of_a_table_can_be_swapped() {
    let world = sealed_world(&with_two_of_each());
    let entries = sealed(&world.store);
    let whole = MemoryStore::default();
    load(&whole, &dump(&world.store));
    let of_table = |table: &Table| -> Vec<&Entry> {
        entries.iter().filter(|(other, ..)| other == table).collect()
    };
    let swaps: [(&str, Other); 3] = [
        ("the second", |all| all.len().checked_sub(1).map(|last| last.min(1))),
        ("the last", |all| all.len().checked_sub(1)),
        ("the first of another environment", |all| {
            let environment = |(table, key, _): &Entry| environment_of(*table, key);
            all.iter().position(|one| environment(one) != environment(all[0]))
        }),
    ];
    for (name, other) in swaps {
        let store = whole.fork();
        let mut swapped = Vec::new();
        for table in Table::ALL {
            let all = of_table(&table);
            let Some(other) = other(&all).filter(|other| *other > 0) else { continue };
            let ((_, one, first), (_, two, second)) = (all[0], all[other]);
            load(
                &store,
                &[(table, one.clone(), second.clone()), (table, two.clone(), first.clone())],
            );
            swapped.push(table);
        }
        let check = Engine::builder().sealing(keyring(&[1])).build(store).check().unwrap();
        let findings: Vec<_> = check.findings.iter().map(ToString::to_string).collect();
        for table in &swapped {
            let unopened = findings.iter().filter(|finding| {
                let place = finding.split_once(' ').is_some_and(|(place, _)| place == table.name());
                place && finding.contains("its seal does not open")
            });
            assert_eq!(unopened.count(), 2, "{} and {name}: {findings:#?}", table.name());
        }
        let records = Table::ALL.into_iter().filter(|table| table.role() == Role::Records);
        let left: Vec<_> = records.filter(|table| !swapped.contains(table)).collect();
        // Its keys name no environment.
        let expected: &[Table] =
            if name.ends_with("environment") { &[Table::Quarantine] } else { &[] };
        assert_eq!(left, expected, "they are not swapped");
        println!("the first record and {name} of {} tables were swapped", swapped.len());
    }
}

/// A world with two environments, and two records in each table of them.
fn with_two_of_each() -> Vec<Entry> {
    let world = seeded::copy_of(seeded::with_second_environment());
    in_production::<CanceledTrigger>(&world);
    in_production::<FanOut>(&world);
    in_production::<FanOutState>(&world);
    in_production::<DeletedMessage>(&world);
    in_production::<StoredAnswer>(&world);
    dump(&world.store)
}

/// Puts the records of a kind into the other environment.
fn in_production<R: Record + Serialize + DeserializeOwned>(world: &World) {
    let [from, to] =
        [&world.env, &world.production()].map(|scope| scope.environment_id().to_string());
    let copied = store::write(&world.opened(), |transaction| {
        for record in records::<R>(&world.store) {
            let json = wire(record).to_string().replace(&from, &to);
            transaction.insert::<R>(&serde_json::from_str(&json).unwrap())?;
        }
        Ok::<_, store::Error>(())
    });
    copied.unwrap();
}

#[test]
fn every_operation_of_an_engine_without_the_key_is_refused() {
    let world = sealed_world(seeded::entries());
    for (configured, expected) in [
        (world.store_engine(None), "the store is sealed with key 1"),
        (world.store_engine(Some(keyring(&[2]))), "the store is sealed with key 1"),
    ] {
        let before = dump(&world.store);
        for result in [
            configured.organization("acme").unwrap().development().map(drop),
            configured.delivery().run_due(1).map(drop),
            configured.check().map(drop),
            configured.authenticate("ApiKey none").map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(matches!(&error, Error::Store(store::Error::MissingKey { .. })), "{error:?}");
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        assert!(dump(&world.store) == before);
    }
}

trait StoreEngine {
    fn store_engine(&self, keyring: Option<tidings::sealing::Keyring>) -> Engine;
}

impl StoreEngine for World {
    fn store_engine(&self, keyring: Option<tidings::sealing::Keyring>) -> Engine {
        let builder = Engine::builder();
        let builder = match keyring {
            Some(keyring) => builder.sealing(keyring),
            None => builder,
        };
        builder.build(self.store.clone())
    }
}

#[test]
fn an_explanation_reads_sealed_records_and_writes_none() {
    let world = sealed_world(seeded::entries());
    let before = dump(&world.store);
    let trigger = parsed(json!({ "name": "both", "to": ["ada"], "payload": { "n": 1 } }));
    let shown = world.env.events().explain(&trigger, world.now()).unwrap().to_string();
    let plain = seeded::copy();
    assert_eq!(shown, plain.env.events().explain(&trigger, plain.now()).unwrap().to_string());
    assert!(dump(&world.store) == before);
}
