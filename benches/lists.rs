//! What a page costs when lists are long: 200,000 channel connections and 200,000 topics, pages of
//! 100 with their totals, on both backends. Names come in no order.
//!
//! ```text
//! cargo bench --bench lists
//! ```

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::connection::{ChannelConnection, ChannelConnectionCreate};
use domain::context::ContextSet;
use domain::environment::Home;
use domain::ids::ConnectionIdentifier;
use domain::integration::Integration;
use domain::page::{Page, Total};
use domain::time::Timestamp;
use domain::topic::{Topic, TopicCreate};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use store::memory::MemoryStore;
use store::redb::RedbStore;
use store::{Record, Store, WriteRecords};
use tidings::{Engine, Scope};
use uuid::Uuid;

const RECORDS: u64 = 200_000;
const INTEGRATIONS: u64 = 10;
const TENANTS: u64 = 20;
const RUNS: usize = 11;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = RedbStore::open(folder.path().join("bench.redb")).unwrap();
    let backends = [world(MemoryStore::default()), world(file)];
    println!("{:<52} {:>8} {:>12} {:>12}", "page of 100", "total", "memory", "redb");
    for (name, filter) in connection_filters() {
        compare(name, &backends, |env, page| {
            let list = env.channel_connections().list(&query(&filter, page)).unwrap();
            around(list)
        });
    }
    for (name, filter) in topic_filters() {
        compare(name, &backends, |env, page| {
            around(env.topics().list(&query(&filter, page)).unwrap())
        });
    }
}

fn connection_filters() -> Vec<(&'static str, Value)> {
    vec![
        ("connections", json!({})),
        (
            "connections by update, oldest first",
            json!({ "orderBy": "updatedAt", "orderDirection": "ASC" }),
        ),
        ("connections on a channel (half)", json!({ "channel": "chat" })),
        ("connections of a provider (half)", json!({ "providerId": "slack" })),
        ("connections of an integration (a tenth)", json!({ "integrationIdentifier": "i3" })),
        ("connections of a subscriber (1)", json!({ "subscriberId": "s4711" })),
        ("connections without a context (half)", json!({ "contextKeys": [] })),
        ("connections for a context (a fortieth)", json!({ "contextKeys": ["tenant:t7"] })),
        (
            "connections of an integration for a context",
            json!({ "integrationIdentifier": "i3", "contextKeys": ["tenant:t7"] }),
        ),
        (
            "connections by all filters (none)",
            json!({
                "channel": "chat", "providerId": "slack", "integrationIdentifier": "i3",
                "contextKeys": [], "subscriberId": "s4711",
            }),
        ),
    ]
}

fn topic_filters() -> Vec<(&'static str, Value)> {
    vec![
        ("topics", json!({})),
        ("topics by key", json!({ "orderBy": "key" })),
        ("topics with a text in their key (all)", json!({ "key": "ORDER" })),
        ("topics with a text in their key (1)", json!({ "key": "order:123456" })),
        ("topics with a text in their name (a thousandth)", json!({ "name": "number 77" })),
        ("topics with a text in their key and name (none)", json!({ "key": "x", "name": "y" })),
    ]
}

// The cursor of the next page, and the total.
type Around = (Option<Value>, String);

fn around<T>(page: Page<T>) -> Around {
    let total = match page.total {
        Total::Exactly(total) => total.to_string(),
        Total::AtLeast(count) => format!(">= {count}"),
        Total::Capped => format!("> {}", Total::CAP),
    };
    let next = page.next.map(|cursor| cursor.to_string().into());
    black_box(page.data);
    (next, total)
}

fn query<T: DeserializeOwned>(filter: &Value, page: &Value) -> T {
    let mut query = filter.clone();
    query["limit"] = json!(100);
    if let (Some(query), Some(page)) = (query.as_object_mut(), page.as_object()) {
        query.extend(page.clone());
    }
    from_value(query).unwrap()
}

// Prints what the first page costs, and one in the middle of a long list.
fn compare(name: &str, backends: &[Scope; 2], list: impl Fn(&Scope, &Value) -> Around) {
    let first = json!({});
    let (next, total) = list(&backends[0], &first);
    report(name, &total, backends, |env| list(env, &first));
    if next.is_none() || !total.starts_with('>') {
        return;
    }
    let middle = json!({ "after": walk(&backends[0], &list) });
    report("  the same in the middle", &total, backends, |env| list(env, &middle));
}

// A cursor in the middle of the list, as far as pages are walked.
fn walk(env: &Scope, list: &impl Fn(&Scope, &Value) -> Around) -> Value {
    let mut after = json!({});
    for _ in 0..500 {
        let (Some(next), _) = list(env, &after) else { break };
        after = json!({ "after": next });
    }
    after["after"].clone()
}

fn report(name: &str, total: &str, backends: &[Scope; 2], list: impl Fn(&Scope) -> Around) {
    let [memory, redb] = [0, 1].map(|backend| median(|| list(&backends[backend])));
    println!("{name:<52} {total:>8} {memory:>12} {redb:>12}", memory = ms(memory), redb = ms(redb));
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn median<T>(mut run: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

// An environment with long lists. They are written past the facade, many to a transaction.
fn world(store: impl Store) -> Scope {
    let store = Arc::new(store);
    let engine = Engine::builder().build(Arc::clone(&store));
    let env = engine.organization("bench").unwrap().development().unwrap();
    let home =
        Home { organization_id: "bench".try_into().unwrap(), environment_id: env.environment_id() };
    let integrations: Vec<Integration> = (0..INTEGRATIONS).map(|n| integration(&env, n)).collect();
    fill(&store, |n| {
        let integration = &integrations[usize::try_from(n % INTEGRATIONS).unwrap()];
        connection(&home, integration, n)
    });
    fill(&store, |n| {
        let order = shuffled(n);
        let create = TopicCreate::new(format!("order:{order}")).unwrap();
        let create = create.name(format!("Order Number {order}"));
        Topic::new(id(n).into(), &home, create, created_at(n))
    });
    env
}

// Of every two integrations one is for chat, and the other for push.
fn integration(env: &Scope, n: u64) -> Integration {
    let (channel, provider) = if n.is_multiple_of(2) { ("chat", "slack") } else { ("push", "fcm") };
    let identifier = format!("i{n}");
    let create = json!({ "channel": channel, "providerId": provider, "identifier": identifier });
    env.integrations().create(&from_value(create).unwrap()).unwrap()
}

// Every second one is for a context, so that there are some of each on every integration.
fn connection(home: &Home, integration: &Integration, n: u64) -> ChannelConnection {
    let name = shuffled(n);
    let create: ChannelConnectionCreate = from_value(json!({
        "subscriberId": format!("s{name}"),
        "integrationIdentifier": integration.identifier,
        "workspace": { "id": format!("T{n}"), "name": "A workspace" },
        "auth": { "accessToken": format!("xoxb-{n}") },
    }))
    .unwrap();
    let tenant = n / 2 / INTEGRATIONS % TENANTS;
    let tenant =
        (n / INTEGRATIONS).is_multiple_of(2).then(|| format!("tenant:t{tenant}").parse().unwrap());
    let contexts: ContextSet = tenant.into_iter().collect();
    let identifier = ConnectionIdentifier::new(format!("chconn_{name}")).unwrap();
    let ids = (id(n).into(), identifier);
    ChannelConnection::new(ids, home, create, integration, contexts, created_at(n))
}

fn fill<R: Record>(store: &dyn Store, record: impl Fn(u64) -> R) {
    for start in (0..RECORDS).step_by(5_000) {
        store::write::<_, store::Error>(store, |txn| {
            (start..start + 5_000).try_for_each(|n| txn.insert(&record(n)))
        })
        .unwrap();
    }
}

// Each number once, in no order. The factor is a prime.
const fn shuffled(n: u64) -> u64 {
    n * 104_729 % RECORDS
}

fn id(n: u64) -> Uuid {
    Uuid::from_u128(u128::from(n) << 80 | 7 << 76)
}

fn created_at(n: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + i64::try_from(n).unwrap())
}
