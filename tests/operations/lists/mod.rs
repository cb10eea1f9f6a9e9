//! Lists with cursors: channel connections (5), topics (11), channel endpoints and contexts, page
//! by page beside a model that sorts everything in memory.

mod refusing;
mod topics;
mod totals;

use std::fmt::Debug;

use serde_json::{Value, json};
use tidings::connection::ChannelConnection;
use tidings::context::Context;
use tidings::endpoint::ChannelEndpoint;
use tidings::page::{Cursor, Page, Total};
use tidings::time::Timestamp;

use crate::world::{START, World, on_both, parsed, time, wire, with};

/// The fields that lists of dated records are sorted by, the one that is meant if nothing is said
/// first.
const TIMES: &[&str] = &["createdAt", "updatedAt", "_id"];

/// When the records of a list are made, and then those changed that are: in milliseconds, several
/// of them the same, on a clock that goes back.
const MADE_AT: [i64; 10] = [0, 0, 5, 5, 2, 2, 9, 1, 0, 5];
const CHANGED_AT: [(usize, i64); 4] = [(7, 3), (2, 3), (5, -4), (0, 9)];

#[test]
fn connections_are_paged_as_they_are_sorted() {
    on_both(|world| {
        let mut made = connections(&world);
        let list = |query: Value| world.env.channel_connections().list(&parsed(query)).unwrap();
        let lines = lines(&made, TIMES, &list);

        check_pages(&list, &lines, &json!({}), |_| true);
        for (query, matches) in channel_filters() {
            check_pages(&list, &lines, &query, |one| matches(&wire(one)));
        }

        // Cursors hold when their items are gone.
        let gone: Vec<_> = made.drain(..).step_by(2).collect();
        for one in &gone {
            world.env.channel_connections().delete(&one.identifier).unwrap();
        }
        check_pages(&list, &lines, &json!({}), |one| !gone.contains(one));
    });
}

#[test]
fn endpoints_are_paged_as_they_are_sorted() {
    on_both(|world| {
        let made = endpoints(&world);
        let list = |query: Value| world.env.channel_endpoints().list(&parsed(query)).unwrap();
        let lines = lines(&made, TIMES, &list);

        check_pages(&list, &lines, &json!({}), |_| true);
        for (query, matches) in channel_filters() {
            check_pages(&list, &lines, &query, |one| matches(&wire(one)));
        }
        for identifier in ["c0", "c1", "nowhere"] {
            let query = json!({ "connectionIdentifier": identifier });
            check_pages(&list, &lines, &query, |one| {
                wire(one)["connectionIdentifier"] == identifier
            });
        }
        let query = json!({ "connectionIdentifier": "c0", "subscriberId": "ada" });
        check_pages(&list, &lines, &query, |one| {
            let one = wire(one);
            one["connectionIdentifier"] == "c0" && one["subscriberId"] == "ada"
        });

        let gone: Vec<_> = made.iter().skip(1).step_by(2).collect();
        for one in &gone {
            world.env.channel_endpoints().delete(&one.identifier).unwrap();
        }
        check_pages(&list, &lines, &json!({}), |one| !gone.contains(&one));
    });
}

#[test]
fn contexts_are_paged_as_they_are_sorted() {
    on_both(|world| {
        let mut made: Vec<Context> = Vec::new();
        for (n, at) in MADE_AT.into_iter().enumerate() {
            set(&world, at);
            let kind = ["tenant", "app", "tenan"][n % 3];
            let create = json!({ "type": kind, "id": format!("x{}", n % 4) });
            made.push(world.env.contexts().create(&parsed(create)).unwrap());
        }
        for (n, at) in CHANGED_AT {
            set(&world, at);
            let update = parsed(json!({ "data": { "at": at } }));
            made[n] = world.env.contexts().update(&made[n].key, &update).unwrap();
        }
        let other = parsed(json!({ "type": "tenant", "id": "x0" }));
        world.production().contexts().create(&other).unwrap();
        let list = |query: Value| world.env.contexts().list(&parsed(query)).unwrap();
        let lines = lines(&made, TIMES, &list);

        for query in [
            json!({}),
            json!({ "type": "tenant" }),
            json!({ "type": "tena" }),
            json!({ "id": "x0" }),
            json!({ "id": "x" }),
            json!({ "type": "app", "id": "x1" }),
        ] {
            check_pages(&list, &lines, &query, |one| {
                let one = wire(one);
                query.as_object().unwrap().iter().all(|(field, value)| one[field] == *value)
            });
        }

        let gone: Vec<_> = made.iter().step_by(3).collect();
        for one in &gone {
            world.env.contexts().delete(&one.key).unwrap();
        }
        check_pages(&list, &lines, &json!({ "type": "tenant" }), |one| {
            one.key.kind() == "tenant" && !gone.contains(&one)
        });
    });
}

#[test]
fn many_integrations_make_one_list() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let names: Vec<_> = (0..23).map(|n| format!("slack-{n}")).collect();
        for name in &names {
            world.active_integration("chat", name);
        }
        let mut made = Vec::new();
        for (n, name) in names.iter().chain(&names).enumerate() {
            // Three points in time, and not in this order.
            set(&world, [1, 0, 2][n % 3]);
            let create = connection(name, json!({ "context": { "n": n.to_string() } }));
            made.push(world.env.channel_connections().create(&parsed(create)).unwrap());
        }
        let list = |query: Value| world.env.channel_connections().list(&parsed(query)).unwrap();
        for line in &lines(&made, &TIMES[..1], &list) {
            check_limit(&list, line, &json!({ "limit": 7 }), |_| true);
        }
        // All of them are counted, wherever the page is.
        assert_eq!(list(json!({ "limit": 1 })).total, Total::Exactly(46));
    });
}

#[test]
fn a_page_has_ten_items_newest_first_unless_something_is_said() {
    on_both(|world| {
        for n in 0..12 {
            let create = json!({ "type": "tenant", "id": format!("t{n}") });
            world.env.contexts().create(&parsed(create)).unwrap();
        }
        let list = |query: Value| world.env.contexts().list(&parsed(query)).unwrap();

        let ids = |page: &Page<Context>| -> Vec<String> {
            page.data.iter().map(|one| one.key.id().to_owned()).collect()
        };
        let first = list(json!({}));
        let newest: Vec<_> = (2..12).rev().map(|n| format!("t{n}")).collect();
        assert_eq!((ids(&first), &first.previous), (newest, &None));
        assert_eq!(first.total, Total::Exactly(12));
        // As a query string says it.
        let second = list(json!({ "after": first.next, "limit": "100", "includeCursor": "true" }));
        assert_eq!(
            (ids(&second), &second.next),
            (vec!["t2".into(), "t1".into(), "t0".into()], &None)
        );
        // 5.9
        assert_eq!(list(json!({ "before": list(json!({ "after": first.next })).previous })), first);
    });
}

/// A list in one order and direction: its items as the model sorts them, with their cursors.
struct Line<T> {
    query: Value,
    items: Vec<(T, Cursor)>,
}

/// The list of `made` in every order and direction.
fn lines<T: Clone + serde::Serialize + Debug + PartialEq>(
    made: &[T],
    orders: &[&str],
    list: &impl Fn(Value) -> Page<T>,
) -> Vec<Line<T>> {
    let mut lines = Vec::new();
    for (place, order_by) in orders.iter().enumerate() {
        for direction in ["ASC", "DESC"] {
            // The first order, and the direction DESC, go without saying.
            let mut query = json!({});
            if place > 0 {
                query["orderBy"] = json!(order_by);
            }
            if direction == "ASC" {
                query["orderDirection"] = json!(direction);
            }
            let mut sorted = made.to_vec();
            sorted.sort_by_key(|one| {
                let one = wire(one);
                // Times and ids are as long as one another, so that they sort as their texts.
                [&one[order_by], &one["_id"]].map(|part| part.as_str().unwrap().to_owned())
            });
            if direction == "DESC" {
                sorted.reverse();
            }
            let cursors = cursors(&query, list);
            assert_eq!(cursors.len(), sorted.len());
            lines.push(Line { query, items: sorted.into_iter().zip(cursors).collect() });
        }
    }
    lines
}

// The cursor of every item: what leads on from the pages that have one item each, and back from
// the last of them.
fn cursors<T>(query: &Value, list: &impl Fn(Value) -> Page<T>) -> Vec<Cursor> {
    let ask = |fields: Value| list(with(with(query.clone(), json!({ "limit": 1 })), fields));
    let mut page = ask(json!({}));
    let mut cursors = Vec::new();
    while let Some(next) = page.next {
        page = ask(json!({ "after": next }));
        cursors.push(next);
    }
    cursors.extend(page.previous);
    cursors
}

/// Compares the pages at every cursor, and those at the start, with the model of a list of those
/// items that `matches` lets through.
#[track_caller]
fn check_pages<T: Clone + Debug + PartialEq>(
    list: &impl Fn(Value) -> Page<T>,
    lines: &[Line<T>],
    filter: &Value,
    matches: impl Fn(&T) -> bool,
) {
    // Every size of a page once, and then one that most lists have several pages of.
    let limits: &[u32] = if filter == &json!({}) { &[1, 3, 100] } else { &[2] };
    for line in lines {
        for limit in limits {
            check_limit(list, line, &with(filter.clone(), json!({ "limit": limit })), &matches);
        }
    }
}

#[track_caller]
fn check_limit<T: Clone + Debug + PartialEq>(
    list: &impl Fn(Value) -> Page<T>,
    line: &Line<T>,
    filter: &Value,
    matches: impl Fn(&T) -> bool,
) {
    let whole: Vec<usize> =
        (0..line.items.len()).filter(|at| matches(&line.items[*at].0)).collect();
    let limit = usize::try_from(filter["limit"].as_u64().unwrap()).unwrap();
    let check = |fields: Value, places: &[usize]| {
        let query = with(with(line.query.clone(), filter.clone()), fields);
        let cursor = |at: &&usize| line.items[**at].1.clone();
        let data = places.iter().map(|at| line.items[*at].0.clone()).collect();
        let next = places.last().filter(|at| whole.last() != Some(at)).as_ref().map(cursor);
        let previous = places.first().filter(|at| whole.first() != Some(at)).as_ref().map(cursor);
        let expected = Page::new(data, (previous, next), Total::Exactly(whole.len()));
        assert_eq!(list(query.clone()), expected, "{query}");
    };

    check(json!({}), &whole[..limit.min(whole.len())]);
    for (at, (_, cursor)) in line.items.iter().enumerate() {
        for included in [false, true] {
            let behind: Vec<_> =
                whole.iter().copied().filter(|one| *one > at || included && *one == at).collect();
            let after = json!({ "after": cursor, "includeCursor": included });
            check(after, &behind[..limit.min(behind.len())]);

            let front: Vec<_> =
                whole.iter().copied().filter(|one| *one < at || included && *one == at).collect();
            let before = json!({ "before": cursor, "includeCursor": included });
            check(before, &front[front.len().saturating_sub(limit)..]);
        }
    }
}

type Shows = Box<dyn Fn(&Value) -> bool>;

// Filters of connections and endpoints, and whether they let an item through as it is on the wire.
fn channel_filters() -> Vec<(Value, Shows)> {
    fn is(field: &'static str, value: Value) -> Shows {
        Box::new(move |one| one[field] == value)
    }
    let (none, two) = (json!([]), json!(["app:x", "tenant:a"]));
    vec![
        (json!({ "subscriberId": "ada" }), is("subscriberId", json!("ada"))),
        (json!({ "channel": "chat" }), is("channel", json!("chat"))),
        (json!({ "providerId": "msteams" }), is("providerId", json!("msteams"))),
        (json!({ "integrationIdentifier": "own" }), is("integrationIdentifier", json!("own"))),
        (json!({ "contextKeys": [] }), is("contextKeys", none)),
        (json!({ "contextKeys": ["tenant:a", "app:x"] }), is("contextKeys", two)),
        (
            json!({ "channel": "chat", "subscriberId": "bob", "contextKeys": ["tenant:a"] }),
            Box::new(|one| {
                one["channel"] == "chat"
                    && one["subscriberId"] == "bob"
                    && one["contextKeys"] == json!(["tenant:a"])
            }),
        ),
        (json!({ "subscriberId": "nobody" }), Box::new(|_| false)),
    ]
}

// Integrations and subscribers, and connections of many owners.
fn connections(world: &World) -> Vec<ChannelConnection> {
    let integrations = prepare(world);
    let mut made = Vec::new();
    for (n, at) in MADE_AT.into_iter().enumerate() {
        set(world, at);
        // Nobody's are for a context at least.
        let context = if n % 3 == 2 { &CONTEXTS[1..] } else { &CONTEXTS[..] };
        let mut owner = json!({ "identifier": format!("c{n}") });
        if n % 3 < 2 {
            owner["subscriberId"] = json!(["ada", "bob"][n % 3]);
        }
        if let Some(context) = context[n / 3 % context.len()] {
            owner["context"] = serde_json::from_str(context).unwrap();
        }
        let create = connection(integrations[n % 4], owner);
        made.push(world.env.channel_connections().create(&parsed(create)).unwrap());
    }
    for (n, at) in CHANGED_AT {
        set(world, at);
        let update = parsed(json!({ "workspace": { "id": format!("W{at}") } }));
        made[n] = world.env.channel_connections().update(&made[n].identifier, &update).unwrap();
    }
    made
}

fn endpoints(world: &World) -> Vec<ChannelEndpoint> {
    let integrations = prepare(world);
    for (n, name) in integrations.into_iter().enumerate() {
        let create =
            connection(name, json!({ "identifier": format!("c{n}"), "subscriberId": "ada" }));
        world.env.channel_connections().create(&parsed(create)).unwrap();
    }
    let mut made = Vec::new();
    for (n, at) in MADE_AT.into_iter().enumerate() {
        set(world, at);
        let subscriber = ["ada", "bob"][n % 2];
        let mut create = json!({
            "subscriberId": subscriber,
            "integrationIdentifier": integrations[n % 4],
            "type": "slack_user",
            "endpoint": { "userId": "U1" },
        });
        if n % 3 > 0 {
            create["connectionIdentifier"] = json!(format!("c{}", n % 4));
        }
        if let Some(context) = CONTEXTS[n / 2 % CONTEXTS.len()] {
            create["context"] = serde_json::from_str(context).unwrap();
        }
        made.push(world.env.channel_endpoints().create(&parsed(create)).unwrap());
    }
    for (n, at) in CHANGED_AT {
        set(world, at);
        let update = parsed(json!({ "endpoint": { "userId": format!("U{at}") } }));
        made[n] = world.env.channel_endpoints().update(&made[n].identifier, &update).unwrap();
    }
    made
}

const CONTEXTS: [Option<&str>; 3] =
    [None, Some(r#"{ "tenant": "a" }"#), Some(r#"{ "tenant": "a", "app": "x" }"#)];

fn prepare(world: &World) -> [&'static str; 4] {
    world.bare_subscriber("ada");
    world.bare_subscriber("bob");
    let integrations = ["slack", "msteams", "fcm", "own"];
    for (name, channel) in integrations.into_iter().zip(["chat", "chat", "push", "chat"]) {
        world.active_integration(channel, name);
    }
    integrations
}

fn connection(integration: &str, fields: Value) -> Value {
    let connection = json!({
        "integrationIdentifier": integration,
        "workspace": { "id": "W1" },
        "auth": { "accessToken": "token" },
    });
    with(connection, fields)
}

// Moves the clock to so many milliseconds behind the start.
fn set(world: &World, millis: i64) {
    world.clock.set(Timestamp::from_millis(time(START).as_millis() + millis));
}
