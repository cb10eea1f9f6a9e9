//! Listing subscribers.

use serde_json::{Value, json};
use tidings::page::{Cursor, ListId, OrderBy, Page, PageQuery, Total};
use tidings::store::memory::MemoryStore;
use tidings::subscriber::{Subscriber, SubscriberQuery};
use tidings::time::Timestamp;
use tidings::{Engine, ManualClock};

use crate::world::{names, on_both, pages, parsed};

#[test]
fn a_list_is_walked_page_by_page() {
    on_both(|world| {
        let mut made = ["e", "d", "c", "b", "a"].map(|name| world.bare_subscriber(name));
        let page = PageQuery::default().limit(2);

        let pages = pages(&page, |page| {
            let query = SubscriberQuery::default().page(page);
            world.env.subscribers().list(&query).unwrap()
        });

        made.reverse();
        assert_eq!(pages, [&made[..2], &made[2..4], &made[4..]]);
    });
}

/// One row per query: who is listed, newest first.
#[test]
fn every_condition_of_a_list_must_hold() {
    on_both(|world| {
        for create in [
            json!({ "subscriberId": "ada", "email": "a@x.org", "phone": "1", "firstName": "Ada",
                "lastName": "King" }),
            json!({ "subscriberId": "bob", "email": "b@x.org", "phone": "1", "lastName": "Kingsley" }),
            json!({ "subscriberId": "cyd", "email": "a@x.org", "firstName": "King.*" }),
            json!({ "subscriberId": "dan" }),
        ] {
            world.subscriber(create);
        }
        let there = parsed(json!({ "subscriberId": "eve", "email": "a@x.org" }));
        world.production().subscribers().create(&there).unwrap();
        let check = |query: Value, expected: &[&str]| {
            let page = world.env.subscribers().list(&parsed(query)).unwrap();
            assert_eq!(names(&page.data, |one| one.subscriber_id.clone()), expected);
            let total = Total::Exactly(expected.len());
            assert_eq!((page.total, page.next, page.previous), (total, None, None));
        };

        check(json!({}), &["dan", "cyd", "bob", "ada"]);
        check(json!({ "orderDirection": "ASC" }), &["ada", "bob", "cyd", "dan"]);
        check(json!({ "email": "a@x.org" }), &["cyd", "ada"]);
        check(json!({ "email": "A@x.org" }), &[]);
        check(json!({ "email": "a@x" }), &[]);
        check(json!({ "phone": "1" }), &["bob", "ada"]);
        check(json!({ "name": "king" }), &["cyd", "bob", "ada"]);
        check(json!({ "name": "ada k" }), &["ada"]);
        check(json!({ "name": ".*" }), &["cyd"]);
        check(json!({ "name": "king", "phone": "1", "email": "b@x.org" }), &["bob"]);
        check(json!({ "email": "a@x.org", "phone": "2" }), &[]);
    });
}

/// No record has such a text. The id behind a text in a key may begin as the text goes on.
#[test]
fn a_text_with_nul_finds_nothing() {
    let engine = Engine::builder()
        .clock(ManualClock::at(Timestamp::from_millis(0)))
        .build(MemoryStore::default());
    let env = engine.organization("acme").unwrap().development().unwrap();
    let ada = parsed(json!({ "subscriberId": "ada", "email": "a@x.org", "phone": "1" }));
    env.subscribers().create(&ada).unwrap();
    for (query, expected) in [
        (json!({ "phone": "1", "email": "a@x.org" }), 1),
        (json!({ "phone": "1\0" }), 0),
        (json!({ "phone": "1\0\0" }), 0),
        (json!({ "email": "a@x.org\0" }), 0),
    ] {
        let page = env.subscribers().list(&parsed(query.clone())).unwrap();
        assert_eq!(page.data.len(), expected, "{query}");
    }
}

/// So many have a name that they are not counted.
#[test]
fn a_common_name_has_a_capped_total() {
    let env = Engine::in_memory().organization("acme").unwrap().development().unwrap();
    let create = |number: usize, name: &str| {
        let create = json!({ "subscriberId": format!("s{number}"), "firstName": name });
        env.subscribers().create(&parsed(create)).unwrap();
    };
    (0..Total::CAP).for_each(|number| create(number, "Ada"));
    let list = |query: Value| env.subscribers().list(&parsed(query)).unwrap();
    assert_eq!(list(json!({ "name": "AD" })).total, Total::Exactly(Total::CAP));

    create(Total::CAP, "Bob");
    create(Total::CAP + 1, "Ada");

    let first = list(json!({ "name": "AD", "limit": 2 }));
    let ids = |page: &Page<Subscriber>| names(&page.data, |one| one.subscriber_id.clone());
    assert_eq!((ids(&first), first.total), (vec!["s50001".into(), "s49999".into()], Total::Capped));
    let next = list(json!({ "name": "AD", "limit": 2, "after": first.next }));
    assert_eq!((ids(&next), next.total), (vec!["s49998".into(), "s49997".into()], Total::Capped));
    assert_eq!(list(json!({ "name": "AD", "limit": 2, "before": next.previous })).data, first.data);
    assert_eq!(list(json!({ "name": "bob" })).total, Total::Exactly(1));
}

#[test]
fn a_cursor_holds_after_its_item_is_gone() {
    on_both(|world| {
        for name in ["a", "b", "c", "d"] {
            world.bare_subscriber(name);
        }
        let list = |query: Value| world.env.subscribers().list(&parsed(query)).unwrap();
        let first = list(json!({ "limit": 2 }));
        world.env.subscribers().delete(&first.data[1].subscriber_id).unwrap();

        let after = list(json!({ "limit": 2, "after": first.next }));
        let included = list(json!({ "limit": 2, "after": after.previous, "includeCursor": true }));

        let listed = |page: &Page<Subscriber>| names(&page.data, |one| one.subscriber_id.clone());
        assert_eq!(listed(&after), ["b", "a"]);
        assert_eq!(included.data, after.data);
    });
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let check = |query: Value, refusal: &str| {
            let query: SubscriberQuery = parsed(query);
            world.refuses(refusal, || world.env.subscribers().list(&query));
        };

        let cursor = Cursor::at(ListId::default(), OrderBy::Id, &[0; 16]);
        check(json!({ "limit": 0 }), "422 `limit` must be between 1 and 100");
        check(json!({ "limit": 101 }), "422 `limit` must be between 1 and 100");
        check(
            json!({ "after": cursor, "before": cursor }),
            "422 `before` must not be given together with `after`",
        );
        let cursor = Cursor::at(ListId::default(), OrderBy::Key, b"a\0");
        check(json!({ "before": cursor }), "422 `before` must be a cursor of this list");
    });
}
