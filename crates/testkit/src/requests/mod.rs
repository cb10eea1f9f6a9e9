//! Any JSON as the request of any operation, made in the seeded world.

use std::collections::BTreeMap;
use std::fmt;

use arbitrary::{Result as Made, Unstructured};
use domain::ids::IdempotencyKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::Table;
use store::layout::{Derived, Role};
use store::memory::MemoryStore;
use tidings::{Engine, Error, Scope};

use crate::effort::Effort;
use crate::json;
use crate::seeded;
use crate::tables::value;
use crate::world::World;

mod call;
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
    call::dispatch(engine, env, name, &Arguments(arguments))
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
