//! Any cursor in any list, and how keys sort.

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use domain::idempotency::StoredAnswer;
use domain::ids::{EnvironmentId, SubscriberId};
use domain::page::{Cursor, Direction, ListId, OrderBy};
use domain::time::Timestamp;
use domain::topic::Topic;
use serde_json::{Value, json};
use store::{Entries, Record, Table, layout};

use crate::parsed;
use crate::requests;
use crate::seeded;

/// A list, a place in it, and two records whose keys are compared.
#[derive(Clone, Debug, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Case {
    pub list: u8,
    pub order_by: u8,
    pub ascending: bool,
    pub limit: u8,
    pub place: Place,
    pub text: String,
    pub two: [Parts; 2],
}

/// A place in a list.
#[derive(Clone, Debug, Arbitrary)]
pub enum Place {
    /// The one of that item, where the list is sorted so.
    Item(u8),
    /// Some bytes behind the tag of an order.
    Bytes(u8, Vec<u8>),
}

/// Parts of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Parts {
    pub environment: u128,
    pub name: String,
    pub millis: i64,
    pub id: u128,
}

/// Looks at the list from the place, and compares the keys.
///
/// # Panics
///
/// If a cursor reads back as another one, what comes before a place and what comes after it are
/// not the list, or keys do not sort as what they are made of.
pub fn run(case: &Case) {
    check_cursor(&case.text);
    check_list(case);
    check_keys(&case.two);
}

fn check_cursor(text: &str) {
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert_eq!(cursor.to_string(), text.to_lowercase(), "a cursor is written otherwise");
        assert_eq!(cursor.to_string().parse::<Cursor>().ok(), Some(cursor));
    }
}

// The lists of the seeded world: a request, to which the page is added, and what they can be
// sorted by.
const TIMES: &[OrderBy] = &[OrderBy::Id, OrderBy::CreatedAt, OrderBy::UpdatedAt];
static LISTS: LazyLock<Vec<(Value, &[OrderBy])>> = LazyLock::new(|| {
    vec![
        (json!(["subscribers.list", {}]), &[OrderBy::Id]),
        (json!(["workflows.list", {}]), &[OrderBy::Id]),
        (json!(["messages.list", "ada", {}]), &[OrderBy::Id]),
        (json!(["contexts.list", {}]), TIMES),
        (json!(["contexts.list", { "type": "app" }]), TIMES),
        (json!(["channel_connections.list", {}]), TIMES),
        (json!(["channel_endpoints.list", {}]), TIMES),
        (json!(["channel_endpoints.list", { "subscriberId": "ada" }]), TIMES),
        (json!(["topics.list", {}]), OrderBy::ALL),
        (json!(["topics.list", { "name": "ne" }]), OrderBy::ALL),
        (json!(["topics.subscriptions", "prices", {}]), &[OrderBy::Id]),
        (json!(["topics.subscriptions", "prices", { "subscriberId": "ada" }]), &[OrderBy::Id]),
        (json!(["subscribers.subscriptions", "ada", {}]), &[OrderBy::Id]),
        (json!(["layouts.list", {}]), &[OrderBy::Id]),
        (json!(["translations.list", {}]), &[OrderBy::Id]),
    ]
});

fn check_list(case: &Case) {
    let (request, orders) = &LISTS[usize::from(case.list) % LISTS.len()];
    let order_by = orders[usize::from(case.order_by) % orders.len()];
    let direction = if case.ascending { Direction::Ascending } else { Direction::Descending };
    let order = json!({ "orderBy": order_by, "orderDirection": direction });
    let all = page(request, &[&order, &json!({ "limit": 100 })]).expect("the list is there");
    let Some(cursor) = cursor(case, request, &order, &all) else { return };
    let asked = |side: &str, limit: u8, includes: bool| {
        let place = json!({ side: cursor, "limit": limit, "includeCursor": includes });
        page(request, &[&order, &place])
    };
    let (Some(before), Some(after)) = (asked("before", 100, false), asked("after", 100, false))
    else {
        // The cursor is that of another order, or of none.
        return;
    };
    let (all, before, after) = (&all["data"], &before["data"], &after["data"]);
    let [all, before, after] = [all, before, after].map(|data| data.as_array().expect("a page"));
    let there = all.len() - before.len() - after.len();
    assert!(there <= 1, "{cursor} is the place of {there} items of {request}");
    assert!(all.starts_with(before) && all.ends_with(after), "{cursor} cuts {request} otherwise");

    for includes in [false, true] {
        let own = usize::from(includes) * there;
        let limit = case.limit % 4 + 1;
        let found = asked("after", limit, includes).expect("it was there before");
        let rest = &all[before.len() + there - own..];
        check_page(&found, rest, rest.len() < all.len(), usize::from(limit), false);
        let found = asked("before", limit, includes).expect("it was there before");
        let rest = &all[..before.len() + own];
        check_page(&found, rest, rest.len() < all.len(), usize::from(limit), true);
    }
}

// A page is the end of `rest` that is next to the cursor, and says whether the list goes on.
fn check_page(page: &Value, rest: &[Value], is_cut: bool, limit: usize, is_end: bool) {
    let size = rest.len().min(limit);
    let expected = if is_end { &rest[rest.len() - size..] } else { &rest[..size] };
    assert_eq!(page["data"], json!(expected));
    let (near, far) = if is_end { ("next", "previous") } else { ("previous", "next") };
    assert_eq!(page[far].is_string(), rest.len() > limit, "{far} of {page}");
    if size > 0 {
        assert_eq!(page[near].is_string(), is_cut, "{near} of {page}");
    }
}

fn cursor(case: &Case, request: &Value, order: &Value, all: &Value) -> Option<Value> {
    match &case.place {
        Place::Bytes(tag, bytes) => {
            let order_by = OrderBy::ALL[usize::from(*tag) % OrderBy::ALL.len()];
            let one = page(request, &[order, &json!({ "limit": 1 })])?;
            let list = serde_json::from_value::<Cursor>(one["next"].clone())
                .map_or(ListId::default(), |one| one.list());
            Some(json!(Cursor::at(list, order_by, bytes)))
        }
        Place::Item(item) => {
            let count = all["data"].as_array().map_or(0, Vec::len);
            // The cursor behind the last item is not shown, so that of a page up to it is.
            let limit = usize::from(*item).checked_rem(count)? + 1;
            let page = page(request, &[order, &json!({ "limit": limit })])?;
            page["next"].is_string().then(|| page["next"].clone())
        }
    }
}

// Returns the answer to a request with these additional fields. Returns `None` if the request is
// refused.
fn page(request: &Value, fields: &[&Value]) -> Option<Value> {
    let mut request = request.clone();
    if let Some(Value::Object(query)) = request.as_array_mut().and_then(|parts| parts.last_mut()) {
        for fields in fields {
            query.extend(fields.as_object().expect("fields").clone());
        }
    }
    let world = seeded::world();
    let answer = requests::call(&world.engine, &world.env, &request);
    answer.ok().map(|answer| answer.json())
}

fn check_keys([one, other]: &[Parts; 2]) {
    let order = |parts: fn(&Parts) -> Option<Vec<u8>>, expected: std::cmp::Ordering, what: &str| {
        if let (Some(key), Some(next)) = (parts(one), parts(other)) {
            assert_eq!(key.cmp(&next), expected, "{what} of {one:?} and {other:?}");
        }
    };
    let named = |parts: &Parts| (parts.environment, parts.name.clone());
    order(by_name, named(one).cmp(&named(other)), "subscribers");
    let owned = |parts: &Parts| (parts.environment, parts.id, parts.environment);
    order(|parts| Some(by_id(parts)), owned(one).cmp(&owned(other)), "subscriptions of a topic");
    let dated = |parts: &Parts| (parts.environment, parts.millis, parts.id);
    order(topic_by_time, dated(one).cmp(&dated(other)), "topics by time");
    let expires = |parts: &Parts| (parts.environment, parts.millis, parts.name.clone());
    order(answer_by_time, expires(one).cmp(&expires(other)), "answers by time");
}

fn by_name(parts: &Parts) -> Option<Vec<u8>> {
    let id = SubscriberId::new(parts.name.as_str()).ok()?;
    Some(layout::subscriber(environment(parts), &id).as_bytes().to_vec())
}

fn by_id(parts: &Parts) -> Vec<u8> {
    let (topic, id) = (parsed(uuid(parts.id)), parsed(uuid(parts.environment)));
    layout::subscription_id(environment(parts), topic, id).as_bytes().to_vec()
}

fn topic_by_time(parts: &Parts) -> Option<Vec<u8>> {
    let time = time(parts)?;
    let topic: Topic = parsed(json!({
        "_id": uuid(parts.id), "_organizationId": "acme", "_environmentId": uuid(parts.environment),
        "key": "topic", "createdAt": time, "updatedAt": time,
    }));
    let list = layout::topic_list(environment(parts), OrderBy::CreatedAt).range();
    entry(&topic, list.table(), list.bytes())
}

fn answer_by_time(parts: &Parts) -> Option<Vec<u8>> {
    let answer: StoredAnswer = serde_json::from_value(json!({
        "_environmentId": uuid(parts.environment), "key": parts.name, "call": "",
        "createdAt": time(parts)?, "done": null,
    }))
    .ok()?;
    let everything = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    entry(&answer, Table::ExpiringAnswers, &everything)
}

// The key of the first entry that a record has in an index within a range.
fn entry<R: Record>(record: &R, index: Table, range: &store::KeyRange) -> Option<Vec<u8>> {
    use std::ops::RangeBounds;
    let entries = Entries::of(record);
    let keys = entries.iter().map(|entry| &entry.key).filter(|key| key.table() == index);
    keys.map(|key| key.as_bytes().to_vec()).find(|key| range.contains(key))
}

fn environment(parts: &Parts) -> EnvironmentId {
    parsed(uuid(parts.environment))
}

// Only the times that can be written.
fn time(parts: &Parts) -> Option<Value> {
    let time = json!(Timestamp::from_millis(parts.millis));
    let read: Timestamp = serde_json::from_value(time.clone()).ok()?;
    (read.as_millis() == parts.millis).then_some(time)
}

fn uuid(number: u128) -> Value {
    let digits = format!("{number:032x}");
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| digits[group].to_owned());
    json!(groups.join("-"))
}
