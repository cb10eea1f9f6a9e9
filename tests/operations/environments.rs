//! Environments: creating (14) and listing (18) them, those that are there from the start, and
//! getting in with a key.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use tidings::api_key::{ApiKey, ApiKeyCreate, CreatedApiKey};
use tidings::environment::{Environment, EnvironmentCreate, EnvironmentType};
use tidings::ids::EnvironmentId;
use tidings::retention::Retention;
use tidings::secret::Secret;
use tidings::{Entropy, Scope};

use crate::world::{
    NO_ID, START, World, id, in_app, names, on_both, on_both_with, only, parsed, unreadable, wire,
};

#[test]
fn a_new_environment_has_a_key_of_its_own() {
    on_both(|world| {
        let development = world.organization.environments().development().unwrap();

        let created = create(
            &world,
            json!({
                "name": "  QA & Test ", "color": "#a1b2c3", "parentId": development.id,
            }),
        );

        // 14.1, 14.2
        let key = only(&created.api_keys);
        assert_eq!(
            wire(&created),
            json!({
                "_id": created.id,
                "name": "QA & Test",
                "_organizationId": "acme",
                "identifier": created.identifier,
                "type": "prod",
                "apiKeys": [{ "key": key.key.expose(), "_userId": "host", "hash": key.hash }],
                "_parentId": development.id,
                "slug": created.slug,
                "color": "#a1b2c3",
                "createdAt": START,
            })
        );
        let slug = created.slug.as_deref().unwrap();
        assert!(slug.starts_with("qa-test_env_"), "{slug}");
        assert_eq!(created.identifier.len(), 12);
        assert_eq!((key.key.expose().len(), key.hash.as_ref().unwrap().len()), (52, 64));
    });
}

#[test]
fn two_environments_are_there_from_the_start() {
    on_both(|world| {
        let environments = world.organization.environments();
        let development = environments.development().unwrap();
        let production = environments.production().unwrap();

        let shown = |one: &Environment| {
            let slug = one.slug.clone().unwrap();
            (one.name.to_string(), one.kind, slug[..slug.find("_env_").unwrap()].to_owned())
        };
        let (dev, prod) = (Some(EnvironmentType::Dev), Some(EnvironmentType::Prod));
        assert_eq!(shown(&development), ("Development".into(), dev, "dev".into()));
        assert_eq!(shown(&production), ("Production".into(), prod, "prod".into()));
        // They are created once.
        let again = world.unchanged(|| {
            [environments.development().unwrap(), environments.production().unwrap()]
        });
        assert_eq!(again, [development, production]);
        assert_eq!(environments.list().unwrap(), again);
    });
}

#[test]
fn environments_can_be_told_apart() {
    on_both(|world| {
        // The same name in another case is another name.
        let made: Vec<_> = ["QA", "qa", "Qa 2"]
            .iter()
            .map(|name| create(&world, json!({ "name": name, "color": "fff" })))
            .collect();
        let listed = world.organization.environments().list().unwrap();
        assert_eq!(listed[1..], made);

        // 14.9
        let parts: [fn(&Environment) -> String; 4] = [
            |one| one.id.to_string(),
            |one| one.identifier.clone(),
            |one| one.slug.clone().unwrap(),
            |one| one.api_keys[0].key.expose().to_owned(),
        ];
        for part in parts {
            let mut parts: Vec<_> = listed.iter().map(part).collect();
            parts.sort();
            parts.dedup();
            assert_eq!(parts.len(), 4);
        }
    });
}

#[test]
fn what_cannot_be_created_is_refused() {
    on_both(|world| {
        create(&world, json!({ "name": "QA", "color": "fff" }));
        let stranger = world.elsewhere().environment_id();
        let check = |name: &str, parent: Option<EnvironmentId>, refusal: &str| {
            let create = parsed(json!({ "name": name, "color": "#fff", "parentId": parent }));
            world.refuses(refusal, || world.organization.environments().create(&create));
        };

        // 14.5
        check("production", None, "400 the name `production` is reserved");
        check(" Production ", None, "400 the name `Production` is reserved");
        check("DEVELOPMENT", None, "400 the name `DEVELOPMENT` is reserved");
        // 14.6
        check("QA", None, "409 environment `QA` is there already");
        check("\tQA ", None, "409 environment `QA` is there already");
        // 14.7
        for parent in [NO_ID.parse().unwrap(), stranger] {
            check("New", Some(parent), &format!("404 environment `{parent}` is not there"));
        }
    });
    let check = |create: Value, text: &str| {
        assert_eq!(unreadable::<EnvironmentCreate>(create), text);
    };
    // 14.3
    check(json!({ "color": "fff" }), "missing field `name`");
    check(json!({ "name": "  ", "color": "fff" }), "`name` must not be empty");
    // 14.4
    check(json!({ "name": "QA" }), "missing field `color`");
    let text = "`color` must be a color of 3, 4, 6 or 8 hexadecimal digits";
    check(json!({ "name": "QA", "color": "red" }), text);
    let text = "`environmentId` must be an identifier made by the engine";
    assert_eq!("42".parse::<EnvironmentId>().unwrap_err().to_string(), text);
}

#[test]
fn environments_do_not_see_what_is_in_one_another() {
    on_both(|world| {
        let qa = create(&world, json!({ "name": "QA", "color": "fff" }));
        let qa = world.engine.environment(qa.id).unwrap();
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        world.active_integration("email", "sendgrid");

        // 14.8
        assert_eq!(qa.workflows().list(&parsed(json!({}))).unwrap().data, []);
        assert_eq!(qa.integrations().list().unwrap(), []);
        assert_eq!(qa.notifications().list(&parsed(json!({}))).unwrap().data, []);
        let refusal = "404 subscriber `ada` is not there";
        world.refuses(refusal, || qa.subscribers().get(id("ada")));
        world.refuses("404 workflow `hi` is not there", || qa.workflows().get("hi"));
    });
}

#[test]
fn organizations_do_not_see_one_another() {
    on_both(|world| {
        let other = world.engine.organization("acme2").unwrap();

        // 18.1
        assert_eq!(other.environments().list().unwrap(), []);
        let theirs = other.environments().development().unwrap();
        let fields = json!({ "name": "QA", "color": "fff" });
        let ours = create(&world, fields.clone());
        // The same names, in another organization.
        let qa = other.environments().create(&parsed(fields)).unwrap();

        assert_eq!(other.environments().list().unwrap(), [theirs, qa]);
        let listed = world.organization.environments().list().unwrap();
        assert_eq!(names(&listed, |one| one.name.clone()), ["Development", "QA"]);
        assert_eq!(listed[1], ours);
    });
}

#[test]
fn keys_are_shown_to_those_they_belong_to() {
    on_both(|world| {
        let [development, production] = {
            let environments = world.organization.environments();
            [environments.development().unwrap(), environments.production().unwrap()]
        };

        // 18.2, 18.3
        let listed = world.env.environments().list().unwrap();
        assert_eq!(listed, [development.clone(), production.clone().without_keys()]);
        assert!(listed.iter().all(|one| one.slug.is_some()));
        assert_eq!(wire(&listed[1])["apiKeys"], json!([]));
        let seen = world.env.environments();
        assert_eq!(seen.production().unwrap(), production.without_keys());
        assert_eq!(seen.development().unwrap(), development);
        let made = seen.create(&parsed(json!({ "name": "QA", "color": "fff" }))).unwrap();
        assert_eq!(made.api_keys, []);
    });
}

#[test]
fn keys_are_not_printed() {
    on_both(|world| {
        let environment = world.organization.environments().development().unwrap();
        let key = environment.api_keys[0].key.expose().to_owned();

        // 18.4
        for shown in [format!("{environment:?}"), wire(environment.redacted()).to_string()] {
            assert!(shown.contains("***") && !shown.contains(&key), "{shown}");
        }
    });
}

#[test]
fn an_environment_is_opened_by_its_name_and_created_with_the_first_call() {
    on_both(|world| {
        let organization = &world.organization;
        let staging = organization.environment_named("Staging").unwrap();
        let again = world.unchanged(|| organization.environment_named("Staging")).unwrap();
        assert_eq!(again.environment_id(), staging.environment_id());
        let made = organization.environments().get(staging.environment_id()).unwrap();
        assert_eq!((made.name.as_str(), wire(&made.color)), ("Staging", json!("#888")));
        let taken = parsed(json!({ "name": "Staging", "color": "fff" }));
        let taken = || organization.environments().create(&taken);
        world.refuses("409 environment `Staging` is there already", taken);

        // Reserved names, in any case, are those of the environments that are always there.
        for name in ["Development", " development"] {
            let found = world.unchanged(|| organization.environment_named(name)).unwrap();
            assert_eq!(found.environment_id(), world.env.environment_id());
        }
        world.refuses("422 `name` must not be empty", || organization.environment_named(" "));
    });
}

#[test]
fn an_organization_opens_its_own_environments_only() {
    on_both(|world| {
        let own = world.env.environment_id();
        let opened = world.organization.environment(own).unwrap();
        assert_eq!(opened.environment_id(), own);

        let other = world.engine.organization("umbrella").unwrap();
        let missing = format!("404 environment `{own}` is not there");
        world.refuses(&missing, || other.environment(own));
        let missing = format!("404 environment `{NO_ID}` is not there");
        world.refuses(&missing, || world.engine.environment(NO_ID));
        assert_eq!(world.engine.environment(own).unwrap().environment_id(), own);
        let deleted = world.production().environment_id();
        assert!(world.organization.delete_environment(deleted).unwrap().is_finished);
        let missing = format!("404 environment `{deleted}` is not there");
        world.refuses(&missing, || world.organization.environment(deleted));
    });
}

#[test]
fn a_key_opens_its_environment() {
    on_both(|world| {
        let production = world.organization.environments().production().unwrap();
        for environment in world.organization.environments().list().unwrap() {
            let key = environment.api_keys[0].key.expose();

            let scope = world.engine.authenticate(&format!("ApiKey {key}")).unwrap();

            assert_eq!(scope.environment_id(), environment.id);
            for scheme in ["apikey", "APIKEY", "Apikey"] {
                let scope = world.engine.authenticate(&format!("{scheme} {key}")).unwrap();
                assert_eq!(scope.environment_id(), environment.id, "{scheme}");
            }
            // It sees its own keys and nobody else's.
            let own = |one: &Environment| (one.id == environment.id) != one.api_keys.is_empty();
            assert!(scope.environments().list().unwrap().iter().all(own));
        }

        let key = production.api_keys[0].key.expose();
        let hash = production.api_keys[0].hash.as_deref().unwrap();
        let form = "401 the `Authorization` header must be `ApiKey`, a space and the key";
        for header in
            ["", "ApiKey", "Bearer", key, &format!("api-key {key}"), &format!("{key} {key}")]
        {
            world.refuses(form, || world.engine.authenticate(header));
        }
        let scheme = "401 the `Authorization` header has the scheme `Bearer`: \
                      send `ApiKey`, a space and the key";
        for header in [format!("Bearer {key}"), format!("bearer {key}")] {
            world.refuses(scheme, || world.engine.authenticate(&header));
        }
        let unknown = "401 the API key is not known";
        for header in [
            "ApiKey ",
            &format!("ApiKey  {key}"),
            &format!("ApiKey {key} "),
            &format!("ApiKey {}", &key[1..]),
            &format!("ApiKey {}", key.to_uppercase()),
            &format!("ApiKey {hash}"),
            &format!("ApiKey {}", production.identifier),
        ] {
            world.refuses(unknown, || world.engine.authenticate(header));
        }
    });
}

#[test]
fn a_key_opens_the_same_things_as_the_host_does() {
    on_both(|world| {
        world.workflow_of("hi", &[in_app()]);
        let environment = world.organization.environments().development().unwrap();
        let key = environment.api_keys[0].key.expose();

        let scope = world.engine.authenticate(&format!("ApiKey {key}")).unwrap();

        assert_eq!(scope.workflows().get("hi").unwrap(), world.env.workflows().get("hi").unwrap());
    });
}

/// Entropy that gives the same bytes each time.
#[derive(Debug)]
struct Stuck;

impl Entropy for Stuck {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// Each key opens its own environment, and goes alone.
#[test]
fn equal_entropy_makes_no_equal_keys() {
    on_both_with(
        |builder| builder.entropy(Stuck),
        |world| {
            let created = ["one", "two"].map(|name| key(&world, name));
            let elsewhere = world.elsewhere();
            let theirs = elsewhere.api_keys().create(&parsed(json!({ "name": "one" }))).unwrap();
            let opens = |key: &Secret| {
                let opened = world.engine.authenticate(&format!("ApiKey {}", key.expose()));
                opened.map(|scope| scope.environment_id())
            };
            for one in &created {
                assert_eq!(opens(&one.key).unwrap(), world.env.environment_id());
            }
            assert_eq!(opens(&theirs.key).unwrap(), elsewhere.environment_id());
            let of_environment = |env: &Scope| env.api_keys().list().unwrap()[0].hash.clone();
            assert_ne!(of_environment(&world.env), of_environment(&elsewhere));

            world.env.api_keys().revoke(created[0].record.id).unwrap();
            assert!(opens(&created[0].key).is_err());
            assert_eq!(opens(&created[1].key).unwrap(), world.env.environment_id());
        },
    );
}

#[test]
fn a_key_is_created_listed_and_revoked() {
    on_both(|world| {
        let first = world.organization.environments().development().unwrap().api_keys.remove(0);
        world.tick();
        let created = key(&world, "  Orders ");
        let record = &created.record;
        assert_eq!(created.key.expose().len(), 52);
        assert!(created.key.expose().ends_with(&record.last_characters));
        assert_eq!((record.name.as_str(), record.last_characters.len()), ("Orders", 4));

        let listed = world.env.api_keys().list().unwrap();
        assert_eq!(names(&listed, |one| one.name.clone()), ["Default", "Orders"]);
        assert_eq!(listed[1], *record);
        assert_eq!(Some(&listed[0].hash), first.hash.as_ref());
        // The key is shown by no other answer, and stored nowhere.
        let environments = world.organization.environments().list().unwrap();
        for shown in [wire(&listed), wire(environments)] {
            assert!(!shown.to_string().contains(created.key.expose()));
        }
        for value in world.dump().values() {
            let key = created.key.expose().as_bytes();
            assert!(!value.windows(key.len()).any(|window| window == key));
        }

        let opens = |key: &Secret| {
            let opened = world.engine.authenticate(&format!("ApiKey {}", key.expose()));
            opened.map(|scope| scope.environment_id())
        };
        assert_eq!(opens(&created.key).unwrap(), world.env.environment_id());
        let open = world.engine.authenticate(&format!("ApiKey {}", created.key.expose())).unwrap();
        assert_eq!(open.api_keys().revoke(record.id).unwrap(), *record);
        world.refuses("401 the API key is not known", || opens(&created.key));
        // A scope that was opened stays open, and the other key opens as before.
        assert_eq!(open.api_keys().list().unwrap().len(), 1);
        assert_eq!(opens(&first.key).unwrap(), world.env.environment_id());

        // The key that the environment was created with.
        world.env.api_keys().revoke(listed[0].id).unwrap();
        world.refuses("401 the API key is not known", || opens(&first.key));
        let development = world.organization.environments().development().unwrap();
        assert_eq!((development.api_keys, world.env.api_keys().list().unwrap()), (vec![], vec![]));
        let gone = format!("404 API key `{}` is not there", record.id);
        world.refuses(&gone, || world.env.api_keys().revoke(record.id));
        // The name is free again.
        assert_ne!(key(&world, "Orders").key, created.key);
    });
}

#[test]
fn a_key_that_cannot_be_created_is_refused() {
    on_both(|world| {
        key(&world, "Orders");
        let create = |name: &str| ApiKeyCreate::new(name).unwrap();
        for taken in ["Orders", "Default"] {
            let refusal = format!("409 API key `{taken}` is there already");
            world.refuses(&refusal, || world.env.api_keys().create(&create(taken)));
        }
        let production = world.production();
        let stranger = production.api_keys().list().unwrap()[0].id;
        let gone = format!("404 API key `{stranger}` is not there");
        world.refuses(&gone, || world.env.api_keys().revoke(stranger));
        // Another environment has names of its own.
        production.api_keys().create(&create("Orders")).unwrap();
        for number in 2..ApiKey::MAX {
            key(&world, &format!("key {number}"));
        }
        let refusal = "400 an environment has at most 100 API keys";
        world.refuses(refusal, || world.env.api_keys().create(&create("one more")));
    });
    assert_eq!(unreadable::<ApiKeyCreate>(json!({ "name": " " })), "`name` must not be empty");
}

/// One row per cursor. An organization without an environment is not in the store.
#[test]
fn the_organizations_of_a_store_are_listed_in_pages() {
    on_both(|world| {
        let id = |number: usize| format!("org-{number:03}");
        for number in 0..101 {
            let organization = world.engine.organization(id(number)).unwrap();
            organization.production().unwrap();
            organization.development().unwrap();
        }
        world.engine.organization("a name only").unwrap();
        let page = |after: Option<&str>| {
            let after = after.map(|after| after.parse().unwrap());
            let page = world.unchanged(|| world.engine.organizations(after.as_ref()).unwrap());
            (names(&page.data, ToString::to_string), page.next.map(|next| next.to_string()))
        };
        let all: Vec<_> = std::iter::once("acme".into()).chain((0..101).map(id)).collect();
        for (after, first, next) in [
            (None, 0, Some(&all[99])),
            (Some("acme"), 1, Some(&all[100])),
            (Some("acme0"), 1, Some(&all[100])),
            (Some("org-000"), 2, None),
            (Some("org-099"), 101, None),
            (Some("org-100"), 102, None),
            (Some("z"), 102, None),
        ] {
            let expected = all[first..].iter().take(100).cloned().collect();
            assert_eq!(page(after), (expected, next.cloned()), "{after:?}");
        }
    });
}

#[test]
fn a_deleted_environment_is_closed_and_its_name_is_free() {
    on_both(|world| {
        let fields = json!({ "name": "QA", "color": "fff" });
        let qa = create(&world, fields.clone());
        let child = create(&world, json!({ "name": "Child", "color": "fff", "parentId": qa.id }));
        let header = format!("ApiKey {}", qa.api_keys[0].key.expose());
        let scope = world.engine.authenticate(&header).unwrap();
        scope.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();

        let deletion = world.organization.delete_environment(qa.id).unwrap();

        assert_eq!((deletion.environments, deletion.is_finished), (1, true));
        let gone = format!("404 environment `{}` is not there", qa.id);
        world.refuses("401 the API key is not known", || world.engine.authenticate(&header));
        world.refuses(&gone, || world.engine.environment(qa.id));
        world.refuses(&gone, || world.organization.delete_environment(qa.id));
        world.refuses(&gone, || scope.environments().update(qa.id, &parsed(json!({}))));
        // A scope that was opened before shows nothing, and changes nothing.
        let ada = parsed(json!({ "subscriberId": "ada" }));
        world.refuses(&gone, || scope.subscribers().create(&ada));
        let once = scope.idempotent("once").unwrap();
        world.refuses(&gone, || once.subscribers().create(&ada));
        let hi = [parsed(json!({ "name": "hi", "to": "ada" }))];
        world.refuses(&gone, || scope.events().trigger(&hi[0]));
        world.refuses(&gone, || once.events().trigger_bulk(&hi));
        world.refuses(&gone, || scope.notifications().rebuild_index());
        world.refuses(&gone, || scope.subscribers().erase("ada"));
        assert_eq!(scope.subscribers().find("ada").unwrap(), None);
        assert_eq!(scope.api_keys().list().unwrap(), []);
        // 14.6
        let again = create(&world, fields);
        assert_ne!(again.id, qa.id);
        let listed = world.organization.environments().list().unwrap();
        assert_eq!(names(&listed, |one| one.name.clone()), ["Development", "Child", "QA"]);
        assert_eq!((listed[1].id, listed[1].parent_id), (child.id, None));
    });
}

#[test]
fn an_environment_that_is_there_from_the_start_comes_back_empty() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        let id = world.env.environment_id();

        assert!(world.organization.delete_environment(id).unwrap().is_finished);

        let fresh = world.organization.development().unwrap();
        assert_ne!(fresh.environment_id(), id);
        assert_eq!(fresh.notifications().list(&parsed(json!({}))).unwrap().data, []);
        let other = world.engine.organization("other").unwrap();
        let gone = format!("404 environment `{}` is not there", fresh.environment_id());
        world.refuses(&gone, || other.delete_environment(fresh.environment_id()));
    });
}

/// A deletion that was broken off does not keep the name, and no key opens what is left.
#[test]
fn an_environment_that_is_being_deleted_is_listed_and_closed() {
    on_both(|world| {
        let fields = json!({ "name": "QA", "color": "fff" });
        let qa = create(&world, fields.clone());
        let scope = world.engine.environment(qa.id).unwrap();
        let at = world.tick();
        let broken_off =
            world.organization.delete_environment_with(qa.id, |_| ControlFlow::Break(())).unwrap();
        assert_eq!((broken_off.environments, broken_off.is_finished), (0, false));

        let gone = format!("404 environment `{}` is not there", qa.id);
        world.refuses(&gone, || world.engine.environment(qa.id));
        world.refuses(&gone, || scope.api_keys().create(&ApiKeyCreate::new("Orders").unwrap()));
        let update = parsed(json!({ "defaultLocale": "de" }));
        world.refuses(&gone, || world.organization.environments().update(qa.id, &update));
        let child = parsed(json!({ "name": "Child", "color": "fff", "parentId": qa.id }));
        world.refuses(&gone, || world.organization.environments().create(&child));
        let again = create(&world, fields);
        let listed = world.organization.environments().list().unwrap();
        let shown = |one: &Environment| (one.id, one.deleted_at);
        assert_eq!(shown(&listed[1]), (qa.id, Some(at)));
        assert_eq!(wire(&listed[1])["deletedAt"], wire(at));
        assert_eq!(shown(&listed[2]), (again.id, None));

        world.tick();
        assert!(world.organization.delete_environment(qa.id).unwrap().is_finished);
        assert_eq!(world.organization.environments().list().unwrap().len(), 2);
    });
}

/// What is left of it gets no task of its own any more.
#[test]
fn retention_leaves_an_environment_alone_that_is_being_deleted() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(30)),
        |world| {
            let qa = create(&world, json!({ "name": "QA", "color": "fff" }));
            world.run_due();
            let break_off = |_| ControlFlow::Break(());
            let deletion = world.organization.delete_environment_with(qa.id, break_off).unwrap();
            assert!(!deletion.is_finished);
            // A start, and a look at what each environment lacks.
            let engine = world
                .engine_with(|builder| builder.retention(Retention::default().activity_days(30)));
            world.unchanged(|| engine.delivery().run_due(100).unwrap());
            assert!(world.organization.delete_environment(qa.id).unwrap().is_finished);
        },
    );
}

fn key(world: &World, name: &str) -> CreatedApiKey {
    world.env.api_keys().create(&ApiKeyCreate::new(name).unwrap()).unwrap()
}

fn create(world: &World, fields: Value) -> Environment {
    world.organization.environments().create(&parsed(fields)).unwrap()
}
