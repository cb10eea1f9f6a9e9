//! Queries of lists that make no sense.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidings::Result;
use tidings::connection::ChannelConnectionQuery;
use tidings::context::ContextQuery;
use tidings::endpoint::ChannelEndpointQuery;
use tidings::page::Page;
use tidings::topic::TopicQuery;

use super::{TIMES, connections, endpoints};
use crate::world::{World, on_both, parsed, unreadable};

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    on_both(|world| {
        connections(&world);
        check(&world, TIMES, |query| world.env.channel_connections().list(&parsed(query)));
        check(&world, TIMES, |query| world.env.contexts().list(&parsed(query)));
        for key in ["a", "b", "c"] {
            world.env.topics().create(&parsed(json!({ "key": key }))).unwrap();
        }
        let orders = ["_id", "key", "createdAt", "updatedAt"];
        check(&world, &orders, |query| world.env.topics().list(&parsed(query)));
    });
    on_both(|world| {
        endpoints(&world);
        check(&world, TIMES, |query| world.env.channel_endpoints().list(&parsed(query)));
    });
}

fn check<T: Debug + Serialize>(
    world: &World,
    orders: &[&str],
    list: impl Fn(Value) -> Result<Page<T>>,
) {
    for limit in [0, 101, u32::MAX] {
        let refusal = "422 `limit` must be between 1 and 100";
        world.refuses(refusal, || list(json!({ "limit": limit })));
    }
    let cursor = |order_by: &str| {
        let page = list(json!({ "limit": 1, "orderBy": order_by })).unwrap();
        page.next.unwrap()
    };
    for order_by in orders {
        let own = cursor(order_by);
        for included in [false, true] {
            let both = json!({
                "after": own, "before": own, "orderBy": order_by, "includeCursor": included,
            });
            let refusal = "422 `before` must not be given together with `after`";
            world.refuses(refusal, || list(both));
        }
        for other in orders.iter().filter(|other| *other != order_by) {
            for side in ["after", "before"] {
                let foreign = json!({ side: cursor(other), "orderBy": order_by });
                let refusal = format!("422 `{side}` must be a cursor of this list");
                world.refuses(&refusal, || list(foreign));
            }
        }
    }
    // The one that goes without saying is an order like any other.
    let other = json!({ "after": cursor(orders[1]) });
    world.refuses("422 `after` must be a cursor of this list", || list(other));
    if !orders.contains(&"key") {
        let refusal = format!("422 `orderBy` must be one of {}", orders.join(", "));
        world.refuses(&refusal, || list(json!({ "orderBy": "key" })));
    }
}

#[test]
fn a_query_that_cannot_be_read_is_refused() {
    check_page::<ChannelConnectionQuery>();
    check_page::<ChannelEndpointQuery>();
    check_page::<ContextQuery>();
    check_page::<TopicQuery>();

    let part = "must be 1 to 100 letters, digits, `_` and `-`";
    let channel = "`channel` must be one of in_app, email, sms, chat, push";
    for (query, text) in [
        (json!({ "channel": "fax" }), channel.to_owned()),
        (json!({ "subscriberId": "" }), "`subscriberId` must not be empty".into()),
        (json!({ "contextKeys": ["tenant"] }), "`contextKeys` must be `type:id`".into()),
        (json!({ "contextKeys": ["a.b:c"] }), format!("`contextKeys` {part}")),
    ] {
        assert_eq!(unreadable::<ChannelConnectionQuery>(query.clone()), text);
        assert_eq!(unreadable::<ChannelEndpointQuery>(query), text);
    }
    let text = unreadable::<ChannelConnectionQuery>(json!({ "providerId": "pigeons" }));
    assert!(text.starts_with("`providerId` must be one of emailjs, "), "{text}");
    for query in [json!({ "type": "a b" }), json!({ "id": "a:b" }), json!({ "id": "" })] {
        let text = unreadable::<ContextQuery>(query);
        assert!(text.ends_with(part), "{text}");
    }
}

#[track_caller]
fn check_page<Q: Debug + DeserializeOwned>() {
    let good = format!("00{}", "0".repeat(8 + 32));
    parsed::<Q>(json!({ "after": good }));
    let cursors = ["", "0", "00", "zz", &good[1..], &good[2..], &format!("{good}00"), "ü"];
    let unknown = good.replacen("00", "04", 1);
    for cursor in cursors.into_iter().chain([unknown.as_str()]) {
        for side in ["after", "before"] {
            let text = unreadable::<Q>(json!({ side: cursor }));
            assert_eq!(text, format!("`{side}` must be a cursor of this list"), "{cursor}");
        }
    }
    for (query, text) in [
        (json!({ "orderBy": "name" }), "`orderBy` must be one of _id, createdAt, updatedAt, key"),
        (json!({ "orderDirection": "asc" }), "`orderDirection` must be one of ASC, DESC"),
        (json!({ "limit": "many" }), "`limit` must be a whole number"),
        (json!({ "limit": -1 }), "`limit` must be a whole number"),
        (json!({ "includeCursor": "maybe" }), "`includeCursor` must be `true` or `false`"),
    ] {
        assert_eq!(unreadable::<Q>(query), text);
    }
}
