//! Steps that wait, collect, limit and call: each case of the specification under its number.

#![expect(clippy::needless_pass_by_value, reason = "the values are written in the calls")]

mod custom;
mod delays;
mod digests;
mod results;
mod schedules;
mod set_aside;
mod throttles;

use std::time::Duration;

use serde_json::{Value, json};
use tidings::ids::NotificationId;

use crate::world::{START, World, only, time};

/// Sets the clock to so many seconds after the start, and does what is due by then.
fn run_at(world: &World, seconds: u64) {
    set(world, seconds);
    world.run_due();
}

fn set(world: &World, seconds: u64) {
    world.clock.set(time(START).after(Duration::from_secs(seconds)));
}

/// Triggers `workflow` for ada with this payload, so many seconds after the start.
fn event_at(world: &World, seconds: u64, workflow: &str, payload: Value) -> NotificationId {
    run_at(world, seconds);
    let event = json!({ "name": workflow, "to": "ada", "payload": payload });
    only(world.trigger(event).notifications).notification_id
}

fn digest(metadata: Value) -> Value {
    json!({ "type": "digest", "name": "digest", "metadata": metadata })
}

fn delay(metadata: Value) -> Value {
    json!({ "type": "delay", "metadata": metadata })
}
