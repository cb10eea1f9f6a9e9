//! Integrations: creating, changing, listing (15), deleting (13), and which one is primary.

mod ranks;
mod vetting;

use serde_json::{Value, json};
use testkit::sealed::is_wanted;
use tidings::IntegrationTestResult;
use tidings::ids::{IntegrationId, UserId};
use tidings::integration::{
    Integration, IntegrationCreate, IntegrationDelete, IntegrationUpdate, Standing,
};

use crate::world::{
    NO_ID, World, active_integration, changed, names, on_both, only, parsed, payload_is,
    unreadable, wire, with,
};

#[test]
fn a_new_integration_is_as_it_was_described() {
    on_both(|world| {
        let condition = payload_is("country", "de");

        let full = world.integration(json!({
            "name": "Our mail",
            "identifier": "mail-1",
            "providerId": "sendgrid",
            "channel": "email",
            "active": true,
            "credentials": { "apiKey": "k-1", "from": "us@example.org" },
            "configurations": { "inboundWebhookEnabled": true },
            "conditions": [condition],
        }));
        let least = world.integration(json!({ "providerId": "slack", "channel": "chat" }));

        assert_eq!(
            wire(&full),
            json!({
                "_id": full.id,
                "_environmentId": world.env.environment_id(),
                "_organizationId": "acme",
                "name": "Our mail",
                "identifier": "mail-1",
                "providerId": "sendgrid",
                "channel": "email",
                "credentials": { "apiKey": "k-1", "from": "us@example.org" },
                "configurations": { "inboundWebhookEnabled": true },
                "active": true,
                "primary": false,
                "priority": 1,
                "deleted": false,
                "conditions": [condition],
            })
        );
        assert_eq!(
            wire(&least),
            json!({
                "_id": least.id,
                "_environmentId": world.env.environment_id(),
                "_organizationId": "acme",
                "name": "slack",
                "identifier": least.identifier,
                "providerId": "slack",
                "channel": "chat",
                "credentials": {},
                "active": true,
                "primary": false,
                "priority": 0,
                "deleted": false,
                "conditions": [],
            })
        );
        for integration in [full, least] {
            assert_eq!(world.env.integrations().get(integration.id).unwrap(), integration);
        }
    });
}

#[test]
fn an_identifier_is_made_from_the_name() {
    on_both(|world| {
        let made = |name: &str| {
            let create = json!({ "name": name, "providerId": "ses", "channel": "email" });
            world.integration(create).identifier.to_string()
        };

        for (name, start) in [("Our  Mail!", "our-mail-"), ("Übung", "bung-"), ("###", "")] {
            let (first, second) = (made(name), made(name));
            assert!(first.starts_with(start), "{first}");
            assert_eq!(first.len(), start.len() + 8, "{first}");
            assert_ne!(first, second);
        }
        assert_eq!(made(&"x".repeat(128)).len(), 64 + 9);
    });
}

#[test]
fn what_cannot_be_created_is_refused() {
    on_both(|world| {
        world.active_integration("email", "taken");
        world.active_integration("in_app", "inbox");
        let deep = (0..17).fold(payload_is("a", "b"), |inner, _| {
            json!({ "isNegated": false, "type": "GROUP", "value": "AND", "children": [inner] })
        });
        let many: Vec<_> = (0..257).map(|_| payload_is("a", "b")).collect();
        let pattern = json!({ "field": "a", "operator": "LIKE", "on": "payload",
            "value": "x".repeat(128) });
        let like = json!({ "type": "GROUP", "value": "AND", "children": [pattern] });
        let check = |fields: Value, refusal: &str| {
            let create = with(active_integration("email", "new"), fields);
            world.refuses(refusal, || world.env.integrations().create(&parsed(create)));
        };

        check(json!({ "identifier": "taken" }), "409 integration `taken` is there already");
        check(
            json!({ "channel": "in_app" }),
            "400 an environment has at most one in_app integration",
        );
        check(json!({ "providerId": "" }), "422 `providerId` must not be empty");
        check(
            json!({ "providerId": "x".repeat(129) }),
            "422 `providerId` must be at most 128 characters long",
        );
        check(json!({ "name": "" }), "422 `name` must not be empty");
        check(json!({ "name": "ü".repeat(129) }), "422 `name` must be at most 128 characters long");
        check(
            json!({ "conditions": [deep] }),
            "422 `conditions` must be nested at most 16 levels deep",
        );
        check(json!({ "conditions": many }), "422 `conditions` must have at most 256 items");
        let text = refusal_of(&world, json!({ "conditions": [like] }));
        assert!(text.starts_with("422 `conditions"), "{text}");
    });
    let create = |fields| with(active_integration("email", "new"), fields);
    assert_eq!(
        unreadable::<IntegrationCreate>(create(json!({ "channel": "fax" }))),
        "`channel` must be one of in_app, email, sms, chat, push"
    );
    assert_eq!(
        unreadable::<IntegrationCreate>(create(json!({ "identifier": "a b" }))),
        "`identifier` must be letters and digits, joined by single `-`, `_` or `.`"
    );
}

#[test]
fn a_list_has_what_is_there_and_its_own() {
    on_both(|world| {
        // 15.2
        assert_eq!(world.env.integrations().list().unwrap(), []);
        assert_eq!(world.env.integrations().list_active().unwrap(), []);
        let asleep = json!({ "active": false });
        world.integration(with(active_integration("chat", "asleep"), asleep));
        world.active_integration("email", "awake");
        let gone = world.active_integration("push", "gone");
        delete(&world, gone.id, false);
        let create = active_integration("email", "there");
        world.production().integrations().create(&parsed(create)).unwrap();
        world.elsewhere().integrations().create(&parsed(active_integration("sms", "far"))).unwrap();

        // 15.1, 15.4, 15.5, 15.6
        let name = |integration: &Integration| integration.identifier.clone();
        assert_eq!(names(&world.env.integrations().list().unwrap(), name), ["asleep", "awake"]);
        assert_eq!(names(&world.env.integrations().list_active().unwrap(), name), ["awake"]);
    });
}

#[test]
fn credentials_are_not_printed() {
    on_both(|world| {
        let secret = json!({
            "credentials": { "apiKey": "hush-1", "password": "hush-2", "host": "mail.example" },
            "configurations": { "inboundWebhookSigningKey": "hush-3" },
        });
        let created = world.integration(with(active_integration("email", "mail"), secret));

        // 15.7
        let printed = format!("{created:?} {:?}", world.env.integrations().list().unwrap());
        assert!(printed.contains("mail.example") && !printed.contains("hush"), "{printed}");
        let redacted = wire(created.clone().redacted()).to_string();
        assert!(redacted.contains("mail.example") && !redacted.contains("hush"), "{redacted}");
        assert!(wire(created).to_string().contains("hush-1"));
    });
}

#[test]
fn credentials_go_with_their_integration() {
    // The bytes of sealed values say nothing.
    if is_wanted() {
        return;
    }
    on_both(|world| {
        let secret = json!({ "credentials": { "apiKey": "hush-1" } });
        let mail = world.integration(with(active_integration("email", "mail"), secret));
        let kept = || {
            let values = world.dump().into_values();
            values.filter(|value| String::from_utf8_lossy(value).contains("hush-1")).count()
        };
        assert_eq!(kept(), 1);

        world.env.integrations().delete(mail.id, &IntegrationDelete::default()).unwrap();

        assert_eq!(kept(), 0);
    });
}

#[test]
fn an_update_changes_what_it_names() {
    on_both(|world| {
        let before = world.active_integration("email", "mail");

        let renamed = update(&world, before.id, json!({ "name": "Mail" }));
        assert_eq!(renamed, changed(before.clone(), |it| it.name = "Mail".into()));

        let moved = update(&world, before.id, json!({ "identifier": "post" }));
        assert_eq!(moved.identifier.as_str(), "post");
        // The old name is free again.
        world.active_integration("sms", "mail");

        let keyed = json!({
            "credentials": { "apiKey": "k-2" },
            "configurations": { "inboundWebhookEnabled": true },
        });
        let after = update(&world, before.id, keyed);
        assert_eq!(wire(&after.credentials), json!({ "apiKey": "k-2" }));
        assert_eq!(wire(&after.configurations), json!({ "inboundWebhookEnabled": true }));
        let cleared = update(&world, before.id, json!({ "configurations": null }));
        assert_eq!(cleared, changed(after, |it| it.configurations = None));
        assert_eq!(world.env.integrations().get(before.id).unwrap(), cleared);

        let same = world.unchanged(|| update(&world, before.id, json!({})));
        assert_eq!(same, cleared);
    });
}

#[test]
fn what_cannot_be_changed_is_refused() {
    on_both(|world| {
        world.active_integration("email", "taken");
        let id = world.active_integration("email", "mail").id;
        let check = |id: IntegrationId, fields: Value, refusal: &str| {
            let fields: IntegrationUpdate = parsed(fields);
            world.refuses(refusal, || world.env.integrations().update(id, &fields));
        };

        check(id, json!({ "identifier": "taken" }), "409 integration `taken` is there already");
        check(id, json!({ "name": "" }), "422 `name` must not be empty");
        let long = json!({ "name": "x".repeat(129), "active": false });
        check(id, long, "422 `name` must be at most 128 characters long");
        for (id, refusal) in foreign(&world) {
            check(id, json!({ "name": "Mail" }), &refusal);
        }
    });
}

/// One row per name. An identifier that is the id of another integration is an identifier first.
#[test]
fn an_integration_is_named_by_its_identifier_or_its_id() {
    on_both(|world| {
        let mail = world.active_integration("email", "mail");
        let other = mail.id.to_string();
        let post = parsed(json!({
            "providerId": "ses", "channel": "email", "identifier": other,
        }));
        let integrations = world.env.integrations();
        assert_eq!(integrations.get(mail.id).unwrap(), mail);
        let post = integrations.create(&post).unwrap();
        let own = post.id.to_string();
        for (name, expected) in [("mail", &mail), (other.as_str(), &post), (own.as_str(), &post)] {
            let id = expected.id;
            assert_eq!(integrations.get(name).unwrap().id, id, "{name}");
            assert_eq!(integrations.find(name).unwrap().unwrap().id, id, "{name}");
            assert_eq!(integrations.pause(name).unwrap().id, id, "{name}");
            assert_eq!(integrations.resume(name).unwrap().id, id, "{name}");
            assert_eq!(integrations.set_primary(name).unwrap().id, id, "{name}");
            let named = integrations.update(name, &parsed(json!({ "name": "New" }))).unwrap();
            assert_eq!(named.id, id, "{name}");
            assert_eq!(
                integrations.test(name).unwrap(),
                IntegrationTestResult::NotSupported,
                "{name}"
            );
        }
        let refusal = "404 integration `mial` is not there; did you mean `mail`?";
        world.refuses(refusal, || integrations.get("mial"));
        world.refuses(refusal, || integrations.pause("mial"));
        world.refuses("404 integration ` ` is not there", || integrations.get(" "));
        let left = integrations.delete("mail", &IntegrationDelete::default()).unwrap();
        assert_eq!(only(&left).id, post.id);
    });
}

#[test]
fn what_is_deleted_stays_for_the_record_only() {
    on_both(|world| {
        let kept = world.active_integration("chat", "kept");
        let before = world.active_integration("email", "gone");
        let at = world.tick();

        let left = delete(&world, before.id, false);

        // 13.4
        assert_eq!(left, [kept]);
        let standing = Standing::Deleted { at, by: UserId::host() };
        let mut stored = world.records::<Integration>().into_iter();
        let stored = stored.find(|one| one.id == before.id);
        assert_eq!(stored, Some(changed(before.clone(), |it| it.standing = standing)));
        let shown = wire(stored);
        assert_eq!(shown["deleted"], true);
        assert_eq!((&shown["deletedAt"], &shown["deletedBy"]), (&wire(at), &json!("host")));

        // 13.7
        let refusal = format!("404 integration `{}` is not there", before.id);
        world.refuses(&refusal, || {
            world.env.integrations().delete(before.id, &IntegrationDelete::default())
        });
        world.refuses(&refusal, || world.env.integrations().get(before.id));
        world.refuses(&refusal, || world.env.integrations().set_primary(before.id));

        // Its name is free again, and an inbox may follow an inbox.
        world.active_integration("email", "gone");
        let inbox = world.active_integration("in_app", "inbox");
        delete(&world, inbox.id, false);
        world.active_integration("in_app", "inbox");
    });
}

#[test]
fn what_is_not_there_neither_leads_nor_goes() {
    on_both(|world| {
        // 15c.1
        for channel in ["in_app", "push", "chat"] {
            let integration = world.active_integration(channel, channel);
            let refusal = format!("400 {channel} integrations cannot be primary");
            world.refuses(&refusal, || world.env.integrations().set_primary(integration.id));
        }
        // 13.1, 13.5, 15c.9
        for (id, refusal) in foreign(&world) {
            world.refuses(&refusal, || world.env.integrations().get(id));
            world.refuses(&refusal, || world.env.integrations().set_primary(id));
            let delete = IntegrationDelete::default();
            world.refuses(&refusal, || world.env.integrations().delete(id, &delete));
        }
    });
    assert_eq!(
        "42".parse::<IntegrationId>().unwrap_err().to_string(),
        "`integrationId` must be an identifier made by the engine"
    );
}

// Integrations that are nowhere, in another environment and in another organization.
fn foreign(world: &World) -> [(IntegrationId, String); 3] {
    let create = || parsed(active_integration("email", "foreign"));
    let sibling = world.production().integrations().create(&create()).unwrap();
    let stranger = world.elsewhere().integrations().create(&create()).unwrap();
    let nowhere = NO_ID.parse().unwrap();
    [nowhere, sibling.id, stranger.id]
        .map(|id| (id, format!("404 integration `{id}` is not there")))
}

fn update(world: &World, id: IntegrationId, fields: Value) -> Integration {
    world.env.integrations().update(id, &parsed(fields)).unwrap()
}

fn delete(world: &World, id: IntegrationId, promote: bool) -> Vec<Integration> {
    world
        .env
        .integrations()
        .delete(id, &changed(IntegrationDelete::default(), |it| it.promote = promote))
        .unwrap()
}

fn refusal_of(world: &World, fields: Value) -> String {
    let create = with(active_integration("email", "new"), fields);
    let error = world.env.integrations().create(&parsed(create)).unwrap_err();
    format!("{} {error}", error.status())
}
