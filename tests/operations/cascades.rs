//! Deleting something with all that depends on it, however much that is.

use std::slice;
use std::time::Duration;

use serde_json::{Value, json};
use store::Table;
use testkit::interposed::{Interposed, Lie, Point};
use testkit::tables::check_indexes;
use tidings::integration::{Integration, IntegrationDelete};
use tidings::preference::WorkflowPreferenceUpdates;
use tidings::subscription::Subscribe;
use tidings::translation::TranslationUpsert;
use tidings::trigger::Trigger;
use tidings::workflow::{Workflow, WorkflowCreate, WorkflowSync};
use tidings::{Builder, Error, Result, Scope};

use crate::topics::key;
use crate::translations::resource;
use crate::world::{self, World, active_integration, id, in_app, parsed, with, workflow_of};

// How many dependents one transaction removes.
const AT_A_TIME: usize = 500;

const HOUR: Duration = Duration::from_secs(3_600);

// Something to delete.
struct Deletion {
    kind: &'static str,
    // Creates one of that name with so many dependents.
    create: fn(&Scope, &str, usize),
    delete: fn(&Scope, &str) -> Result<()>,
    is_there: fn(&Scope, &str) -> bool,
    // What stays behind on purpose.
    stays: &'static [Table],
}

const DELETIONS: &[Deletion] = &[
    Deletion {
        kind: "subscriber",
        create: |env, name, count| {
            env.subscribers().create(&parsed(json!({ "subscriberId": name }))).unwrap();
            let request = json!({ "subscriptions": [name] });
            assert_eq!(
                env.topics().subscribe(key("crowd"), &parsed::<Subscribe>(request)).unwrap().errors,
                []
            );
            let word = json!({ "workflowId": "hi", "channels": { "sms": false } });
            let update: WorkflowPreferenceUpdates = parsed(json!({ "preferences": [word] }));
            env.preferences(id(name)).unwrap().update_bulk(&update).unwrap();
            endpoints(env, "slack", name, 1);
            // So many, with the three of above.
            let event = json!({ "name": "hi", "to": name });
            triggered(env, &vec![event; count - 3]);
        },
        delete: |env, name| env.subscribers().delete(id(name)),
        is_there: |env, name| env.subscribers().get(id(name)).is_ok(),
        stays: &[
            Table::Notifications,
            Table::Triggers,
            Table::Transactions,
            Table::ActivityHeads,
            Table::ActivityFacets,
            Table::ActivitySegments,
        ],
    },
    Deletion {
        kind: "topic",
        create: |env, name, count| {
            let item = |n: usize| {
                let subscriber = format!("s{}", n / 10);
                json!({ "subscriberId": subscriber, "identifier": format!("i{n}") })
            };
            let items: Vec<_> = (0..count).map(item).collect();
            for items in items.chunks(100) {
                let request: Subscribe = parsed(json!({ "subscriptions": items }));
                assert_eq!(env.topics().subscribe(key(name), &request).unwrap().errors, []);
            }
        },
        delete: |env, name| env.topics().delete(key(name)),
        is_there: |env, name| env.topics().get(key(name)).is_ok(),
        stays: &[],
    },
    Deletion {
        kind: "workflow",
        create: |env, name, count| {
            let create = workflow_of(name, &[in_app()]);
            env.workflows().create(&parsed(create)).unwrap();
            // Some of them are words of subscribers.
            for n in 0..2 {
                let word = json!({ "workflowId": name, "channels": { "sms": false } });
                let update: WorkflowPreferenceUpdates = parsed(json!({ "preferences": [word] }));
                env.preferences(id(&format!("s{n}"))).unwrap().update_bulk(&update).unwrap();
            }
            translations(env, "workflow", name, count - 2);
        },
        delete: |env, name| env.workflows().delete(name),
        is_there: |env, name| listed(env, name).is_some(),
        stays: &[],
    },
    Deletion {
        kind: "layout",
        create: |env, name, count| {
            let upsert = json!({ "layoutId": name, "name": name });
            env.layouts().upsert(&parsed(upsert)).unwrap();
            translations(env, "layout", name, count);
        },
        delete: |env, name| env.layouts().delete(name),
        is_there: |env, name| env.layouts().get(name).is_ok(),
        stays: &[],
    },
    Deletion {
        kind: "integration",
        create: |env, name, count| {
            let create = active_integration("chat", name);
            env.integrations().create(&parsed(create)).unwrap();
            let connection = json!({
                "integrationIdentifier": name,
                "subscriberId": "s0",
                "workspace": { "id": "w" },
                "auth": { "accessToken": "t" },
            });
            env.channel_connections().create(&parsed(connection)).unwrap();
            endpoints(env, name, "s1", count - 1);
        },
        delete: |env, name| {
            let integration = integration(env, name).unwrap();
            env.integrations().delete(integration.id, &IntegrationDelete::default()).map(drop)
        },
        is_there: |env, name| integration(env, name).is_some(),
        // It is not shown any more, and that it was there can be seen.
        stays: &[Table::Integrations],
    },
];

#[test]
fn a_deletion_leaves_nothing_of_what_it_deletes_and_everything_else() {
    for deletion in DELETIONS {
        on_both(|world| {
            furnish(&world.env, 1);
            // Somebody whose name begins the same.
            (deletion.create)(&world.env, "name-2", 4);
            check(&world, deletion, "name", 5, None);
            assert!((deletion.is_there)(&world.env, "name-2"), "{}", deletion.kind);
        });
    }
}

#[test]
fn a_deletion_of_much_is_done_in_several_transactions() {
    for deletion in DELETIONS {
        in_memory(|world| {
            furnish(&world.env, 2 * AT_A_TIME);
            (deletion.create)(&world.env, "name-2", 4);
            for count in [AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1] {
                check(&world, deletion, &format!("name-{count}"), count, None);
            }
        });
    }
}

#[test]
fn a_deletion_that_is_interrupted_goes_on_when_it_is_called_again() {
    for deletion in DELETIONS {
        in_memory(|world| {
            furnish(&world.env, 2 * AT_A_TIME);
            check(&world, deletion, "name", 2 * AT_A_TIME, Some(1));
        });
    }
    // In a file as well, where there is much to delete that does not take long to make.
    let topic = DELETIONS.iter().find(|deletion| deletion.kind == "topic").unwrap();
    on_both(|world| {
        furnish(&world.env, AT_A_TIME + 1);
        check(&world, topic, "name", AT_A_TIME + 1, Some(1));
    });
}

/// The preferences go before the workflow, and those who wanted no message get none meanwhile.
#[test]
fn nothing_of_a_workflow_goes_on_after_the_first_transaction_of_its_deletion() {
    for is_paused in [false, true] {
        in_memory(|world| {
            let names = delayed_to_nobody(&world, "hi");
            let workflows = world.env.workflows();
            if is_paused {
                workflows.pause("hi").unwrap();
            }
            world.interrupted(1, || workflows.delete("hi")).unwrap_err();
            check_closed(&world, &names);
            let list = workflows.list(&parsed(json!({}))).unwrap().data;
            assert_eq!(list.len(), 1);
            assert!(list[0].deleted && list[0].deleted_at.is_some(), "{:?}", list[0]);

            workflows.delete("hi").unwrap();

            assert_eq!(workflows.delete("hi").unwrap_err().status(), 404);
            workflows.create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
            world.trigger(json!({ "name": "hi", "to": names[0] }));
            assert_eq!(world.inbox(&names[0]).len(), 1);
        });
    }
}

#[test]
fn a_synchronization_goes_on_with_a_deletion_that_was_interrupted() {
    in_memory(|world| {
        let workflows = world.env.workflows();
        let hi = parsed::<WorkflowCreate>(delayed("hi"));
        workflows.sync(&WorkflowSync::new([hi.clone()])).unwrap();
        let names = opted_out(&world, "hi");
        let nothing = WorkflowSync::new([]).delete_undeclared();
        world.interrupted(2, || workflows.sync(&nothing)).unwrap_err();
        check_closed(&world, &names);
        for keeping in [WorkflowSync::new([]), WorkflowSync::new([]).deactivate_undeclared()] {
            assert_eq!(workflows.sync(&keeping).unwrap().undeclared.len(), 1);
            assert!(listed(&world.env, "hi").unwrap().active);
        }
        let declared = WorkflowSync::new([hi.clone()]);
        world.refuses(&unfinished("workflow", "hi"), || workflows.sync(&declared));

        assert_eq!(workflows.sync(&nothing).unwrap().undeclared.len(), 1);

        assert_eq!(listed(&world.env, "hi"), None);
        assert_eq!(workflows.sync(&WorkflowSync::new([hi])).unwrap().created.len(), 1);
    });
}

/// Another instance of the host, of a later version, declares what this one deletes.
#[test]
fn what_a_synchronization_is_to_delete_is_not_declared_meanwhile() {
    on_both(|world| {
        let workflows = world.env.workflows();
        let declared = ["a", "b", "c"].map(|name| parsed::<WorkflowCreate>(delayed(name)));
        workflows.sync(&WorkflowSync::new(declared.clone())).unwrap();
        workflows.pause("c").unwrap();
        let fewer = WorkflowSync::new([declared[0].clone()]).delete_undeclared();
        world.interrupted(1, || workflows.sync(&fewer)).unwrap_err();
        for (name, create) in ["b", "c"].into_iter().zip(&declared[1..]) {
            let again = WorkflowSync::new([create.clone()]);
            world.refuses(&unfinished("workflow", name), || workflows.sync(&again));
        }

        assert_eq!(workflows.sync(&fewer).unwrap().undeclared.len(), 2);

        let again = workflows.sync(&WorkflowSync::new(declared)).unwrap();
        assert_eq!((again.created.len(), again.unchanged.len()), (2, 1));
    });
}

/// The preferences go before the subscriber, and it gets no message that they have forbidden.
#[test]
fn nothing_is_sent_to_a_subscriber_after_the_first_transaction_of_its_deletion() {
    let delete: Removal = |env| env.subscribers().delete(id("ada"));
    let erase: Removal = |env| env.subscribers().erase(id("ada")).map(drop);
    for endpoints in [AT_A_TIME - 2, AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1] {
        check_silent(endpoints, 0, delete);
    }
    for contexts in [AT_A_TIME / 100, 12] {
        check_silent(0, contexts, delete);
        check_silent(0, contexts, erase);
    }
}

/// A damaged file may show records that are not found by their keys, and so cannot be removed.
#[test]
fn a_deletion_that_finds_its_records_again_is_refused() {
    for deletion in DELETIONS {
        in_memory(|world| {
            furnish(&world.env, AT_A_TIME + 1);
            (deletion.create)(&world.env, "name", AT_A_TIME + 1);
            world.store.tell(Lie::Undeleted);
            // It ends long before that.
            world.store.stop(Point::Write, 10);

            let refused = (deletion.delete)(&world.env, "name").unwrap_err();

            let is_corrupt = matches!(refused, Error::Store(store::Error::Corrupt { .. }));
            assert!(is_corrupt, "{}: {refused:?}", deletion.kind);
        });
    }
}

/// Another caller may create a dependent again that was removed already.
#[test]
fn a_deletion_ends_although_its_first_dependent_is_created_again() {
    in_memory(|world| {
        let named = |n: usize| format!("s{n:03}");
        let subscribe = |env: &Scope, ids: &[String]| {
            assert_eq!(
                env.topics()
                    .subscribe(key("news"), &parsed(json!({ "subscriptions": ids })))
                    .unwrap()
                    .errors,
                []
            );
        };
        let everybody: Vec<_> = (0..AT_A_TIME + 100).map(named).collect();
        for ids in everybody.chunks(100) {
            for id in ids {
                world.bare_subscriber(id);
            }
            subscribe(&world.env, ids);
        }
        let env = world.env.clone();
        world.store.pause(Point::Write, 1, move || subscribe(&env, &[named(0)]));

        world.env.topics().delete(key("news")).unwrap();

        assert_eq!(world.env.topics().get(key("news")).unwrap_err().status(), 404);
    });
}

/// Another caller deletes the record as well, and gives its name to a new one.
#[test]
fn a_deletion_leaves_what_gets_the_name_meanwhile() {
    for deletion in DELETIONS {
        let by_name: fn(&Scope, &str) -> Result<()> = match deletion.kind {
            "integration" => {
                |env, name| env.integrations().delete(name, &IntegrationDelete::default()).map(drop)
            }
            _ => deletion.delete,
        };
        in_memory(|world| {
            furnish(&world.env, AT_A_TIME + 1);
            (deletion.create)(&world.env, "name", AT_A_TIME + 1);
            let env = world.env.clone();
            world.store.pause(Point::Write, 1, move || {
                by_name(&env, "name").unwrap();
                (deletion.create)(&env, "name", 4);
            });

            by_name(&world.env, "name").unwrap();

            assert!((deletion.is_there)(&world.env, "name"), "{}", deletion.kind);
            assert_eq!(world.engine.check().unwrap().findings, [], "{}", deletion.kind);
        });
    }
}

/// A group is deleted in several transactions as well, and whatever the number of its
/// translations, it says so and its resource is not translated any more.
#[test]
fn a_group_of_many_translations_is_deleted_as_a_whole() {
    for count in [0, AT_A_TIME - 2, AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1] {
        in_memory(|world| {
            let translated = json!({ "isTranslationEnabled": true });
            let create = with(workflow_of("hi", &[in_app()]), translated);
            world.env.workflows().create(&parsed(create)).unwrap();
            translations(&world.env, "workflow", "hi", count);
            let delete = || world.env.translations().delete_group(&resource("workflow", "hi"));

            delete().unwrap_or_else(|error| panic!("{count} translations: {error}"));

            assert_eq!(world.rows(Table::TranslationGroups), 0, "{count}");
            let left = world.env.translations().list(&parsed(json!({}))).unwrap().data;
            assert_eq!(left, [], "{count}");
            let workflow = world.env.workflows().get("hi").unwrap();
            assert!(!workflow.is_translation_enabled, "{count}");
            assert_eq!(delete().unwrap_err().status(), 404);
        });
    }
}

#[test]
fn the_deletion_of_a_group_goes_on_after_it_was_interrupted() {
    // The last of them leaves nothing but the group.
    for count in [AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1] {
        in_memory(|world| {
            world
                .env
                .layouts()
                .upsert(&parsed(json!({
                    "layoutId": "frame", "name": "Frame", "isTranslationEnabled": true,
                })))
                .unwrap();
            translations(&world.env, "layout", "frame", count);
            let delete = || world.env.translations().delete_group(&resource("layout", "frame"));

            if world.interrupted(1, delete).is_err() {
                assert!(world.env.layouts().get("frame").unwrap().is_translation_enabled);
                delete().unwrap();
            }

            assert_eq!(world.rows(Table::TranslationGroups), 0, "{count}");
            assert!(!world.env.layouts().get("frame").unwrap().is_translation_enabled);
        });
    }
}

/// Runs `scenario` on each backend, in an environment of short segments.
pub fn on_both(scenario: impl Fn(World)) {
    world::on_both_with(short_segments, scenario);
}

/// Runs `scenario` in memory, in an environment of short segments.
pub fn in_memory(scenario: impl Fn(World)) {
    scenario(World::with(Interposed::default(), short_segments));
}

fn short_segments(builder: Builder) -> Builder {
    builder.activity_segments(16)
}

// Creates one with so many dependents and deletes it, possibly with an interruption: what is in the
// store then is what was there before.
#[track_caller]
fn check(world: &World, deletion: &Deletion, name: &str, count: usize, interrupted: Option<usize>) {
    let Deletion { kind, create, delete, is_there, stays } = deletion;
    let env = &world.env;
    let before = world.dump_without(stays);
    create(env, name, count);
    let full = world.dump_without(stays).len();
    assert!(full - before.len() > count, "{kind}: there are too few dependents");
    if let Some(after) = interrupted {
        let error = world.interrupted(after, || delete(env, name)).unwrap_err();
        assert_eq!(error.status(), 500, "{kind}: {error}");
        // Some of what depends on it has gone before it.
        let left = world.dump_without(stays).len();
        assert!(is_there(env, name), "{kind}");
        assert!(before.len() < left && left <= full - AT_A_TIME, "{kind}: {left} of {full}");
    }
    delete(env, name).unwrap_or_else(|error| panic!("{kind} with {count} dependents: {error}"));
    assert!(!is_there(env, name), "{kind}");
    assert!(world.dump_without(stays) == before, "{kind} with {count} dependents leaves something");
}

// Something for every kind of dependent to belong to: a topic, a workflow, an integration, and as
// many subscribers as a topic needs for so many subscriptions.
fn furnish(env: &Scope, subscriptions: usize) {
    env.topics().create(&parsed(json!({ "key": "crowd" }))).unwrap();
    env.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
    env.integrations().create(&parsed(active_integration("chat", "slack"))).unwrap();
    let everybody: Vec<_> = (0..=subscriptions / 10 + 1).map(|n| format!("s{n}")).collect();
    let events: Vec<_> =
        everybody.chunks(100).map(|some| json!({ "name": "hi", "to": some })).collect();
    triggered(env, &events);
}

fn triggered(env: &Scope, events: &[Value]) {
    let events: Vec<Trigger> = events.iter().cloned().map(parsed).collect();
    for events in events.chunks(Trigger::MAX_BULK) {
        env.events().trigger_bulk(events).unwrap().all().unwrap();
    }
}

fn endpoints(env: &Scope, integration: &str, subscriber: &str, count: usize) {
    for n in 0..count {
        let endpoint = json!({
            "integrationIdentifier": integration,
            "subscriberId": subscriber,
            "type": "slack_channel",
            "endpoint": { "channelId": format!("c{n}") },
        });
        env.channel_endpoints().create(&parsed(endpoint)).unwrap();
    }
}

// Translates a resource into so many languages.
fn translations(env: &Scope, kind: &str, name: &str, count: usize) {
    let letters = || 'a'..='z';
    let languages = letters()
        .flat_map(|one| letters().map(move |two| [one, two]))
        .flat_map(|[one, two]| letters().map(move |three| String::from_iter([one, two, three])));
    for locale in languages.take(count) {
        let upsert: TranslationUpsert = parsed(json!({
            "resourceType": kind, "resourceId": name, "locale": locale, "content": {},
        }));
        env.translations().upsert(&upsert).unwrap();
    }
}

fn integration(env: &Scope, identifier: &str) -> Option<Integration> {
    let integrations = env.integrations().list().unwrap();
    integrations.into_iter().find(|one| one.identifier.as_str() == identifier)
}

fn delayed(workflow: &str) -> Value {
    let delay = json!({
        "type": "delay",
        "metadata": { "type": "regular", "amount": 1, "unit": "hours" },
    });
    workflow_of(workflow, &[delay, in_app()])
}

// Creates a workflow with more preferences than one transaction removes. Returns those who want none of
// its messages, which are delayed.
fn delayed_to_nobody(world: &World, workflow: &str) -> Vec<String> {
    world.workflow(delayed(workflow));
    opted_out(world, workflow)
}

fn opted_out(world: &World, workflow: &str) -> Vec<String> {
    let names: Vec<_> = (0..=AT_A_TIME).map(|n| format!("s{n:03}")).collect();
    for name in &names {
        world.bare_subscriber(name);
        opt_out(&world.env, name, workflow);
    }
    for some in names.chunks(100) {
        world.trigger(json!({ "name": workflow, "to": some }));
    }
    names
}

fn opt_out(env: &Scope, subscriber: &str, workflow: &str) {
    let word = json!({ "workflowId": workflow, "channels": { "in_app": false } });
    let update: WorkflowPreferenceUpdates = parsed(json!({ "preferences": [word] }));
    env.preferences(id(subscriber)).unwrap().update_bulk(&update).unwrap();
}

// Deletes a subscriber in one of several ways.
type Removal = fn(&Scope) -> Result<()>;

// Interrupts the deletion of a subscriber with so many endpoints, and preferences about 100 workflows in
// so many context sets.
#[track_caller]
fn check_silent(endpoints: usize, contexts: usize, delete: Removal) {
    in_memory(|world| {
        world.active_integration("chat", "slack");
        world.bare_subscriber("ada");
        for workflow in ["hi", "ho"] {
            world.workflow(delayed(workflow));
            opt_out(&world.env, "ada", workflow);
            world.trigger(json!({ "name": workflow, "to": "ada" }));
        }
        self::endpoints(&world.env, "slack", "ada", endpoints);
        preferences(&world, "ada", contexts);

        if world.interrupted(1, || delete(&world.env)).is_err() {
            world.pass(HOUR);
            world.run_due();
            assert_eq!(world.inbox("ada").len(), 0, "{endpoints} endpoints, {contexts} contexts");
            let (subscribers, again) =
                (world.env.subscribers(), parsed(json!({ "subscriberId": "ada" })));
            assert!(subscribers.get(id("ada")).unwrap().deleted);
            let refusal = unfinished("subscriber", "ada");
            world.refuses(&refusal, || subscribers.upsert(&again));
            world.refuses(&refusal, || subscribers.create(&again));
            world.refuses(&refusal, || subscribers.upsert_bulk(slice::from_ref(&again)));
            delete(&world.env).unwrap();
        }
        assert_eq!(world.env.subscribers().delete(id("ada")).unwrap_err().status(), 404);
    });
}

// Switches off a channel of 100 workflows in so many context sets.
fn preferences(world: &World, subscriber: &str, contexts: usize) {
    let names: Vec<_> = (0..100).map(|n| format!("w{n}")).collect();
    for name in &names {
        world.workflow(workflow_of(name, &[in_app()]));
    }
    let off = |name| json!({ "workflowId": name, "channels": { "in_app": false } });
    let all: Vec<_> = names.iter().map(off).collect();
    for tenant in 0..contexts {
        let context = json!({ "tenant": format!("t{tenant}") });
        let update = json!({ "preferences": all, "context": context });
        world.env.preferences(id(subscriber)).unwrap().update_bulk(&parsed(update)).unwrap();
    }
}

// The delays end, and nothing can be done with the workflow.
#[track_caller]
fn check_closed(world: &World, names: &[String]) {
    let workflows = world.env.workflows();
    world.pass(HOUR);
    world.run_due();
    for name in names {
        assert_eq!(world.inbox(name).len(), 0, "{name}");
    }
    let statuses = [
        workflows.get("hi").unwrap_err().status(),
        workflows.update("hi", &parsed(json!({ "name": "Ho" }))).unwrap_err().status(),
        workflows.resume("hi").unwrap_err().status(),
    ];
    assert_eq!(statuses, [404, 404, 404]);
    let refusal = unfinished("workflow", "hi");
    world.refuses(&refusal, || workflows.create(&parsed(delayed("hi"))));
    world.refuses(&refusal, || workflows.upsert(&parsed(delayed("hi"))));
    let event: Trigger = parsed(json!({ "name": "hi", "to": names[0] }));
    assert_eq!(world.env.events().trigger(&event).unwrap_err().status(), 404);
    let shown = world.env.preferences(id(&names[0])).unwrap().get(&parsed(json!({}))).unwrap();
    assert_eq!(shown.workflows, []);
    check_indexes(&world.store);
}

// The refusal of a name whose deletion was interrupted.
fn unfinished(kind: &str, name: &str) -> String {
    format!(
        "409 {kind} `{name}` is being deleted: if the deletion was interrupted, delete it again"
    )
}

fn listed(env: &Scope, workflow: &str) -> Option<Workflow> {
    let workflows = env.workflows().list(&parsed(json!({ "limit": 100 }))).unwrap().data;
    workflows.into_iter().find(|one| one.identifier().as_str() == workflow)
}
