//! Transactions that touch as many rows in a store that has more environments, or more subscribers.

use domain::environment::{Environment, Home};
use domain::ids::OrganizationId;
use serde_json::json;
use store::{Table, WriteRecords, layout};
use testkit::holds::Noted;
use testkit::tables;
use testkit::world::World;
use tidings::time::Timestamp;
use uuid::Uuid;

use super::{MOST, check_bounded, most_of, noted_world};
use crate::parsed;

type Damage = fn(&Noted);

fn home(number: u32) -> Home {
    let environment_id = Uuid::from_u128(u128::from(number) << 64).into();
    Home { organization_id: OrganizationId::new("acme").unwrap(), environment_id }
}

/// A repair looks for what it knows of the environments of its findings, not for all of them.
#[test]
fn a_repair_touches_as_many_rows_among_more_environments() {
    let a_topic = |noted: &Noted| {
        let key = [Uuid::from(home(5).environment_id).as_bytes(), b"news\0".as_slice()].concat();
        tables::put(noted, Table::Topics, &key, Some(b"damaged"));
    };
    let records = |noted: &Noted| {
        for number in 0..40 {
            let Home { organization_id, environment_id } = home(number * 3);
            let key = layout::environment(&organization_id, environment_id);
            tables::put(noted, key.table(), key.as_bytes(), None);
        }
    };
    let entries = |noted: &Noted| {
        for number in 0..40 {
            let key = layout::environment_id(home(number * 3).environment_id);
            tables::put(noted, key.table(), key.as_bytes(), Some(b"damaged"));
        }
    };
    let damages: [(&str, Damage); 3] =
        [("a topic", a_topic), ("records", records), ("entries", entries)];
    for (what, damage) in damages {
        let most = |environments: u32| {
            let (world, noted) = noted_world(|builder| builder);
            store::write(&noted, |tx| {
                (0..environments).try_for_each(|number| {
                    let now = Timestamp::from_millis(0);
                    tx.insert(&Environment::stand_in(&home(number), format!("e{number}"), now))
                })
            })
            .unwrap();
            // Each environment gets a key of its links.
            assert!(world.engine.repair().unwrap().is_finished);
            damage(&noted);
            noted.take();
            let report = world.engine.repair().unwrap();
            assert!(report.put_aside + report.mended > 0, "{report:?}");
            let most = most_of(&noted);
            assert_eq!(world.engine.check().unwrap().findings, []);
            most
        };
        let (few, many) = (most(2_000), most(6_000));
        println!("{what}: {few} and {many} rows");
        check_bounded([few, many], what);
    }
}

/// Number of rows that a group of texts adds to a transaction that takes it apart. Each index has one at most.
const MOVED: usize = 7_000;

/// A text is found by its place. A bulk may leave a group of them half empty.
#[test]
fn a_bulk_of_new_texts_touches_as_many_rows_as_stated() {
    let touched = |subscribers: usize| {
        let (world, noted) = noted_world(|builder| builder);
        for first in (0..subscribers).step_by(500) {
            upsert(&world, first..first + 500, "one");
        }
        noted.take();
        upsert(&world, (0..subscribers).step_by(subscribers / 500), "two");
        let touched = most_of(&noted);
        // Groups of texts become half empty.
        for first in (0..subscribers).step_by(500) {
            upsert(&world, first..first + 500, "three");
        }
        let moved = most_of(&noted);
        assert!(world.engine.check().unwrap().findings.is_empty());
        println!("{touched} rows of {subscribers} subscribers, {moved} where texts move");
        assert!(moved <= touched + 2 * MOVED, "{moved} rows in one transaction");
        touched
    };
    for subscribers in [7_000, 14_000] {
        let touched = touched(subscribers);
        assert!(touched <= MOST, "{touched} rows in one transaction of {subscribers} subscribers");
    }
}

// Gives addresses and names of one host to subscribers.
fn upsert(world: &World, numbers: impl Iterator<Item = usize>, host: &str) {
    let one = |number: usize| {
        let text = format!("{number}.{:08x}", number * 0x9e37_79b1 % 0xffff_ffff);
        let email = format!("{text}@{host}.example.com");
        parsed(json!({ "subscriberId": number.to_string(), "email": email,
            "firstName": format!("{host} {text}") }))
    };
    world.env.subscribers().upsert_bulk(&numbers.map(one).collect::<Vec<_>>()).unwrap();
}
