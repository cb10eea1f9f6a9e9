//! Calls that a failing store interrupts, and calls that take several transactions.

use serde_json::json;
use store::Table;
use tidings::subscription::Subscribe;
use tidings::topic::TopicCreate;
use tidings::translation::TranslationImport;
use tidings::trigger::Trigger;

use crate::cascades::on_both;
use crate::topics::key;
use crate::world::{World, in_app, parsed, wire, workflow_of};

#[test]
fn a_call_that_the_store_failed_was_not_made() {
    on_both(|world| {
        let once = world.env.idempotent("k").unwrap();
        let create: TopicCreate = parsed(json!({ "key": "news" }));

        let error = world.interrupted(0, || once.topics().create(&create)).unwrap_err();

        assert_eq!(error.status(), 500);
        assert_eq!(world.rows(Table::StoredAnswers), 0);
        let topic = once.topics().create(&create).unwrap();
        assert_eq!(world.env.topics().get(key("news")).unwrap(), topic);
    });
}

#[test]
fn a_refusal_that_could_not_be_kept_is_no_answer() {
    on_both(|world| {
        let once = world.env.idempotent("k").unwrap();
        let delete = || once.topics().delete(key("news"));

        // The call itself goes through, and keeping what came of it does not.
        let error = world.interrupted(1, delete).unwrap_err();

        assert_eq!(error.status(), 500);
        assert_eq!(world.rows(Table::StoredAnswers), 0);
        world.env.topics().create(&parsed(json!({ "key": "news" }))).unwrap();
        delete().unwrap();
    });
}

#[test]
fn a_deletion_in_several_transactions_happens_once() {
    on_both(|world| {
        let once = world.env.idempotent("k").unwrap();
        let crowd = || crowd(&world, 2_001);
        let delete = || once.topics().delete(key("crowd"));
        crowd();

        // What was begun keeps its key, and goes on.
        for _ in 0..2 {
            let error = world.interrupted(1, delete).unwrap_err();
            assert_eq!((error.status(), world.rows(Table::StoredAnswers)), (500, 1));
        }
        assert_eq!(once.topics().delete(key("other")).unwrap_err().status(), 409);
        delete().unwrap();

        assert_eq!(world.rows(Table::StoredAnswers), 1);
        let before = world.dump_without(&[]);
        delete().unwrap();
        assert!(world.dump_without(&[]) == before, "it is done once more");
        assert_eq!(world.env.topics().delete(key("crowd")).unwrap_err().status(), 404);
        // What has come since stays.
        world.env.topics().create(&parsed(json!({ "key": "crowd" }))).unwrap();
        delete().unwrap();
        world.env.topics().get(key("crowd")).unwrap();
    });
}

/// One row per state of the name after another call has deleted the record: a repeated deletion is over.
#[test]
fn a_deletion_that_was_interrupted_deletes_no_later_record_of_the_name() {
    for is_made_again in [false, true] {
        on_both(|world| {
            let topics = world.env.topics();
            let once = world.env.idempotent("k").unwrap();
            let delete = || once.topics().delete(key("crowd"));
            crowd(&world, 501);
            assert_eq!(world.interrupted(1, delete).unwrap_err().status(), 500);
            topics.delete(key("crowd")).unwrap();
            if is_made_again {
                topics.create(&parsed(json!({ "key": "crowd" }))).unwrap();
            }

            delete().unwrap();

            assert_eq!(topics.get(key("crowd")).is_ok(), is_made_again);
            assert_eq!(world.rows(Table::StoredAnswers), 1);
        });
    }
}

#[test]
fn an_import_that_is_interrupted_is_made_as_a_whole() {
    on_both(|world| {
        for name in ["a", "b", "d", "e"] {
            world.env.workflows().create(&parsed(workflow_of(name, &[in_app()]))).unwrap();
        }
        let texts = json!({ "t": "T" });
        let master =
            json!({ "workflows": { "a": texts, "b": texts, "c": texts, "d": texts, "e": 1 } });
        let import: TranslationImport = parsed(json!({ "locale": "de", "masterJson": master }));
        let once = world.env.idempotent("k").unwrap();
        let call = || once.translations().import(&import);
        let imported = || {
            let list = world.env.translations().list(&parsed(json!({ "orderDirection": "ASC" })));
            let imported = list.unwrap().data.into_iter().map(|one| one.resource.resource_id);
            imported.collect::<Vec<_>>().join(" ")
        };

        // Each resource is a transaction, so what was imported stays imported.
        let error = world.interrupted(2, call).unwrap_err();
        assert_eq!(
            (error.status(), imported(), world.rows(Table::StoredAnswers)),
            (500, "a b".into(), 1)
        );
        let answer = call().unwrap();

        assert_eq!(
            wire(&answer),
            json!({
                "success": true,
                "message": "partial import: 3 resource(s) imported, 2 failed",
                "successful": ["a", "b", "d"],
                "failed": ["c", "e"],
                "errors": [
                    {
                        "resourceId": "c", "resourceType": "workflow",
                        "message": "workflow `c` is not there",
                    },
                    {
                        "resourceId": "e", "resourceType": "workflow",
                        "message": "`content` must be a JSON object",
                    },
                ],
            })
        );
        assert_eq!(imported(), "a b d");
        // What was not there then is not imported by the same call.
        world.env.workflows().create(&parsed(workflow_of("c", &[in_app()]))).unwrap();
        let before = world.dump_without(&[]);
        assert_eq!(call().unwrap(), answer);
        assert!(world.dump_without(&[]) == before, "it is imported once more");
    });
}

// Makes a topic with so many subscriptions.
fn crowd(world: &World, count: usize) {
    let env = &world.env;
    env.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
    let everybody: Vec<_> = (0..=count / 10).map(|n| format!("s{n}")).collect();
    for some in everybody.chunks(100) {
        let trigger: Trigger = parsed(json!({ "name": "hi", "to": some }));
        env.events().trigger(&trigger).unwrap();
    }
    let item =
        |n: usize| json!({ "subscriberId": format!("s{}", n / 10), "identifier": format!("i{n}") });
    let items: Vec<_> = (0..count).map(item).collect();
    for items in items.chunks(100) {
        let request: Subscribe = parsed(json!({ "subscriptions": items }));
        assert_eq!(env.topics().subscribe(key("crowd"), &request).unwrap().errors, []);
    }
}
