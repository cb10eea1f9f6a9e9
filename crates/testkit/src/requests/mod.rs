//! Any JSON as the request of any operation, made in the seeded world.

use std::collections::BTreeMap;
use std::fmt;

use arbitrary::{Result as Made, Unstructured};
use domain::ids::{IdempotencyKey, MessageId};
use domain::integration::IntegrationDelete;
use domain::message::MarkAs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::Table;
use store::layout::{Derived, Role};
use store::memory::MemoryStore;
use tidings::{Engine, Error, Scope, SubscriberPreferences};

use crate::effort::Effort;
use crate::json;
use crate::seeded;
use crate::tables::value;
use crate::world::World;

mod ids;
mod sound;

pub use sound::{sound, stopped, writes, writing};

/// Reason for which a request was not done.
#[derive(Debug)]
pub enum Refusal {
    /// The JSON is no readable request.
    Unreadable(String),
    /// An operation refused the request.
    By(Error),
}

/// Result of a request.
pub type Answer = Result<Said, Refusal>;

/// What an operation has returned.
pub struct Said(Box<dyn Shown>);

trait Shown: Send + Sync {
    fn json(&self) -> Value;
    fn text(&self) -> String;
}

impl<T: Serialize + fmt::Debug + Send + Sync> Shown for T {
    fn json(&self) -> Value {
        serde_json::to_value(self).expect("an answer is JSON")
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

impl Said {
    /// Its JSON.
    pub fn json(&self) -> Value {
        self.0.json()
    }

    /// Its debug text.
    pub fn text(&self) -> String {
        self.0.text()
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The requests that `bytes` stand for: JSON texts, one after the other, or else sound requests in
/// which something was changed.
pub fn decode(bytes: &[u8]) -> Vec<Value> {
    if let Some(requests) = json::texts(bytes) {
        return requests;
    }
    let (mut from, mut requests) = (Unstructured::new(bytes), Vec::new());
    while !from.is_empty() && requests.len() < 8 {
        requests.extend(made(&mut from));
    }
    requests
}

fn made(from: &mut Unstructured<'_>) -> Made<Value> {
    let mut request = from.choose(sound())?.clone();
    for _ in 0..from.int_in_range(0..=3)? {
        json::change(&mut request, from)?;
    }
    if from.ratio(1, 4)? {
        let key = json!(from.choose(&["one", "two"])?);
        if let Value::Array(parts) = &mut request {
            parts.splice(0..0, [json!("idempotent"), key]);
        }
    }
    Ok(request)
}

/// Makes `requests` one after the other.
///
/// # Panics
///
/// If one that is refused changes the store, one that is done leaves indexes that do not agree
/// with the records, or one with an idempotency key happens twice.
pub fn run(requests: &[Value], effort: Effort) {
    let (world, store) = seeded::fork();
    let mut keys: BTreeMap<String, &Value> = BTreeMap::new();
    for request in requests {
        let (answer, changed) = compared(&world, &store, request);
        match &answer {
            Ok(answer) => {
                drop(answer.json());
                effort.check(&world.store);
            }
            Err(_) => assert!(
                changed.iter().copied().all(is_kept_answer),
                "{request} is refused, and leaves something behind: {answer:?}"
            ),
        }
        // An erasure removes the stored answers about the person.
        if [&request[0], &request[2]].contains(&&json!("subscribers.erase")) {
            keys.clear();
        }
        if happens_once(request) {
            let (again, then) = compared(&world, &store, request);
            assert_eq!(text(&again), text(&answer), "{request} is answered otherwise");
            assert!(then.iter().copied().all(is_upkeep), "{request} happens twice: {then:?}");
            effort.check(&world.store);
            check_key(&mut keys, request, (&answer, &changed));
        }
    }
    effort.check_at_the_end(&world.store, 64);
}

// A key belongs to the first operation whose outcome is kept under it. An id that is none is refused
// before the key is looked at.
fn check_key<'r>(
    keys: &mut BTreeMap<String, &'r Value>,
    request: &'r Value,
    (answer, changed): (&Answer, &[Table]),
) {
    let (key, operation) = (request[1].to_string(), &request[2]);
    if changed.contains(&Table::StoredAnswers) {
        keys.entry(key.clone()).or_insert(operation);
    }
    let is_of_another = keys.get(&key).is_some_and(|owner| *owner != operation);
    if is_of_another && operation.as_str().is_some_and(writes) {
        let refused = answer.is_err();
        assert!(refused, "{request} has the key of another call, and is answered with {answer:?}");
    }
}

// A delivery is no call of an environment, so it takes no key. An index is rebuilt by every call.
fn happens_once(request: &Value) -> bool {
    let is_of = |group: &str| request[2].as_str().is_some_and(|name| name.starts_with(group));
    request[0] == "idempotent" && !is_of("delivery.") && !is_of("notifications.rebuild_index")
}

// The answer, and the tables in which the call has changed something.
fn compared(world: &World, store: &MemoryStore, request: &Value) -> (Answer, Vec<Table>) {
    let before = store.fork();
    let (touched, answer) = world.store.touched_by(|| call(&world.engine, &world.env, request));
    let differs =
        |(table, key): &(Table, Vec<u8>)| value(&before, *table, key) != value(store, *table, key);
    (answer, touched.iter().filter(|row| differs(row)).map(|(table, _)| *table).collect())
}

// A call that has happened may still do the upkeep of the activity index.
fn is_upkeep(table: Table) -> bool {
    table.role() == Role::Derived(Derived::Activity)
}

// A refusal may be kept under the idempotency key of its call.
fn is_kept_answer(table: Table) -> bool {
    [Table::StoredAnswers, Table::ExpiringAnswers].contains(&table)
}

/// Text of an answer.
pub fn text(answer: &Answer) -> String {
    match answer {
        Ok(answer) => answer.text(),
        Err(Refusal::By(error)) => error.to_string(),
        Err(Refusal::Unreadable(why)) => why.clone(),
    }
}

/// Makes a request: an array of the name of an operation and its arguments, in front of which
/// may be `"idempotent"` and a key. A text such as `$integration 0` is the id of that one in the
/// seeded world.
pub fn call(engine: &Engine, env: &Scope, request: &Value) -> Answer {
    let mut request = request.clone();
    ids::put_ids(&mut request);
    let parts = request.as_array().map(Vec::as_slice).unwrap_or_default();
    let (env, parts) = match parts {
        [Value::String(once), key, parts @ ..] if once == "idempotent" => {
            let key: IdempotencyKey = Arguments(std::slice::from_ref(key)).get(0)?;
            (&env.idempotent(key).map_err(Refusal::By)?, parts)
        }
        parts => (env, parts),
    };
    let Some((Value::String(name), arguments)) = parts.split_first() else {
        return Err(Refusal::Unreadable("it has no name".into()));
    };
    let arguments = Arguments(arguments);
    let (group, operation) = name.split_once('.').unwrap_or((name, ""));
    match group {
        "channel_connections" | "channel_endpoints" | "integrations" => {
            channels(env, group, operation, &arguments)
        }
        "topics" => topics(env, operation, &arguments),
        "suppressions" => suppressions(env, operation, &arguments),
        "links" => links(env, operation, &arguments),
        "layouts" | "translations" => translations(env, group, operation, &arguments),
        "dead_letters" => dead_letters(env, operation, &arguments),
        "messages" | "notifications" | "events" => activity(env, group, operation, &arguments),
        "inbox" => of_inbox(env, operation, &arguments),
        "delivery" => match operation {
            "run_due" => {
                let report = engine.delivery().run_due(usize::from(arguments.get::<u8>(0)?));
                said(report.map(|report| format!("{report:?}")))
            }
            "next_due" => said(engine.delivery().next_due()),
            "quarantined" => {
                said(engine.delivery().quarantined(usize::from(arguments.get::<u8>(0)?)))
            }
            "requeue" => said(engine.delivery().requeue(arguments.get(0)?)),
            "discard" => said(engine.delivery().discard(arguments.get(0)?)),
            _ => unknown(),
        },
        "engine" => match operation {
            "authenticate" => {
                let opened = engine.authenticate(&arguments.get::<String>(0)?);
                said(opened.map(|scope| scope.environment_id()))
            }
            "environment" => {
                said(engine.environment(arguments.name(0)?).map(|scope| scope.environment_id()))
            }
            _ => unknown(),
        },
        _ => people(env, group, operation, &arguments),
    }
}

fn people(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    match (group, operation) {
        ("environments", "create") => said(env.environments().create(&given.get(0)?)),
        ("environments", "update") => {
            said(env.environments().update(given.name(0)?, &given.get(1)?))
        }
        ("environments", "list") => said(env.environments().list()),
        ("keys", "create") => said(env.keys().create(&given.get(0)?)),
        ("keys", "list") => said(env.keys().list()),
        ("keys", "revoke") => said(env.keys().revoke(given.name(0)?)),
        ("subscribers", "create") => said(env.subscribers().create(&given.get(0)?)),
        ("subscribers", "upsert") => said(env.subscribers().upsert(&given.get(0)?)),
        ("subscribers", "get") => said(env.subscribers().get(given.name(0)?)),
        ("subscribers", "list") => said(env.subscribers().list(&given.get(0)?)),
        ("subscribers", "update") => said(env.subscribers().update(given.name(0)?, &given.get(1)?)),
        ("subscribers", "delete") => said(env.subscribers().delete(given.name(0)?)),
        ("subscribers", "export") => said(env.subscribers().export(given.name(0)?)),
        ("subscribers", "erase") => said(env.subscribers().erase(given.name(0)?)),
        ("workflows", "create") => said(env.workflows().create(&given.get(0)?)),
        ("workflows", "get") => said(env.workflows().get(&given.get::<String>(0)?)),
        ("workflows", "list") => said(env.workflows().list(&given.get(0)?)),
        ("workflows", "update") => {
            said(env.workflows().update(&given.get::<String>(0)?, &given.get(1)?))
        }
        ("workflows", "upsert") => said(env.workflows().upsert(&given.get(0)?)),
        ("workflows", "sync") => said(env.workflows().sync_with(&given.get(0)?)),
        ("workflows", "pause") => said(env.workflows().pause(&given.get::<String>(0)?)),
        ("workflows", "resume") => said(env.workflows().resume(&given.get::<String>(0)?)),
        ("workflows", "delete") => said(env.workflows().delete(&given.get::<String>(0)?)),
        ("contexts", "create") => said(env.contexts().create(&given.get(0)?)),
        ("contexts", "get") => said(env.contexts().get(given.name(0)?)),
        ("contexts", "list") => said(env.contexts().list(&given.get(0)?)),
        ("contexts", "update") => said(env.contexts().update(given.name(0)?, &given.get(1)?)),
        ("contexts", "delete") => said(env.contexts().delete(given.name(0)?)),
        ("preferences", "get") => said(preferences(env, given)?.get(&given.get(1)?)),
        ("preferences", "update_bulk") => {
            said(preferences(env, given)?.update_bulk(&given.get(1)?))
        }
        ("preferences", "update_global") => {
            said(preferences(env, given)?.update_global(&given.get(1)?))
        }
        _ => unknown(),
    }
}

fn channels(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    let (integrations, connections) = (env.integrations(), env.channel_connections());
    let endpoints = env.channel_endpoints();
    match (group, operation) {
        ("integrations", "create") => said(integrations.create(&given.get(0)?)),
        ("integrations", "upsert") => said(integrations.upsert(&given.get(0)?)),
        ("integrations", "get") => said(integrations.get(given.name(0)?)),
        ("integrations", "list") => said(integrations.list()),
        ("integrations", "list_active") => said(integrations.list_active()),
        ("integrations", "update") => said(integrations.update(given.name(0)?, &given.get(1)?)),
        ("integrations", "set_primary") => said(integrations.set_primary(given.name(0)?)),
        ("integrations", "pause") => said(integrations.pause(given.name(0)?)),
        ("integrations", "ingest_receipt") => {
            said(integrations.ingest_receipt(given.name(0)?, &given.get(1)?))
        }
        ("integrations", "resume") => said(integrations.resume(given.name(0)?)),
        ("integrations", "delete") => {
            said(integrations.delete(given.name(0)?, &given.get::<IntegrationDelete>(1)?))
        }
        ("channel_connections", "create") => said(connections.create(&given.get(0)?)),
        ("channel_connections", "get") => said(connections.get(given.name(0)?)),
        ("channel_connections", "list") => said(connections.list(&given.get(0)?)),
        ("channel_connections", "update") => {
            said(connections.update(given.name(0)?, &given.get(1)?))
        }
        ("channel_connections", "delete") => said(connections.delete(given.name(0)?)),
        ("channel_endpoints", "create") => said(endpoints.create(&given.get(0)?)),
        ("channel_endpoints", "get") => said(endpoints.get(given.name(0)?)),
        ("channel_endpoints", "list") => said(endpoints.list(&given.get(0)?)),
        ("channel_endpoints", "update") => said(endpoints.update(given.name(0)?, &given.get(1)?)),
        ("channel_endpoints", "delete") => said(endpoints.delete(given.name(0)?)),
        _ => unknown(),
    }
}

fn topics(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let topics = env.topics();
    match operation {
        "create" => said(topics.create(&given.get(0)?)),
        "upsert" => said(topics.upsert(&given.get(0)?)),
        "get" => said(topics.get(given.name(0)?)),
        "list" => said(topics.list(&given.get(0)?)),
        "update" => said(topics.update(given.name(0)?, &given.get(1)?)),
        "delete" => said(topics.delete(given.name(0)?)),
        "subscribe" => said(topics.subscribe(given.name(0)?, &given.get(1)?)),
        "unsubscribe" => said(topics.unsubscribe(given.name(0)?, &given.get(1)?)),
        "subscription" => said(topics.find_subscription(given.name(0)?, given.name(1)?)),
        "subscriptions" => said(topics.subscriptions(given.name(0)?, &given.get(1)?)),
        "update_subscription" => {
            said(topics.update_subscription(given.name(0)?, given.name(1)?, &given.get(2)?))
        }
        _ => unknown(),
    }
}

fn suppressions(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let suppressions = env.suppressions();
    match operation {
        "add" => said(suppressions.add(&given.get(0)?)),
        "get" => said(suppressions.get(given.get(0)?, &given.get::<String>(1)?)),
        "list" => said(suppressions.list(&given.get(0)?)),
        "remove" => said(suppressions.remove(given.get(0)?, &given.get::<String>(1)?)),
        "clear" => said(suppressions.clear(given.get(0)?)),
        _ => unknown(),
    }
}

fn links(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    match operation {
        "url" => said(env.unsubscribe_url(&given.get(0)?)),
        "read" => said(env.read_unsubscribe(&given.get::<String>(0)?)),
        "unsubscribe" => said(env.unsubscribe(&given.get::<String>(0)?)),
        _ => unknown(),
    }
}

fn translations(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    let (layouts, translations) = (env.layouts(), env.translations());
    match (group, operation) {
        ("layouts", "upsert") => said(layouts.upsert(&given.get(0)?)),
        ("layouts", "get") => said(layouts.get(&given.get::<String>(0)?)),
        ("layouts", "list") => said(layouts.list(&given.get(0)?)),
        ("layouts", "delete") => said(layouts.delete(&given.get::<String>(0)?)),
        ("translations", "upsert") => said(translations.upsert(&given.get(0)?)),
        ("translations", "import") => said(translations.import(&given.get(0)?)),
        ("translations", "get") => said(translations.get(&given.get(0)?, given.name(1)?)),
        ("translations", "list") => said(translations.list(&given.get(0)?)),
        ("translations", "delete") => said(translations.delete(&given.get(0)?, given.name(1)?)),
        ("translations", "delete_group") => said(translations.delete_group(&given.get(0)?)),
        _ => unknown(),
    }
}

fn activity(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    match (group, operation) {
        ("events", "trigger") => said(env.events().trigger(&given.get(0)?)),
        ("events", "trigger_bulk") => said(env.events().trigger_bulk(&given.get::<Vec<_>>(0)?)),
        ("events", "broadcast") => said(env.events().broadcast(&given.get(0)?)),
        ("events", "cancel") => said(env.events().cancel(given.name(0)?)),
        ("events", "progress") => said(env.events().progress(given.name(0)?)),
        ("notifications", "get") => said(env.notifications().get(given.name(0)?)),
        ("notifications", "list") => said(env.notifications().list(&given.get(0)?)),
        ("notifications", "count") => said(env.notifications().count(&given.get(0)?)),
        ("notifications", "resend") => {
            said(env.notifications().resend(given.name(0)?, given.name(1)?))
        }
        ("notifications", "delete") => said(env.notifications().delete(given.name(0)?)),
        ("notifications", "delete_before") => {
            said(env.notifications().delete_before(given.get(0)?))
        }
        ("notifications", "rebuild_index") => said(env.notifications().rebuild_index()),
        ("notifications", "check_index") => {
            said(env.notifications().check_index().map(|check| format!("{check:?}")))
        }
        ("messages", "list") => said(env.messages().list(given.name(0)?, &given.get(1)?)),
        ("messages", "mark_as") => {
            let ids: Vec<MessageId> = given.get(1)?;
            said(env.messages().mark_as(given.name(0)?, &ids, given.get::<MarkAs>(2)?))
        }
        _ => unknown(),
    }
}

fn dead_letters(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let letters = env.dead_letters();
    match operation {
        "get" => said(letters.get(given.name(0)?)),
        "list" => said(letters.list(&given.get(0)?)),
        "count" => said(letters.count(&given.get(0)?)),
        "redrive" => said(letters.redrive(given.name(0)?)),
        "discard" => said(letters.discard(given.name(0)?)),
        "redrive_matching" => said(letters.redrive_matching(&given.get(0)?)),
        "discard_matching" => said(letters.discard_matching(&given.get(0)?)),
        _ => unknown(),
    }
}

fn of_inbox(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let inbox = env.inbox(given.name(0)?).map_err(Refusal::By)?;
    let ids = || given.get::<Vec<MessageId>>(1);
    match operation {
        "list" => said(inbox.list(&given.get(1)?)),
        "count" => said(inbox.count(&given.get(1)?)),
        "cursor" => said(inbox.cursor()),
        "changes_since" => said(inbox.changes_since(&given.get(1)?)),
        "counts" => said(inbox.counts()),
        "counts_of_tag" => said(inbox.counts_of_tag(&given.get::<String>(1)?)),
        "counts_of_severity" => said(inbox.counts_of_severity(given.get(1)?)),
        "mark_as" => said(inbox.mark_as(ids()?, given.get::<MarkAs>(2)?)),
        "mark_all" => said(inbox.mark_all(given.get(1)?)),
        "mark_matching" => said(inbox.mark_matching(&given.get(1)?, given.get(2)?)),
        "archive" => said(inbox.archive(ids()?)),
        "unarchive" => said(inbox.unarchive(ids()?)),
        "delete" => said(inbox.delete(ids()?)),
        "archive_matching" => said(inbox.archive_matching(&given.get(1)?)),
        "unarchive_matching" => said(inbox.unarchive_matching(&given.get(1)?)),
        "delete_matching" => said(inbox.delete_matching(&given.get(1)?)),
        "snooze" => said(inbox.snooze(ids()?, given.get(2)?)),
        "unsnooze" => said(inbox.unsnooze(ids()?)),
        "snooze_matching" => said(inbox.snooze_matching(&given.get(1)?, given.get(2)?)),
        "unsnooze_matching" => said(inbox.unsnooze_matching(&given.get(1)?)),
        "complete_action" => said(inbox.complete_action(given.name(1)?, &given.get(2)?)),
        "revert_action" => said(inbox.revert_action(given.name(1)?, given.get(2)?)),
        _ => unknown(),
    }
}

fn preferences<'s>(
    env: &'s Scope,
    given: &Arguments<'_>,
) -> Result<SubscriberPreferences<'s>, Refusal> {
    env.preferences(given.name(0)?).map_err(Refusal::By)
}

fn said<T: Shown + 'static>(answer: tidings::Result<T>) -> Answer {
    answer.map(|answer| Said(Box::new(answer))).map_err(Refusal::By)
}

fn unknown() -> Answer {
    Err(Refusal::Unreadable("there is no such operation".into()))
}

// Arguments of an operation.
struct Arguments<'r>(&'r [Value]);

impl Arguments<'_> {
    fn get<T: DeserializeOwned>(&self, at: usize) -> Result<T, Refusal> {
        let given = self.0.get(at).cloned().unwrap_or_default();
        serde_json::from_value(given).map_err(|error| Refusal::Unreadable(error.to_string()))
    }

    // An id, which the operation checks itself.
    fn name(&self, at: usize) -> Result<String, Refusal> {
        self.get(at)
    }
}
