//! Actions: the buttons of a message in an inbox.

use serde_json::json;
use tidings::content::ButtonType;
use tidings::ids::MessageId;
use tidings::message::{CompleteAction, InboxCounts};

use super::counts;
use crate::world::{World, in_app, on_both, parsed, wire};

// A message with both buttons.
fn question(world: &World) -> MessageId {
    let buttons = json!([
        { "type": "primary", "content": "Yes" }, { "type": "secondary", "content": "No" },
    ]);
    let template = json!({ "body": "?", "buttons": buttons });
    world.workflow_of("ask", &[json!({ "type": "in_app", "template": template })]);
    world.notify("ask", "ada");
    world.inbox("ada")[0].id
}

#[test]
fn an_action_is_completed_once_and_reverted() {
    on_both(|world| {
        let id = question(&world);
        let inbox = world.env.inbox("ada").unwrap();
        let pending = wire(&world.inbox("ada")[0])["cta"].clone();
        world.tick();
        let yes: CompleteAction = parsed(json!({ "type": "primary", "payload": { "n": 1 } }));

        let completed = inbox.complete_action(id, &yes).unwrap();

        let at = world.now();
        let result = json!({ "type": "primary", "payload": { "n": 1 }, "completedAt": at });
        assert_eq!(wire(&completed)["cta"]["action"]["result"], result);
        assert_eq!(wire(&completed)["cta"]["action"]["status"], "done");
        assert_eq!(counts(&world, "ada"), InboxCounts::new(0, 0));
        assert_eq!(world.inbox("ada"), std::slice::from_ref(&completed));
        world.tick();
        world.unchanged(|| assert_eq!(inbox.complete_action(id, &yes).unwrap(), completed));
        world.unchanged(|| inbox.revert_action(id, ButtonType::Secondary).unwrap());

        let no = CompleteAction::new(ButtonType::Secondary);
        let changed = inbox.complete_action(id, &no).unwrap();
        let result = json!({ "type": "secondary", "completedAt": world.now() });
        assert_eq!(wire(changed)["cta"]["action"]["result"], result);

        let reverted = inbox.revert_action(id, ButtonType::Secondary).unwrap();
        assert_eq!(wire(&reverted)["cta"], pending);
        assert!(reverted.stage.is_read(), "it was read");
        world.unchanged(|| inbox.revert_action(id, ButtonType::Secondary).unwrap());
    });
}

#[test]
fn an_archived_message_stays_in_the_archive() {
    on_both(|world| {
        let id = question(&world);
        let inbox = world.env.inbox("ada").unwrap();
        inbox.archive([id]).unwrap();
        let yes = CompleteAction::new(ButtonType::Primary);
        assert!(inbox.complete_action(id, &yes).unwrap().stage.is_archived());
    });
}

#[test]
fn an_action_that_is_not_there_is_refused() {
    on_both(|world| {
        let id = question(&world);
        world.workflow_of("plain", &[in_app()]);
        world.notify("plain", "ada");
        let plain = world.inbox("ada")[0].id;
        let inbox = world.env.inbox("ada").unwrap();
        let yes = CompleteAction::new(ButtonType::Primary);
        let refusal = "400 the message has no primary button";
        world.refuses(refusal, || inbox.complete_action(plain, &yes));
        world.refuses(refusal, || inbox.revert_action(plain, ButtonType::Primary));
        world.bare_subscriber("bob");
        let of_bob = world.env.inbox("bob").unwrap();
        let refusal = format!("404 message `{id}` is not there");
        world.refuses(&refusal, || of_bob.complete_action(id, &yes));
        world.refuses(&refusal, || of_bob.revert_action(id, ButtonType::Primary));
        let eve = world.env.inbox("eve").unwrap();
        world.refuses("404 subscriber `eve` is not there", || eve.complete_action(id, &yes));
        let large = json!({ "type": "primary", "payload": { "n": "x".repeat(70_000) } });
        let refusal = "422 `payload` must be at most 65536 bytes long, not 70008";
        world.refuses(refusal, || inbox.complete_action(id, &parsed(large.clone())));
    });
}
