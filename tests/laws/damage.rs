//! Bytes read from disk are not trusted: what is damaged is called by its name, and nothing panics.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fuzz::facade::{Shared, text};
use fuzz::tables::load;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use store::memory::MemoryStore;
use store::{Decision, Store, Table};
use tidings::domain::environment::Environment;
use tidings::domain::integration::IntegrationDelete;
use tidings::domain::message::{MarkAs, MessageQuery};
use tidings::domain::preference::{Criticality, PreferencesQuery};
use tidings::domain::subscriber::SubscriberQuery;
use tidings::domain::workflow::WorkflowQuery;
use tidings::{Clock, Engine, ManualClock, Outbox, Scope, SeededEntropy};

use crate::faulty::ForgetfulStore;
use crate::seeded::{self, ada, email_integration, entries, inbox, inbox_of, trigger};
use crate::{cases, parsed};

/// Something that finds its way through the tables, and what it says.
type Operation = fn(&Engine, &Scope) -> String;

const OPERATIONS: [Operation; 33] = [
    |engine, env| text(engine.environment(env.environment_id()).map(drop)),
    |engine, env| {
        let own = |environments: Vec<Environment>| {
            let mut keys = environments.iter().flat_map(|environment| &environment.api_keys);
            let key = keys.next().map(|api_key| api_key.key.expose()).unwrap_or_default();
            engine.authenticate(&format!("ApiKey {key}")).map(drop)
        };
        text(env.environments().list().and_then(own))
    },
    |engine, _| {
        let acme = engine.organization("acme".try_into().unwrap());
        text(acme.environments().create(parsed(json!({ "name": "New", "color": "fff" }))))
    },
    |_, env| text(env.environments().list()),
    |_, env| text(env.subscribers().get(&ada())),
    |_, env| text(env.subscribers().list(&SubscriberQuery::default())),
    |_, env| text(env.subscribers().upsert(parsed(json!({ "subscriberId": "ada", "phone": "1" })))),
    |_, env| text(env.subscribers().update(&ada(), parsed(json!({ "email": null })))),
    |_, env| text(env.subscribers().delete(&ada())),
    |_, env| text(env.workflows().get("both")),
    |_, env| text(env.workflows().list(&WorkflowQuery::default())),
    |_, env| {
        let create = json!({ "workflowId": "new", "name": "New", "steps": [inbox()] });
        text(env.workflows().create(parsed(create)))
    },
    |_, env| text(env.workflows().update("both", parsed(json!({ "steps": [inbox()] })))),
    |_, env| text(env.workflows().delete("both")),
    |_, env| text(env.integrations().list()),
    |_, env| {
        let create = json!({ "providerId": "new", "channel": "email", "active": true });
        text(env.integrations().create(parsed(create)))
    },
    |_, env| text(email_integration(env, 1).and_then(|id| env.integrations().set_primary(id))),
    |_, env| {
        let delete = IntegrationDelete { promote: true };
        text(email_integration(env, 0).and_then(|id| env.integrations().delete(id, delete)))
    },
    |_, env| text(env.contexts().get(&"tenant:acme".parse().unwrap())),
    |_, env| {
        let context_keys = parsed(json!(["tenant:acme"]));
        let query = PreferencesQuery { criticality: Criticality::All, context_keys };
        text(env.preferences(&ada()).get(&query))
    },
    |_, env| {
        let word = json!({ "workflowId": "both", "channels": { "email": false } });
        text(env.preferences(&ada()).update_bulk(&parsed(json!({ "preferences": [word] }))))
    },
    |_, env| text(env.preferences(&ada()).update_global(&parsed(json!({ "enabled": false })))),
    |_, env| text(env.events().trigger(&trigger("both", json!(["ada", "new"])))),
    |_, env| {
        let mut again = trigger("both", json!("ada"));
        again.transaction_id = Some(parsed(json!("third")));
        text(env.events().trigger(&again))
    },
    |_, env| list(env, json!({})),
    |_, env| list(env, json!({ "subscriberIds": ["ada"] })),
    |_, env| list(env, json!({ "emails": ["ada@example.org"] })),
    |_, env| list(env, json!({ "templates": ["both", "all"] })),
    |_, env| list(env, json!({ "transactionId": "third" })),
    |_, env| text(env.messages().list(&ada(), &MessageQuery::default())),
    |_, env| text(env.inbox(&ada()).counts()),
    |_, env| {
        let mark = |ids: Vec<_>| env.messages().mark_as(&ada(), &ids, MarkAs::Read);
        text(inbox_of(env).and_then(mark))
    },
    |engine, _| text(engine.delivery().run_due(8)),
];

/// Nobody follows these entries to their record.
const NOT_FOLLOWED: [Table; 3] =
    [Table::IntegrationIdentifiers, Table::UnseenMessages, Table::UnreadMessages];

/// Damage that no value survives: an operation says which table it is in, or has not seen it.
#[test]
fn a_ruined_value_is_not_read_as_something_else() {
    let world = Ruins::new();
    let expected = OPERATIONS.map(|operation| world.ask(operation));
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
            assert_eq!(is_found_out, !NOT_FOLLOWED.contains(&table), "something in {name}");
        }
    }
}

/// A record is not taken for another one, which may be in another scope.
#[test]
fn a_value_in_the_wrong_place_is_not_believed() {
    let world = Ruins::new();
    let expected = OPERATIONS.map(|operation| world.ask(operation));
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
    let world = Ruins::new();
    let expected = OPERATIONS.map(|operation| world.ask(operation));
    for table in [
        Table::EnvironmentIds,
        Table::ApiKeys,
        Table::SubscriberIds,
        Table::SubscriberEmails,
        Table::WorkflowIdentifiers,
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
    let answers = OPERATIONS.map(|operation| world.ask(operation));
    for (answer, expected) in answers.iter().zip(expected) {
        let is_fine = answer == expected || *answer == complaint;
        assert!(is_fine, "with {} damaged\n{expected}\nbecomes\n{answer}", table.name());
    }
    answers.iter().filter(|answer| **answer == complaint).count()
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
    let world = Ruins::new();
    world.put(table, key, value);
    for operation in OPERATIONS {
        let answer = catch_unwind(AssertUnwindSafe(|| world.ask(operation)));
        let value = value.unwrap_or_default().escape_ascii();
        assert!(answer.is_ok(), "panics where {} has `{value}`", table.name());
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

fn list(env: &Scope, query: Value) -> String {
    text(env.notifications().list(&parsed(query)))
}

/// The seeded world over a store that can be damaged, and that no operation changes.
struct Ruins(MemoryStore);

impl Ruins {
    fn new() -> Self {
        let store = MemoryStore::default();
        load(&store, entries());
        Self(store)
    }

    fn put(&self, table: Table, key: &[u8], value: Option<&[u8]>) {
        let written = self.0.write(&mut |transaction| {
            match value {
                Some(value) => transaction.put(table, key, value)?,
                None => transaction.delete(table, key)?,
            }
            Ok(Decision::Commit)
        });
        written.unwrap();
    }

    /// What `operation` says in an engine of its own.
    fn ask(&self, operation: Operation) -> String {
        // So late that everything is due.
        let now = seeded::world().clock.now().after(Duration::from_secs(1_000));
        let engine = Engine::builder()
            .clock(ManualClock::at(now))
            .entropy(SeededEntropy::new(1))
            .default_provider(Outbox::default())
            .build(Shared::new(ForgetfulStore(self.0.clone())));
        match engine.environment(seeded::world().env.environment_id()) {
            Ok(env) => operation(&engine, &env),
            Err(error) => error.to_string(),
        }
    }
}
