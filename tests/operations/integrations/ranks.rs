//! Which integration of a channel leads: deleting (13), and setting the primary one.

use serde_json::{Value, json};
use tidings::integration::Standing;

use super::{delete, update};
use crate::world::{World, active_integration, changed, names, on_both, parsed, payload_is, with};

/// One row per integration that is created: what stands of its channel then.
#[test]
fn the_first_active_integration_of_a_channel_leads() {
    on_both(|world| {
        let condition = json!({ "conditions": [payload_is("country", "de")] });
        let idle = json!({ "active": false });
        let check = |channel: &str, name: &str, fields: &Value, expected: &[&str]| {
            let create = with(active_integration(channel, name), fields.clone());
            let integration = world.integration(create);
            assert_eq!(standing(&world, channel), expected);
            integration
        };

        check("email", "idle", &idle, &["idle off"]);
        // A conditioned one does not lead, not even as the first one.
        check("email", "if", &condition, &["idle off", "if 1"]);
        check("email", "sendgrid", &json!({}), &["idle off", "if 1", "sendgrid 2 primary"]);
        // 15.3
        check("email", "ses", &json!({}), &["idle off", "if 1", "sendgrid 3 primary", "ses 2"]);
        check("sms", "twilio", &json!({}), &["twilio 1 primary"]);
        check("push", "fcm", &json!({}), &["fcm 0"]);
        check("chat", "slack", &json!({}), &["slack 0"]);
        check("in_app", "inbox", &json!({}), &["inbox 0"]);
    });
}

/// One row per update: what stands of the channel then.
#[test]
fn an_update_keeps_the_ranks_in_order() {
    on_both(|world| {
        let [first, second, third] =
            ["first", "second", "third"].map(|name| world.active_integration("email", name).id);
        let check = |id, fields: Value, expected: [&str; 3]| {
            update(&world, id, fields);
            assert_eq!(standing(&world, "email"), expected);
        };
        assert_eq!(standing(&world, "email"), ["first 3 primary", "second 1", "third 2"]);

        check(second, json!({ "active": true }), ["first 3 primary", "second 1", "third 2"]);
        check(third, json!({ "active": false }), ["first 2 primary", "second 1", "third off"]);
        // Nobody steps in for one that is switched off, and none leads by being switched on.
        check(first, json!({ "active": false }), ["first off", "second 1", "third off"]);
        check(first, json!({ "active": true }), ["first 2", "second 1", "third off"]);
        world.env.integrations().set_primary(second).unwrap();
        let condition = json!({ "conditions": [payload_is("country", "de")] });
        check(second, condition, ["first 1", "second 2", "third off"]);
        check(second, json!({ "conditions": [] }), ["first 1", "second 2", "third off"]);
    });
}

#[test]
fn the_ranks_close_up_behind_what_is_deleted() {
    on_both(|world| {
        let [first, second, third] =
            ["first", "second", "third"].map(|name| world.active_integration("email", name).id);
        let others = ["push", "chat", "in_app"].map(|name| world.active_integration(name, name).id);
        assert_eq!(standing(&world, "email"), ["first 3 primary", "second 1", "third 2"]);

        // 13.2
        for other in others {
            delete(&world, other, false);
            assert_eq!(standing(&world, "email"), ["first 3 primary", "second 1", "third 2"]);
        }
        // 13.3
        delete(&world, second, false);
        assert_eq!(standing(&world, "email"), ["first 2 primary", "third 1"]);
        // 13.8: nobody steps in, unless it is asked for.
        delete(&world, first, false);
        assert_eq!(standing(&world, "email"), ["third 1"]);
        world.env.integrations().set_primary(third).unwrap();
        world.active_integration("email", "fourth");
        delete(&world, third, true);
        assert_eq!(standing(&world, "email"), ["fourth 1 primary"]);
    });
}

#[test]
fn the_next_one_without_conditions_steps_in_if_it_is_asked_for() {
    on_both(|world| {
        let first = world.active_integration("email", "first");
        world.active_integration("email", "second");
        world.active_integration("email", "third");
        let condition = json!({ "conditions": [payload_is("country", "de")] });
        world.integration(with(active_integration("email", "if"), condition));
        let before = ["first 4 primary", "second 1", "third 2", "if 3"];
        assert_eq!(standing(&world, "email"), before);

        delete(&world, first.id, true);

        assert_eq!(standing(&world, "email"), ["second 1", "third 3 primary", "if 2"]);
    });
}

#[test]
fn one_that_was_not_primary_promotes_nobody() {
    on_both(|world| {
        let first = world.active_integration("email", "first");
        let second = world.active_integration("email", "second");
        world.active_integration("email", "third");
        update(&world, first.id, json!({ "active": false }));

        delete(&world, second.id, true);

        assert_eq!(standing(&world, "email"), ["first off", "third 1"]);
    });
}

/// 15c, one row per case: what stands of the channel, and what stands once the last one leads.
#[test]
fn an_integration_is_made_primary() {
    #[track_caller]
    fn check(before: &[&str], after: &[&str]) {
        on_both(|world| {
            set_up(&world, before);
            assert_eq!(standing(&world, "email"), before);
            let others = world.integration(active_integration("sms", "sms"));
            let production = world.production();
            let create = parsed(active_integration("email", "there"));
            let there = production.integrations().create(&create).unwrap();
            let target = world.env.integrations().list().unwrap();
            let target = target.iter().find(|one| one.identifier.as_str() == "target").unwrap();

            let led = world.env.integrations().set_primary(target.id).unwrap();

            assert_eq!(standing(&world, "email"), after);
            assert_eq!(world.env.integrations().get(led.id).unwrap(), led);
            assert_eq!((led.id, led.is_primary(), led.is_active()), (target.id, true, true));
            // 15c.10
            assert_eq!(world.env.integrations().get(others.id).unwrap(), others);
            assert_eq!(production.integrations().get(there.id).unwrap(), there);
        });
    }

    // 15c.4
    check(&["target off"], &["target 1 primary"]);
    // 15c.5
    check(&["old 1 primary", "target off"], &["old 1", "target 2 primary"]);
    // 15c.6
    check(
        &["p 2 primary", "a 1", "i off", "target off"],
        &["p 2", "a 1", "i off", "target 3 primary"],
    );
    // 15c.7
    check(&["p 3 primary", "a 2", "target 1"], &["p 2", "a 1", "target 3 primary"]);
    // 15c.8
    check(&["a off", "b off", "target off"], &["a off", "b off", "target 1 primary"]);
}

#[test]
fn what_leads_has_no_conditions() {
    on_both(|world| {
        let condition = json!({ "conditions": [payload_is("country", "de")], "active": false });
        let before = world.integration(with(active_integration("email", "if"), condition));

        // 15c.2
        let led = world.env.integrations().set_primary(before.id).unwrap();

        let standing = Standing::Active { primary: true, priority: 1 };
        assert_eq!(
            led,
            changed(before, |it| {
                it.filters = vec![];
                it.standing = standing;
            })
        );
    });
}

#[test]
fn what_leads_already_is_left_alone() {
    on_both(|world| {
        let first = world.active_integration("sms", "first");
        world.active_integration("sms", "second");
        let before = world.env.integrations().get(first.id).unwrap();

        // 15c.3
        let again = world.unchanged(|| world.env.integrations().set_primary(first.id).unwrap());

        assert_eq!(again, before);
    });
}

// Creates e-mail integrations that stand like that.
fn set_up(world: &World, standings: &[&str]) {
    let words: Vec<Vec<&str>> = standings.iter().map(|one| one.split(' ').collect()).collect();
    for words in &words {
        let create = with(active_integration("email", words[0]), json!({ "active": false }));
        world.integration(create);
    }
    let mut active: Vec<_> = words.iter().filter(|words| words[1] != "off").collect();
    active.sort_by_key(|words| words[1]);
    for words in active {
        let all = world.env.integrations().list().unwrap();
        let one = all.iter().find(|one| one.identifier.as_str() == words[0]).unwrap();
        world.env.integrations().set_primary(one.id).unwrap();
    }
}

// What stands of the integrations of a channel, oldest first.
fn standing(world: &World, channel: &str) -> Vec<String> {
    let mut integrations = world.env.integrations().list().unwrap();
    integrations.retain(|integration| integration.channel.as_str() == channel);
    names(&integrations, |integration| match &integration.standing {
        Standing::Inactive => format!("{} off", integration.identifier),
        Standing::Active { primary: false, priority } => {
            format!("{} {priority}", integration.identifier)
        }
        Standing::Active { primary: true, priority } => {
            format!("{} {priority} primary", integration.identifier)
        }
        Standing::Deleted { .. } => panic!("a deleted integration is listed"),
    })
}
