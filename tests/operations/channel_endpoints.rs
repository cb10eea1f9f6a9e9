//! Channel endpoints: creating (1), changing (2), reading and deleting them.

use serde_json::{Value, json};
use tidings::Scope;
use tidings::endpoint::{ChannelEndpoint, ChannelEndpointCreate, ChannelEndpointUpdate};
use tidings::ids::EndpointIdentifier;

use crate::world::{
    START, World, active_integration, names, on_both, only, parsed, unreadable, wire, with,
};

const URL: &str = "https://hooks.example/hush";

#[test]
fn a_new_endpoint_is_as_it_was_described() {
    on_both(|world| {
        let slack = prepare(&world.env);
        connect(&world.env, "slack", "work");

        // 1.1, 1.3, 1.4
        let full = create(
            &world,
            json!({
                "identifier": "lobby",
                "connectionIdentifier": "work",
                "context": { "tenant": "acme-corp", "app": "shop" },
            }),
        );
        // 1.2
        let webhook = json!({ "type": "webhook", "endpoint": { "url": URL } });
        let least = create(&world, webhook);

        assert_eq!(
            wire(&full),
            json!({
                "_id": full.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "identifier": "lobby",
                "channel": "chat",
                "providerId": "slack",
                "_integrationId": slack,
                "integrationIdentifier": "slack",
                "connectionIdentifier": "work",
                "subscriberId": "ada",
                "contextKeys": ["app:shop", "tenant:acme-corp"],
                "type": "slack_channel",
                "endpoint": { "channelId": "C1" },
                "createdAt": START,
                "updatedAt": START,
            })
        );
        assert_eq!(
            wire(&least),
            with(
                wire(&full),
                json!({
                    "_id": least.id,
                    "identifier": least.identifier,
                    "connectionIdentifier": null,
                    "contextKeys": [],
                    "type": "webhook",
                    "endpoint": { "url": URL },
                })
            )
        );
        let made = least.identifier.as_str();
        assert!(made.starts_with("chendp_") && made.len() == 7 + 12, "{made}");
        for endpoint in [full, least] {
            assert_eq!(get(&world, endpoint.identifier.as_str()), endpoint);
        }
    });
}

/// One row per type: what it needs, and what it may have.
#[test]
fn every_type_has_a_shape_of_its_own() {
    on_both(|world| {
        prepare(&world.env);
        for (kind, endpoint) in [
            ("slack_channel", json!({ "channelId": "C1" })),
            ("slack_user", json!({ "userId": "U1" })),
            ("webhook", json!({ "url": "http://localhost:8080/x?y=1#z" })),
            ("webhook", json!({ "url": URL, "channel": "general" })),
            ("phone", json!({ "phoneNumber": "+49301234567" })),
            ("phone", json!({ "phoneNumber": "+12" })),
            ("phone", json!({ "phoneNumber": "+123456789012345" })),
            ("ms_teams_channel", json!({ "teamId": "T1", "channelId": "C1" })),
            ("ms_teams_user", json!({ "userId": "U1" })),
            ("ms_teams_user", json!({ "userId": "U1", "tenantId": "T1" })),
        ] {
            // Any of them goes with any integration.
            let made = wire(create(&world, json!({ "type": kind, "endpoint": endpoint })));
            assert_eq!((&made["type"], &made["endpoint"]), (&json!(kind), &endpoint));
        }
    });
}

#[test]
fn contexts_that_are_named_are_there_afterwards() {
    on_both(|world| {
        prepare(&world.env);
        let existing = json!({ "type": "tenant", "id": "old", "data": { "plan": "free" } });
        let existing = world.env.contexts().create(&parsed(existing)).unwrap();

        let rich = json!({ "id": "old", "data": { "plan": "paid" } });
        create(&world, json!({ "context": { "tenant": rich } }));
        let rich = json!({ "id": "new", "data": { "plan": "paid" } });
        create(&world, json!({ "context": { "tenant": rich, "app": "shop" } }));

        let context = |key: &str| world.env.contexts().get(key).unwrap();
        assert_eq!(context("tenant:old"), existing);
        assert_eq!(wire(context("tenant:new"))["data"], json!({ "plan": "paid" }));
        assert_eq!(wire(context("app:shop"))["data"], json!({}));
    });
}

#[test]
fn a_subscriber_has_many_endpoints() {
    on_both(|world| {
        prepare(&world.env);
        let production = world.production();
        prepare(&production);

        // 1.9, 1.10
        let webhook = json!({ "type": "webhook", "endpoint": { "url": URL } });
        let fields = [
            webhook.clone(),
            webhook,
            json!({ "context": { "tenant": "a" } }),
            json!({ "context": { "tenant": "b" } }),
            json!({ "identifier": "lobby" }),
        ];
        let mut made: Vec<_> = fields.map(|fields| create(&world, fields)).into();
        let lobby = described(json!({ "identifier": "lobby" }));
        let there = production.channel_endpoints().create(&parsed(lobby)).unwrap();

        made.reverse();
        assert_eq!(world.env.channel_endpoints().list(&parsed(json!({}))).unwrap().data, made);
        let listed = production.channel_endpoints().list(&parsed(json!({}))).unwrap();
        assert_eq!(only(listed.data), there);
        let mut identifiers = names(&made, |one| one.identifier.clone());
        identifiers.sort();
        identifiers.dedup();
        assert_eq!(identifiers.len(), made.len());
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
            connect(&foreign, "slack", "theirs");
        }
        connect(&world.env, "twilio", "other");
        create(&world, json!({ "identifier": "lobby" }));
        // A context that is named is not created by a call that is refused.
        let named = json!({ "context": { "tenant": "never" } });
        let check = |fields: Value, refusal: &str| {
            let create = parsed(described(with(named.clone(), fields)));
            world.refuses(refusal, || world.env.channel_endpoints().create(&create));
        };

        // 1.4, 1.5
        let refusal = "409 channel endpoint `lobby` is there already";
        check(json!({ "identifier": "lobby" }), refusal);
        for identifier in ["nowhere", "far"] {
            let refusal = format!("404 integration `{identifier}` is not there");
            check(json!({ "integrationIdentifier": identifier }), &refusal);
        }
        for id in ["nobody", "eve"] {
            let refusal = format!("404 subscriber `{id}` is not there");
            check(json!({ "subscriberId": id }), &refusal);
        }
        // 1.6
        for identifier in ["nowhere", "theirs", "other"] {
            let refusal = format!("404 channel connection `{identifier}` is not there");
            check(json!({ "connectionIdentifier": identifier }), &refusal);
        }
        for (context, refusal) in bad_contexts() {
            check(json!({ "context": context }), refusal);
        }
    });
}

/// One row per create that is not even one: what is different about it, and what is said.
#[test]
fn what_cannot_be_read_is_refused() {
    let check = |fields: Value, text: &str| {
        assert_eq!(unreadable::<ChannelEndpointCreate>(described(fields)), text);
    };
    // 1.5
    for field in ["subscriberId", "integrationIdentifier", "type", "endpoint"] {
        let mut create = described(json!({}));
        create.as_object_mut().unwrap().remove(field);
        let text = unreadable::<ChannelEndpointCreate>(create);
        assert_eq!(text, format!("missing field `{field}`"));
    }
    check(json!({ "identifier": "" }), "`identifier` must not be empty");
    let long = "x".repeat(256);
    check(json!({ "identifier": long }), "`identifier` must be at most 255 bytes long");
    check(json!({ "identifier": "a\0" }), "`identifier` must be text without control characters");
    check(
        json!({ "type": "fax" }),
        "`type` must be one of slack_channel, slack_user, webhook, phone, ms_teams_channel, \
         ms_teams_user",
    );
    // 1.7
    for (kind, endpoint, text) in misshapen() {
        check(json!({ "type": kind, "endpoint": endpoint }), text);
    }
}

#[test]
fn an_update_moves_the_endpoint_and_nothing_else() {
    on_both(|world| {
        prepare(&world.env);
        let named = json!({ "identifier": "lobby", "context": { "tenant": "a" } });
        create(&world, named);
        let hook = json!({ "url": URL, "channel": "general" });
        create(&world, json!({ "identifier": "hook", "type": "webhook", "endpoint": hook }));
        let check = |identifier: &str, endpoint: Value| {
            let before = wire(get(&world, identifier));
            let at = world.tick();

            let after = update(&world, identifier, endpoint.clone());

            let moved = json!({ "endpoint": endpoint, "updatedAt": at });
            assert_eq!(wire(&after), with(before, moved));
            assert_eq!(get(&world, identifier), after);
            world.tick();
            // The same place once more.
            assert_eq!(world.unchanged(|| update(&world, identifier, endpoint)), after);
        };

        // 2.1
        check("lobby", json!({ "channelId": "C2" }));
        // 2.2
        check("hook", json!({ "url": "https://hooks.example/2", "channel": "general" }));
        // 2.5
        check("hook", json!({ "url": "https://hooks.example/2" }));
    });
}

#[test]
fn what_cannot_be_changed_is_refused() {
    on_both(|world| {
        prepare(&world.env);
        create(&world, json!({ "identifier": "lobby" }));
        for foreign in [world.production(), world.elsewhere()] {
            prepare(&foreign);
            let theirs = described(json!({ "identifier": "theirs" }));
            foreign.channel_endpoints().create(&parsed(theirs)).unwrap();
        }
        let check = |identifier: &str, endpoint: Value, refusal: &str| {
            let update = parsed(json!({ "endpoint": endpoint }));
            let identifier = named(identifier);
            world.refuses(refusal, || world.env.channel_endpoints().update(&identifier, &update));
        };

        // 2.3
        check("lobby", json!({ "url": URL }), "422 `endpoint.channelId` is required");
        // 2.4
        for identifier in ["nowhere", "theirs", "LOBBY"] {
            let refusal = format!("404 channel endpoint `{identifier}` is not there");
            check(identifier, json!({ "channelId": "C2" }), &refusal);
            let identifier = named(identifier);
            world.refuses(&refusal, || world.env.channel_endpoints().get(&identifier));
            world.refuses(&refusal, || world.env.channel_endpoints().delete(&identifier));
        }
        // 2.6
        let kinds = misshapen().into_iter().enumerate();
        for (row, (kind, endpoint, text)) in kinds.filter(|(_, (_, data, _))| data.is_object()) {
            let identifier = format!("e{row}");
            let good = match kind {
                "slack_channel" => json!({ "channelId": "C1" }),
                "slack_user" | "ms_teams_user" => json!({ "userId": "U1" }),
                "webhook" => json!({ "url": URL }),
                "phone" => json!({ "phoneNumber": "+12" }),
                _ => json!({ "teamId": "T1", "channelId": "C1" }),
            };
            create(&world, json!({ "identifier": identifier, "type": kind, "endpoint": good }));
            check(&identifier, endpoint, &format!("422 {text}"));
        }
    });
    for (update, text) in [
        (json!({}), "missing field `endpoint`"),
        (json!({ "endpoint": [] }), "invalid type: sequence, expected a map"),
        (json!({ "endpoint": null }), "invalid type: null, expected a map"),
    ] {
        assert_eq!(unreadable::<ChannelEndpointUpdate>(update), text);
    }
}

#[test]
fn an_endpoint_that_is_deleted_is_gone() {
    on_both(|world| {
        prepare(&world.env);
        connect(&world.env, "slack", "work");
        let kept = create(&world, json!({ "identifier": "kept", "connectionIdentifier": "work" }));
        let before = world.dump();
        create(&world, json!({ "identifier": "lobby" }));

        world.env.channel_endpoints().delete(named("lobby")).unwrap();

        assert!(world.dump() == before, "something of the endpoint is left");
        let refusal = "404 channel endpoint `lobby` is not there";
        world.refuses(refusal, || world.env.channel_endpoints().delete(named("lobby")));
        // Its connection may go without it.
        world.env.channel_connections().delete("work").unwrap();
        assert_eq!(get(&world, "kept"), kept);
    });
}

#[test]
fn an_endpoint_shows_what_its_integration_is_called_now() {
    on_both(|world| {
        let slack = prepare(&world.env);
        let made = create(&world, json!({ "identifier": "lobby" }));
        let rename = parsed(json!({ "identifier": "slack-2" }));
        world.env.integrations().update(&slack, &rename).unwrap();

        let renamed = with(wire(made), json!({ "integrationIdentifier": "slack-2" }));
        assert_eq!(wire(get(&world, "lobby")), renamed);
        let list = |name: &str| {
            let query = parsed(json!({ "integrationIdentifier": name }));
            wire(world.env.channel_endpoints().list(&query).unwrap().data)
        };
        assert_eq!(list("slack-2"), json!([renamed]));
        assert_eq!(list("slack"), json!([]));
        let moved = update(&world, "lobby", json!({ "channelId": "C2" }));
        assert_eq!(wire(moved)["integrationIdentifier"], "slack-2");
    });
}

#[test]
fn a_provider_of_the_host_has_no_known_name() {
    on_both(|world| {
        prepare(&world.env);
        let own = json!({ "providerId": "pigeons", "channel": "push", "identifier": "own" });
        world.integration(own);
        // It is not even active.
        let made = wire(create(&world, json!({ "integrationIdentifier": "own" })));
        assert_eq!((&made["providerId"], &made["channel"]), (&Value::Null, &json!("push")));
    });
}

#[test]
fn addresses_of_webhooks_are_not_printed() {
    on_both(|world| {
        prepare(&world.env);
        let endpoint = json!({ "url": URL, "channel": "general" });
        let fields = json!({ "identifier": "hook", "type": "webhook", "endpoint": endpoint });
        let request: ChannelEndpointCreate = parsed(described(fields));
        let update: ChannelEndpointUpdate = parsed(json!({ "endpoint": endpoint }));
        let made = world.env.channel_endpoints().create(&request).unwrap();
        let moved = world.env.channel_endpoints().update(named("hook"), &update).unwrap();
        let listed = world.env.channel_endpoints().list(&parsed(json!({}))).unwrap();

        let everything = format!("{request:?} {update:?} {made:?} {moved:?} {listed:?}");
        assert!(everything.contains("general") && !everything.contains("hush"), "{everything}");
        let redacted = wire(made.clone().redacted()).to_string();
        assert!(redacted.contains("***") && !redacted.contains("hush"), "{redacted}");
        assert!(wire(made).to_string().contains("hush"));
        // Nor are they repeated to whoever gets them wrong.
        let text = unreadable::<ChannelEndpointCreate>(described(
            json!({ "type": "webhook", "endpoint": { "url": "hush" } }),
        ));
        assert!(!text.contains("hush"), "{text}");
    });
}

/// What is wrong with contexts that a call names, and what is said.
pub fn bad_contexts() -> Vec<(Value, &'static str)> {
    let six: serde_json::Map<_, _> = (0..6).map(|n| (format!("t{n}"), json!("x"))).collect();
    macro_rules! kind {
        ($kind:literal) => {
            concat!(
                "422 `context.",
                $kind,
                "` must be under a type of 1 to 100 letters, digits, `_` and `-`"
            )
        };
    }
    let id = "422 `context.tenant` must be 1 to 100 letters, digits, `_` and `-`";
    let large = json!({ "text": "x".repeat(64 * 1024) });
    vec![
        (json!({}), "422 `context` must not be empty"),
        (json!(six), "422 `context` must have at most 5 items"),
        (json!({ "a:b": "c" }), kind!("a:b")),
        (json!({ "": "c" }), kind!("")),
        (
            json!({ "a".repeat(101): "c" }),
            kind!("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."),
        ),
        (json!({ "tenant": "a.b" }), id),
        (json!({ "tenant": "" }), id),
        (json!({ "tenant": "x".repeat(101) }), id),
        (
            json!({ "tenant": { "id": "a", "data": large } }),
            "422 `context.tenant.data` must be at most 65536 bytes long",
        ),
    ]
}

/// Places that are none of their type, and what is said.
fn misshapen() -> Vec<(&'static str, Value, &'static str)> {
    let url = "`endpoint.url` must be an absolute `http` or `https` URL";
    let phone = "`endpoint.phoneNumber` must be a number such as `+4930123456`";
    vec![
        ("slack_channel", json!({ "userId": "U1" }), "`endpoint.channelId` is required"),
        ("slack_channel", json!({ "channelId": null }), "`endpoint.channelId` is required"),
        ("slack_channel", json!({ "channelId": 1 }), "`endpoint.channelId` must be a text"),
        ("slack_channel", json!({ "channelId": "" }), "`endpoint.channelId` must not be empty"),
        (
            "slack_channel",
            json!({ "channelId": "x".repeat(256) }),
            "`endpoint.channelId` must be at most 255 bytes long",
        ),
        (
            "slack_channel",
            json!({ "channelId": "C1", "extra": "x" }),
            "`endpoint.extra` must be a field of the type `slack_channel`, or left out",
        ),
        ("slack_user", json!({ "channelId": "C1" }), "`endpoint.userId` is required"),
        ("webhook", json!({ "channel": "general" }), "`endpoint.url` is required"),
        ("webhook", json!({ "url": "not-a-url" }), url),
        ("webhook", json!({ "url": "" }), url),
        ("webhook", json!({ "url": "ftp://example.org" }), url),
        ("webhook", json!({ "url": "https://" }), url),
        ("webhook", json!({ "url": "https:///path" }), url),
        ("webhook", json!({ "url": "https://a b" }), url),
        (
            "webhook",
            json!({ "url": format!("https://{}", "x".repeat(2_041)) }),
            "`endpoint.url` must be at most 2048 bytes long",
        ),
        ("webhook", json!({ "url": URL, "channel": 1 }), "`endpoint.channel` must be a text"),
        ("phone", json!({}), "`endpoint.phoneNumber` is required"),
        ("phone", json!({ "phoneNumber": "4930123456" }), phone),
        ("phone", json!({ "phoneNumber": "+0301234" }), phone),
        ("phone", json!({ "phoneNumber": "+1" }), phone),
        ("phone", json!({ "phoneNumber": "+1234567890123456" }), phone),
        ("phone", json!({ "phoneNumber": "+49 30 123" }), phone),
        ("ms_teams_channel", json!({ "channelId": "C1" }), "`endpoint.teamId` is required"),
        ("ms_teams_channel", json!({ "teamId": "T1" }), "`endpoint.channelId` is required"),
        ("ms_teams_user", json!({ "tenantId": "T1" }), "`endpoint.userId` is required"),
        ("phone", json!("+4930123456"), "`endpoint` must be a JSON object"),
    ]
}

// A chat integration, a text message integration and a subscriber; the id of the first.
fn prepare(env: &Scope) -> String {
    env.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
    env.integrations().create(&parsed(active_integration("sms", "twilio"))).unwrap();
    let slack = env.integrations().create(&parsed(active_integration("chat", "slack"))).unwrap();
    slack.id.to_string()
}

fn connect(env: &Scope, integration: &str, identifier: &str) {
    let connection = json!({
        "identifier": identifier,
        "subscriberId": "ada",
        "integrationIdentifier": integration,
        "workspace": { "id": "W1" },
        "auth": { "accessToken": "token" },
    });
    env.channel_connections().create(&parsed(connection)).unwrap();
}

// A channel of `ada`, but for what `fields` say.
fn described(fields: Value) -> Value {
    let channel = json!({
        "subscriberId": "ada",
        "integrationIdentifier": "slack",
        "type": "slack_channel",
        "endpoint": { "channelId": "C1" },
    });
    with(channel, fields)
}

fn create(world: &World, fields: Value) -> ChannelEndpoint {
    world.env.channel_endpoints().create(&parsed(described(fields))).unwrap()
}

fn get(world: &World, identifier: &str) -> ChannelEndpoint {
    world.env.channel_endpoints().get(named(identifier)).unwrap()
}

fn update(world: &World, identifier: &str, endpoint: Value) -> ChannelEndpoint {
    let update = parsed(Value::from_iter([("endpoint", endpoint)]));
    world.env.channel_endpoints().update(named(identifier), &update).unwrap()
}

fn named(identifier: &str) -> EndpointIdentifier {
    identifier.parse().unwrap()
}
