//! What a sweep keeps of events that tasks tell to a crowd.

use serde_json::json;
use tidings::Scope;
use tidings::retention::Retention;
use tidings::trigger::Broadcast;

use super::{count, days, is_sound};
use crate::world::{on_both_with, parsed};

type Act = fn(&Scope);

/// An event that is over, though recipients are left, as each of these ends it.
const ENDS: [Act; 2] = [
    |env| drop(env.events().cancel("sale").unwrap()),
    |env| env.workflows().delete("news").unwrap(),
];

/// The notifications of an event are swept while its workflow is paused, and then the event ends. Its receipt
/// has an age of its own.
#[test]
fn the_end_of_an_event_keeps_the_receipt() {
    for (number, end) in ENDS.into_iter().enumerate() {
        on_both_with(
            |builder| builder.retention(Retention::default().activity_days(1).receipts_days(365)),
            |world| {
                world.in_app_workflow("news");
                for n in 0..150 {
                    world.bare_subscriber(&format!("s{n}"));
                }
                let sale: Broadcast = parsed(json!({ "name": "news", "transactionId": "sale" }));
                let first = world.env.events().broadcast(&sale).unwrap();
                let told = world.engine.delivery().run_due(2).unwrap().created;
                assert!(0 < told && told < 150, "{told}");
                world.env.workflows().pause("news").unwrap();
                days(&world, 3);
                assert_eq!((count(&world), world.inbox("s0").len()), (0, 1));

                end(&world.env);
                if number == 0 {
                    world.env.workflows().resume("news").unwrap();
                }
                world.engine.delivery().run_due(usize::MAX).unwrap();

                let created = world.env.events().progress("sale").unwrap().created;
                assert_eq!(created, told as u64);
                if number == 0 {
                    assert_eq!(world.env.events().broadcast(&sale).unwrap(), first);
                }
                world.engine.delivery().run_due(usize::MAX).unwrap();
                assert_eq!((count(&world), world.inbox("s0").len()), (0, 1));
                is_sound(&world);
            },
        );
    }
}
