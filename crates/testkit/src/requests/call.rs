//! The operation that a request names.

use domain::ids::{MessageId, OrganizationId, QuarantineId};
use domain::integration::IntegrationDelete;
use domain::message::MarkAs;
use domain::quarantine::QuarantineQuery;
use tidings::{Engine, Scope, SubscriberPreferences};

use super::{Answer, Arguments, Refusal, said, unknown};

/// Calls the operation of that name.
pub(super) fn dispatch(engine: &Engine, env: &Scope, name: &str, given: &Arguments<'_>) -> Answer {
    let (group, operation) = name.split_once('.').unwrap_or((name, ""));
    match group {
        "channel_connections" | "channel_endpoints" | "integrations" => {
            channels(env, group, operation, given)
        }
        "topics" => topics(env, operation, given),
        "suppressions" => suppressions(env, operation, given),
        "links" => links(env, operation, given),
        "layouts" | "translations" => translations(env, group, operation, given),
        "dead_letters" => dead_letters(env, operation, given),
        "messages" | "notifications" | "events" => activity(env, group, operation, given),
        "inbox" => of_inbox(env, operation, given),
        "delivery" | "quarantine" | "engine" | "organization" => {
            of_all(engine, group, operation, given)
        }
        _ => people(env, group, operation, given),
    }
}

/// The operations on all environments.
fn of_all(engine: &Engine, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    match (group, operation) {
        ("delivery", "run_due") => {
            let report = engine.delivery().run_due(usize::from(given.get::<u8>(0)?));
            said(report.map(|report| format!("{report:?}")))
        }
        ("delivery", "next_due") => said(engine.delivery().next_due()),
        ("delivery", "stats") => said(engine.delivery().stats().map(|stats| format!("{stats:?}"))),
        ("quarantine", "list") => {
            let mut query = QuarantineQuery::default().limit(usize::from(given.get::<u8>(0)?));
            query.after = given.get(1)?;
            let page = engine.quarantine().list(&query);
            // The answers in files of earlier formats are without the rest of the page.
            if query.after.is_some() { said(page) } else { said(page.map(|page| page.data)) }
        }
        ("quarantine", "get") => said(engine.quarantine().get(given.get::<QuarantineId>(0)?)),
        ("quarantine", "find") => said(engine.quarantine().find(given.get::<QuarantineId>(0)?)),
        ("quarantine", "requeue") => {
            said(engine.quarantine().requeue(given.get::<QuarantineId>(0)?))
        }
        ("quarantine", "discard") => {
            said(engine.quarantine().discard(given.get::<QuarantineId>(0)?))
        }
        ("engine", "authenticate") => {
            let opened = engine.authenticate(&given.get::<String>(0)?);
            said(opened.map(|scope| scope.environment_id()))
        }
        ("engine", "unsubscribe_scope") => {
            let opened = engine.unsubscribe_scope(&given.get::<String>(0)?);
            said(opened.map(|scope| scope.environment_id()))
        }
        ("engine", "environment") => {
            said(engine.environment(given.name(0)?).map(|scope| scope.environment_id()))
        }
        ("organization", "environment") => {
            let (organization, id) = (engine.organization(given.name(0)?), given.name(1)?);
            let opened = organization.and_then(|organization| organization.environment(id));
            said(opened.map(|scope| scope.environment_id()))
        }
        ("organization", "environment_named") => {
            let (organization, name) = (engine.organization(given.name(0)?), given.name(1)?);
            let opened = organization.and_then(|organization| organization.environment_named(name));
            said(opened.map(|scope| scope.environment_id()))
        }
        ("engine", "organizations") => {
            said(engine.organizations(given.get::<Option<OrganizationId>>(0)?.as_ref()))
        }
        _ => unknown(),
    }
}

fn people(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    match (group, operation) {
        ("environments", "create") => said(env.environments().create(&given.get(0)?)),
        ("environments", "update") => {
            said(env.environments().update(given.name(0)?, &given.get(1)?))
        }
        ("environments", "list") => said(env.environments().list()),
        ("environments", "get") => said(env.environments().get(given.name(0)?)),
        ("environments", "find") => said(env.environments().find(given.name(0)?)),
        ("environments", "development") => said(env.environments().development()),
        ("environments", "production") => said(env.environments().production()),
        ("keys", "create") => said(env.api_keys().create(&given.get(0)?)),
        ("keys", "list") => said(env.api_keys().list()),
        ("keys", "revoke") => said(env.api_keys().revoke(given.name(0)?)),
        ("subscribers", "create") => said(env.subscribers().create(&given.get(0)?)),
        ("subscribers", "upsert") => said(env.subscribers().upsert(&given.get(0)?)),
        ("subscribers", "get") => said(env.subscribers().get(given.name(0)?)),
        ("subscribers", "find") => said(env.subscribers().find(given.name(0)?)),
        ("subscribers", "find_by_id") => said(env.subscribers().find_by_id(given.name(0)?)),
        ("subscribers", "list") => said(env.subscribers().list(&given.get(0)?)),
        ("subscribers", "update") => said(env.subscribers().update(given.name(0)?, &given.get(1)?)),
        ("subscribers", "set_channel") => {
            said(env.subscribers().set_channel(given.name(0)?, &given.get(1)?))
        }
        ("subscribers", "remove_channel") => {
            said(env.subscribers().remove_channel(given.name(0)?, given.name(1)?))
        }
        ("subscribers", "remove_device") => {
            let token: String = given.get(2)?;
            said(env.subscribers().remove_device(given.name(0)?, given.name(1)?, &token))
        }
        ("subscribers", "upsert_bulk") => {
            said(env.subscribers().upsert_bulk(&given.get::<Vec<_>>(0)?))
        }
        ("subscribers", "set_online") => {
            said(env.subscribers().set_online(given.name(0)?, given.get(1)?))
        }
        ("subscribers", "subscriptions") => {
            said(env.subscribers().subscriptions(given.name(0)?, &given.get(1)?))
        }
        ("subscribers", "delete") => said(env.subscribers().delete(given.name(0)?)),
        ("subscribers", "export") => said(env.subscribers().export(given.name(0)?)),
        ("subscribers", "erase") => said(env.subscribers().erase(given.name(0)?)),
        ("workflows", "create") => said(env.workflows().create(&given.get(0)?)),
        ("workflows", "get") => said(env.workflows().get(&given.get::<String>(0)?)),
        ("workflows", "find") => said(env.workflows().find(&given.get::<String>(0)?)),
        ("workflows", "preview") => {
            let shown = env.workflows().preview(&given.get::<String>(0)?, &given.get(1)?);
            said(shown.map(|rendered| format!("{rendered:?}")))
        }
        ("workflows", "list") => said(env.workflows().list(&given.get(0)?)),
        ("workflows", "update") => {
            said(env.workflows().update(&given.get::<String>(0)?, &given.get(1)?))
        }
        ("workflows", "upsert") => said(env.workflows().upsert(&given.get(0)?)),
        ("workflows", "sync") => said(env.workflows().sync(&given.get(0)?)),
        ("workflows", "pause") => said(env.workflows().pause(&given.get::<String>(0)?)),
        ("workflows", "resume") => said(env.workflows().resume(&given.get::<String>(0)?)),
        ("workflows", "delete") => said(env.workflows().delete(&given.get::<String>(0)?)),
        ("contexts", "create") => said(env.contexts().create(&given.get(0)?)),
        ("contexts", "get") => said(env.contexts().get(given.name(0)?)),
        ("contexts", "find") => said(env.contexts().find(given.name(0)?)),
        ("contexts", "list") => said(env.contexts().list(&given.get(0)?)),
        ("contexts", "update") => said(env.contexts().update(given.name(0)?, &given.get(1)?)),
        ("contexts", "delete") => said(env.contexts().delete(given.name(0)?)),
        ("preferences", "get") => said(preferences(env, given)?.get(&given.get(1)?)),
        ("preferences", "update_bulk") => {
            said(preferences(env, given)?.update_bulk(&given.get(1)?))
        }
        ("preferences", "update_global") => {
            said(preferences(env, given)?.update_global(&given.get(1)?))
        }
        _ => unknown(),
    }
}

fn channels(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    let (integrations, connections) = (env.integrations(), env.channel_connections());
    let endpoints = env.channel_endpoints();
    match (group, operation) {
        ("integrations", "create") => said(integrations.create(&given.get(0)?)),
        ("integrations", "upsert") => said(integrations.upsert(&given.get(0)?)),
        ("integrations", "get") => said(integrations.get(given.name(0)?)),
        ("integrations", "find") => said(integrations.find(given.name(0)?)),
        ("integrations", "test") => {
            said(integrations.test(given.name(0)?).map(|test| format!("{test:?}")))
        }
        ("integrations", "health") => {
            // The answers in files of earlier formats have the earlier name of the field.
            said(
                integrations
                    .health()
                    .map(|health| format!("{health:?}").replace("latest: None", "since: None")),
            )
        }
        ("integrations", "list") => said(integrations.list()),
        ("integrations", "list_active") => said(integrations.list_active()),
        ("integrations", "update") => said(integrations.update(given.name(0)?, &given.get(1)?)),
        ("integrations", "set_primary") => said(integrations.set_primary(given.name(0)?)),
        ("integrations", "pause") => said(integrations.pause(given.name(0)?)),
        ("integrations", "ingest_receipt") => {
            said(integrations.ingest_receipt(given.name(0)?, &given.get(1)?))
        }
        ("integrations", "resume") => said(integrations.resume(given.name(0)?)),
        ("integrations", "delete") => {
            said(integrations.delete(given.name(0)?, &given.get::<IntegrationDelete>(1)?))
        }
        ("channel_connections", "create") => said(connections.create(&given.get(0)?)),
        ("channel_connections", "get") => said(connections.get(given.name(0)?)),
        ("channel_connections", "find") => said(connections.find(given.name(0)?)),
        ("channel_connections", "list") => said(connections.list(&given.get(0)?)),
        ("channel_connections", "update") => {
            said(connections.update(given.name(0)?, &given.get(1)?))
        }
        ("channel_connections", "delete") => said(connections.delete(given.name(0)?)),
        ("channel_endpoints", "create") => said(endpoints.create(&given.get(0)?)),
        ("channel_endpoints", "get") => said(endpoints.get(given.name(0)?)),
        ("channel_endpoints", "find") => said(endpoints.find(given.name(0)?)),
        ("channel_endpoints", "list") => said(endpoints.list(&given.get(0)?)),
        ("channel_endpoints", "update") => said(endpoints.update(given.name(0)?, &given.get(1)?)),
        ("channel_endpoints", "delete") => said(endpoints.delete(given.name(0)?)),
        _ => unknown(),
    }
}

fn topics(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let topics = env.topics();
    match operation {
        "create" => said(topics.create(&given.get(0)?)),
        "upsert" => said(topics.upsert(&given.get(0)?)),
        "get" => said(topics.get(given.name(0)?)),
        "find" => said(topics.find(given.name(0)?)),
        "list" => said(topics.list(&given.get(0)?)),
        "update" => said(topics.update(given.name(0)?, &given.get(1)?)),
        "delete" => said(topics.delete(given.name(0)?)),
        "subscribe" => said(topics.subscribe(given.name(0)?, &given.get(1)?)),
        "unsubscribe" => said(topics.unsubscribe(given.name(0)?, &given.get(1)?)),
        "get_subscription" => said(topics.get_subscription(given.name(0)?, given.name(1)?)),
        "find_subscription" => said(topics.find_subscription(given.name(0)?, given.name(1)?)),
        "subscriptions" => said(topics.subscriptions(given.name(0)?, &given.get(1)?)),
        "update_subscription" => {
            said(topics.update_subscription(given.name(0)?, given.name(1)?, &given.get(2)?))
        }
        _ => unknown(),
    }
}

fn suppressions(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let suppressions = env.suppressions();
    match operation {
        "add" => said(suppressions.add(&given.get(0)?)),
        "get" => said(suppressions.get(given.get(0)?, &given.get::<String>(1)?)),
        "find" => said(suppressions.find(given.get(0)?, &given.get::<String>(1)?)),
        "list" => said(suppressions.list(&given.get(0)?)),
        "remove" => said(suppressions.remove(given.get(0)?, &given.get::<String>(1)?)),
        "clear" => match given.get::<Option<_>>(0)? {
            Some(channel) => said(suppressions.clear_channel(channel)),
            None => said(suppressions.clear_all()),
        },
        _ => unknown(),
    }
}

fn links(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    match operation {
        "url" => said(env.unsubscribe_url(&given.get(0)?)),
        "read" => said(env.read_unsubscribe(&given.get::<String>(0)?)),
        "unsubscribe" => said(env.unsubscribe(&given.get::<String>(0)?)),
        _ => unknown(),
    }
}

fn translations(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    let (layouts, translations) = (env.layouts(), env.translations());
    match (group, operation) {
        ("layouts", "upsert") => said(layouts.upsert(&given.get(0)?)),
        ("layouts", "get") => said(layouts.get(&given.get::<String>(0)?)),
        ("layouts", "find") => said(layouts.find(&given.get::<String>(0)?)),
        ("layouts", "list") => said(layouts.list(&given.get(0)?)),
        ("layouts", "delete") => said(layouts.delete(&given.get::<String>(0)?)),
        ("translations", "upsert") => said(translations.upsert(&given.get(0)?)),
        ("translations", "import") => said(translations.import(&given.get(0)?)),
        ("translations", "get") => said(translations.get(&given.get(0)?, given.name(1)?)),
        ("translations", "find") => said(translations.find(&given.get(0)?, given.name(1)?)),
        ("translations", "list") => said(translations.list(&given.get(0)?)),
        ("translations", "delete") => said(translations.delete(&given.get(0)?, given.name(1)?)),
        ("translations", "delete_group") => said(translations.delete_group(&given.get(0)?)),
        _ => unknown(),
    }
}

fn activity(env: &Scope, group: &str, operation: &str, given: &Arguments<'_>) -> Answer {
    match (group, operation) {
        ("events", "trigger") => said(env.events().trigger(&given.get(0)?)),
        ("events", "trigger_bulk") => said(env.events().trigger_bulk(&given.get::<Vec<_>>(0)?)),
        ("events", "broadcast") => said(env.events().broadcast(&given.get(0)?)),
        ("events", "cancel") => said(env.events().cancel(given.name(0)?)),
        ("events", "explain") => said(env.events().explain(&given.get(0)?, given.get(1)?)),
        ("events", "progress") => said(env.events().progress(given.name(0)?)),
        ("notifications", "get") => said(env.notifications().get(given.name(0)?)),
        ("notifications", "find") => said(env.notifications().find(given.name(0)?)),
        ("notifications", "messages") => said(env.notifications().messages(given.name(0)?)),
        ("notifications", "digest_events") => {
            said(env.notifications().digest_events(given.name(0)?, given.get(1)?))
        }
        ("notifications", "list") => said(env.notifications().list(&given.get(0)?)),
        ("notifications", "count") => said(env.notifications().count(&given.get(0)?)),
        ("notifications", "resend") => {
            said(env.notifications().resend(given.name(0)?, given.name(1)?))
        }
        ("notifications", "delete") => said(env.notifications().delete(given.name(0)?)),
        ("notifications", "delete_before") => {
            said(env.notifications().delete_before(given.get(0)?))
        }
        ("notifications", "rebuild_index") => said(env.notifications().rebuild_index().map(drop)),
        ("notifications", "check_index") => {
            said(env.notifications().check_index().map(|check| format!("{check:?}")))
        }
        ("messages", "list") => said(env.messages().list(given.name(0)?, &given.get(1)?)),
        ("messages", "get") => said(env.messages().get(given.name(0)?, given.name(1)?)),
        ("messages", "find") => said(env.messages().find(given.name(0)?, given.name(1)?)),
        ("messages", "mark") => {
            let ids: Vec<MessageId> = given.get(1)?;
            said(env.messages().mark(given.name(0)?, ids, given.get(2)?))
        }
        _ => unknown(),
    }
}

fn dead_letters(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let letters = env.dead_letters();
    match operation {
        "get" => said(letters.get(given.name(0)?)),
        "find" => said(letters.find(given.name(0)?)),
        "list" => said(letters.list(&given.get(0)?)),
        "count" => said(letters.count(&given.get(0)?)),
        "redrive" => said(letters.redrive(given.name(0)?)),
        "discard" => said(letters.discard(given.name(0)?)),
        "redrive_matching" => said(letters.redrive_matching(&given.get(0)?)),
        "discard_matching" => said(letters.discard_matching(&given.get(0)?)),
        _ => unknown(),
    }
}

fn of_inbox(env: &Scope, operation: &str, given: &Arguments<'_>) -> Answer {
    let inbox = env.inbox(given.name(0)?).map_err(Refusal::By)?;
    let ids = || given.get::<Vec<MessageId>>(1);
    match operation {
        "list" => said(inbox.list(&given.get(1)?)),
        "count" => said(inbox.count(&given.get(1)?)),
        "cursor" => said(inbox.cursor()),
        "changes_since" => said(inbox.changes_since(&given.get(1)?)),
        "counts" => said(inbox.counts()),
        "counts_of_tag" => said(inbox.counts_of_tag(&given.get::<String>(1)?)),
        "counts_of_severity" => said(inbox.counts_of_severity(given.get(1)?)),
        "mark_as" => said(inbox.mark_as(ids()?, given.get::<MarkAs>(2)?)),
        "mark_all" => said(inbox.mark_all(given.get(1)?)),
        "mark_matching" => said(inbox.mark_matching(&given.get(1)?, given.get(2)?)),
        "archive" => said(inbox.archive(ids()?)),
        "unarchive" => said(inbox.unarchive(ids()?)),
        "delete" => said(inbox.delete(ids()?)),
        "archive_matching" => said(inbox.archive_matching(&given.get(1)?)),
        "unarchive_matching" => said(inbox.unarchive_matching(&given.get(1)?)),
        "delete_matching" => said(inbox.delete_matching(&given.get(1)?)),
        "snooze" => said(inbox.snooze(ids()?, given.get(2)?)),
        "unsnooze" => said(inbox.unsnooze(ids()?)),
        "snooze_matching" => said(inbox.snooze_matching(&given.get(1)?, given.get(2)?)),
        "unsnooze_matching" => said(inbox.unsnooze_matching(&given.get(1)?)),
        "complete_action" => said(inbox.complete_action(given.name(1)?, &given.get(2)?)),
        "revert_action" => said(inbox.revert_action(given.name(1)?, given.get(2)?)),
        _ => unknown(),
    }
}

fn preferences<'s>(
    env: &'s Scope,
    given: &Arguments<'_>,
) -> Result<SubscriberPreferences<'s>, Refusal> {
    env.preferences(given.name(0)?).map_err(Refusal::By)
}
