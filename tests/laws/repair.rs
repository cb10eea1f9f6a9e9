//! Whatever is wrong with a store, a check finds it and a repair mends it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use domain::environment::{Environment, Home};
use domain::ids::EnvironmentId;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use store::layout::{self, Derived, Role, Target, environment_of};
use store::{Table, WriteRecords};
use testkit::interposed::{Interposed, Lie, Point};
use testkit::tables::{self, Entry, dump, of_plain_worlds, put};
use testkit::world::{World, on_both};
use testkit::{is_thorough, scaled};
use tidings::check::{Finding, Problem};
use tidings::quarantine::QuarantineQuery;
use tidings::unsubscribe::UnsubscribeRequest;
use tidings::vocabulary::Channel;
use tidings::{Error, Progress};

use crate::seeded::{copy, entries, entries_of, fork, world_over};
use crate::{cases, parsed};

/// The first entry of a table and the last one.
fn some_of(table: Table) -> Vec<&'static Entry> {
    let mut all = entries_of(table);
    [all.next(), all.last()].into_iter().flatten().collect()
}

/// The first entry of a table with the first of two kinds of damage, and the last one with the second. Each of
/// them has both kinds if it is alone. What is derived from records has one of the kinds only, so that both are
/// tried in turn among those tables. `TIDINGS_TEST_SCALE` brings back all.
fn in_turn(table: Table) -> impl Iterator<Item = (&'static Entry, usize)> {
    let ends = some_of(table);
    let has_both = ends.len() == 1;
    let with_each = |(end, entry)| [(end, entry, 0), (end, entry, 1)];
    let all = ends.into_iter().enumerate().flat_map(with_each);
    let is_of_table = move |kind| table.role() == Role::Records || kind == table as usize % 2;
    let wanted = all.filter(move |(end, _, kind)| {
        is_thorough() || (has_both || end == kind) && is_of_table(*kind)
    });
    wanted.map(|(_, entry, kind)| (entry, kind))
}

/// Checks that the world has findings, that a repair mends them, and that another one changes
/// nothing.
#[track_caller]
fn check_mended(world: &World, what: &str) {
    assert!(!world.engine.check().unwrap().findings.is_empty(), "{what} is not found");
    check_repair(world, what);
}

#[track_caller]
fn check_repair(world: &World, what: &str) {
    let report = world.engine.repair().unwrap();
    let mended = dump(&world.store);
    if mended == entries() {
        // `a_sound_store_is_left_as_it_is` repairs such a store.
        return;
    }
    let findings = world.engine.check().unwrap().findings;
    let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{what} is not mended by {report:?}: {texts:#?}");
    let again = world.engine.repair().unwrap();
    assert_eq!((again.put_aside, again.mended, again.rebuilt.len()), (0, 0, 0), "{what}");
    assert!(dump(&world.store) == mended, "{what} is mended again");
}

/// Derived rows that have one form only are as they were.
fn has_one_form(table: Table) -> bool {
    match table.role() {
        Role::IndexOf(_) => true,
        Role::Derived(derived) => {
            matches!(derived, Derived::ListCounts | Derived::Lanes | Derived::Outcomes)
        }
        Role::Records | Role::Marks => false,
    }
}

#[test]
fn a_sound_store_is_left_as_it_is() {
    let world = copy();
    let (mut tables, mut rows) = (Vec::new(), 0);
    let report = world
        .engine
        .repair_with(|at| {
            assert!(at.rows >= rows, "rows are counted up");
            rows = at.rows;
            tables.push(at.table);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(report.is_finished);
    assert_eq!((report.put_aside, report.mended, report.rebuilt.len()), (0, 0, 0));
    assert!(report.rows >= entries().len() as u64 / 2 && report.rows == rows);
    assert!(tables.contains(&"notifications") && tables.contains(&"lanes"));
    assert!(dump(&world.store) == entries());

    let mut seen = 0;
    let check = world.engine.check_with(|_| {
        seen += 1;
        ControlFlow::Continue(())
    });
    let check = check.unwrap();
    assert!(check.is_finished && seen > Table::ALL.len() / 2);
    assert_eq!(check.findings, []);
}

#[test]
fn a_check_and_a_repair_end_when_they_are_told_to() {
    for last in 1..4 {
        let told = Cell::new(0);
        let until_last = |_| {
            told.set(told.get() + 1);
            if told.get() == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let world = copy();
        assert!(!world.engine.check_with(until_last).unwrap().is_finished);
        assert_eq!(told.replace(0), last);
        assert!(!world.engine.repair_with(until_last).unwrap().is_finished);
        assert_eq!(told.get(), last);
    }
    // What is behind the tables.
    let activity = |at: Progress| {
        let is_last = at.table == Table::ActivitySegments.name();
        if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let world = copy();
    let check = world.engine.check_with(activity).unwrap();
    let whole = world.engine.check().unwrap();
    assert_eq!((check.records, check.is_finished), (whole.records, false));
    assert!(!world.engine.repair_with(activity).unwrap().is_finished);
}

/// A page of other keys is in the place of another one, in each table in turn. What needs it cannot be mended.
#[test]
fn a_table_that_cannot_be_gone_through_holds_up_no_other_one() {
    for table in Table::ALL {
        let world = copy();
        let (_, key, value) = entries_of(Table::Lanes).next().unwrap();
        put(&world.store, Table::Lanes, key, None);
        world.store.tell(Lie::ForeignIn(table));

        let report = world.engine.repair();

        assert!(report.as_ref().is_ok_and(|report| report.is_finished), "{table:?}: {report:?}");
        let needed = [Table::Lanes, Table::Due];
        if !needed.contains(&table) {
            let is_mended =
                dump(&world.store).contains(&(Table::Lanes, key.clone(), value.clone()));
            assert!(is_mended, "{table:?}");
        }
    }
}

/// A row that looks as if it were sealed with an unknown key stays, because it may be sound.
#[test]
fn a_row_of_an_unknown_key_holds_up_no_other_one() {
    for (table, derived) in
        [(Table::Tasks, Table::Lanes), (Table::Messages, Table::MessageCounters)]
    {
        let world = copy();
        let sealed = [5; 64];
        put(&world.store, table, &entries_of(table).next().unwrap().1, Some(&sealed));
        let (_, lost, _) = entries_of(derived).last().unwrap();
        put(&world.store, derived, lost, None);

        assert!(world.engine.repair().unwrap().is_finished);

        let left = tables::of(&world.store, table);
        assert!(left.iter().any(|(_, _, value)| *value == sealed), "{table:?}");
        let is_mended = tables::of(&world.store, derived).iter().any(|(_, key, _)| key == lost);
        assert!(is_mended, "{derived:?}");
    }
}

#[test]
fn a_repair_that_is_ended_goes_on() {
    let damaged = || {
        let world = copy();
        for table in [Table::EmailIndex, Table::ActivitySegments] {
            let (_, key, _) = entries_of(table).next().unwrap();
            put(&world.store, table, key, None);
        }
        world
    };
    let mut last = 0;
    loop {
        last += 1;
        let (world, mut told) = (damaged(), 0);
        let report = world.engine.repair_with(|at| {
            let is_made_anew = ["addresses", "activity_segments"].contains(&at.table);
            told += u32::from(is_made_anew);
            if told == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let report = report.unwrap();
        if report.is_finished {
            assert!(report.rebuilt.len() == 1 && last > 4, "{report:?}, {last}");
            break;
        }
        assert!(world.engine.repair().unwrap().is_finished);
        assert_eq!(world.engine.check().unwrap().findings, [], "ended after {last}");
    }
}

#[test]
fn a_rebuild_of_the_indexes_ends_when_it_is_told_to() {
    let (mut last, mut tables) = (0, BTreeSet::new());
    loop {
        last += 1;
        let world = copy();
        let (mut told, mut rows) = (0, 0);
        let rebuild = world.env.notifications().rebuild_index_with(|at| {
            assert!(at.rows >= rows, "rows are counted up");
            (told, rows) = (told + 1, at.rows);
            tables.insert(at.table);
            if told == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let rebuild = rebuild.unwrap();
        assert_eq!(rebuild.rows, rows);
        assert_eq!(world.engine.check().unwrap().findings, [], "ended after {last}");
        if rebuild.is_finished {
            assert!(told < last);
            break;
        }
        assert_eq!(told, last);
        assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
        assert_eq!(world.engine.check().unwrap().findings, [], "begun again after {last}");
    }
    let indexes = [
        Table::EmailIndex,
        Table::NotificationOutcomes,
        Table::DeadLetters,
        Table::ActivitySegments,
    ];
    assert!(indexes.iter().all(|table| tables.contains(table.name())), "{tables:?}");

    let world = copy();
    let check = world.env.notifications().check_index_with(|_| ControlFlow::Break(())).unwrap();
    assert!(!check.is_finished && world.env.notifications().check_index().unwrap().is_finished);
}

#[test]
fn a_row_that_cannot_be_read_is_mended() {
    for table in of_plain_worlds() {
        for ((_, key, value), kind) in in_turn(table) {
            let half = value[..value.len() / 2].to_vec();
            let damaged = [b"\xFFgarbage".to_vec(), half][kind].clone();
            let world = copy();
            put(&world.store, table, key, Some(&damaged));
            let what = format!("{} {} as {damaged:?}", table.name(), key.escape_ascii());
            check_mended(&world, &what);
            if has_one_form(table) {
                assert!(tables::of(&world.store, table).iter().eq(entries_of(table)), "{what}");
            }
            if table.role() == Role::Records {
                let put_aside =
                    world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;
                let bytes = damaged.escape_ascii().to_string();
                let key = key.escape_ascii().to_string();
                let is_it = |name: &str, of: &str, value: &str| {
                    name == table.name() && of == key && value == bytes
                };
                assert!(
                    put_aside.iter().any(|one| is_it(&one.table, &one.key, &one.value)),
                    "{what} is not in the quarantine"
                );
            }
        }
    }
}

/// In place of an environment that cannot be read, there is another record with its id.
#[test]
fn an_environment_keeps_its_records_and_keys() {
    let world = copy();
    let created = world.env.api_keys().create(&parsed(json!({ "name": "Orders" }))).unwrap();
    let header = format!("ApiKey {}", created.key.expose());
    let id = world.env.environment_id();
    let (_, key, _) = entries_of(Table::Environments)
        .find(|(_, key, _)| key.ends_with(uuid::Uuid::from(id).as_bytes()))
        .unwrap();
    put(&world.store, Table::Environments, key, Some(b"damaged"));

    let report = world.engine.repair().unwrap();

    assert_eq!((report.put_aside, &report.replaced[..]), (1, &[id][..]));
    assert_eq!(world.engine.check().unwrap().findings, []);
    let engine = world.another_engine();
    for env in [engine.environment(id).unwrap(), engine.authenticate(&header).unwrap()] {
        assert_eq!(env.environment_id(), id);
        assert!(env.subscribers().find("ada").unwrap().is_some());
    }
    let shown = engine.organization("acme").unwrap().environments().get(id).unwrap();
    assert_eq!(shown.name.as_str(), format!("Repaired {id}"));
}

/// Removes the record of an environment, and the entry that says where it was. Returns the environment.
fn lose_environment(world: &World, has_entry: bool) -> EnvironmentId {
    let id = world.env.environment_id();
    let is_of = |key: &[u8]| key.ends_with(uuid::Uuid::from(id).as_bytes());
    for table in [Table::Environments, Table::EnvironmentIds] {
        let (_, key, _) = entries_of(table).find(|(_, key, _)| is_of(key)).unwrap();
        if table == Table::Environments || !has_entry {
            put(&world.store, table, key, None);
        }
    }
    id
}

/// An environment whose record is gone has another one, in its organization if that is known.
#[test]
fn an_environment_without_a_record_gets_one() {
    for (has_entry, organization) in [(true, "acme"), (false, "repaired")] {
        let world = copy();
        let id = lose_environment(&world, has_entry);
        let findings = world.engine.check().unwrap().findings;
        let is_it = |found: &&Finding| matches!(found, Finding::Table(found) if found.problem == Problem::Gone);
        assert_eq!(findings.iter().filter(is_it).count(), 1, "{findings:?}");

        let report = world.engine.repair().unwrap();

        assert_eq!((report.put_aside, &report.replaced[..]), (0, &[id][..]));
        assert_eq!(world.engine.check().unwrap().findings, []);
        let engine = world.another_engine();
        let shown = engine.organization(organization).unwrap().environments().get(id).unwrap();
        assert_eq!(shown.name.as_str(), format!("Repaired {id}"));
        let env = engine.environment(id).unwrap();
        assert!(env.subscribers().find("ada").unwrap().is_some());
    }
}

/// Without the key of its links, an environment signs none. Links of the lost key stay invalid.
#[test]
fn an_environment_without_a_link_key_gets_one() {
    for damaged in [None, Some(&b"damaged"[..])] {
        let world = copy();
        let subscriber = UnsubscribeRequest::workflow("ada", "both", Channel::Email).unwrap();
        let url = || world.env.unsubscribe_url(&subscriber);
        let token = url().unwrap().split_once("token=").unwrap().1.to_owned();
        assert!(world.env.read_unsubscribe(&token).is_ok());
        let environment = world.env.environment_id();
        let is_own = |(table, key, _): &&Entry| environment_of(*table, key) == Some(environment);
        let (_, key, _) = entries_of(Table::LinkKeys).find(is_own).unwrap();
        put(&world.store, Table::LinkKeys, key, damaged);
        let refused = url().unwrap_err();
        assert!(matches!(refused, Error::Store(_)), "{refused}");

        check_mended(&world, "a link key");

        assert!(url().is_ok());
        assert_eq!(world.env.read_unsubscribe(&token).unwrap_err().status(), 400);
    }
}

/// Two organizations have a record of one environment. The entry of its id says whose it is.
#[test]
fn an_environment_is_in_one_organization() {
    for leads_to_the_new_one in [true, false] {
        let world = copy();
        let environment_id = world.env.environment_id();
        let id = layout::environment_id(environment_id);
        let before = tables::value(&world.store, id.table(), id.as_bytes()).unwrap();
        let home = Home { organization_id: "other".parse().unwrap(), environment_id };
        let another = Environment::stand_in(&home, "another".into(), world.now());
        store::write(&world.store, |tx| tx.insert(&another)).unwrap();
        if !leads_to_the_new_one {
            put(&world.store, id.table(), id.as_bytes(), Some(&before));
        }

        let report = world.engine.repair().unwrap();

        assert_eq!((report.put_aside, report.replaced), (1, Vec::new()));
        check_repair(&world, "an environment of two organizations");
        let own = if leads_to_the_new_one { "other" } else { "acme" };
        let organization = world.another_engine().organization(own).unwrap();
        assert!(organization.environments().get(environment_id).is_ok());
    }
}

/// Rows that are made from records leave with these and with the environment.
#[test]
fn nothing_derived_stays_without_its_environment() {
    let world = copy();
    let id = lose_environment(&world, false);
    for (table, key, _) in entries() {
        if table.role() == Role::Records && environment_of(*table, key) == Some(id) {
            put(&world.store, *table, key, None);
        }
    }
    let report = world.engine.repair().unwrap();
    assert_eq!(report.replaced, []);
    assert_eq!(world.engine.check().unwrap().findings, []);
    let of_it = |(table, key, _): &Entry| environment_of(*table, key) == Some(id);
    assert_eq!(dump(&world.store).into_iter().filter(of_it).collect::<Vec<_>>(), []);
}

/// Whatever else is gone with the record of an environment is mended. `TIDINGS_TEST_SCALE` takes more rows.
#[test]
fn much_is_mended_without_an_environment() {
    let stride = (13 / scaled(1_usize)).max(1);
    for (which, (table, key, _)) in entries().iter().enumerate().skip(1).step_by(stride) {
        let world = copy();
        lose_environment(&world, which % 2 == 0);
        put(&world.store, *table, key, None);
        check_mended(&world, &format!("{} {}", table.name(), key.escape_ascii()));
    }
}

/// A record that nothing follows from is not missed.
fn is_missed(table: Table, key: &[u8]) -> bool {
    match table.role() {
        Role::Records => {
            let leads = |(index, _, value): &Entry| {
                let is_index = matches!(index.role(), Role::IndexOf(of) if of == table);
                is_index && Target::read(*index, value).key == key
            };
            let is_needed = matches!(table, Table::DeletedMessages | Table::LinkKeys);
            is_needed || entries().iter().any(leads)
        }
        Role::IndexOf(_) | Role::Derived(_) | Role::Marks => true,
    }
}

#[test]
fn a_row_that_is_gone_is_mended() {
    for table in of_plain_worlds() {
        for (_, key, _) in some_of(table) {
            let world = copy();
            put(&world.store, table, key, None);
            let what = format!("{} without {}", table.name(), key.escape_ascii());
            if is_missed(table, key) {
                check_mended(&world, &what);
            } else {
                check_repair(&world, &what);
            }
            if has_one_form(table) {
                assert!(tables::of(&world.store, table).iter().eq(entries_of(table)), "{what}");
            }
        }
    }
}

#[test]
fn a_foreign_row_is_mended() {
    for table in of_plain_worlds() {
        for ((_, key, value), kind) in in_turn(table) {
            let longer = [key.as_slice(), b"?"].concat();
            let shorter = key[..key.len() - 1].to_vec();
            let foreign = [longer, shorter][kind].clone();
            let world = copy();
            put(&world.store, table, &foreign, Some(value));
            check_mended(&world, &format!("{} {}", table.name(), foreign.escape_ascii()));
        }
    }
}

/// A row has the value of another one.
#[test]
fn a_row_in_the_place_of_another_is_mended() {
    for table in of_plain_worlds() {
        let all: Vec<_> = entries_of(table).collect();
        let ((_, one, value), (_, other, another)) = (all[0], all[all.len() - 1]);
        // What is in the activity index has no form that only one thing can have.
        if value == another || matches!(table.role(), Role::Derived(Derived::Activity)) {
            continue;
        }
        let world = copy();
        put(&world.store, table, one, Some(another));
        put(&world.store, table, other, Some(value));
        check_mended(&world, &format!("{} with rows exchanged", table.name()));
    }
}

proptest! {
    #![proptest_config(cases(16))]

    /// Much may be wrong at once.
    #[test]
    fn everything_is_mended(damages in prop::collection::vec((any::<Index>(), 0..4_u8), 1..40)) {
        let world = copy();
        for (which, kind) in damages {
            let (table, key, value) = which.get(entries());
            match kind {
                0 => put(&world.store, *table, key, None),
                1 => put(&world.store, *table, key, Some(b"damaged")),
                2 => put(&world.store, *table, key, Some(&value[..value.len() / 3])),
                _ => put(&world.store, *table, &[key.as_slice(), b"?"].concat(), Some(value)),
            }
        }
        check_repair(&world, "it");
        world.engine.delivery().run_due(usize::MAX).unwrap();
        prop_assert_eq!(world.engine.check().unwrap().findings, []);
    }
}

/// Damages of many kinds: of an environment, of an inbox, of a segment, of an event that is told to
/// many, and of what was answered.
const MANY: [Table; 13] = [
    Table::Environments,
    Table::Subscribers,
    Table::MessageCounters,
    Table::ListCounts,
    Table::ActivitySegments,
    Table::FanOuts,
    Table::Tasks,
    Table::StoredAnswers,
    Table::Notifications,
    Table::LaneHeads,
    Table::EmailIndex,
    Table::DeadLetters,
    Table::NotificationOutcomes,
];

fn ruined() -> World {
    let world = copy();
    for table in MANY {
        let (_, key, _) = some_of(table)[0];
        put(&world.store, table, key, Some(b"damaged"));
    }
    world
}

/// A repair that fails at any call of the store leaves a store that the next one mends.
#[test]
fn a_repair_goes_on_after_a_failure() {
    let mut left = Vec::new();
    for point in [Point::Call, Point::Commit] {
        let mut after = 0;
        loop {
            let world = ruined();
            world.store.fail(point, after);
            let repaired = world.engine.repair();
            let has_failed = world.store.recover();
            assert_eq!(repaired.is_err(), has_failed, "{point:?} {after}");
            let state = dump(&world.store);
            // Most calls read, and leave what was there before.
            if !has_failed || !left.contains(&state) {
                check_repair(&world, &format!("{point:?} {after}"));
                left.push(state);
            }
            if !has_failed {
                break;
            }
            // There are thousands of calls that read.
            after += if after < 64 { 1 } else { after / 8 };
        }
    }
}

/// Writers that go on are no damage, and a repair takes nothing from them.
#[test]
fn writers_go_on() {
    on_both(|world| {
        world.in_app_workflow("inbox");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..60 {
                    let to = json!({ "subscriberId": format!("s{n}"), "email": "a@example.org" });
                    world.trigger(json!({ "name": "inbox", "to": to }));
                    if n % 3 == 0 {
                        world.env.subscribers().delete(format!("s{n}")).unwrap();
                    }
                }
                is_over.store(true, Ordering::Release);
            });
            while !is_over.load(Ordering::Acquire) {
                assert_eq!(world.engine.check().unwrap().findings, []);
                let report = world.engine.repair().unwrap();
                assert_eq!((report.put_aside, report.mended), (0, 0), "{report:?}");
            }
        });
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A repair while others write mends what is wrong.
#[test]
fn a_repair_among_writers_mends() {
    let world = ruined();
    // Without its record, the environment has no scope.
    let engine = world.another_engine();
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..40 {
                let topic = parsed(json!({ "key": format!("t{n}") }));
                world.env.topics().create(&topic).unwrap();
            }
        });
        assert!(engine.repair().unwrap().is_finished);
    });
    check_repair(&world, "it");
}

/// Others put so many rows before a damaged one, between the look of a repair at it and the transaction
/// that mends it, that the transaction ends before it.
#[test]
fn rows_that_come_between_hide_no_damaged_one() {
    let (world, below) = fork();
    let last = world.env.topics().create(&parsed(json!({ "key": "z-last" }))).unwrap();
    let is_last = |(_, key, _): &Entry| key.escape_ascii().to_string().contains(last.key.as_str());
    let (_, key, _) = tables::of(&world.store, Table::Topics).into_iter().find(is_last).unwrap();
    put(&world.store, Table::Topics, &key, Some(b"damaged"));
    let other = world_over(Interposed::new(below));
    let mut meanwhile = Some(move || {
        for number in 0..300 {
            let topic = parsed(json!({ "key": format!("y-{number}") }));
            other.env.topics().create(&topic).unwrap();
        }
    });

    let report = world.engine.repair_with(|_| {
        // The first transaction behind the first look is that which mends.
        meanwhile.take().into_iter().for_each(|rows| world.store.pause(Point::Write, 0, rows));
        ControlFlow::Continue(())
    });

    let report = report.unwrap();
    assert_eq!((world.engine.check().unwrap().findings, report.put_aside), (vec![], 1));
}

/// Findings name their table, their key and their environment.
#[test]
fn a_finding_names_its_place() {
    let world = copy();
    let environment = world.env.environment_id();
    for table in [Table::Topics, Table::Due, Table::Lanes, Table::Held, Table::MessageLists] {
        let (_, key, value) = some_of(table)[0];
        put(&world.store, table, key, Some(b"damaged"));
        let findings = world.engine.check().unwrap().findings;
        let is_it = |finding: &Finding| match finding {
            Finding::Table(one) => {
                (one.table, &one.key, one.environment) == (table.name(), key, Some(environment))
            }
            _ => false,
        };
        assert!(findings.iter().any(is_it), "{findings:#?}");
        put(&world.store, table, key, Some(value));
    }
}
