//! Rates of providers: workflows take turns, and every call that there is goes to one of them.

use std::collections::BTreeMap;

use super::ada;
use crate::world::{World, email, on_both_with};

const LIMIT: usize = 10;
const LANES: usize = 30;
const EACH: usize = 6;

// Messages that were sent, by the workflow.
fn sent(world: &World) -> BTreeMap<String, usize> {
    let mut sent = BTreeMap::new();
    for delivery in world.recorder.sent() {
        let workflow = delivery.message.workflow_identifier.unwrap();
        *sent.entry(workflow.to_string()).or_default() += 1;
    }
    sent
}

/// The queue is looked at once in a second.
#[test]
fn workflows_take_turns_at_the_calls_of_a_provider() {
    on_both_with(
        |builder| builder.per_second("sendgrid", LIMIT),
        |world| {
            ada(&world);
            world.active_integration("email", "sendgrid");
            for lane in 0..LANES {
                world.workflow_of(&format!("mail-{lane}"), &[email()]);
            }
            for lane in (0..EACH).flat_map(|_| 0..LANES) {
                world.notify(&format!("mail-{lane}"), "ada");
            }
            // The calls of the first second go to those that ask first. Then all of them are known.
            let mut postponed = world.engine.delivery().run_due(usize::MAX).unwrap().postponed;
            let first = sent(&world);
            let mut seconds = 1;
            while world.recorder.sent().len() < LANES * EACH {
                world.tick();
                seconds += 1;
                let report = world.engine.delivery().run_due(usize::MAX).unwrap();
                assert!(report.sent <= LIMIT, "{} in second {seconds}", report.sent);
                postponed += report.postponed;
                let sent = sent(&world);
                let waiting = || {
                    let waiting = (0..LANES).map(|lane| format!("mail-{lane}"));
                    let counts = waiting
                        .map(|lane| [&sent, &first].map(|of| of.get(&lane).copied().unwrap_or(0)));
                    counts.filter(|[sent, _]| *sent < EACH).map(|[sent, first]| sent - first)
                };
                let apart = waiting().max().zip(waiting().min());
                assert!(apart.is_none_or(|(most, least)| most - least <= 2), "{seconds}: {sent:?}");
            }
            let ideal = LANES * EACH / LIMIT;
            assert!(seconds <= ideal + ideal.div_ceil(10), "{seconds}");
            assert!(postponed <= 3 * LANES * EACH, "{postponed}");
        },
    );
}
