//! The activity list: its pages (operation 22).

use serde_json::{Value, json};
use tidings::ids::NotificationId;
use tidings::notification::{NotificationPage, NotificationQuery};

use super::happen;
use crate::world::{
    World, email, id, in_app, names, on_both, parsed, sms, unreadable, wire, with, workflow_of,
};

#[test]
fn the_newest_comes_first_with_its_subscriber_and_its_workflow() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let first = happen(&world, "hi", "ada", json!({}));
        let second = happen(&world, "hi", "bob", json!({}));

        // 22.1
        let page = list(&world, json!({}));

        let data = vec![world.notification(second), world.notification(first)];
        assert!(data.iter().all(|one| one.subscriber.is_some() && one.workflow.is_some()));
        assert_eq!(page, NotificationPage::new(data, false, 10, 0));
        let mut shown = wire(&page);
        shown["data"] = json!([]);
        assert_eq!(shown, json!({ "hasMore": false, "data": [], "pageSize": 10, "page": 0 }));
    });
}

/// One row per query: who is notified of what, newest first.
#[test]
fn every_condition_must_hold_and_of_its_values_one() {
    #[track_caller]
    fn check(world: &World, query: Value, expected: &[&str]) {
        let told = names(&list(world, query).data, |one| {
            let (subscriber, template) = (one.subscriber.as_ref(), one.workflow.as_ref());
            format!("{} {}", subscriber.unwrap().subscriber_id, template.unwrap().name)
        });
        assert_eq!(told, expected);
    }

    on_both(|world| {
        let (times, workflows) = history(&world);
        let check = |query: Value, expected: &[&str]| check(&world, query, expected);

        check(json!({}), &["ada both", "bob text", "ada text", "bob mail", "ada hi"]);

        // 22.2
        check(json!({ "channels": ["sms"] }), &["ada both", "bob text", "ada text"]);
        check(json!({ "channels": ["email"] }), &["ada both", "bob mail"]);
        check(json!({ "channels": ["email", "in_app"] }), &["ada both", "bob mail", "ada hi"]);
        check(json!({ "channels": ["push", "digest"] }), &[]);

        // 22.3
        check(json!({ "templates": ["text"] }), &["bob text", "ada text"]);
        check(json!({ "templates": [workflows[0], "mail"] }), &["bob mail", "ada hi"]);
        check(json!({ "templates": workflows[1] }), &["bob mail"]);
        check(json!({ "templates": ["mail", workflows[1], "mail"] }), &["bob mail"]);
        check(json!({ "templates": ["unknown"] }), &[]);
        check(json!({ "templates": ["unknown", "hi"] }), &["ada hi"]);

        // 22.4, 22.5, 22.8, 22.9
        let (ada, bob) = (json!(["ada@example.org"]), json!(["bob"]));
        check(json!({ "emails": ada }), &["ada both", "ada text", "ada hi"]);
        check(json!({ "subscriberIds": bob }), &["bob text", "bob mail"]);
        let everybody: &[&str] = &["ada both", "bob text", "ada text", "bob mail", "ada hi"];
        check(json!({ "emails": ada, "subscriberIds": bob }), everybody);
        check(json!({ "emails": ["Ada@example.org"] }), &[]);
        check(json!({ "emails": ["ada@example"] }), &[]);
        check(
            json!({ "subscriberIds": ["ada", "nobody", "ada"] }),
            &["ada both", "ada text", "ada hi"],
        );
        check(json!({ "subscriberIds": ["nobody"] }), &[]);
        check(json!({ "search": "EXAMPLE.ORG" }), &["ada both", "ada text", "ada hi"]);
        check(json!({ "search": "bob" }), &["bob text", "bob mail"]);
        check(json!({ "search": "bo" }), &[]);
        check(json!({ "search": "." }), &["ada both", "ada text", "ada hi"]);
        check(json!({ "search": "*" }), &[]);
        check(json!({ "search": "nobody", "subscriberIds": bob }), &["bob text", "bob mail"]);

        // 22.15
        check(json!({ "severity": ["high"] }), &["bob text", "ada text"]);
        check(json!({ "severity": ["none"] }), &["ada both", "bob mail", "ada hi"]);
        check(json!({ "severity": ["high", "none"] }), everybody);
        check(json!({ "severity": ["low"] }), &[]);

        check(json!({ "transactionId": "t-text" }), &["bob text", "ada text"]);
        check(json!({ "transactionId": "unknown" }), &[]);
        check(json!({ "topicKey": "orders" }), &[]);
        check(json!({ "subscriptionId": "s" }), &[]);

        // 22.7
        check(json!({ "contextKeys": ["tenant:alpha"] }), &["bob mail"]);
        check(json!({ "contextKeys": ["tenant:beta", "app:shop"] }), &["ada both"]);
        check(json!({ "contextKeys": ["app:shop", "tenant:beta", "app:shop"] }), &["ada both"]);
        check(json!({ "contextKeys": ["tenant:beta"] }), &[]);
        check(json!({ "contextKeys": [] }), &["bob text", "ada text", "ada hi"]);
        check(json!({ "contextKeys": [""] }), &["bob text", "ada text", "ada hi"]);

        // 22.12
        check(json!({ "after": times[3] }), &["ada both"]);
        check(json!({ "before": times[0] }), &["ada hi"]);
        let text = ["bob text", "ada text"];
        check(json!({ "after": times[2], "before": times[2] }), &text);
        check(
            json!({ "after": times[1], "before": times[2] }),
            &["bob text", "ada text", "bob mail"],
        );
        check(json!({ "after": "2030-01-01T00:00:00Z" }), &[]);
        check(json!({ "before": "2020-01-01T00:00:00Z" }), &[]);

        // 22.17
        check(json!({ "channels": ["sms"], "subscriberIds": bob }), &["bob text"]);
        check(json!({ "templates": ["text", "hi"], "emails": ada }), &["ada text", "ada hi"]);
        check(json!({ "transactionId": "t-text", "subscriberIds": bob }), &["bob text"]);
        check(json!({ "transactionId": "t-text", "templates": ["hi"] }), &[]);
        check(json!({ "severity": ["high"], "contextKeys": ["tenant:alpha"] }), &[]);
        check(
            json!({ "templates": ["both"], "subscriberIds": ["ada"], "after": times[3] }),
            &["ada both"],
        );
    });
}

#[test]
fn what_was_deleted_is_still_listed() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        let created = happen(&world, "hi", "ada", json!({}));
        world.env.workflows().delete("hi").unwrap();
        world.env.subscribers().delete(id("ada")).unwrap();

        // 22.6
        let page = list(&world, json!({}));
        assert_eq!(ids(&page), [created.to_string()]);
        assert_eq!((&page.data[0].workflow, &page.data[0].subscriber), (&None, &None));

        // The workflow is still known by its id; nobody else is known at all.
        let found = |query: Value| list(&world, query).data.len();
        assert_eq!(found(json!({ "templates": [workflow.id] })), 1);
        assert_eq!(found(json!({ "templates": ["hi"] })), 0);
        for nobody in [
            json!({ "subscriberIds": ["ada"] }),
            json!({ "emails": ["ada@example.org"] }),
            json!({ "search": "ada" }),
        ] {
            assert_eq!(found(nobody), 0);
        }
        // Those who take over a name do not take over its history.
        world.in_app_workflow("hi");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        assert_eq!(found(json!({ "templates": ["hi"] })), 0);
        assert_eq!(found(json!({ "subscriberIds": ["ada"] })), 0);
        assert_eq!(found(json!({ "emails": ["ada@example.org"] })), 0);
    });
}

#[test]
fn a_subscriber_is_found_by_the_address_of_today() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.subscriber(json!({ "subscriberId": "ada", "email": "old@example.org" }));
        happen(&world, "hi", "ada", json!({}));
        let update = |email: Value| {
            world.env.subscribers().update(id("ada"), &parsed(json!({ "email": email }))).unwrap()
        };
        let found = |email: &str| list(&world, json!({ "emails": [email] })).data.len();

        assert_eq!((found("old@example.org"), found("new@example.org")), (1, 0));
        update(json!("new@example.org"));
        assert_eq!((found("old@example.org"), found("new@example.org")), (0, 1));
        update(json!(null));
        assert_eq!((found("old@example.org"), found("new@example.org")), (0, 0));
    });
}

/// One row per page: how many are on it, and whether there is another one.
#[test]
fn the_list_is_handed_out_in_pages() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let made: Vec<_> = (0..11).map(|_| happen(&world, "hi", "ada", json!({}))).collect();
        let check = |query: Value, newest: std::ops::Range<usize>, has_more: bool| {
            let named = json!({ "subscriberIds": ["ada"] });
            for query in [query.clone(), with(query, named)] {
                let page = list(&world, query.clone());
                let expected = made.iter().rev().skip(newest.start).take(newest.len());
                assert_eq!(ids(&page), expected.map(ToString::to_string).collect::<Vec<_>>());
                assert_eq!(page.has_more, has_more, "{query}");
                let said = |field: &str, default: u64| {
                    query.get(field).map_or(default, |number| number.as_u64().unwrap())
                };
                assert_eq!(u64::try_from(page.page_size).unwrap(), said("limit", 10));
                assert_eq!(u64::from(page.page), said("page", 0));
            }
        };

        // 22.11
        check(json!({}), 0..10, true);
        check(json!({ "page": 1 }), 10..11, false);
        check(json!({ "page": 2 }), 11..11, false);
        // 22.10
        check(json!({ "limit": 11 }), 0..11, false);
        check(json!({ "limit": 50 }), 0..11, false);
        check(json!({ "limit": 1 }), 0..1, true);
        check(json!({ "limit": 1, "page": 9 }), 9..10, true);
        check(json!({ "limit": 1, "page": 10 }), 10..11, false);
        check(json!({ "limit": 4, "page": 1 }), 4..8, true);
        check(json!({ "limit": 4, "page": 2 }), 8..11, false);
        check(json!({ "limit": 50, "page": u32::MAX }), 11..11, false);
    });
}

#[test]
fn a_page_of_nobody_is_the_page_that_was_asked_for() {
    on_both(|world| {
        // 22.9
        let page = list(&world, json!({ "emails": ["nobody@example.org"], "page": 3, "limit": 5 }));

        let expected = NotificationPage::new(vec![], false, 5, 3);
        assert_eq!(page, expected);
    });
}

#[test]
fn equal_times_are_paged_in_a_fixed_order() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.in_app_workflow("ho");
        // All in one millisecond.
        let made: Vec<NotificationId> = (0..7)
            .map(|n| world.notify(["hi", "ho"][n % 2], ["ada", "bob", "cyd"][n % 3]))
            .collect();
        let newest_first: Vec<_> = made.iter().rev().map(ToString::to_string).collect();

        // 22.16
        for filtered in [
            json!({}),
            json!({ "subscriberIds": ["cyd", "ada", "bob"] }),
            json!({ "templates": ["ho", "hi"] }),
            json!({ "search": "nobody", "subscriberIds": ["bob", "ada", "cyd"] }),
            json!({ "search": "" }),
            json!({ "channels": ["in_app"] }),
        ] {
            let pages = (0..4).flat_map(|page| {
                ids(&list(&world, with(filtered.clone(), json!({ "limit": 2, "page": page }))))
            });
            assert_eq!(pages.collect::<Vec<_>>(), newest_first, "{filtered}");
        }
    });
}

#[test]
fn other_environments_are_not_listed() {
    on_both(|world| {
        let production = world.production();
        production.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
        let event = json!({
            "name": "hi",
            "to": { "subscriberId": "ada", "email": "ada@example.org" },
            "transactionId": "t",
        });
        production.events().trigger(&parsed(event.clone())).unwrap();
        let workflow = production.workflows().get("hi").unwrap();

        for query in [
            json!({}),
            json!({ "subscriberIds": ["ada"] }),
            json!({ "emails": ["ada@example.org"] }),
            json!({ "templates": [workflow.id, "hi"] }),
            json!({ "transactionId": "t" }),
        ] {
            assert_eq!(list(&world, query.clone()).data, [], "{query}");
            assert_eq!(production.notifications().list(&parsed(query)).unwrap().data.len(), 1);
        }
    });
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    on_both(|world| {
        let check = |query: Value, refusal: &str| {
            let query: NotificationQuery = parsed(query);
            world.refuses(refusal, || world.env.notifications().list(&query));
        };

        // 22.13
        let (noon, one) = ("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z");
        let reversed = json!({ "after": one, "before": noon });
        check(reversed, "422 `after` must not come after `before`");
        // 22.14
        check(json!({ "limit": 0 }), "422 `limit` must be between 1 and 50");
        check(json!({ "limit": 51 }), "422 `limit` must be between 1 and 50");
    });
    let check = |query: Value, text: &str| {
        assert_eq!(unreadable::<NotificationQuery>(query), text);
    };
    check(json!({ "page": -1 }), "invalid value: integer `-1`, expected u32");
    check(
        json!({ "after": "yesterday" }),
        "`timestamp` must be an ISO 8601 timestamp, such as `2026-11-20T12:00:00Z`",
    );
    check(json!({ "severity": ["huge"] }), "`severity` must be one of high, medium, low, none");
    check(json!({ "contextKeys": ["tenant"] }), "`contextKeys` must be `type:id`");
    check(json!({ "transactionId": "" }), "`transactionId` must not be empty");
    let kinds = unreadable::<NotificationQuery>(json!({ "channels": ["fax"] }));
    assert!(kinds.starts_with("`type` must be one of in_app, email, "), "{kinds}");
}

// Five events, a second apart each; the times of them, and the ids of their workflows.
fn history(world: &World) -> (Vec<Value>, Vec<String>) {
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    let high = json!({ "severity": "high" });
    let workflows = [
        world.in_app_workflow("hi"),
        world.workflow_of("mail", &[email()]),
        world.workflow(with(workflow_of("text", &[sms()]), high)),
        world.workflow_of("both", &[sms(), email()]),
    ];
    let created = [
        happen(world, "hi", "ada", json!({ "transactionId": "t-hi" })),
        happen(world, "mail", "bob", json!({ "context": { "tenant": "alpha" } })),
        happen(world, "text", "ada", json!({ "to": ["ada", "bob"], "transactionId": "t-text" })),
        happen(world, "both", "ada", json!({ "context": { "tenant": "beta", "app": "shop" } })),
    ];
    let times = created.map(|id| wire(world.notification(id).created_at));
    (times.into(), names(&workflows, |workflow| workflow.id))
}

fn list(world: &World, query: Value) -> NotificationPage {
    world.env.notifications().list(&parsed(query)).unwrap()
}

fn ids(page: &NotificationPage) -> Vec<String> {
    names(&page.data, |notification| notification.id)
}
