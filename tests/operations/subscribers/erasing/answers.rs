//! Stored answers of calls about a person, and what looks like them.

use domain::idempotency::StoredAnswer;
use serde_json::json;
use tidings::Error;
use tidings::store::Table;

use super::{nothing_is_left, put_aside_one};
use crate::world::{email, on_both, only, parsed};

/// A stored answer about a suppression names nothing but the address, in the form of suppressions: of the
/// subscriber, of a recipient of an event, and of a message to a former address.
#[test]
fn an_erasure_reaches_answers_that_name_an_address_only() {
    on_both(|world| {
        world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        world.in_app_workflow("news");
        let canary = json!({ "subscriberId": "canary-id", "email": "Former-Canary@Example.org" });
        world.subscriber(canary);
        world.notify("mail", "canary-id");
        assert_eq!(world.run_due().sent, 1);
        let canary = json!({ "subscriberId": "canary-id", "email": "Event-Canary@Example.org" });
        world.trigger(json!({ "name": "news", "to": canary }));
        let present = json!({ "email": "Canary@Example.org", "phone": "+42 (99) 887766" });
        world.env.subscribers().update("canary-id", &parsed(present)).unwrap();
        let addresses = [
            ("email", "Former-Canary@Example.org"),
            ("email", "Event-Canary@Example.org"),
            ("email", "Canary@Example.org"),
            ("sms", "+42 (99) 887766"),
        ];
        for (channel, address) in addresses {
            let add = json!({ "channel": channel, "address": address });
            let once = world.env.idempotent(address).unwrap();
            once.suppressions().add(&parsed(add)).unwrap();
        }

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((erased.answers, erased.suppressions), (4, 4), "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), []);
    });
}

/// The engine puts the id of a subscriber into the identifiers of subscriptions.
#[test]
fn an_erasure_reaches_answers_that_name_a_subscription_only() {
    on_both(|world| {
        world.bare_subscriber("canary-id");
        let once = |key: &str| world.env.idempotent(key).unwrap();
        let identifier = "tk_news:si_canary-id";
        world.env.topics().create(&parsed(json!({ "key": "news" }))).unwrap();
        let name = parsed(json!({ "name": "News" }));
        let updated = once("update").topics().update_subscription("news", identifier, &name);
        assert_eq!(updated.unwrap_err().status(), 404);
        let items = parsed(json!({ "subscriptions": [{ "identifier": identifier }] }));
        let left = once("leave").topics().unsubscribe("news", &items);
        assert!(matches!(left, Err(Error::Rejected(_))), "{left:?}");

        assert_eq!(world.env.subscribers().erase("canary-id").unwrap().answers, 2);

        nothing_is_left(&world.store);
    });
}

/// Otherwise a call of theirs that is repeated happens again, and their messages that were put aside are
/// never sent.
#[test]
fn an_erasure_leaves_what_has_longer_addresses_and_ids() {
    on_both(|world| {
        world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        let own = json!({ "subscriberId": "eve", "email": "eve@canary.example", "phone": "1" });
        world.subscriber(own);
        for (id, email, phone) in
            [("steve", "steve@canary.example", "11"), ("eve:2", "eve@canary.examples", "+1")]
        {
            let once = world.env.idempotent(id).unwrap();
            let other = json!({ "subscriberId": id, "email": email, "phone": phone });
            once.subscribers().create(&parsed(other)).unwrap();
        }
        put_aside_one(&world, "steve", (Table::Workflows, true));
        let entry = only(world.engine.delivery().quarantined(10).unwrap());
        let before = world.records::<StoredAnswer>();

        let erased = world.env.subscribers().erase("eve").unwrap();

        assert_eq!((erased.answers, erased.quarantined), (0, 0), "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), before);
        assert!(world.engine.delivery().requeue(entry.id).unwrap());
        assert_eq!(world.run_due().sent, 1);
    });
}
