//! Bytes read from disk are not trusted: what is damaged is called by its name, and nothing panics.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use domain::trigger::AcceptedTrigger;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use store::{Table, encoding, layout};
use testkit::is_thorough;
use testkit::records::{self, Ruins};
use testkit::requests;
use testkit::tables::{self, check_indexes, decoded, is_activity, load, of_plain_worlds};
use testkit::world::World;
use tidings::notification::{Notification, NotificationQuery, Ordinal};
use tidings::quarantine::QuarantineQuery;
use tidings::time::Timestamp;

use crate::cases;
use crate::seeded::{copy, entries, entries_of, trigger};

/// The requests that meet damage of a table.
fn readers(table: Table) -> impl Iterator<Item = &'static Value> {
    records::readers(table).iter().filter(|request| !is_of_the_index(request))
}

/// What finds its way through the activity index and through what it is made of.
static OF_ACTIVITY: LazyLock<Vec<&Value>> = LazyLock::new(|| {
    let of_activity = |request: &&Value| {
        let parts = request.as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut groups = parts.filter_map(|part| part.split_once('.'));
        groups.any(|(group, _)| group == "notifications" || group == "events")
    };
    requests::sound().iter().filter(of_activity).collect()
});

// It reads everything there is, and so takes its time.
fn is_of_the_index(request: &Value) -> bool {
    let all = [json!("notifications.check_index"), json!("notifications.rebuild_index")];
    all.contains(&request[0])
}

/// Damage that no value survives: an operation says which table it is in, or has not seen it.
///
/// All requests meet the first damage at both ends of a table. Half of them meet another one at one of the
/// ends, and the others and the other end follow until somebody complains. With `TIDINGS_TEST_SCALE`, all of
/// them do.
#[test]
fn a_ruined_value_is_not_read_as_something_else() {
    let world = Ruins::default();
    for table in of_plain_worlds().into_iter().filter(|table| !is_activity(*table)) {
        let expected = answers(&world, table);
        // Only the keys of these entries are used, and what is in them is mended.
        let is_mended = matches!(
            table,
            Table::Due
                | Table::Lanes
                | Table::LaneHeads
                | Table::Held
                | Table::HeldLanes
                | Table::ExpiringAnswers
                | Table::ExpiringSuppressions
                | Table::CanceledTriggers
                | Table::WorkflowPreferences
                | Table::SubscriberSubscriptions
                | Table::Transactions
                | Table::EnvironmentIds
                | Table::ApiKeys
                | Table::MessageCounters
                | Table::ListCounts
                | Table::Quarantine
        );
        // Only tasks behind those that are done first read these.
        let is_read_later = matches!(
            table,
            Table::DigestEvents | Table::FanOuts | Table::FanOutStates | Table::Tasks
        );
        let is_overlooked = is_mended || is_read_later;
        for (number, ruin) in RUINS.into_iter().enumerate() {
            let is_whole = number == 0 || is_thorough();
            let mut entries = entries_of(table);
            let mut ends = [entries.next(), entries.next_back()];
            let mut halves = [0, 1];
            ends.rotate_left(number % 2);
            halves.rotate_left(number / 2 % 2);
            let (mut asked, mut complaints) = (0, 0);
            for (_, key, value) in ends.into_iter().flatten() {
                world.put(table, key, Some(&ruin(value)));
                for half in halves {
                    if is_whole || asked == 0 || complaints == 0 && !is_overlooked {
                        let is_asked = |request: usize| request % 2 == half;
                        asked += 1;
                        complaints += check_some(&world, table, &expected, is_asked);
                    }
                }
                world.put(table, key, Some(value));
            }
            let is_found_out = complaints > 0 || is_overlooked;
            let name = table.name();
            assert!(is_found_out, "nobody sees what is in {name}");
        }
    }
}

/// What is in the activity index has no form that only one thing can have. An operation says that
/// something in it is damaged, or answers as if nothing were, or else comparing the index with the
/// notifications shows that it is.
#[test]
fn a_ruined_index_is_found_out() {
    let world = Ruins::default();
    let requests = &*OF_ACTIVITY;
    let answers = || requests.iter().map(|request| world.ask(request)).collect::<Vec<_>>();
    let expected = answers();
    let check = requests.iter().position(|request| request[0] == "notifications.check_index");
    let check = check.expect("it is one of them");
    let tables = Table::ALL.into_iter().filter(|table| is_activity(*table));
    let complaints = tables.clone().map(complaint).collect::<Vec<_>>();
    for table in tables {
        let mut finds = 0;
        for (_, key, value) in entries_of(table) {
            let full: Ruin =
                |value| [vec![0; value.len() / 2], vec![u8::MAX; value.len()]].concat();
            for ruin in RUINS.into_iter().chain([full]) {
                world.put(table, key, Some(&ruin(value)));
                let answers = answers();
                let is_found = answers[check] != expected[check];
                for ((request, answer), expected) in requests.iter().zip(&answers).zip(&expected) {
                    let is_right = answer == expected || complaints.contains(answer);
                    let name = table.name();
                    assert!(
                        is_right || is_found,
                        "{request} with {name} damaged\n{expected}\nbecomes\n{answer}"
                    );
                }
                finds += usize::from(is_found);
            }
            world.put(table, key, Some(value));
        }
        assert!(finds > 0, "nobody sees what is in {}", table.name());
    }
}

/// A record is not taken for another one, which may be in another scope.
#[test]
fn a_value_in_the_wrong_place_is_not_believed() {
    let world = Ruins::default();
    for table in Table::ALL {
        let expected = answers(&world, table);
        let entries: Vec<_> = entries_of(table).collect();
        let is_record = |value: &[u8]| decoded(value).is_some();
        let [(_, first, one), .., (_, last, other)] = entries.as_slice() else { continue };
        if is_record(one) {
            world.put(table, first, Some(other));
            world.put(table, last, Some(one));
            let is_seen = check_seen_or_refused(&world, table, &expected) > 0;
            let is_read_later = matches!(table, Table::DigestEvents | Table::Tasks);
            assert!(is_seen || is_read_later, "{}", table.name());
            world.put(table, first, Some(one));
            world.put(table, last, Some(other));
        }
    }
}

/// The end of a window whose events cannot be read goes into quarantine, and the rest is done.
#[test]
fn a_window_with_a_damaged_event_goes_into_quarantine() {
    let sound = copy().engine.delivery().run_due(usize::MAX).unwrap();
    for ruin in RUINS {
        let world = copy();
        let (_, key, value) = entries_of(Table::DigestEvents).next().unwrap();
        load(&world.store, &[(Table::DigestEvents, key.clone(), ruin(value))]);
        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.sent, report.quarantined), (sound.sent, 1));
        let quarantined = world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;
        assert!(quarantined.iter().any(|entry| entry.table == Table::DigestEvents.name()));
    }
}

/// An entry that leads to a record which does not have it is not followed, for it may lead into
/// another scope.
#[test]
fn an_entry_that_leads_elsewhere_is_not_followed() {
    let world = Ruins::default();
    for table in [
        Table::SubscriberIds,
        Table::SubscriberEmails,
        Table::WorkflowIdentifiers,
        Table::ContextLists,
        Table::EndpointLists,
        Table::ConnectionLists,
        Table::ConnectionOwners,
        Table::TopicLists,
        Table::SubscriptionIds,
        Table::TopicSubscribers,
        Table::SubscriberSubscriptions,
        Table::LayoutIds,
        Table::TranslationIds,
        Table::Transactions,
        Table::MessageChanges,
    ] {
        let expected = answers(&world, table);
        let entries: Vec<_> = entries_of(table).collect();
        let [(_, first, one), .., (_, last, other)] = entries.as_slice() else {
            panic!("two entries in {}", table.name())
        };
        world.put(table, first, Some(other));
        world.put(table, last, Some(one));
        // Only deletions use the values of these, which put them right.
        let is_mended = matches!(table, Table::SubscriberSubscriptions | Table::Transactions);
        let is_seen = check_seen_or_refused(&world, table, &expected) > 0;
        assert!(is_seen || is_mended, "{}", table.name());
        world.put(table, first, Some(one));
        world.put(table, last, Some(other));
    }
}

/// Checks that each operation says what is expected, or that `table` is damaged, and counts those
/// that do the latter.
#[track_caller]
fn check_seen_or_refused(world: &Ruins, table: Table, expected: &[String]) -> usize {
    check_some(world, table, expected, |_| true)
}

/// The same for some of the requests, by their numbers.
#[track_caller]
fn check_some(
    world: &Ruins,
    table: Table,
    expected: &[String],
    is_asked: impl Fn(usize) -> bool,
) -> usize {
    let complaint = complaint(table);
    let mut seen = 0;
    let asked = readers(table).zip(expected).enumerate().filter(|(number, _)| is_asked(*number));
    for (_, (request, expected)) in asked {
        let answer = world.ask(request);
        let is_fine = answer == *expected
            || answer == complaint
            || is_report(&answer)
            // Counters that are counted anew go on with other numbers of changes.
            || table == Table::MessageCounters
            || passes_over_damage(request);
        let name = table.name();
        assert!(is_fine, "{request} with {name} damaged\n{expected}\nbecomes\n{answer}");
        seen += usize::from(answer == complaint || answer != *expected);
    }
    seen
}

/// Lists and operations on many records leave out what they cannot read. Damage to an index that
/// is made anew has no effect.
fn passes_over_damage(request: &Value) -> bool {
    let name = request[0].as_str().unwrap_or_default();
    let (_, operation) = name.split_once('.').unwrap_or_default();
    ["list", "count", "delete", "changes"].iter().any(|start| operation.starts_with(start))
        || operation.contains("subscri")
        || operation.ends_with("_matching")
        // What is filled in from other records is left out.
        || matches!(
            name,
            "notifications.get"
                | "notifications.find"
                | "notifications.messages"
                | "channel_connections.get"
                | "channel_connections.find"
                | "channel_endpoints.get"
                | "channel_endpoints.find"
        )
        // An explanation says what delivery would do, which goes on without them.
        || matches!(
            operation,
            "broadcast"
                | "clear"
                | "digest_events"
                | "erase"
                | "explain"
                | "health"
                | "mark_all"
                | "stats"
                | "trigger"
                | "trigger_bulk"
        )
}

/// Delivery goes on, and leaves out what it cannot read.
fn is_report(answer: &str) -> bool {
    answer.starts_with("\"DeliveryReport")
}

fn complaint(table: Table) -> String {
    format!("record in table `{}` is not readable", table.name())
}

fn answers(world: &Ruins, table: Table) -> Vec<String> {
    readers(table).map(|request| world.ask(request)).collect()
}

proptest! {
    #![proptest_config(cases(48))]

    /// Damage that may leave something that makes sense, if not the same.
    #[test]
    fn nothing_panics(
        table in select(of_plain_worlds()),
        which in any::<Index>(),
        damage in damage(),
    ) {
        let entries: Vec<_> = entries_of(table).collect();
        let (_, key, value) = entries[which.index(entries.len())];
        check_calm(table, key, damage.to(value).as_deref());
    }
}

/// However many notifications the head of the index says that there are, nobody counts up to there,
/// and what makes the index anew makes it from those that are there.
#[test]
fn nobody_waits_for_what_is_not_there() {
    let (_, key, head) = entries_of(Table::ActivityHeads).next().unwrap();
    // The numbers, but for the time of the last notification.
    for bit in (0..8 * (head.len() - 8)).filter(|bit| matches!(bit % 8, 0 | 4 | 7)) {
        let mut damaged = head.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let world = copy();
        load(&world.store, &[(Table::ActivityHeads, key.clone(), damaged)]);
        let notifications = world.env.notifications();
        let _ = (notifications.check_index(), notifications.list(&NotificationQuery::default()));

        assert!(notifications.rebuild_index().unwrap().is_finished);

        check_indexes(&world.store);
        let there = tables::records::<Notification>(&world.store).len() as u64;
        let found = notifications.count(&NotificationQuery::default()).unwrap();
        assert_eq!(found, there, "with bit {bit} of the head another one");
    }
}

/// A damaged page may hold keys of other records, with any ordinal. A rebuild does not go there, and new
/// notifications get the ordinals behind the last trigger.
#[test]
fn a_rebuild_ignores_keys_of_other_records() {
    let triggers = tables::records::<AcceptedTrigger>(&copy().store);
    let next = triggers.iter().map(|trigger| trigger.ordinals.end).max().unwrap();
    // Beside the notifications, or in their place.
    for (is_alone, has_head) in [(false, true), (false, false), (true, false)] {
        let world = copy();
        let lost = [(is_alone, Table::Notifications), (!has_head, Table::ActivityHeads)];
        for (_, table) in lost.into_iter().filter(|(is_lost, _)| *is_lost) {
            entries_of(table).for_each(|(_, key, _)| tables::put(&world.store, table, key, None));
        }
        put_notification(&world, 474_148_729_600, b"?");

        // It is refused for the record that cannot be read, behind the activity list.
        assert!(world.env.notifications().rebuild_index().is_err());
        let listed = world.env.notifications().list(&NotificationQuery::default()).unwrap();
        assert_eq!(listed.data.is_empty(), is_alone);
        let receipt = world.env.events().trigger(&trigger("inbox", json!("ada"))).unwrap();
        assert_eq!(receipt.notifications[0].notification_id.ordinal().get(), next);
        assert!(world.engine.repair().unwrap().is_finished);
        assert_eq!(world.engine.check().unwrap().findings, []);
    }
}

/// A deletion does not move the list behind its end.
#[test]
fn a_deletion_ignores_keys_of_other_records() {
    let world = copy();
    put_notification(&world, 474_148_729_600, b"?");
    let later: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let there = world.env.notifications().count(&NotificationQuery::default()).unwrap();
    assert_eq!(world.env.notifications().delete_before(later).unwrap() as u64, there);
    let check = world.env.notifications().check_index().unwrap();
    assert!(check.disagreements.is_empty(), "{check:?}");
}

fn put_notification(world: &World, ordinal: u64, value: &[u8]) {
    let key = layout::notification(world.env.environment_id(), Ordinal::new(ordinal));
    let (table, key) = key.into_parts();
    tables::put(&world.store, table, &key, Some(value));
}

/// A value of another table may begin like a sealed one, and has fewer bytes than a seal.
#[test]
fn a_short_value_is_no_sealed_one() {
    let found = entries().iter().filter(|(_, _, value)| value.first() == Some(&5));
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty());
    for (table, _, value) in found {
        let world = copy();
        put_notification(&world, 0, value);
        assert!(world.engine.repair().unwrap().is_finished);
        assert_eq!(world.engine.check().unwrap().findings, [], "{table:?}");
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Whatever lies in the list of notifications, and whether it has a head: all calls return, and a
    /// repair mends it.
    #[test]
    fn a_list_with_any_keys_is_mended(
        keys in vec((0..40_u32, any::<u64>(), any::<Index>()), 1..6),
        lost in vec(select(vec![Table::Notifications, Table::ActivityHeads, Table::Triggers]), 0..3),
    ) {
        let world = copy();
        for table in lost {
            entries_of(table).for_each(|(_, key, _)| tables::put(&world.store, table, key, None));
        }
        for (shift, bits, value) in keys {
            let (_, _, value) = value.get(entries());
            put_notification(&world, bits >> 24 >> shift, value);
        }
        let later: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let notifications = world.env.notifications();
        let _ = notifications.list(&NotificationQuery::default());
        let _ = world.env.events().trigger(&trigger("inbox", json!("ada")));
        let _ = (notifications.delete_before(later), notifications.rebuild_index());
        assert!(world.engine.repair().unwrap().is_finished);
        prop_assert_eq!(world.engine.check().unwrap().findings, []);
        world.env.events().trigger(&trigger("inbox", json!("ada"))).unwrap();
    }
}

/// A number may be any number.
#[test]
fn nothing_overflows() {
    let mut known = BTreeSet::new();
    for (table, key, value) in entries() {
        let Some(json) = decoded(value) else { continue };
        for place in numbers(&json).filter(|place| known.insert((*table, field(place)))) {
            for number in [json!(-1), json!(u32::MAX), json!(u64::MAX)] {
                let mut json = json.clone();
                *json.pointer_mut(&place).unwrap() = number;
                check_calm(*table, key, Some(&encoded(&json)));
            }
        }
    }
    assert!(known.contains(&(Table::Subscribers, "__v".into())), "{known:?}");
    assert!(known.contains(&(Table::Notifications, "attempts".into())), "{known:?}");
}

/// Checks that operations have an answer where `table` has `value` under `key`.
#[track_caller]
fn check_calm(table: Table, key: &[u8], value: Option<&[u8]>) {
    let world = Ruins::default();
    world.put(table, key, value);
    let is_indexed = is_activity(table) || table == Table::Notifications;
    let of_index =
        OF_ACTIVITY.iter().copied().filter(|request| is_indexed && is_of_the_index(request));
    for request in readers(table).chain(of_index) {
        let answer = catch_unwind(AssertUnwindSafe(|| world.ask(request)));
        let value = value.unwrap_or_default().escape_ascii();
        assert!(answer.is_ok(), "{request} panics where {} has `{value}`", table.name());
    }
}

/// What happens to a value on a bad disk.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Gone,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => (any::<Index>(), 0_u8..8).prop_map(|(place, bit)| Damage::Flip(place, bit)),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => Just(Damage::Gone),
    ]
}

impl Damage {
    fn to(self, value: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = value.to_vec();
        match self {
            Damage::Flip(place, bit) => bytes[place.index(value.len())] ^= 1 << bit,
            Damage::Cut(place) => bytes.truncate(place.index(value.len())),
            Damage::Gone => return None,
        }
        Some(bytes)
    }
}

/// The ways to the numbers in `json`.
fn numbers(json: &Value) -> impl Iterator<Item = String> {
    let children: Vec<(String, &Value)> = match json {
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
        }
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(name, child)| {
        let ways = numbers(child).map(move |way| format!("/{name}{way}"));
        ways.collect::<Vec<_>>()
    });
    json.is_number().then(String::new).into_iter().chain(below)
}

// The last name on the way that is not a position in a list.
fn field(way: &str) -> String {
    let mut names = way.split('/').filter(|name| name.parse::<usize>().is_err());
    names.next_back().unwrap_or_default().into()
}

fn encoded(json: &Value) -> Vec<u8> {
    encoding::encode(json, 0).unwrap()
}

/// What makes nothing of a value.
type Ruin = fn(&[u8]) -> Vec<u8>;

const RUINS: [Ruin; 6] = [
    |_| Vec::new(),
    |_| b"\x01{}".to_vec(),
    |value| value[..value.len() / 2].to_vec(),
    |value| value[..value.len() - 1].to_vec(),
    |value| [value, b"x"].concat(),
    // Another encoding, or another environment.
    |value| [&[value[0] + 1], &value[1..]].concat(),
];
