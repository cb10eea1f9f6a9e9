//! Custom steps: functions of the host application.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidings::job::RetryPolicy;
use tidings::json::Object;
use tidings::limits::Limits;
use tidings::{Call, SendError};

use super::{event_at, run_at};
use crate::world::{on_both, on_both_with, say};

fn custom(handler: &str) -> Value {
    json!({ "type": "custom", "name": "charge", "metadata": { "handler": handler } })
}

#[test]
fn a_custom_step_calls_its_handler_and_later_steps_know_the_result() {
    on_both_with(
        |builder| {
            builder.handler("charge", |call: &Call| {
                let payload = call.notification.payload.clone().unwrap_or_default();
                let total = payload.get("total").cloned().unwrap_or_default();
                assert_eq!(call.subscriber.subscriber_id.as_str(), "ada");
                assert_eq!(call.attempt(), 1);
                Ok(Object::try_from(json!({ "charged": total })).ok())
            })
        },
        |world| {
            world.workflow_of("pay", &[custom("charge"), say("{{ steps.charge.result.charged }}")]);
            let id = event_at(&world, 0, "pay", json!({ "total": 12 }));
            assert_eq!(world.statuses(id), ["queued", "pending"]);
            world.run_due();
            assert_eq!(world.statuses(id), ["completed", "completed"]);
            assert_eq!(world.texts("ada"), ["12"]);
            let notification = world.notification(id);
            assert_eq!(world.log(notification.id, 0), ["step_queued", "handler_completed"]);
        },
    );
}

#[test]
fn a_handler_is_called_again_as_a_provider_is() {
    on_both_with(
        |builder| {
            let calls = AtomicU32::new(0);
            builder.handler("charge", move |call: &Call| {
                match calls.fetch_add(1, Ordering::Relaxed) {
                    0 => Err(SendError::retryable("busy")),
                    1 => panic!("a handler may panic"),
                    _ => {
                        assert_eq!(call.attempt(), 3);
                        Ok(None)
                    }
                }
            })
        },
        |world| {
            world.workflow_of("pay", &[custom("charge"), say("paid")]);
            let id = event_at(&world, 0, "pay", json!({}));
            for at in [0, 3_600, 7_200] {
                run_at(&world, at);
            }
            assert_eq!(world.statuses(id), ["completed", "completed"]);
            let expected = ["step_queued", "handler_retry", "handler_retry", "handler_completed"];
            assert_eq!(world.log(id, 0), expected);
        },
    );
}

/// A value whose destructor panics, with a value of the same kind.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

#[test]
fn a_handler_may_panic_with_a_payload_that_panics_when_it_is_dropped() {
    on_both_with(
        |builder| builder.handler("charge", |_: &Call| panic_any(Bomb)),
        |world| {
            world.workflow_of("pay", &[custom("charge"), say("paid")]);
            let id = event_at(&world, 0, "pay", json!({}));
            // A payload that gets out must not be dropped here, so that the test fails in order.
            let run =
                catch_unwind(AssertUnwindSafe(|| run_at(&world, 0))).map_err(std::mem::forget);
            assert!(run.is_ok());
            assert_eq!(world.log(id, 0), ["step_queued", "handler_retry"]);
        },
    );
}

/// A result is kept with the notification, so that it has the limit of a payload.
#[test]
fn a_result_that_is_too_large_fails_the_step() {
    let result = |size: usize| Object::try_from(json!({ "a": "x".repeat(size - 8) })).unwrap();
    on_both_with(
        |builder| {
            builder
                .limits(Limits::default().payload(100))
                .handler("fits", move |_: &Call| Ok(Some(result(100))))
                .handler("large", move |_: &Call| Ok(Some(result(101))))
        },
        |world| {
            for (handler, statuses_after) in
                [("fits", ["completed", "completed"]), ("large", ["failed", "canceled"])]
            {
                world.workflow_of(handler, &[custom(handler), say("paid")]);
                let id = event_at(&world, 0, handler, json!({}));
                world.run_due();
                assert_eq!(world.statuses(id), statuses_after, "{handler}");
                let notification = world.notification(id);
                let said = notification.jobs[0].execution_details.last().unwrap().raw.clone();
                let refusal = "`result` must be at most 100 bytes long, not 101";
                let is_refused = said.is_some_and(|said| said.contains(refusal));
                assert_eq!(is_refused, handler == "large");
            }
        },
    );
}

/// A custom step that fails ends the run.
#[test]
fn a_handler_that_refuses_or_is_missing_ends_the_run() {
    on_both_with(
        |builder| {
            let builder = builder.retry(RetryPolicy::new(1, Duration::from_secs(1)));
            builder.handler("refuses", |_: &Call| Err(SendError::permanent("no")))
        },
        |world| {
            for (handler, entry) in [("refuses", "handler_error"), ("missing", "handler_missing")] {
                world.workflow_of(handler, &[custom(handler), say("paid")]);
                let id = event_at(&world, 0, handler, json!({}));
                assert_eq!(world.run_due().failed, 1);
                assert_eq!(world.statuses(id), ["failed", "canceled"]);
                assert_eq!(world.log(id, 0), ["step_queued", entry]);
            }
        },
    );
}

#[test]
fn a_custom_step_may_have_a_condition() {
    on_both(|world| {
        let step = json!({
            "type": "custom", "metadata": { "handler": "missing" },
            "runIf": { "==": [{ "var": "payload.pay" }, true] },
        });
        world.workflow_of("pay", &[step, say("free")]);
        let id = event_at(&world, 0, "pay", json!({ "pay": false }));
        assert_eq!(world.statuses(id), ["skipped", "completed"]);
    });
}
