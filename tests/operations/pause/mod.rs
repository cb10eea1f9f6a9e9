//! Workflows and integrations are paused and resumed: what waits goes on, and nothing happens twice.

mod integrations;
mod overtaken;
mod races;
mod workflows;

use std::time::Duration;

use serde_json::json;
use testkit::tables::check_indexes;

use crate::world::World;

const HOUR: Duration = Duration::from_secs(3_600);

fn ada(world: &World) {
    world.subscriber(json!({
        "subscriberId": "ada", "email": "ada@example.org", "phone": "+4912345",
    }));
}

fn held(world: &World) -> usize {
    world.engine.delivery().stats().unwrap().total().held
}

/// Checks that nothing is done, now or later, and that the store is sound.
#[track_caller]
fn check_still(world: &World) {
    let sent = world.recorder.sent().len();
    let delivery = world.engine.delivery();
    assert_eq!(delivery.next_due().unwrap(), None);
    assert_eq!(delivery.run_due(100).unwrap(), tidings::DeliveryReport::default());
    assert_eq!(world.recorder.sent().len(), sent);
    check_indexes(&world.store);
}
