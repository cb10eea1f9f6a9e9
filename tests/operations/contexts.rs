//! Contexts: creating, reading, changing (16) and deleting them.

use serde_json::{Value, json};
use tidings::context::{Context, ContextCreate, ContextKey, ContextUpdate};

use crate::world::{START, World, on_both, parsed, unreadable, wire, with};

#[test]
fn a_new_context_is_as_it_was_described() {
    on_both(|world| {
        let full = json!({ "type": "tenant", "id": "acme", "data": { "plan": "free" } });
        let longest = json!({ "type": "_-9".repeat(33), "id": "x".repeat(100) });

        for described in [full, longest] {
            let made = create(&world, described.clone());

            let data = described.get("data").cloned().unwrap_or(json!({}));
            let added = json!({
                "_id": made.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "data": data,
                "createdAt": START,
                "updatedAt": START,
            });
            assert_eq!(wire(&made), with(described, added));
            assert_eq!(world.env.contexts().get(&made.key).unwrap(), made);
        }
    });
}

#[test]
fn an_update_replaces_the_data_and_nothing_else() {
    on_both(|world| {
        create(&world, json!({ "type": "tenant", "id": "acme", "data": { "a": 1, "b": 2 } }));
        let other = create(&world, json!({ "type": "app", "id": "acme", "data": { "a": 1 } }));
        let check = |data: Value| {
            let before = wire(get(&world, "tenant:acme"));
            let at = world.tick();

            let after = update(&world, "tenant:acme", data.clone());

            let replaced = json!({ "data": data, "updatedAt": at });
            assert_eq!(wire(&after), with(before, replaced));
            assert_eq!(get(&world, "tenant:acme"), after);
            world.tick();
            // The same once more.
            assert_eq!(world.unchanged(|| update(&world, "tenant:acme", data)), after);
        };

        // 16.1, 16.2
        check(json!({ "b": { "c": [null, true] } }));
        // 16.3
        check(json!({}));
        // 16.6
        check(data_of(65_536, "x"));
        check(data_of(65_536, "ü"));
        // 16.7
        assert_eq!(get(&world, "app:acme"), other);
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    on_both(|world| {
        create(&world, json!({ "type": "tenant", "id": "acme", "data": { "a": 1 } }));
        for foreign in [world.production(), world.elsewhere()] {
            let theirs = parsed(json!({ "type": "tenant", "id": "theirs" }));
            foreign.contexts().create(&theirs).unwrap();
        }

        // 16.4
        let data: ContextUpdate = parsed(json!({ "data": { "a": 2 } }));
        for name in ["tenant:theirs", "tenant:nobody", "app:acme", "acme:tenant", "tenant:ACME"] {
            let refusal = format!("404 context `{name}` is not there");
            let key = key(name);
            world.refuses(&refusal, || world.env.contexts().update(&key, &data));
            world.refuses(&refusal, || world.env.contexts().get(&key));
            world.refuses(&refusal, || world.env.contexts().delete(&key));
        }
        // 16.6
        for fill in ["x", "ü", "\u{1}"] {
            let refusal = "422 `data` must be at most 65536 bytes long";
            let large = data_of(65_537, fill);
            let update = parsed(json!({ "data": large }));
            world.refuses(refusal, || world.env.contexts().update(key("tenant:acme"), &update));
            let new = parsed(json!({ "type": "tenant", "id": "new", "data": large }));
            world.refuses(refusal, || world.env.contexts().create(&new));
        }
        let again = parsed(json!({ "type": "tenant", "id": "acme" }));
        let refusal = "409 context `tenant:acme` is there already";
        world.refuses(refusal, || world.env.contexts().create(&again));
    });
}

/// One row per request that is not even one, and what is said.
#[test]
fn what_cannot_be_read_is_refused() {
    // 16.5
    let not_a_map = "invalid type: sequence, expected a map";
    let deep = (0..65).fold(json!(0), |inner, _| json!({ "in": inner }));
    for (update, text) in [
        (json!({}), "missing field `data`"),
        (json!({ "data": null }), "invalid type: null, expected a map"),
        (json!({ "data": [] }), not_a_map),
        (json!({ "data": "text" }), "invalid type: string \"text\", expected a map"),
        (json!({ "data": deep }), "`object` must be nested at most 64 levels deep"),
    ] {
        assert_eq!(unreadable::<ContextUpdate>(update), text);
    }
    let part = "must be 1 to 100 letters, digits, `_` and `-`";
    let long = "x".repeat(101);
    for bad in ["", "a b", "a:b", "a.b", "ä", "a\0b", &long] {
        for fields in [json!({ "type": bad }), json!({ "id": bad })] {
            let create = with(json!({ "type": "tenant", "id": "acme" }), fields);
            let text = unreadable::<ContextCreate>(create);
            assert!(text.ends_with(part), "{text}");
        }
    }
    for name in ["tenant", "", ":", "a:b:c", "tenant:"] {
        name.parse::<ContextKey>().unwrap_err();
    }
    let id = unreadable::<ContextCreate>(json!({ "type": "tenant" }));
    assert_eq!(id, "missing field `id`");
    let kind = unreadable::<ContextCreate>(json!({ "id": "acme" }));
    assert_eq!(kind, "missing field `type`");
    let list = unreadable::<ContextCreate>(json!({ "type": "a", "id": "b", "data": [] }));
    assert_eq!(list, not_a_map);
}

#[test]
fn what_carries_the_key_of_a_deleted_context_keeps_it() {
    on_both(|world| {
        world.active_integration("chat", "slack");
        let before = world.dump();
        create(&world, json!({ "type": "app", "id": "gone", "data": { "a": 1 } }));
        world.env.contexts().delete(key("app:gone")).unwrap();
        assert!(world.dump() == before, "something of the context is left");

        let connection = world
            .env
            .channel_connections()
            .create(&parsed(json!({
                "context": { "tenant": "acme" },
                "integrationIdentifier": "slack",
                "workspace": { "id": "W1" },
                "auth": { "accessToken": "token" },
            })))
            .unwrap();
        world.env.contexts().delete(key("tenant:acme")).unwrap();

        let refusal = "404 context `tenant:acme` is not there";
        world.refuses(refusal, || world.env.contexts().delete(key("tenant:acme")));
        let kept = world.env.channel_connections().get(&connection.identifier).unwrap();
        assert_eq!(kept, connection);
        // It may come back, as another one.
        let again = create(&world, json!({ "type": "tenant", "id": "acme" }));
        assert_eq!(get(&world, "tenant:acme"), again);
    });
}

// Data that takes `size` bytes as JSON text, most of which are `fill`.
fn data_of(size: usize, fill: &str) -> Value {
    let around = json!({ "": "" }).to_string().len();
    let each = json!(fill).to_string().len() - 2;
    let (many, rest) = ((size - around) / each, (size - around) % each);
    let data = json!({ "": fill.repeat(many) + &"x".repeat(rest) });
    assert_eq!(data.to_string().len(), size);
    data
}

fn create(world: &World, fields: Value) -> Context {
    world.env.contexts().create(&parsed(fields)).unwrap()
}

fn get(world: &World, name: &str) -> Context {
    world.env.contexts().get(key(name)).unwrap()
}

fn update(world: &World, name: &str, data: Value) -> Context {
    let update = parsed(Value::from_iter([("data", data)]));
    world.env.contexts().update(key(name), &update).unwrap()
}

fn key(name: &str) -> ContextKey {
    name.parse().unwrap()
}
