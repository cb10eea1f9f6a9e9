//! Look-ups: `find` returns `None` where `get` refuses, and they show the same records.

use serde_json::json;
use tidings::message::{MarkAs, MarkMessages, MessageQuery};

use crate::translations::{resource, upsert};
use crate::world::{NO_ID, on_both, parsed};

// Looks up a record that is there and one that is not, in a group of operations.
macro_rules! looks_up {
    ($world:ident, $group:expr, $there:expr, $missing:expr, $refusal:expr) => {
        looks_up!($world, $group, get, find, ($there), ($missing), $refusal)
    };
    ($world:ident, $group:expr, $get:ident, $find:ident,
     ($($there:expr),+), ($($missing:expr),+), $refusal:expr) => {
        let group = $group;
        assert_eq!(group.$find($($there),+).unwrap(), Some(group.$get($($there),+).unwrap()));
        assert_eq!(group.$find($($missing),+).unwrap(), None);
        $world.refuses($refusal, || group.$get($($missing),+));
    };
}

#[test]
fn every_group_gets_and_finds() {
    on_both(|world| {
        let env = &world.env;
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let notification = world.notify("hi", "ada");
        let message = world.messages("ada")[0].id;
        let integration = world.active_integration("chat", "slack").id;
        assert_eq!(
            env.topics()
                .subscribe("news", &parsed(json!({ "subscriptions": ["ada"] })))
                .unwrap()
                .errors,
            []
        );
        env.contexts().create(&parsed(json!({ "type": "tenant", "id": "acme" }))).unwrap();
        env.layouts().upsert(&parsed(json!({ "layoutId": "plain", "name": "Plain" }))).unwrap();
        upsert(&world, "workflow", "hi", "de", json!({ "a": "A" }));
        let hi = resource("workflow", "hi");

        let refusal = |what: &str| format!("404 {what} is not there");
        let no = |entity: &str| refusal(&format!("{entity} `no`"));
        let no_id = |entity: &str| refusal(&format!("{entity} `{NO_ID}`"));
        looks_up!(world, env.subscribers(), "ada", "no", &no("subscriber"));
        let ada = env.subscribers().get("ada").unwrap();
        assert_eq!(env.subscribers().find_by_id(ada.id).unwrap(), Some(ada));
        assert_eq!(env.subscribers().find_by_id(NO_ID).unwrap(), None);
        looks_up!(world, env.workflows(), "hi", "no", &no("workflow"));
        looks_up!(world, env.topics(), "news", "no", &no("topic"));
        looks_up!(world, env.layouts(), "plain", "no", &no("layout"));
        let context = refusal("context `tenant:no`");
        looks_up!(world, env.contexts(), "tenant:acme", "tenant:no", &context);
        looks_up!(world, env.integrations(), integration, NO_ID, &no_id("integration"));
        looks_up!(world, env.notifications(), notification, NO_ID, &no_id("notification"));
        let (home, environment) = (env.environment_id(), no_id("environment"));
        looks_up!(world, env.environments(), home, NO_ID, &environment);
        let french = refusal("translation `workflow/hi/fr`");
        looks_up!(world, env.translations(), get, find, (&hi, "de"), (&hi, "fr"), &french);
        let other = no_id("message");
        looks_up!(world, env.messages(), get, find, ("ada", message), ("ada", NO_ID), &other);
        let (there, missing) = ("tk_news:si_ada", no("subscription"));
        let topics = env.topics();
        looks_up!(
            world,
            topics,
            get_subscription,
            find_subscription,
            ("news", there),
            ("news", "no"),
            &missing
        );
        assert_eq!(env.topics().find_subscription("no", there).unwrap(), None);
        let workflow = resource("workflow", "no");
        assert_eq!(env.translations().find(&workflow, "de").unwrap(), None);
    });
}

#[test]
fn connections_and_endpoints_are_found() {
    on_both(|world| {
        let env = &world.env;
        world.bare_subscriber("ada");
        world.active_integration("chat", "slack");
        let connection = json!({
            "identifier": "conn", "integrationIdentifier": "slack", "subscriberId": "ada",
            "workspace": { "id": "w" }, "auth": { "accessToken": "t" },
        });
        env.channel_connections().create(&parsed(connection)).unwrap();
        let endpoint = json!({
            "identifier": "end", "integrationIdentifier": "slack", "subscriberId": "ada",
            "type": "slack_channel", "endpoint": { "channelId": "c" },
        });
        env.channel_endpoints().create(&parsed(endpoint)).unwrap();

        let refusal = "404 channel connection `no` is not there";
        looks_up!(world, env.channel_connections(), "conn", "no", refusal);
        looks_up!(
            world,
            env.channel_endpoints(),
            "end",
            "no",
            "404 channel endpoint `no` is not there"
        );
    });
}

/// A malformed id is refused by every call that takes one.
#[test]
fn ids_are_checked_on_the_way_in() {
    on_both(|world| {
        let refusal = "422 `subscriberId` must not be empty";
        world.refuses(refusal, || world.env.subscribers().find(""));
        world.refuses(refusal, || world.env.inbox(""));
        world.refuses(refusal, || world.env.preferences(String::new()));
        let refusal = "422 `notificationId` must be an identifier made by the engine";
        world.refuses(refusal, || world.env.notifications().get("no"));
        world.refuses("422 `organizationId` must not be empty", || world.engine.organization(""));
    });
}

#[test]
fn an_inbox_is_kept_in_a_let_and_a_mark_is_one_call() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        let inbox = world.env.inbox("ada").unwrap();
        let message = inbox.list(&MessageQuery::default()).unwrap().data[0].id;
        let mark: MarkMessages = parsed(json!({ "messageId": message, "markAs": "read" }));

        let marked = world.env.messages().mark("ada", mark.message_id, mark.mark_as).unwrap();

        assert!(marked[0].stage.is_read());
        world.tick();
        let short = || world.env.messages().mark("ada", [message], MarkAs::Read);
        assert_eq!(world.unchanged(|| short().unwrap()), marked);
    });
}
