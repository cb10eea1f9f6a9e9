use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::condition::var;
use crate::connection::{
    ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate, ConnectionAuth,
    Workspace,
};
use crate::content::{ButtonType, EmailBlock, TextAlign};
use crate::context::{ContextCreate, ContextQuery, ContextUpdate, RichContext};
use crate::credentials::Credentials;
use crate::endpoint::{
    ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate, Endpoint,
};
use crate::environment::EnvironmentCreate;
use crate::error::Invalid;
use crate::filter::Filter;
use crate::integration::{Configurations, IntegrationCreate, IntegrationDelete, IntegrationUpdate};
use crate::layout::{LayoutQuery, LayoutUpsert};
use crate::message::MessageQuery;
use crate::notification::NotificationQuery;
use crate::page::{Direction, OrderBy, PageQuery};
use crate::preference::{
    Criticality, GlobalPreferenceUpdate, Preference, PreferencesQuery, WorkflowPreferenceUpdate,
    WorkflowPreferenceUpdates,
};
use crate::preview::Preview;
use crate::sample;
use crate::schedule::{DaySchedule, Schedule};
use crate::step::{
    Delay, DigestWindow, Step, StepKind, Throttle, TimedConfig, TimedWindow, Variant,
};
use crate::subscriber::{
    ChannelCredentials, ChannelSettings, SubscriberCreate, SubscriberQuery, SubscriberUpdate,
};
use crate::subscription::{
    Subscribe, SubscribeItem, SubscriptionQuery, SubscriptionUpdate, Unsubscribe, UnsubscribeItem,
    WorkflowFilter, WorkflowSetting,
};
use crate::topic::{TopicCreate, TopicQuery, TopicUpdate};
use crate::translation::{
    Resource, ResourceType, TranslationImport, TranslationQuery, TranslationUpsert,
};
use crate::trigger::{Broadcast, Recipient, TopicRecipient, Trigger};
use crate::vocabulary::{
    Channel, ChannelProviderId, ProviderId, Severity, StepType, TimeUnit, Weekday,
};
use crate::workflow::{WorkflowCreate, WorkflowQuery, WorkflowUpdate};

/// Asserts that a composed request equals its JSON, and that every member of the JSON counts.
#[track_caller]
fn same<T>(typed: Result<T, Invalid>, json: Value)
where
    T: Debug + PartialEq + Serialize + DeserializeOwned,
{
    let typed = typed.unwrap();
    let read: T = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(typed, read);
    for name in json.as_object().unwrap().keys() {
        let mut less = json.clone();
        less.as_object_mut().unwrap().remove(name);
        let less = serde_json::from_value::<T>(less);
        assert!(less.is_err() || less.unwrap() != read, "`{name}` is not set");
    }
}

fn is(field: &str) -> Value {
    let part = json!({ "on": "payload", "field": field, "operator": "EQUAL", "value": "true" });
    json!({ "isNegated": false, "type": "GROUP", "value": "AND", "children": [part] })
}

fn express() -> Filter {
    Filter::payload("express").equals(true)
}

fn rule() -> Value {
    json!({ ">": [{ "var": "payload.total" }, 100] })
}

#[test]
fn workflows() {
    let typed = || {
        let email = Step::email("Subject", "<p>Body</p>")?.name("mail").only_if(express());
        WorkflowCreate::new("order-shipped", "Order shipped")?
            .description("Says so")
            .active(false)
            .critical(true)
            .translated(true)
            .severity(Severity::High)
            .tags(["orders"])
            .preference(Preference::default().with(Channel::Email, false))
            .step(Step::sms("Text")?)
            .step(email)
            .data(json!({ "team": 7 }))
    };
    let sms = json!({ "type": "sms", "template": { "body": "Text" } });
    let email = json!({
        "type": "email", "template": { "subject": "Subject", "body": "<p>Body</p>" },
        "name": "mail", "filters": [is("express")],
    });
    same(
        typed(),
        json!({
            "workflowId": "order-shipped", "name": "Order shipped", "description": "Says so",
            "active": false, "critical": true, "isTranslationEnabled": true, "severity": "high",
            "tags": ["orders"], "preferenceSettings": { "email": false }, "steps": [sms, email],
            "data": { "team": 7 },
        }),
    );
    let on = WorkflowCreate::new("w", "W").map(|create| create.steps([] as [Step; 0]).active(true));
    same(on, json!({ "workflowId": "w", "name": "W", "steps": [], "active": true }));
    let typed = || {
        let kept = Step::sms("Text")?.id(sample::id::<crate::ids::StepId>(7));
        WorkflowUpdate::default()
            .name("Name")
            .description("")
            .active(false)
            .critical(true)
            .translated(true)
            .severity(Severity::Low)
            .tags(["x"])
            .preference(Preference::default().enabled(true))
            .clear_operator_preference()
            .steps([kept])
            .data(json!({}))
    };
    let kept = json!({
        "_id": "00000000-0000-0000-0000-000000000007",
        "type": "sms", "template": { "body": "Text" },
    });
    same(
        typed(),
        json!({
            "name": "Name", "description": "", "active": false, "critical": true,
            "isTranslationEnabled": true, "severity": "low", "tags": ["x"],
            "preferenceSettings": { "enabled": true }, "preferences": null, "steps": [kept],
            "data": {},
        }),
    );
    let said = WorkflowUpdate::default().operator_preference(Preference::default()).clear_data();
    same(Ok(said), json!({ "preferences": {}, "data": null }));
    let query = WorkflowQuery::default().tag("x").active(false).limit(5);
    same(Ok(query), json!({ "tag": "x", "active": false, "limit": 5 }));
    same(Ok(WorkflowQuery::default().active(true)), json!({ "active": true }));
}

#[test]
fn steps() {
    let typed = || {
        Ok(Step::in_app("Body")?
            .subject("Subject")?
            .url("https://example.org")?
            .button(ButtonType::Primary, "Yes")?
            .button(ButtonType::Secondary, "No")?
            .result_content("Refused")?
            .uuid("editor-1")
            .active(false)
            .stop_on_fail(true)
            .only_if_any([express()])
            .only_if(Filter::payload("urgent").equals(true))
            .variant(Variant::new(StepKind::in_app("Other")?).name("b").only_if(express()))
            .variant(
                Variant::new(StepKind::in_app("Last")?).active(false).only_if_any([express()]),
            ))
    };
    let mut both = is("express");
    both["children"]
        .as_array_mut()
        .unwrap()
        .extend(is("urgent")["children"].as_array().cloned().unwrap());
    same(
        typed(),
        json!({
            "type": "in_app",
            "template": {
                "subject": "Subject", "body": "Body", "url": "https://example.org",
                "buttons": [
                    { "type": "primary", "content": "Yes" },
                    { "type": "secondary", "content": "No", "resultContent": "Refused" },
                ],
            },
            "uuid": "editor-1", "active": false, "shouldStopOnFail": true,
            "filters": [both],
            "variants": [
                { "type": "in_app", "template": { "body": "Other" }, "name": "b",
                  "filters": [is("express")] },
                { "type": "in_app", "template": { "body": "Last" }, "active": false,
                  "filters": [is("express")] },
            ],
        }),
    );
    let blocks = || {
        let text = EmailBlock::text("Hello")?.aligned(TextAlign::Center);
        Step::email("Old", [text, EmailBlock::button("Track", "{{ payload.url }}")?])?
            .subject("New")
    };
    let body = json!([
        { "type": "text", "content": "Hello", "styles": { "textAlign": "center" } },
        { "type": "button", "content": "Track", "url": "{{ payload.url }}" },
    ]);
    same(blocks(), json!({ "type": "email", "template": { "subject": "New", "body": body } }));
    let template = |layout: Value| json!({ "subject": "S", "body": "B", "layoutId": layout });
    let framed = || Step::email("S", "B")?.layout("plain");
    same(framed(), json!({ "type": "email", "template": template(json!("plain")) }));
    let bare = framed().and_then(Step::without_layout);
    same(bare, json!({ "type": "email", "template": template(Value::Null) }));
    let refused = Step::sms("Text").and_then(Step::without_layout).unwrap_err();
    assert_eq!(refused.field, "layoutId");
    same(Step::chat("Text"), json!({ "type": "chat", "template": { "body": "Text" } }));
    let push = json!({ "type": "push", "template": { "title": "Title", "body": "Body" } });
    same(Step::push("Title", "Body"), push);
}

#[test]
fn steps_that_send_nothing() {
    let delay = Step::delay(Delay::lasting(5, TimeUnit::Minutes));
    let regular = json!({ "type": "regular", "amount": 5, "unit": "minutes" });
    same(Ok(delay), json!({ "type": "delay", "metadata": regular }));
    let until = Step::delay(Delay::until("payload.at"));
    let scheduled = json!({ "type": "scheduled", "delayPath": "payload.at" });
    same(Ok(until), json!({ "type": "delay", "metadata": scheduled }));
    let window = DigestWindow::new(1, TimeUnit::Hours)
        .digest_key("order")
        .backoff(true)
        .backoff_amount(2)
        .backoff_unit(TimeUnit::Days)
        .update_mode(false);
    let metadata = json!({
        "type": "regular", "amount": 1, "unit": "hours", "digestKey": "order", "backoff": true,
        "backoffAmount": 2, "backoffUnit": "days", "updateMode": false,
    });
    same(Ok(Step::digest(window)), json!({ "type": "digest", "metadata": metadata }));
    let config = TimedConfig::default().at_time("09:30").week_days([Weekday::Monday]);
    let timed =
        TimedWindow::default().amount(1).unit(TimeUnit::Weeks).digest_key("k").timed(config);
    let metadata = json!({
        "type": "timed", "amount": 1, "unit": "weeks", "digestKey": "k",
        "timed": { "atTime": "09:30", "weekDays": ["monday"] },
    });
    same(Ok(Step::digest(timed)), json!({ "type": "digest", "metadata": metadata }));
    let throttle = Throttle::per(1, TimeUnit::Days).threshold(3).throttle_key("k");
    let metadata = json!({ "amount": 1, "unit": "days", "threshold": 3, "throttleKey": "k" });
    same(Ok(Step::throttle(throttle)), json!({ "type": "throttle", "metadata": metadata }));
    let custom = json!({ "type": "custom", "metadata": { "handler": "charge" } });
    same(Ok(Step::custom("charge")), custom);
}

#[test]
fn triggers() {
    let typed = || {
        Trigger::new("order-shipped", "ada")?
            .to(TopicRecipient::new("orders")?.exclude("bob")?)?
            .to(SubscriberCreate::new("cleo")?.email("cleo@example.org")?)?
            .payload(json!({ "order": "A-1001" }))?
            .overrides(json!({ "severity": "high" }))?
            .transaction_id("shipped-A-1001")?
            .context("tenant", "acme")?
            .context("app", RichContext::new("shop").data(json!({ "seats": 5 }))?)
    };
    same(
        typed(),
        json!({
            "name": "order-shipped",
            "to": [
                "ada",
                { "type": "Topic", "topicKey": "orders", "exclude": ["bob"] },
                { "subscriberId": "cleo", "email": "cleo@example.org" },
            ],
            "payload": { "order": "A-1001" },
            "overrides": { "severity": "high" },
            "transactionId": "shipped-A-1001",
            "context": { "tenant": "acme", "app": { "id": "shop", "data": { "seats": 5 } } },
        }),
    );
    let typed = || BTreeMap::from([("n", 1)]);
    let of = Trigger::new("w", "ada").and_then(|trigger| trigger.payload_of(typed()));
    same(of, json!({ "name": "w", "to": "ada", "payload": { "n": 1 } }));
    let of = Broadcast::new("w").and_then(|broadcast| broadcast.payload_of(typed()));
    same(of, json!({ "name": "w", "payload": { "n": 1 } }));
    let of = Preview::new("s", "ada").and_then(|preview| preview.payload_of(typed()));
    same(of, json!({ "step": "s", "subscriberId": "ada", "payload": { "n": 1 } }));
}

#[test]
fn subscribers() {
    let said = json!({
        "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.org",
        "phone": "+4930123456", "avatar": "ada.png", "locale": "en_GB",
        "timezone": "Europe/London", "data": { "plan": "gold" },
    });
    let settings = || {
        let credentials = ChannelCredentials::default()
            .webhook_url("https://example.org")
            .channel("c")
            .device_tokens(["t"])
            .alert_uid("a")
            .title("b")
            .image_url("i")
            .state("s")
            .external_url("e");
        let id = "00000000-0000-0000-0000-000000000007";
        ChannelSettings::new(id, ChannelProviderId::Slack, credentials)?
            .integration_identifier("slack")
    };
    let channel = json!({
        "providerId": "slack", "integrationIdentifier": "slack",
        "_integrationId": "00000000-0000-0000-0000-000000000007",
        "credentials": {
            "webhookUrl": "https://example.org", "channel": "c", "deviceTokens": ["t"],
            "alertUid": "a", "title": "b", "imageUrl": "i", "state": "s", "externalUrl": "e",
        },
    });
    let create = || {
        Ok(SubscriberCreate::new("ada")?
            .first_name("Ada")
            .last_name("Lovelace")
            .email("ada@example.org")?
            .phone("+4930123456")
            .avatar("ada.png")
            .locale("en_GB")?
            .timezone("Europe/London")?
            .data(json!({ "plan": "gold" }))?
            .channel(settings()?))
    };
    let mut whole = said.clone();
    whole["channels"] = json!([channel]);
    whole["subscriberId"] = "ada".into();
    same(create(), whole);
    let update = || {
        SubscriberUpdate::default()
            .first_name("Ada")
            .last_name("Lovelace")
            .email("ada@example.org")?
            .phone("+4930123456")
            .avatar("ada.png")
            .locale("en_GB")?
            .timezone("Europe/London")?
            .data(json!({ "plan": "gold" }))
    };
    same(update(), said.clone());
    let cleared = update().unwrap();
    let cleared = cleared.clear_first_name().clear_last_name().clear_email().clear_phone();
    let cleared = cleared.clear_avatar().clear_locale().clear_timezone().clear_data();
    let nothing: Value =
        said.as_object().unwrap().keys().map(|name| (name.clone(), Value::Null)).collect();
    same(Ok(cleared), nothing);
    let query = SubscriberQuery::default().email("a@b.c").phone("1").name("da");
    same(Ok(query), json!({ "email": "a@b.c", "phone": "1", "name": "da" }));
}

#[test]
fn integrations() {
    let typed = || {
        Ok(IntegrationCreate::new("sendgrid", Channel::Email)?
            .name("Mail")
            .identifier("mail")?
            .credentials(Credentials::default().api_key("key").secure(true))
            .active(false)
            .only_if(express())
            .configurations(
                Configurations::default()
                    .inbound_webhook_enabled(true)
                    .inbound_webhook_signing_key("signed"),
            ))
    };
    let configurations =
        json!({ "inboundWebhookEnabled": true, "inboundWebhookSigningKey": "signed" });
    let fields = json!({
        "name": "Mail", "identifier": "mail", "active": false, "conditions": [is("express")],
        "credentials": { "apiKey": "key", "secure": true }, "configurations": configurations,
    });
    let mut create = fields.clone();
    create["providerId"] = "sendgrid".into();
    create["channel"] = "email".into();
    same(typed(), create);
    let on = IntegrationCreate::new("ses", Channel::Email).map(|create| create.active(true));
    same(on, json!({ "providerId": "ses", "channel": "email", "active": true }));
    let update = || {
        Ok(IntegrationUpdate::default()
            .name("Mail")
            .identifier("mail")?
            .credentials(Credentials::default().api_key("key").secure(true))
            .active(false)
            .only_if(express())
            .configurations(
                Configurations::default()
                    .inbound_webhook_enabled(true)
                    .inbound_webhook_signing_key("signed"),
            ))
    };
    same(update(), fields);
    same(Ok(IntegrationUpdate::default().only_if_any([])), json!({}));
    let cleared = IntegrationUpdate::default().clear_configurations();
    same(Ok(cleared), json!({ "configurations": null }));
    same(Ok(IntegrationDelete::default().promote(true)), json!({ "promote": true }));
    let tls = Credentials::default().tls_options(json!({ "servername": "x" }));
    same(tls, json!({ "tlsOptions": { "servername": "x" } }));
}

#[test]
fn topics_and_subscriptions() {
    let topic = TopicCreate::new("orders").map(|topic| topic.name("Orders"));
    same(topic, json!({ "key": "orders", "name": "Orders" }));
    same(Ok(TopicUpdate::default().name("Orders")), json!({ "name": "Orders" }));
    same(Ok(TopicUpdate::default().clear_name()), json!({ "name": null }));
    let query = TopicQuery::default().key("k").name("n").limit(3);
    same(Ok(query), json!({ "key": "k", "name": "n", "limit": 3 }));
    let typed = || {
        let tagged = WorkflowFilter::default().workflow_ids(["w"]).tags(["orders"]);
        Subscribe::new("ada")?
            .subscription(SubscribeItem::new("bob")?.identifier("bobs")?.name("Bob's"))?
            .name("Orders")
            .preference(
                WorkflowSetting::new("hi").condition(var("payload.total").greater_than(100))?,
            )
            .preference(WorkflowSetting::matching(tagged).enabled(false))
            .context("tenant", "acme")
    };
    same(
        typed(),
        json!({
            "subscriptions": [
                "ada", { "subscriberId": "bob", "identifier": "bobs", "name": "Bob's" },
            ],
            "name": "Orders",
            "preferences": [
                { "workflowId": "hi", "condition": rule() },
                { "filter": { "workflowIds": ["w"], "tags": ["orders"] }, "enabled": false },
            ],
            "context": { "tenant": "acme" },
        }),
    );
    let several = Subscribe::default().subscriptions(["ada"]);
    let said = several.map(|several| several.preferences(["hi"]));
    same(said, json!({ "subscriptions": ["ada"], "preferences": ["hi"] }));
    let gone = Unsubscribe::new("ada")
        .and_then(|request| request.subscription(UnsubscribeItem::subscription("bobs")?));
    same(gone, json!({ "subscriptions": ["ada", { "identifier": "bobs" }] }));
    let update = SubscriptionUpdate::default().name("Ada's").preferences(["hi"]);
    same(Ok(update), json!({ "name": "Ada's", "preferences": ["hi"] }));
    same(Ok(SubscriptionUpdate::default().clear_name()), json!({ "name": null }));
    let query = SubscriptionQuery::default()
        .subscriber_id("ada")
        .and_then(|query| query.context_keys(["tenant:acme"]));
    same(query, json!({ "subscriberId": "ada", "contextKeys": ["tenant:acme"] }));
}

#[test]
fn preferences() {
    let said = || {
        Preference::default()
            .with(Channel::Email, false)
            .enabled(true)
            .condition(var("payload.total").greater_than(100))
    };
    same(said(), json!({ "email": false, "enabled": true, "condition": rule() }));
    let bulk = || {
        WorkflowPreferenceUpdates::default()
            .preference(
                WorkflowPreferenceUpdate::new("w").with(Channel::Sms, true).condition(rule())?,
            )
            .preference(WorkflowPreferenceUpdate::new("v").clear_condition().clear_enabled())
            .preference(
                WorkflowPreferenceUpdate::new("u").enabled(false).clear_channel(Channel::Chat),
            )
            .context("tenant", "acme")
    };
    same(
        bulk(),
        json!({
            "preferences": [
                { "workflowId": "w", "channels": { "sms": true }, "condition": rule() },
                { "workflowId": "v", "channels": {}, "condition": null, "enabled": null },
                { "workflowId": "u", "channels": { "chat": null }, "enabled": false },
            ],
            "context": { "tenant": "acme" },
        }),
    );
    let global = || {
        GlobalPreferenceUpdate::default()
            .with(Channel::Push, false)
            .enabled(false)
            .condition(rule())?
            .schedule(
                Schedule::open()
                    .day(Weekday::Monday, DaySchedule::open().hours("09:00 AM", "05:30 PM")?)
                    .day(Weekday::Sunday, DaySchedule::closed()),
            )
            .context("tenant", "acme")
    };
    let monday =
        json!({ "isEnabled": true, "hours": [{ "start": "09:00 AM", "end": "05:30 PM" }] });
    let week = json!({ "monday": monday, "sunday": { "isEnabled": false } });
    same(
        global(),
        json!({
            "channels": { "push": false }, "enabled": false, "condition": rule(),
            "schedule": { "isEnabled": true, "weeklySchedule": week },
            "context": { "tenant": "acme" },
        }),
    );
    let cleared = GlobalPreferenceUpdate::default().clear_enabled().clear_condition();
    let cleared = cleared.clear_schedule().clear_channel(Channel::InApp);
    let nothing = json!({
        "enabled": null, "condition": null, "schedule": null, "channels": { "in_app": null },
    });
    same(Ok(cleared), nothing);
    let query = PreferencesQuery::default().criticality(Criticality::All);
    let expected = json!({ "criticality": "all", "contextKeys": ["tenant:acme"] });
    same(query.context_keys(["tenant:acme"]), expected);
}

#[test]
fn connections_and_endpoints() {
    let connection = || {
        ChannelConnectionCreate::new("slack", Workspace::new("T1")?.name("Acme"), "token")?
            .identifier("ours")?
            .subscriber_id("ada")?
            .context("tenant", "acme")
    };
    let workspace = json!({ "id": "T1", "name": "Acme" });
    same(
        connection(),
        json!({
            "identifier": "ours", "subscriberId": "ada", "context": { "tenant": "acme" },
            "integrationIdentifier": "slack", "workspace": workspace,
            "auth": { "accessToken": "token" },
        }),
    );
    let update = ChannelConnectionUpdate::default().auth(ConnectionAuth::new("token"));
    let expected = json!({ "workspace": { "id": "T1" }, "auth": { "accessToken": "token" } });
    same(Workspace::new("T1").map(|workspace| update.workspace(workspace)), expected);
    let filter = json!({
        "subscriberId": "ada", "channel": "chat", "providerId": "slack",
        "integrationIdentifier": "slack", "contextKeys": ["tenant:acme"], "limit": 5,
    });
    let query = || {
        ChannelConnectionQuery::default()
            .subscriber_id("ada")?
            .channel(Channel::Chat)
            .provider_id(ProviderId::Slack)
            .integration_identifier("slack")?
            .limit(5)
            .context_keys(["tenant:acme"])
    };
    same(query(), filter.clone());
    let query = || {
        ChannelEndpointQuery::default()
            .subscriber_id("ada")?
            .channel(Channel::Chat)
            .provider_id(ProviderId::Slack)
            .integration_identifier("slack")?
            .connection_identifier("ours")?
            .limit(5)
            .context_keys(["tenant:acme"])
    };
    let mut whole = filter;
    whole["connectionIdentifier"] = "ours".into();
    same(query(), whole);
    let endpoint = || {
        ChannelEndpointCreate::new("ada", "slack", Endpoint::slack_channel("C1")?)?
            .identifier("mine")?
            .connection_identifier("ours")?
            .context("tenant", "acme")
    };
    same(
        endpoint(),
        json!({
            "identifier": "mine", "subscriberId": "ada", "context": { "tenant": "acme" },
            "integrationIdentifier": "slack", "connectionIdentifier": "ours",
            "type": "slack_channel", "endpoint": { "channelId": "C1" },
        }),
    );
    let update = ChannelEndpointUpdate::new(json!({ "channelId": "C2" }));
    same(update, json!({ "endpoint": { "channelId": "C2" } }));
}

#[test]
fn endpoints_of_every_type() {
    let at = |kind: &str, data: Value| json!({ "type": kind, "endpoint": data });
    same(Endpoint::slack_user("U1"), at("slack_user", json!({ "userId": "U1" })));
    let url = "https://example.org/hook";
    let hook = Endpoint::webhook(url).and_then(|hook| hook.channel("c"));
    same(hook, at("webhook", json!({ "url": url, "channel": "c" })));
    let phone = at("phone", json!({ "phoneNumber": "+4930123456" }));
    same(Endpoint::phone("+4930123456"), phone);
    let channel = at("ms_teams_channel", json!({ "teamId": "T", "channelId": "C" }));
    same(Endpoint::ms_teams_channel("T", "C"), channel);
    let user = Endpoint::ms_teams_user("U").and_then(|user| user.tenant_id("T"));
    same(user, at("ms_teams_user", json!({ "userId": "U", "tenantId": "T" })));
}

#[test]
fn contexts_environments_layouts_and_translations() {
    let create =
        ContextCreate::new("tenant", "acme").and_then(|create| create.data(json!({ "seats": 5 })));
    same(create, json!({ "type": "tenant", "id": "acme", "data": { "seats": 5 } }));
    same(ContextUpdate::new(json!({ "seats": 6 })), json!({ "data": { "seats": 6 } }));
    let query = ContextQuery::default().kind("tenant").and_then(|query| query.id("acme"));
    same(query, json!({ "type": "tenant", "id": "acme" }));
    same(EnvironmentCreate::new("QA"), json!({ "name": "QA", "color": "#888" }));
    let environment = EnvironmentCreate::new("QA")
        .and_then(|create| create.color("#f80"))
        .map(|create| create.parent_id(sample::id::<crate::ids::EnvironmentId>(7)));
    let parent = "00000000-0000-0000-0000-000000000007";
    same(environment, json!({ "name": "QA", "color": "#f80", "parentId": parent }));
    let layout = LayoutUpsert::new("plain", "Plain").map(|layout| layout.translated(true));
    let expected = json!({ "layoutId": "plain", "name": "Plain", "isTranslationEnabled": true });
    same(layout, expected);
    let layout = LayoutUpsert::new("plain", "Plain").map(LayoutUpsert::clear_body);
    same(layout, json!({ "layoutId": "plain", "name": "Plain", "body": null }));
    same(Ok(LayoutQuery::default().translated(false)), json!({ "isTranslationEnabled": false }));
    let texts = json!({ "hello": "Hallo" });
    let upsert = TranslationUpsert::new(Resource::layout("plain"), "de", texts.clone());
    same(
        upsert,
        json!({
            "resourceId": "plain", "resourceType": "layout", "locale": "de", "content": texts,
        }),
    );
    let import = TranslationImport::new("de")
        .map(|import| import.workflow("w", texts.clone()).layout("l", texts.clone()));
    let master = json!({ "workflows": { "w": texts }, "layouts": { "l": texts } });
    same(import, json!({ "locale": "de", "masterJson": master }));
    let query = TranslationQuery::default()
        .resource_type(ResourceType::Layout)
        .resource_id("plain")
        .locale("de");
    same(query, json!({ "resourceType": "layout", "resourceId": "plain", "locale": "de" }));
}

#[test]
fn lists() {
    let query = MessageQuery::default().channel(Channel::InApp).unread().seen();
    let expected =
        json!({ "channel": "in_app", "transactionId": "t", "read": false, "seen": true });
    same(query.transaction_id("t"), expected);
    let query = MessageQuery::default().read().unseen();
    same(Ok(query), json!({ "read": true, "seen": false }));
    let page = PageQuery::default()
        .limit(5)
        .order_by(OrderBy::CreatedAt)
        .order_direction(Direction::Ascending)
        .include_cursor();
    let expected = json!({
        "limit": 5, "orderBy": "createdAt", "orderDirection": "ASC", "includeCursor": true,
    });
    same(Ok(page.clone()), expected.clone());
    let topics = TopicQuery::default().limit(5).include_cursor();
    same(Ok(topics), json!({ "limit": 5, "includeCursor": true }));
    let tagged = MessageQuery::default().and_tags(["a"]).tags(["b"]);
    same(Ok(tagged), json!({ "tags": ["b"] }));
    same(Ok(TopicQuery::default().page(page)), expected);
    let sorted = TopicQuery::default().order_by(OrderBy::Key).order_direction(Direction::Ascending);
    same(Ok(sorted), json!({ "orderBy": "key", "orderDirection": "ASC" }));
    let id = sample::id::<crate::ids::WorkflowId>(7);
    let expected = json!({ "templates": [id] });
    same(Ok(NotificationQuery::default().workflows([id])), expected.clone());
    same(Ok(MessageQuery::default().workflows([id])), expected.clone());
    same(Ok(crate::dead_letter::DeadLetterQuery::default().workflows([id])), expected);
    let typed = || {
        NotificationQuery::default()
            .step_types([StepType::Email])
            .workflows(["w"])
            .emails(["a@b.c"])
            .search("x")
            .subscriber_ids(["ada"])?
            .severities([Severity::High])
            .page_number(2)
            .limit(5)
            .transaction_id("t")?
            .topic_key("orders")?
            .subscription_id("s")?
            .earliest(sample::at(1_000))
            .latest(sample::at(2_000))
            .context_keys(["tenant:acme"])
    };
    same(
        typed(),
        json!({
            "channels": ["email"], "templates": ["w"], "emails": ["a@b.c"], "search": "x",
            "subscriberIds": ["ada"], "severity": ["high"], "page": 2, "limit": 5,
            "transactionId": "t", "topicKey": "orders", "subscriptionId": "s",
            "after": "1970-01-01T00:00:01.000Z", "before": "1970-01-01T00:00:02.000Z",
            "contextKeys": ["tenant:acme"],
        }),
    );
}

/// One row per constructor or setter that can refuse: the field.
#[test]
fn what_is_refused_is_named() {
    fn check<T: Debug>(refused: Result<T, Invalid>, field: &str) {
        assert_eq!(refused.unwrap_err().field, field);
    }
    let text = || json!("no object");
    let step = || Step::sms("x").unwrap();
    check(WorkflowCreate::new("a b", ""), "workflowId");
    check(WorkflowCreate::new("a", "").and_then(|create| create.data(text())), "data");
    check(Step::in_app("{{"), "template.body");
    check(Step::email("{{", ""), "template.subject");
    check(Step::email("", "{{"), "template.body");
    check(Step::push("{{", ""), "template.title");
    check(Step::in_app("x").and_then(|step| step.url("{{")), "template.url");
    let one = Step::in_app("x").and_then(|step| step.button(ButtonType::Primary, "x")).unwrap();
    check(one.clone().button(ButtonType::Primary, "{{"), "template.buttons[1].content");
    check(one.result_content("{{"), "template.buttons[0].resultContent");
    let none = Step::in_app("x").unwrap();
    check(none.result_content("x"), "template.buttons");
    check(step().subject("x"), "template.subject");
    check(step().url("x"), "template.url");
    check(step().button(ButtonType::Primary, "x"), "template.buttons");
    check(step().result_content("x"), "template.buttons");
    check(EmailBlock::text("{{"), "content");
    check(EmailBlock::button("x", "{{"), "url");
    let trigger = || Trigger::new("w", "ada").unwrap();
    check(Trigger::new("a b", "ada"), "name");
    check(Trigger::new("w", ""), "to");
    check(trigger().to(""), "to[1]");
    check(trigger().payload(text()), "payload");
    check(trigger().payload_of("x"), "payload");
    check(trigger().overrides(text()), "overrides");
    check(trigger().transaction_id(""), "transactionId");
    check(Recipient::topic("a b"), "topicKey");
    check(TopicRecipient::new("a").and_then(|topic| topic.exclude("")), "exclude[0]");
    check(TopicRecipient::new("a").and_then(|topic| topic.excludes(["b", ""])), "exclude[1]");
    let ada = || SubscriberCreate::new("ada").unwrap();
    check(SubscriberCreate::new(""), "subscriberId");
    check(ada().email("x"), "email");
    check(ada().locale("x"), "locale");
    check(ada().timezone("x"), "timezone");
    check(ada().data(text()), "data");
    check(IntegrationCreate::new("", Channel::Email), "providerId");
    check(IntegrationUpdate::default().identifier("a b"), "identifier");
    check(Credentials::default().tls_options(text()), "tlsOptions");
    check(TopicCreate::new("a b"), "key");
    check(Subscribe::new(""), "subscriptions[0]");
    check(Subscribe::default().subscriptions(["ada", ""]), "subscriptions[1]");
    check(Preference::default().condition(json!({ "!": { "huh": [] } })), "condition.!");
    check(PreferencesQuery::default().context_keys(["x"]), "contextKeys[0]");
    check(DaySchedule::open().hours("x", "01:00 PM"), "start");
    check(DaySchedule::open().hours("01:00 PM", "x"), "end");
    check(Workspace::new(""), "workspace.id");
    check(Endpoint::phone("x"), "endpoint.phoneNumber");
    check(Endpoint::phone("+4930123456").and_then(|phone| phone.channel("c")), "endpoint.channel");
    check(ChannelEndpointUpdate::new(text()), "endpoint");
    check(EnvironmentCreate::new(""), "name");
    check(EnvironmentCreate::new("QA").and_then(|create| create.color("red")), "color");
    check(LayoutUpsert::new("a b", ""), "layoutId");
    check(TranslationImport::new("x"), "locale");
    check(TranslationUpsert::new(Resource::layout("l"), "de", text()), "content");
    check(NotificationQuery::default().subscriber_ids(["ada", ""]), "subscriberIds[1]");
    check(ContextUpdate::new(text()), "data");
}

#[test]
fn one_more_filter_restricts() {
    let (vip, urgent) =
        (Filter::subscriber("vip").equals(1), Filter::payload("urgent").equals(true));
    let any = || [express(), vip.clone()];
    let none: [Filter; 0] = [];
    let before = [express().or(vip.clone()).and(urgent.clone())];
    let behind = [urgent.clone().and(express().or(vip.clone()))];
    macro_rules! check {
        ($new:expr, $($filters:ident).+) => {{
            assert_eq!($new.only_if_any(any()).$($filters).+, any());
            assert_eq!($new.only_if_any(any()).only_if(urgent.clone()).$($filters).+, before);
            assert_eq!($new.only_if(urgent.clone()).only_if_any(any()).$($filters).+, behind);
            assert_eq!($new.only_if_any(none.clone()).only_if_any(any()).$($filters).+, any());
        }};
    }
    check!(Step::sms("x").unwrap(), definition.filters);
    check!(Variant::new(StepKind::sms("x").unwrap()), filters);
    check!(IntegrationCreate::new("ses", Channel::Email).unwrap(), filters);

    let update = IntegrationUpdate::default;
    let given = update().only_if(urgent.clone()).only_if_any(any());
    assert_eq!(given.filters, Some(behind.into()));
    assert_eq!(update().only_if(vip).clear_filters().filters, Some(vec![]));
}
