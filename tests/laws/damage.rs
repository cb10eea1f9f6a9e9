//! Bytes read from disk are not trusted: what is damaged is called by its name, and nothing panics.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use fuzz::records::Ruins;
use fuzz::requests;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use store::Table;

use crate::cases;
use crate::seeded::entries;

/// What finds its way through the tables.
static REQUESTS: LazyLock<Vec<Value>> =
    LazyLock::new(|| [requests::sound().to_vec(), requests::stopped()].concat());

/// Damage that no value survives: an operation says which table it is in, or has not seen it.
#[test]
fn a_ruined_value_is_not_read_as_something_else() {
    let world = Ruins::default();
    let expected = answers(&world);
    for table in Table::ALL {
        for ruin in RUINS {
            let mut entries = entries_of(table);
            let ends = [entries.next(), entries.next_back()].into_iter().flatten();
            let complaints = ends.map(|(key, value)| {
                world.put(table, key, Some(&ruin(value)));
                let complaints = check_seen_or_refused(&world, table, &expected);
                world.put(table, key, Some(value));
                complaints
            });
            let is_found_out = complaints.sum::<usize>() > 0;
            let name = table.name();
            assert!(is_found_out, "nobody sees what is in {name}");
        }
    }
}

/// A record is not taken for another one, which may be in another scope.
#[test]
fn a_value_in_the_wrong_place_is_not_believed() {
    let world = Ruins::default();
    let expected = answers(&world);
    for table in Table::ALL {
        let entries: Vec<_> = entries_of(table).collect();
        let is_record = |value: &[u8]| decoded(value).is_some();
        let [(first, one), .., (last, other)] = entries.as_slice() else { continue };
        if is_record(one) {
            world.put(table, first, Some(other));
            world.put(table, last, Some(one));
            assert!(check_seen_or_refused(&world, table, &expected) > 0, "{}", table.name());
            world.put(table, first, Some(one));
            world.put(table, last, Some(other));
        }
    }
}

/// An entry that leads to a record which does not have it is not followed, for it may lead into
/// another scope.
#[test]
fn an_entry_that_leads_elsewhere_is_not_followed() {
    let world = Ruins::default();
    let expected = answers(&world);
    for table in [
        Table::EnvironmentIds,
        Table::ApiKeys,
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
    ] {
        let entries: Vec<_> = entries_of(table).collect();
        let [(first, one), .., (last, other)] = entries.as_slice() else {
            panic!("two entries in {}", table.name())
        };
        world.put(table, first, Some(other));
        world.put(table, last, Some(one));
        assert!(check_seen_or_refused(&world, table, &expected) > 0, "{}", table.name());
        world.put(table, first, Some(one));
        world.put(table, last, Some(other));
    }
}

/// Checks that each operation says what is expected, or that `table` is damaged, and counts those
/// that do the latter.
#[track_caller]
fn check_seen_or_refused(world: &Ruins, table: Table, expected: &[String]) -> usize {
    let complaint = format!("record in table `{}` is not readable", table.name());
    let answers = answers(world);
    for ((request, answer), expected) in REQUESTS.iter().zip(&answers).zip(expected) {
        let is_fine = answer == expected || *answer == complaint;
        let name = table.name();
        assert!(is_fine, "{request} with {name} damaged\n{expected}\nbecomes\n{answer}");
    }
    answers.iter().filter(|answer| **answer == complaint).count()
}

fn answers(world: &Ruins) -> Vec<String> {
    REQUESTS.iter().map(|request| world.ask(request)).collect()
}

proptest! {
    #![proptest_config(cases(96))]

    /// Damage that may leave something that makes sense, if not the same.
    #[test]
    fn nothing_panics(
        table in select(&Table::ALL[..]),
        which in any::<Index>(),
        damage in damage(),
    ) {
        let entries: Vec<_> = entries_of(table).collect();
        let (key, value) = entries[which.index(entries.len())];
        check_calm(table, key, damage.to(value).as_deref());
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
    for request in REQUESTS.iter() {
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

fn decoded(value: &[u8]) -> Option<Value> {
    value.strip_prefix(b"\x01").and_then(|json| serde_json::from_slice(json).ok())
}

fn encoded(json: &Value) -> Vec<u8> {
    [b"\x01".to_vec(), serde_json::to_vec(json).unwrap()].concat()
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

fn entries_of(table: Table) -> impl DoubleEndedIterator<Item = (&'static [u8], &'static [u8])> {
    let found = entries().iter().filter(move |(other, ..)| *other == table);
    found.map(|(_, key, value)| (key.as_slice(), value.as_slice()))
}
