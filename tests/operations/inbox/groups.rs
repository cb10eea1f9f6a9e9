//! Queries of an inbox by groups of tags, by the payload of the event, and by the time of creation.

use serde_json::{Value, json};
use tidings::ids::MessageId;
use tidings::message::{MarkAs, MessageQuery};
use tidings::page::{PageQuery, Total};

use crate::world::{World, in_app, on_both, pages, parsed, with, workflow_of};

// Messages of two workflows, oldest first. The time of each is one second behind that of the one before.
fn with_orders(world: &World) -> Vec<MessageId> {
    for (name, tags) in
        [("orders", json!(["orders", "shop"])), ("urgent", json!(["orders", "now"]))]
    {
        world.workflow(with(workflow_of(name, &[in_app()]), json!({ "tags": tags })));
    }
    let events = [
        ("orders", json!({ "order": { "status": "open" }, "n": 1 })),
        ("urgent", json!({ "order": { "status": "paid" }, "n": 1.0 })),
        ("orders", json!({ "order": { "status": ["paid", "sent"] }, "n": null })),
        ("urgent", json!({ "order": "paid" })),
    ];
    let made = events.into_iter().map(|(name, payload)| {
        world.clock.set(world.now().after(std::time::Duration::from_secs(1)));
        world.trigger(json!({ "name": name, "to": "ada", "payload": payload }));
        world.inbox("ada")[0].id
    });
    made.collect()
}

fn and(groups: &[&[&str]]) -> Value {
    json!({ "and": groups.iter().map(|or| json!({ "or": or })).collect::<Vec<_>>() })
}

/// One row per query: the messages that it selects, oldest first.
#[test]
fn an_inbox_is_listed_counted_and_marked_by_groups() {
    on_both(|world| {
        let ids = with_orders(&world);
        let inbox = world.env.inbox("ada").unwrap();
        let second = inbox.list(&MessageQuery::default()).unwrap().data[2].created_at;
        for (query, expected) in [
            (json!({ "tags": and(&[&["orders"], &["now", "later"]]) }), vec![1, 3]),
            (json!({ "tags": and(&[&["orders"], &["now", "shop"]]) }), vec![0, 1, 2, 3]),
            (json!({ "tags": and(&[&["now"], &["shop"]]) }), vec![]),
            (json!({ "data": { "order.status": "paid" } }), vec![1, 2]),
            (json!({ "data": { "order.status": ["open", "sent"] } }), vec![0, 2]),
            (json!({ "data": { "order.status": and(&[&["paid"], &["sent"]]) } }), vec![2]),
            (json!({ "data": { "n": 1 } }), vec![0, 1]),
            (json!({ "data": { "n": null } }), vec![2]),
            (json!({ "data": { "n": 1, "order.status": "paid" }, "tags": "now" }), vec![1]),
            (json!({ "createdGte": second }), vec![1, 2, 3]),
            (json!({ "createdLte": second }), vec![0, 1]),
            (json!({ "createdGte": second, "createdLte": second }), vec![1]),
        ] {
            let selected: Vec<_> = expected.iter().rev().map(|at| ids[*at]).collect();
            let asked: MessageQuery = parsed(query.clone());
            for limit in [1, 100] {
                let walked = pages(&PageQuery::default().limit(limit), |page| {
                    inbox.list(&asked.clone().page(page)).unwrap()
                });
                let walked: Vec<_> = walked.concat().iter().map(|found| found.id).collect();
                assert_eq!(walked, selected, "{query}");
            }
            assert_eq!(inbox.count(&asked).unwrap(), Total::Exactly(selected.len()), "{query}");
            assert_eq!(inbox.mark_matching(&asked, MarkAs::Read).unwrap(), selected.len() as u64);
            let read = inbox.list(&MessageQuery::default().read()).unwrap().data;
            let read: Vec<_> = read.iter().map(|found| found.id).collect();
            assert_eq!(read, selected, "{query}");
            inbox.mark_all(MarkAs::Unseen).unwrap();
        }
    });
}
