//! Whether subscribers are connected.

use serde_json::json;

use crate::world::{email, on_both, parsed, wire, with};

#[test]
fn a_subscriber_comes_and_goes() {
    on_both(|world| {
        let before = world.bare_subscriber("ada");
        let set = |is_online| world.env.subscribers().set_online("ada", is_online).unwrap();
        let at = world.tick();
        let online = set(true);
        let changed = json!({ "isOnline": true, "__v": 1, "updatedAt": at });
        assert_eq!(wire(&online), with(wire(before), changed));
        world.tick();
        assert_eq!(world.unchanged(|| set(true)), online);

        let gone = world.tick();
        let offline = set(false);
        let changed =
            json!({ "isOnline": false, "lastOnlineAt": gone, "__v": 2, "updatedAt": gone });
        assert_eq!(wire(&offline), with(wire(&online), changed));
        world.tick();
        assert_eq!(world.unchanged(|| set(false)), offline);

        let back = set(true);
        assert_eq!((back.is_online, back.last_online_at), (Some(true), Some(gone)));
        assert_eq!(world.env.subscribers().get("ada").unwrap(), back);
        let update = json!({ "firstName": "Ada" });
        let updated = world.env.subscribers().update("ada", &parsed(update)).unwrap();
        assert_eq!((updated.is_online, updated.last_online_at), (Some(true), Some(gone)));
        world.refuses("404 subscriber `eve` is not there", || {
            world.env.subscribers().set_online("eve", true)
        });
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn a_subscriber_who_was_never_there_has_not_left() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let offline = world.env.subscribers().set_online("ada", false).unwrap();
        assert_eq!((offline.is_online, offline.last_online_at), (Some(false), None));
    });
}

/// An e-mail is for those who are not looking, and a template sees the same.
#[test]
fn conditions_and_templates_see_who_is_connected() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "ses");
        let bell = json!({ "type": "in_app", "template": {
            "body": "{{ subscriber.isOnline }} {{ subscriber.lastOnlineAt }}",
        } });
        let away = json!({ "!": [{ "var": "subscriber.isOnline" }] });
        world.workflow_of("hi", &[bell, with(email(), json!({ "runIf": away }))]);
        let notified = |is_online| {
            let at = world.tick();
            world.env.subscribers().set_online("ada", is_online).unwrap();
            world.notify("hi", "ada");
            let sent = world.run_due().sent;
            (sent, at, world.inbox("ada")[0].text().unwrap().to_owned())
        };

        let (sent, _, text) = notified(true);
        assert_eq!((sent, text.as_str()), (0, "True "));
        let (sent, at, text) = notified(false);
        assert_eq!((sent, text), (1, format!("False {at}")));
    });
}
