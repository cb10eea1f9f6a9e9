//! A check finds every contradiction between the tables, and none in a sound store.

use serde_json::json;
use store::Table;
use store::check::{Homes, Pass};
use store::layout::{Derived, Role, Target};
use testkit::tables::{Entry, dump, is_activity, of_plain_worlds, put};
use testkit::world::{World, in_app};
use tidings::check::{Finding, Problem, TableFinding};

use crate::seeded::{copy, entries, entries_of};

#[test]
fn a_sound_store_has_no_findings() {
    let world = copy();
    let check = world.engine.check().unwrap();

    let there = |is_counted: fn(Table) -> bool| {
        entries().iter().filter(|(table, ..)| is_counted(*table)).count() as u64
    };
    assert_eq!(check.findings, []);
    assert_eq!(check.records, there(is_record));
    assert_eq!(check.entries, there(|table| !is_record(table) && !is_activity(table)));
}

#[test]
fn an_entry_that_is_missing_is_found() {
    for (table, key, _) in ends(is_index) {
        let found = findings(|world| put(&world.store, *table, key, None));
        assert_eq!(found, [(table.name(), key.clone(), Problem::Missing)]);
    }
}

#[test]
fn an_entry_of_no_record_is_found() {
    for (table, key, target) in ends(is_index) {
        let other = [key.as_slice(), b"?"].concat();
        let found = findings(|world| put(&world.store, *table, &other, Some(target)));
        assert_eq!(found, [(table.name(), other, Problem::Extra)]);
    }
}

#[test]
fn an_entry_that_leads_elsewhere_is_found() {
    for (table, key, target) in ends(is_index) {
        let elsewhere = [target.as_slice(), b"?"].concat();
        let found = findings(|world| put(&world.store, *table, key, Some(&elsewhere)));
        let problems = [Problem::Missing, Problem::Extra];
        assert_eq!(found, problems.map(|problem| (table.name(), key.clone(), problem)));
    }
}

/// What leads to a record that cannot be read leads to none.
#[test]
fn a_record_that_cannot_be_read_is_found() {
    for (table, key, _) in ends(is_record) {
        let found = findings(|world| put(&world.store, *table, key, Some(b"?")));
        let ((first, at, problem), others) = found.split_first().unwrap();
        assert_eq!((*first, at), (table.name(), key));
        assert!(matches!(problem, Problem::Unreadable { .. }), "{problem:?}");
        let entries = entries()
            .iter()
            .filter(|(index, _, value)| is_index(*index) && Target::read(*index, value).key == key);
        let expected: Vec<_> =
            entries.map(|(index, key, _)| (index.name(), key.clone(), Problem::Extra)).collect();
        assert_eq!(others, expected);
    }
}

/// The counters of an inbox: gone, of another inbox, or not readable.
#[test]
fn an_inbox_that_is_miscounted_is_found() {
    let [(table, key, value), (_, _, other)] =
        entries_of(Table::MessageCounters).collect::<Vec<_>>()[..2]
    else {
        panic!("two inboxes")
    };
    assert_ne!(value, other);
    for ruin in [None, Some(other.as_slice()), Some(b"?"), Some(b"")] {
        let found = findings(|world| put(&world.store, *table, key, ruin));
        assert_eq!(found, [(table.name(), key.clone(), Problem::Miscounted)], "{ruin:?}");
    }
    let nobody = [&key[..31], b"?"].concat();
    let found = findings(|world| put(&world.store, *table, &nobody, Some(value)));
    assert_eq!(found, [(table.name(), nobody, Problem::Miscounted)]);
}

/// The rows of a lane: gone, of another lane, or not readable.
#[test]
fn a_lane_that_is_misplaced_is_found() {
    for table in [Table::Lanes, Table::LaneHeads, Table::HeldLanes] {
        let (_, key, value) = entries_of(table).next().unwrap();
        for ruin in [None, Some(b"?".as_slice()), Some(b"")] {
            let found = findings(|world| put(&world.store, table, key, ruin));
            assert!(found.contains(&(table.name(), key.clone(), Problem::Misplaced)), "{ruin:?}");
        }
        let other = [key.as_slice(), b"?"].concat();
        let found = findings(|world| put(&world.store, table, &other, Some(value)));
        assert_eq!(found, [(table.name(), other, Problem::Misplaced)]);
    }
}

/// More lanes than a step looks at, of which every third waits for its workflow to be resumed.
#[test]
fn lanes_are_looked_at_in_steps_and_none_is_passed_over() {
    let world = World::in_memory();
    let later = json!({ "type": "regular", "amount": 1, "unit": "days" });
    let delay = json!({ "type": "delay", "metadata": later });
    for number in 0..300 {
        let name = format!("w{number}");
        world.workflow_of(&name, &[delay.clone(), in_app()]);
        world.notify(&name, "ada");
        if number % 3 == 0 {
            world.env.workflows().pause(name.as_str()).unwrap();
        }
    }
    let tables = [Table::Lanes, Table::LaneHeads, Table::HeldLanes];
    let rows: Vec<_> =
        dump(&world.store).into_iter().filter(|(table, ..)| tables.contains(table)).collect();
    assert!(rows.len() > 3 * 256, "{}", rows.len());
    let mut looked = 0;
    for pass in Pass::all().into_iter().filter(|pass| matches!(pass, Pass::Lanes(_))) {
        let mut behind = None::<Vec<u8>>;
        while {
            let step = store::read(&world.store, |snapshot| {
                pass.step(snapshot, behind.as_deref(), &Homes::default())
            });
            let step = step.unwrap();
            assert!(step.rows <= 256 && step.found.is_empty(), "{step:?}");
            looked += step.rows;
            behind = step.next;
            behind.is_some()
        } {}
    }
    assert_eq!(looked, rows.len() as u64);
    for (table, key, _) in rows.iter().step_by(50) {
        put(&world.store, *table, key, None);
    }
    let findings = world.engine.check().unwrap().findings;
    assert_eq!(findings.len(), rows.len().div_ceil(50), "{findings:?}");
    assert!(world.engine.repair().unwrap().is_finished);
    assert_eq!(world.engine.check().unwrap().findings, []);
    let mended = dump(&world.store).into_iter().filter(|(table, ..)| tables.contains(table));
    assert_eq!(mended.collect::<Vec<_>>(), rows);
}

/// A row of outcomes: gone, of other notifications, of another outcome, or not readable.
#[test]
fn a_row_of_outcomes_that_is_outdated_is_found() {
    let rows = || entries_of(Table::NotificationOutcomes);
    let (table, key, value) = rows().next().unwrap();
    let other = rows().find(|(_, _, other)| other != value).map(|(_, _, other)| other.as_slice());
    for ruin in [None, other, Some(b"?".as_slice()), Some(b"")] {
        let world = copy();
        put(&world.store, *table, key, ruin);
        assert_outdated(&world, key);
    }
    let stranger = [key.as_slice(), b"?"].concat();
    for key in [stranger.as_slice(), &[&key[..17], &[u8::MAX; 4]].concat()] {
        let world = copy();
        put(&world.store, *table, key, Some(value));
        assert_outdated(&world, key);
    }
}

// Checks that the row under `key` is found, and made anew with the index.
#[track_caller]
fn assert_outdated(world: &World, key: &[u8]) {
    let (table, key) = (Table::NotificationOutcomes.name(), key.to_vec());
    let found = world.engine.check().unwrap().findings;
    let is_it = |finding: &Finding| {
        matches!(finding, Finding::Table(TableFinding { table: of, key: at, problem, .. })
            if (*of, at) == (table, &key)
                && matches!(problem, Problem::Outdated | Problem::Extra))
    };
    assert!(found.len() == 1 && is_it(&found[0]), "{found:?}");

    assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
    assert_eq!(world.engine.check().unwrap().findings, []);
    assert!(
        dump(&world.store)
            .iter()
            .filter(|(of, ..)| of.name() == table)
            .eq(entries().iter().filter(|(of, ..)| of.name() == table))
    );
}

/// The indexes of texts: a part that is gone, that is not readable, or that misses a text.
#[test]
fn an_index_of_texts_that_is_damaged_is_found() {
    let is_of_texts = |table: Table| matches!(table.role(), Role::Derived(Derived::Texts(_)));
    for (table, key, value) in entries().iter().filter(|(table, ..)| is_of_texts(*table)) {
        let none = vec![0; 2];
        for ruin in [None, Some(&value[..value.len() - 1]), Some(b"?"), Some(&none)] {
            let world = copy();
            put(&world.store, *table, key, ruin);
            let findings = world.engine.check().unwrap().findings;
            let is_of_table = |finding: &Finding| matches!(finding, Finding::Table(finding) if finding.table == table.name());
            assert!(!findings.is_empty() && findings.iter().all(is_of_table), "{findings:?}");

            assert!(world.engine.repair().unwrap().is_finished);
            assert_eq!(world.engine.check().unwrap().findings, []);
        }
    }
}

#[test]
fn an_activity_index_that_is_damaged_is_found() {
    for table in [Table::ActivityHeads, Table::ActivitySegments, Table::ActivityDeleted] {
        let (_, key, value) = entries_of(table).next().unwrap();
        for ruin in [None, Some(&value[..value.len() - 1]), Some(b"?".as_slice())] {
            let world = copy();
            put(&world.store, table, key, ruin);
            let findings = world.engine.check().unwrap().findings;
            let environment = world.env.environment_id();
            let is_of_activity = |finding: &Finding| match finding {
                Finding::Activity { environment: of, .. }
                | Finding::UnreadableActivity { environment: of, .. } => *of == environment,
                _ => false,
            };
            assert!(!findings.is_empty(), "{} {ruin:?} is not found", table.name());
            assert!(findings.iter().all(is_of_activity), "{findings:?}");

            assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
            assert_eq!(world.engine.check().unwrap().findings, []);
        }
    }
}

// The first and the last entry of each of these tables.
fn ends(is_wanted: fn(Table) -> bool) -> impl Iterator<Item = &'static Entry> {
    of_plain_worlds().into_iter().filter(move |table| is_wanted(*table)).flat_map(|table| {
        let mut entries = entries_of(table);
        [entries.next(), entries.next_back()].into_iter().flatten()
    })
}

// What a check finds in the tables of a world to which `damage` was done.
fn findings(damage: impl FnOnce(&World)) -> Vec<(&'static str, Vec<u8>, Problem)> {
    let world = copy();
    damage(&world);
    let before = dump(&world.store);
    let findings = world.engine.check().unwrap().findings;
    assert!(dump(&world.store) == before, "a check changes the store");
    let in_tables = findings.into_iter().filter_map(|finding| match finding {
        Finding::Table(TableFinding { table, key, problem, .. }) => Some((table, key, problem)),
        _ => None,
    });
    in_tables.collect()
}

// The tables whose values are encoded records.
fn is_record(table: Table) -> bool {
    if is_derived(table) {
        return false;
    }
    let (_, _, value) = entries_of(table).next().unwrap();
    !is_activity(table) && store::encoding::json(value).is_ok_and(|json| json.starts_with(b"{"))
}

fn is_index(table: Table) -> bool {
    !is_activity(table) && !is_record(table) && !is_derived(table)
}

// The tables whose rows are made from those of others, and that lead to no record.
fn is_derived(table: Table) -> bool {
    matches!(table.role(), Role::Derived(rows) if rows != Derived::Activity)
}
