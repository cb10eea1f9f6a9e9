//! Channel connections: creating (4), reading (7), listing (5), changing and deleting them, and
//! what goes with an integration (13).

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use tidings::connection::{ChannelConnection, ChannelConnectionCreate, ChannelConnectionUpdate};
use tidings::ids::ConnectionIdentifier;
use tidings::integration::IntegrationDelete;
use tidings::{Entity, Error, Scope};

use crate::channel_endpoints::bad_contexts;
use crate::world::{
    START, World, active_integration, id, names, on_both, only, parsed, unreadable, wire, with,
};

#[test]
fn a_new_connection_is_as_it_was_described() {
    on_both(|world| {
        let slack = prepare(&world.env);

        // 4.3
        let full = create(
            &world,
            json!({
                "identifier": "work",
                "subscriberId": "ada",
                "context": { "tenant": "acme", "app": "shop" },
                "workspace": { "id": "W1", "name": "Acme" },
            }),
        );
        // 4.1
        let of_ada = create(&world, json!({ "subscriberId": "ada" }));
        // 4.2
        let shared = create(&world, json!({ "context": { "tenant": "acme" } }));

        assert_eq!(
            wire(&full),
            json!({
                "_id": full.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "identifier": "work",
                "channel": "chat",
                "providerId": "slack",
                "_integrationId": slack,
                "integrationIdentifier": "slack",
                "subscriberId": "ada",
                "contextKeys": ["app:shop", "tenant:acme"],
                "workspace": { "id": "W1", "name": "Acme" },
                "auth": { "accessToken": "hush" },
                "createdAt": START,
                "updatedAt": START,
            })
        );
        let check = |made: &ChannelConnection, fields: Value| {
            let own = json!({
                "_id": made.id, "identifier": made.identifier, "workspace": { "id": "W1" },
            });
            assert_eq!(wire(made), with(with(wire(&full), own), fields));
            let made = made.identifier.as_str();
            assert!(made.starts_with("chconn_") && made.len() == 7 + 12, "{made}");
        };
        check(&of_ada, json!({ "contextKeys": [] }));
        check(&shared, json!({ "subscriberId": null, "contextKeys": ["tenant:acme"] }));
        // 7.1
        for connection in [full, of_ada, shared] {
            assert_eq!(get(&world, connection.identifier.as_str()), connection);
        }
    });
}

/// Every connection of this list has a place of its own, and each of them is taken then.
#[test]
fn a_second_connection_of_the_same_owner_is_refused() {
    on_both(|world| {
        prepare(&world.env);
        let owners = [
            json!({ "subscriberId": "ada" }),
            // 4.7, 4.9
            json!({ "subscriberId": "ada", "context": { "tenant": "a" } }),
            json!({ "context": { "tenant": "a" } }),
            json!({ "context": { "tenant": "b" } }),
            json!({ "context": { "app": "a" } }),
            json!({ "context": { "tenant": "a", "app": "x" } }),
            json!({ "subscriberId": "ada", "context": { "tenant": "a", "app": "x" } }),
            json!({ "subscriberId": "bob" }),
            // 4.10
            json!({ "subscriberId": "ada", "integrationIdentifier": "fcm" }),
            json!({ "context": { "tenant": "a" }, "integrationIdentifier": "fcm" }),
        ];
        let made: Vec<_> = owners.iter().map(|owner| create(&world, owner.clone())).collect();

        // 4.6
        for (owner, taken) in owners.iter().zip(&made) {
            let refusal = format!("409 channel connection `{}` is there already", taken.identifier);
            let again = parsed(described(with(owner.clone(), json!({ "identifier": "new" }))));
            world.refuses(&refusal, || world.env.channel_connections().create(&again));
        }
        // 4.8
        let text = r#"{
            "context": { "app": "x", "tenant": "a" }, "integrationIdentifier": "slack",
            "workspace": { "id": "W1" }, "auth": { "accessToken": "hush" }
        }"#;
        let again = serde_json::from_str(text).unwrap();
        let refusal = format!("409 channel connection `{}` is there already", made[5].identifier);
        world.refuses(&refusal, || world.env.channel_connections().create(&again));

        // A place is free again when its connection is gone.
        world.env.channel_connections().delete(&made[0].identifier).unwrap();
        create(&world, owners[0].clone());
    });
}

#[test]
fn what_cannot_be_created_is_refused() {
    on_both(|world| {
        prepare(&world.env);
        for foreign in [world.production(), world.elsewhere()] {
            prepare(&foreign);
            foreign.integrations().create(&parsed(active_integration("chat", "far"))).unwrap();
            foreign.subscribers().create(&parsed(json!({ "subscriberId": "eve" }))).unwrap();
        }
        create(&world, json!({ "identifier": "work", "subscriberId": "bob" }));
        // A context that is named is not created by a call that is refused.
        let owner = json!({ "subscriberId": "ada", "context": { "tenant": "never" } });
        let check = |fields: Value, refusal: &str| {
            let create = parsed(described(with(owner.clone(), fields)));
            world.refuses(refusal, || world.env.channel_connections().create(&create));
        };

        // 4.4
        for identifier in ["nowhere", "far"] {
            let refusal = format!("404 integration `{identifier}` is not there");
            check(json!({ "integrationIdentifier": identifier }), &refusal);
        }
        for id in ["nobody", "eve"] {
            let refusal = format!("404 subscriber `{id}` is not there");
            check(json!({ "subscriberId": id }), &refusal);
        }
        // 4.5
        let refusal = "422 `subscriberId` is required unless there is `context`";
        check(json!({ "subscriberId": null, "context": null }), refusal);
        // 4.11
        let refusal = "409 channel connection `work` is there already";
        check(json!({ "identifier": "work" }), refusal);
        // 4.12
        for (context, refusal) in bad_contexts() {
            check(json!({ "context": context }), refusal);
        }
        let long = "ü".repeat(256);
        check(
            json!({ "workspace": { "id": "W1", "name": long } }),
            "422 `workspace.name` must be at most 255 characters long",
        );
        let token = |token: &str| json!({ "auth": { "accessToken": token } });
        check(token(""), "422 `auth.accessToken` must not be empty");
        let refusal = "422 `auth.accessToken` must be at most 16384 bytes long";
        check(token(&"x".repeat(16_385)), refusal);
    });
    let check = |fields: Value, text: &str| {
        assert_eq!(unreadable::<ChannelConnectionCreate>(described(fields)), text);
    };
    for field in ["integrationIdentifier", "workspace", "auth"] {
        let mut create = described(json!({ "subscriberId": "ada" }));
        create.as_object_mut().unwrap().remove(field);
        let text = unreadable::<ChannelConnectionCreate>(create);
        assert_eq!(text, format!("missing field `{field}`"));
    }
    check(json!({ "workspace": {} }), "missing field `id`");
    check(json!({ "workspace": { "id": "" } }), "`id` must not be empty");
    check(json!({ "auth": {} }), "missing field `accessToken`");
    check(json!({ "identifier": "" }), "`connectionIdentifier` must not be empty");
    check(
        json!({ "identifier": "x".repeat(256) }),
        "`connectionIdentifier` must be at most 255 bytes long",
    );
}

#[test]
fn what_is_not_there_is_neither_read_nor_changed() {
    on_both(|world| {
        prepare(&world.env);
        create(&world, json!({ "identifier": "work", "subscriberId": "ada" }));
        for foreign in [world.production(), world.elsewhere()] {
            prepare(&foreign);
            let theirs = described(json!({ "identifier": "theirs", "subscriberId": "ada" }));
            foreign.channel_connections().create(&parsed(theirs)).unwrap();
        }
        let connections = world.env.channel_connections();
        let update: ChannelConnectionUpdate = parsed(json!({ "workspace": { "id": "W2" } }));

        // 7.2, 7.3
        for identifier in ["nowhere", "theirs", "WORK"] {
            let refusal = format!("404 channel connection `{identifier}` is not there");
            let identifier = named(identifier);
            world.refuses(&refusal, || connections.get(&identifier));
            world.refuses(&refusal, || connections.update(&identifier, &update));
            world.refuses(&refusal, || connections.delete(&identifier));
        }
    });
}

#[test]
fn an_update_changes_what_it_names() {
    on_both(|world| {
        prepare(&world.env);
        create(&world, json!({ "identifier": "work", "subscriberId": "ada" }));
        let update = |fields: Value| {
            world.env.channel_connections().update(named("work"), &parsed(fields)).unwrap()
        };
        for fields in [
            json!({ "workspace": { "id": "W2", "name": "Two" } }),
            json!({ "workspace": { "id": "W2" } }),
            json!({ "auth": { "accessToken": "x".repeat(16_384) } }),
            json!({ "workspace": { "id": "W3" }, "auth": { "accessToken": "new" } }),
        ] {
            let before = wire(get(&world, "work"));
            let at = world.tick();

            let after = update(fields.clone());

            let changed = with(fields.clone(), json!({ "updatedAt": at }));
            assert_eq!(wire(&after), with(before, changed));
            assert_eq!(get(&world, "work"), after);
            world.tick();
            for same in [fields, json!({}), json!({ "subscriberId": "bob" })] {
                assert_eq!(world.unchanged(|| update(same)), after);
            }
        }
        let token = parsed(json!({ "auth": { "accessToken": "" } }));
        world.refuses("422 `auth.accessToken` must not be empty", || {
            world.env.channel_connections().update(named("work"), &token)
        });
    });
}

/// One row per query: which of the connections are listed, newest first.
#[test]
fn every_condition_of_a_list_must_hold() {
    on_both(|world| {
        prepare(&world.env);
        // 5.8
        let check = |query: Value, expected: &[&str]| {
            let page = world.env.channel_connections().list(&parsed(query)).unwrap();
            let listed = names(&page.data, |one| one.identifier.clone());
            assert_eq!(listed, expected);
            let rest = with(wire(&page), json!({ "data": [] }));
            assert_eq!(
                rest,
                json!({
                    "data": [],
                    "next": null,
                    "previous": null,
                    "totalCount": expected.len(),
                    "totalCountCapped": false,
                })
            );
        };
        check(json!({}), &[]);
        let two = json!({ "tenant": "acme", "app": "shop" });
        for fields in [
            json!({ "identifier": "a", "subscriberId": "ada" }),
            json!({ "identifier": "b", "subscriberId": "bob" }),
            json!({ "identifier": "c", "context": two }),
            json!({ "identifier": "d", "context": { "tenant": "acme" } }),
            json!({ "identifier": "e", "subscriberId": "bob", "integrationIdentifier": "fcm" }),
            json!({ "identifier": "f", "subscriberId": "bob", "context": two }),
        ] {
            create(&world, fields);
        }

        // 5.1, 5.2, 5.3
        check(json!({}), &["f", "e", "d", "c", "b", "a"]);
        check(json!({ "subscriberId": "ada" }), &["a"]);
        check(json!({ "subscriberId": "bob" }), &["f", "e", "b"]);
        check(json!({ "integrationIdentifier": "slack" }), &["f", "d", "c", "b", "a"]);
        check(json!({ "channel": "push" }), &["e"]);
        check(json!({ "providerId": "slack" }), &["f", "d", "c", "b", "a"]);
        // 5.4, 5.5
        check(json!({ "contextKeys": ["tenant:acme"] }), &["d"]);
        check(json!({ "contextKeys": "tenant:acme" }), &["d"]);
        check(json!({ "contextKeys": ["app:shop", "tenant:acme"] }), &["f", "c"]);
        check(json!({ "contextKeys": ["tenant:acme", "app:shop", "tenant:acme"] }), &["f", "c"]);
        check(json!({ "contextKeys": ["app:shop"] }), &[]);
        check(json!({ "contextKeys": ["app:shop", "tenant:acme", "x:y"] }), &[]);
        // 5.6
        check(json!({ "contextKeys": [] }), &["e", "b", "a"]);
        check(json!({ "contextKeys": [""] }), &["e", "b", "a"]);
        check(json!({ "subscriberId": "bob", "contextKeys": [] }), &["e", "b"]);
        check(json!({ "subscriberId": "bob", "channel": "chat", "contextKeys": [] }), &["b"]);
        // What nothing is about is not there, and is no error.
        check(json!({ "subscriberId": "nobody" }), &[]);
        check(json!({ "channel": "email" }), &[]);
        check(json!({ "providerId": "discord" }), &[]);
        check(json!({ "integrationIdentifier": "nowhere" }), &[]);
        check(json!({ "channel": "push", "integrationIdentifier": "slack" }), &[]);
        check(json!({ "contextKeys": ["tenant:nobody"] }), &[]);
        check(json!({ "providerId": "slack", "channel": "push" }), &[]);
    });
}

#[test]
fn what_belongs_to_an_integration_goes_with_it() {
    on_both(|world| {
        let slack = prepare(&world.env);
        let production = world.production();
        prepare(&production);
        let kept = json!({ "integrationIdentifier": "fcm", "subscriberId": "ada" });
        let there = described(json!({ "identifier": "work", "subscriberId": "ada" }));
        production.channel_connections().create(&parsed(there)).unwrap();
        let kept = create(&world, kept);
        let reached = endpoint(&world, "kept", json!({ "integrationIdentifier": "fcm" }));
        let before = world.dump();
        let fields = json!({ "identifier": "work", "subscriberId": "ada" });
        create(&world, fields.clone());
        create(&world, json!({ "subscriberId": "bob" }));
        endpoint(&world, "lobby", json!({ "connectionIdentifier": "work" }));

        world.env.integrations().delete(&slack, &IntegrationDelete::default()).unwrap();

        // 7.4, 13.6
        let refusal = "404 channel connection `work` is not there";
        world.refuses(refusal, || world.env.channel_connections().get(named("work")));
        let refusal = "404 channel endpoint `lobby` is not there";
        world.refuses(refusal, || world.env.channel_endpoints().get("lobby"));
        let of_channels = |dump: &crate::world::Dump| -> Vec<_> {
            let about = |table: &str| table.contains("endpoint") || table.contains("connection");
            dump.clone().into_iter().filter(|((table, _), _)| about(table)).collect()
        };
        assert_eq!(of_channels(&world.dump()), of_channels(&before));
        let query = parsed(json!({}));
        assert_eq!(only(world.env.channel_connections().list(&query).unwrap().data), kept);
        let query = parsed(json!({}));
        assert_eq!(only(world.env.channel_endpoints().list(&query).unwrap().data), reached);

        // The names are free, of the integration as well.
        world.active_integration("chat", "slack");
        create(&world, fields);
    });
}

#[test]
fn what_belongs_to_a_subscriber_goes_with_it() {
    on_both(|world| {
        prepare(&world.env);
        let before = world.dump();
        create(&world, json!({ "subscriberId": "ada" }));
        endpoint(&world, "lobby", json!({}));

        let shared = create(&world, json!({ "context": { "tenant": "acme" } }));
        world.env.subscribers().delete(id("ada")).unwrap();
        assert_eq!(
            only(world.env.channel_connections().list(&parsed(json!({}))).unwrap().data),
            shared
        );
        world.env.channel_connections().delete(&shared.identifier).unwrap();

        let left = world.dump().into_keys().filter(|(table, _)| !table.starts_with("context"));
        // The contexts that are left have a number.
        let gone = |(table, _): &(&str, Vec<u8>)| {
            !table.starts_with("subscriber") && *table != "list_counts"
        };
        let expected: Vec<_> = before.into_keys().filter(gone).collect();
        assert_eq!(left.filter(gone).collect::<Vec<_>>(), expected);
    });
}

#[test]
fn a_connection_shows_what_its_integration_is_called_now() {
    on_both(|world| {
        let slack = prepare(&world.env);
        let made = create(&world, json!({ "identifier": "work", "subscriberId": "ada" }));
        let rename = parsed(json!({ "identifier": "slack-2" }));
        world.env.integrations().update(&slack, &rename).unwrap();

        let renamed = with(wire(made), json!({ "integrationIdentifier": "slack-2" }));
        assert_eq!(wire(get(&world, "work")), renamed);
        let list = |name: &str| {
            let query = parsed(json!({ "integrationIdentifier": name }));
            wire(world.env.channel_connections().list(&query).unwrap().data)
        };
        assert_eq!(list("slack-2"), json!([renamed]));
        assert_eq!(list("slack"), json!([]));
        // It is still the same place.
        let fields = json!({ "subscriberId": "ada", "integrationIdentifier": "slack-2" });
        let again = parsed(described(fields));
        world.refuses("409 channel connection `work` is there already", || {
            world.env.channel_connections().create(&again)
        });
    });
}

#[test]
fn a_provider_of_the_host_has_no_known_name() {
    on_both(|world| {
        prepare(&world.env);
        let own = json!({ "providerId": "pigeons", "channel": "push", "identifier": "own" });
        world.integration(own);
        let owner = json!({ "subscriberId": "ada", "integrationIdentifier": "own" });
        let made = wire(create(&world, owner));
        assert_eq!((&made["providerId"], &made["channel"]), (&Value::Null, &json!("push")));
    });
}

#[test]
fn tokens_are_not_printed() {
    on_both(|world| {
        prepare(&world.env);
        let fields = json!({ "subscriberId": "ada", "identifier": "work" });
        let request: ChannelConnectionCreate = parsed(described(fields));
        let update: ChannelConnectionUpdate = parsed(json!({ "auth": { "accessToken": "hush" } }));
        let made = world.env.channel_connections().create(&request).unwrap();
        let changed = world.env.channel_connections().update(named("work"), &update).unwrap();
        let listed = world.env.channel_connections().list(&parsed(json!({}))).unwrap();

        // 4.13
        let everything = format!("{request:?} {update:?} {made:?} {changed:?} {listed:?}");
        assert!(everything.contains("W1") && !everything.contains("hush"), "{everything}");
        let redacted = wire(made.clone().redacted()).to_string();
        assert!(redacted.contains("***") && !redacted.contains("hush"), "{redacted}");
        assert!(wire(made).to_string().contains("hush"));
    });
}

#[test]
fn of_many_who_want_the_same_place_one_gets_it() {
    on_both(|world| {
        prepare(&world.env);
        let same_place = |n: usize| {
            json!({
                "identifier": format!("work-{n}"),
                "subscriberId": "ada",
                "context": { "tenant": "acme", "app": "shop" },
            })
        };
        let same_name = |n: usize| json!({ "identifier": "work", "context": { "tenant": format!("acme-{n}") } });

        for (so_far, fields) in
            [(0, &same_place as &(dyn Fn(usize) -> Value + Sync)), (1, &same_name)]
        {
            let (won, lost): (Vec<_>, Vec<_>) =
                all_at_once(&world.env, fields).into_iter().partition(Result::is_ok);

            let won = only(won).unwrap();
            assert_eq!(lost.len(), CALLERS - 1);
            for error in lost.into_iter().map(Result::unwrap_err) {
                let Error::Conflict { entity: Entity::ChannelConnection, id } = error else {
                    panic!("{error:?}");
                };
                assert_eq!(id, won.identifier.as_str());
            }
            let listed = world.env.channel_connections().list(&parsed(json!({}))).unwrap().data;
            assert_eq!((listed.len(), &listed[0]), (so_far + 1, &won));
            // Nobody's contexts but those of the winner are there.
            let contexts = world.env.contexts().list(&parsed(json!({}))).unwrap().data;
            assert_eq!(contexts.len(), so_far + 2);
        }
    });
}

const CALLERS: usize = 12;

fn all_at_once(
    env: &Scope,
    fields: &(dyn Fn(usize) -> Value + Sync),
) -> Vec<tidings::Result<ChannelConnection>> {
    let ready = Barrier::new(CALLERS);
    let call = |n: usize| {
        let create = parsed(described(fields(n)));
        ready.wait();
        env.channel_connections().create(&create)
    };
    thread::scope(|scope| {
        let call = &call;
        let callers: Vec<_> = (0..CALLERS).map(|n| scope.spawn(move || call(n))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}

// Two integrations and two subscribers; the id of the first integration.
fn prepare(env: &Scope) -> String {
    for name in ["ada", "bob"] {
        env.subscribers().create(&parsed(json!({ "subscriberId": name }))).unwrap();
    }
    let slack = env.integrations().create(&parsed(active_integration("chat", "slack"))).unwrap();
    env.integrations().create(&parsed(active_integration("push", "fcm"))).unwrap();
    slack.id.to_string()
}

// A connection of nobody, but for what `fields` say.
fn described(fields: Value) -> Value {
    let connection = json!({
        "integrationIdentifier": "slack",
        "workspace": { "id": "W1" },
        "auth": { "accessToken": "hush" },
    });
    with(connection, fields)
}

fn create(world: &World, fields: Value) -> ChannelConnection {
    world.env.channel_connections().create(&parsed(described(fields))).unwrap()
}

fn endpoint(world: &World, identifier: &str, fields: Value) -> tidings::endpoint::ChannelEndpoint {
    let endpoint = json!({
        "identifier": identifier,
        "subscriberId": "ada",
        "integrationIdentifier": "slack",
        "type": "slack_user",
        "endpoint": { "userId": "U1" },
    });
    world.env.channel_endpoints().create(&parsed(with(endpoint, fields))).unwrap()
}

fn get(world: &World, identifier: &str) -> ChannelConnection {
    world.env.channel_connections().get(named(identifier)).unwrap()
}

fn named(identifier: &str) -> ConnectionIdentifier {
    identifier.parse().unwrap()
}
