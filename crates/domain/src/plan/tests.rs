use serde_json::{Value, json};

use super::*;
use crate::condition::Rule;
use crate::contact::{Email, TimeZone};
use crate::content::MessageContent;
use crate::explain::EvidenceKind;
use crate::filter;
use crate::integration::Standing;
use crate::job::Destination;
use crate::layout::FrameRef;
use crate::sample;
use crate::step::{DelayEnd, StepDefinition};
use crate::subscriber::Profile;
use crate::vocabulary::{Channel, StepType};

const SECRET: &str = "https://chat.example.com/s3cr3t";

// Complete facts for a message on one channel, without an obstacle.
struct World {
    subscriber: Option<Subscriber>,
    workflow: Option<Workflow>,
    notification: Notification,
    contexts: Vec<Context>,
    global: Option<Preference>,
    specific: Option<Preference>,
    integrations: Vec<Arc<Integration>>,
    canceled: bool,
    actor: Option<Subscriber>,
}

impl World {
    fn on(channel: Channel) -> Self {
        let template = match channel {
            Channel::InApp | Channel::Sms | Channel::Chat => json!({ "body": "Hello" }),
            Channel::Email => json!({ "subject": "Hello", "body": "Hello" }),
            Channel::Push => json!({ "title": "Hello", "body": "Hello" }),
        };
        Self::with(json!([{ "type": channel, "template": template }]))
    }

    fn with_body(body: &str) -> Self {
        Self::with(json!([{ "type": "in_app", "template": { "body": body } }]))
    }

    fn with(steps: Value) -> Self {
        let settings = |channel: Channel, credentials: Value| {
            let integration_id: crate::ids::IntegrationId = sample::id(number(channel));
            json!({
                "providerId": "slack", "_integrationId": integration_id, "credentials": credentials,
            })
        };
        let subscriber = sample::subscriber(json!({
            "firstName": "Ada",
            "email": "ada@example.com",
            "phone": "+15550100",
            "channels": [
                settings(Channel::Chat, json!({ "webhookUrl": SECRET })),
                settings(Channel::Push, json!({ "deviceTokens": ["d1"] })),
            ],
            "data": { "plan": "pro" },
        }));
        let workflow = sample::workflow(steps);
        let notification = sample::notification(&workflow, &subscriber, json!({ "total": 42 }));
        let integrations = Channel::ALL.iter().map(|channel| active(*channel).into()).collect();
        Self {
            subscriber: Some(subscriber),
            workflow: Some(workflow),
            notification,
            contexts: vec![],
            global: None,
            specific: None,
            integrations,
            canceled: false,
            actor: None,
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            evidence: None,
            subscriber: self.subscriber.as_ref(),
            actor: self.actor.as_ref(),
            workflow: self.workflow.as_ref(),
            contexts: &self.contexts,
            global: self.global.as_ref(),
            specific: self.specific.as_ref(),
            integrations: &self.integrations,
            schedule: None,
            endpoints: &[],
            canceled: self.canceled,
            texts: None,
            layout: FrameRef::BARE,
            link: None,
            default_zone: TimeZone::UTC,
            suppressions: &[],
            now: sample::at(60_000),
        }
    }

    // The turn of the only job.
    fn turn(&self) -> Action {
        let [action] = turn(&Run::of(&self.notification), self.facts()).try_into().unwrap();
        action
    }

    fn refusal(&self) -> Option<Refusal> {
        match self.turn() {
            Action::Refuse(0, refusal) => Some(refusal),
            Action::DeliverInApp(0, _) | Action::Send { job: 0, .. } => None,
            other => panic!("{other:?}"),
        }
    }

    // The turn of the only job, and its first attempt.
    fn dispatch(&self) -> Result<Dispatch, Refusal> {
        self.refusal().map_or_else(|| self.attempt(Content::New), Err)
    }

    fn attempt(&self, content: Content) -> Result<Dispatch, Refusal> {
        let run = Run::of(&self.notification);
        match attempt(&run, run.jobs[0], self.facts(), content)? {
            Attempt::Send(dispatch) => Ok(*dispatch),
            Attempt::Defer { due_at } => panic!("deferred to {due_at}"),
            Attempt::WorkflowPaused | Attempt::IntegrationPaused(_) => panic!("paused"),
            Attempt::CircuitOpen(_) => panic!("a circuit is open"),
            Attempt::Split(targets) => panic!("sent to {targets:?}"),
        }
    }

    fn text(&self) -> String {
        match self.turn() {
            Action::DeliverInApp(0, rendered) => match rendered.content {
                MessageContent::Text(text) => text,
                MessageContent::Blocks(blocks) => panic!("{blocks:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn profile(&mut self) -> &mut Profile {
        &mut self.subscriber.as_mut().unwrap().profile
    }

    fn step(&mut self) -> &mut StepDefinition {
        &mut self.workflow.as_mut().unwrap().steps[0].definition
    }

    fn overriding(mut self, overrides: Value) -> Self {
        self.notification.overrides = Some(sample::object(overrides));
        self
    }
}

fn number(channel: Channel) -> u128 {
    100 + channel as u128
}

fn active(channel: Channel) -> Integration {
    let primary = channel.has_primary();
    let standing = Standing::Active { primary, priority: u32::from(primary) };
    let identifier = channel.as_str();
    Integration { standing, ..sample::integration(number(channel), identifier, channel) }
}

fn only_if(on: &str, field: &str, value: &str) -> Value {
    let part = json!({ "field": field, "operator": "EQUAL", "value": value, "on": on });
    json!([{ "type": "GROUP", "value": "AND", "children": [part] }])
}

fn filters(on: &str, field: &str, value: &str) -> Vec<filter::Filter> {
    serde_json::from_value(only_if(on, field, value)).unwrap()
}

#[track_caller]
fn check(world: &World, kind: RefusalKind, detail: Detail) {
    let refusal = world.dispatch().unwrap_err();
    assert_eq!((refusal.kind, refusal.detail), (kind, detail));
}

#[test]
fn every_channel_has_an_address() {
    for (channel, address) in [
        (Channel::Email, Address::Email(Email::new("ada@example.com").unwrap())),
        (Channel::Sms, Address::Phone("+15550100".into())),
        (Channel::Chat, Address::Webhook { url: SECRET.into(), channel: None }),
        (Channel::Push, Address::Device("d1".into())),
    ] {
        let world = World::on(channel);
        let integration = active(channel);
        let dispatch = world.dispatch().unwrap();
        assert_eq!((dispatch.integration, dispatch.address), (integration, address), "{channel}");
        assert!(dispatch.rendered.is_some(), "{channel}");
        let again = world.attempt(Content::Kept).unwrap();
        assert_eq!(again.rendered, None, "{channel}");
    }
}

/// One row per address.
#[test]
fn an_address_names_a_server_if_the_recipient_has_chosen_it() {
    let url = SECRET.into();
    let deep = format!(r#"{{"endpoint":{}"#, "[".repeat(10_000));
    for (address, names) in [
        (Address::Webhook { url, channel: None }, true),
        (Address::Device(json!({ "endpoint": SECRET, "keys": {} }).to_string()), true),
        (Address::Device(json!({ "token": SECRET }).to_string()), false),
        (Address::Device(json!([SECRET]).to_string()), false),
        (Address::Device("d1".into()), false),
        (Address::Device(deep), false),
        (Address::Phone("+15550100".into()), false),
        (Address::Email(Email::new("ada@example.com").unwrap()), false),
    ] {
        assert_eq!(address.names_server(), names, "{address:?}");
    }
}

/// The destinations behind the last one are left out.
#[test]
fn a_message_goes_to_so_many_destinations_at_most() {
    let most = StepDefinition::MAX_INTEGRATIONS;
    for (integrations, devices, expected) in
        [(most + 1, 1, most), (6, 100, StepDefinition::MAX_DESTINATIONS)]
    {
        let mut world = World::on(Channel::Push);
        let push = active(Channel::Push);
        let settings = world.profile().channels.remove(1);
        world.profile().channels.clear();
        world.integrations.clear();
        for number in 0..integrations {
            let id = sample::id(1_000 + number as u128);
            world.integrations.push(Integration { id, ..push.clone() }.into());
            let mut settings = settings.clone();
            settings.integration_id = id;
            settings.credentials.device_tokens =
                (0..devices).map(|device| format!("{number}-{device}")).collect();
            world.profile().channels.push(settings);
        }
        let mut run = Run::of(&world.notification);
        let of = |run: &Run<'_>| attempt(run, run.jobs[0], world.facts(), Content::New);
        let Attempt::Split(targets) = of(&run).unwrap() else { panic!("sent to one") };
        assert_eq!(targets.len(), expected);
        // A task may have the last one, and others may have come before it since.
        let token = format!("{}-{}", integrations - 1, devices - 1);
        let id = sample::id(1_000 + integrations as u128 - 1);
        run.target = Some(SendTarget::new(id, Destination::Device { token: token.clone() }));
        let Attempt::Send(dispatch) = of(&run).unwrap() else { panic!("sent to several") };
        assert_eq!(dispatch.address, Address::Device(token));
    }
}

/// One row per missing address: the message is skipped.
#[test]
fn what_has_no_address_is_skipped() {
    type Loss = fn(&mut Profile);
    let rows: [(Channel, Loss, Detail); 9] = [
        (Channel::Email, |profile| profile.email = None, Detail::MissingEmail),
        (Channel::Sms, |profile| profile.phone = None, Detail::MissingPhone),
        (Channel::Sms, |profile| profile.phone = Some(String::new()), Detail::MissingPhone),
        (Channel::Chat, |profile| profile.channels.clear(), Detail::MissingChatWebhook),
        (
            Channel::Chat,
            |profile| profile.channels[0].integration_id = sample::id(9),
            Detail::MissingChatWebhook,
        ),
        (Channel::Push, |profile| profile.channels.clear(), Detail::MissingPushTokens),
        (
            Channel::Push,
            |profile| profile.channels[1].credentials.device_tokens.clear(),
            Detail::MissingPushTokens,
        ),
        (
            Channel::Push,
            |profile| profile.channels[1].credentials.device_tokens = vec![String::new()],
            Detail::MissingPushTokens,
        ),
        (
            Channel::Chat,
            |profile| profile.channels[0].credentials.webhook_url = Some("".into()),
            Detail::MissingChatWebhook,
        ),
    ];
    for (channel, lose, detail) in rows {
        let mut world = World::on(channel);
        lose(world.profile());
        check(&world, RefusalKind::Skip, detail);
    }
}

/// All obstacles at once. Each removal reveals the next one.
#[test]
fn the_first_obstacle_is_named() {
    use RefusalKind::{Cancel, Fail, Skip};
    let off = Preference::default().with(Channel::Email, false);

    let mut world = World::on(Channel::Email);
    let (subscriber, workflow) = (world.subscriber.take(), world.workflow.take());
    (world.global, world.specific) = (Some(off.clone()), Some(off.clone()));
    world.integrations.clear();
    check(&world, Skip, Detail::SubscriberDeleted);

    world.subscriber = subscriber.as_ref().map(|subscriber| subscriber.deleted(sample::at(0)));
    check(&world, Skip, Detail::SubscriberDeleted);

    world.subscriber = subscriber;
    world.profile().email = None;
    check(&world, Cancel, Detail::WorkflowDeleted);

    world.workflow = workflow;
    world.workflow.as_mut().unwrap().preference_settings = off;
    let template = json!({ "subject": "", "body": "{{ 'x' * 1000000000000 }}" });
    world.step().kind =
        serde_json::from_value(json!({ "type": "email", "template": template })).unwrap();
    world.step().filters = filters("payload", "total", "1");
    world.notification.jobs[0].step.id = sample::id(99);
    check(&world, Skip, Detail::StepDeleted);

    world.step().active = false;
    world.notification.jobs[0].step.id = world.workflow.as_ref().unwrap().steps[0].id;
    check(&world, Skip, Detail::StepInactive);

    world.step().active = true;
    check(&world, Skip, Detail::FilteredByStepConditions);

    world.step().filters = filters("payload", "total", "42");
    let run_if = |rule: Value| Some(serde_json::from_value(rule).unwrap());
    world.step().run_if = run_if(json!({ ">": [{ "var": "payload.total" }, 42] }));
    check(&world, Skip, Detail::FilteredByStepConditions);

    world.step().run_if = run_if(json!({ "var": "workflow.name" }));
    check(&world, Skip, Detail::FilteredBySubscriberWorkflowPreference);

    world.specific = None;
    check(&world, Skip, Detail::FilteredBySubscriberGlobalPreference);

    world.global = None;
    check(&world, Skip, Detail::FilteredByWorkflowPreference);

    world.workflow.as_mut().unwrap().preference_settings = Preference::default();
    check(&world, Fail, Detail::ContentNotGenerated);

    let template = json!({ "subject": "", "body": "fine" });
    world.step().kind =
        serde_json::from_value(json!({ "type": "email", "template": template })).unwrap();
    check(&world, Fail, Detail::NoActiveIntegration);

    world.integrations = vec![active(Channel::Email).into()];
    check(&world, Skip, Detail::MissingEmail);

    world.profile().email = Some(Email::new("ada@example.com").unwrap());
    assert!(world.dispatch().is_ok());
}

#[test]
fn an_operator_refuses_for_the_workflow() {
    let mut world = World::on(Channel::Email);
    let off = Preference::default().enabled(false);
    world.workflow.as_mut().unwrap().operator_preference = Some(off);
    check(&world, RefusalKind::Skip, Detail::FilteredByWorkflowPreference);
}

#[test]
fn a_critical_workflow_does_not_listen() {
    let mut world = World::on(Channel::Email);
    world.global = Some(Preference::default().enabled(false));
    world.specific = world.global.clone();
    world.workflow.as_mut().unwrap().critical = true;
    assert!(world.dispatch().is_ok());
}

/// One row per layer with a condition: the refusing layer if the condition fails. Conditions have
/// the data of templates.
#[test]
fn a_condition_is_evaluated_when_the_step_runs() {
    type Say = fn(&mut World, Preference);
    let rows: [(Say, Detail); 4] = [
        (
            |world, given| world.workflow.as_mut().unwrap().preference_settings = given,
            Detail::FilteredByWorkflowPreference,
        ),
        (
            |world, given| world.workflow.as_mut().unwrap().operator_preference = Some(given),
            Detail::FilteredByWorkflowPreference,
        ),
        (|world, given| world.global = Some(given), Detail::FilteredBySubscriberGlobalPreference),
        (
            |world, given| world.specific = Some(given),
            Detail::FilteredBySubscriberWorkflowPreference,
        ),
    ];
    for (say, detail) in rows {
        for (name, value, holds) in [
            ("payload.total", json!(42), true),
            ("payload.total", json!(41), false),
            ("subscriber.data.plan", json!("pro"), true),
            ("actor.firstName", json!("Grace"), true),
            ("actor.firstName", json!("Ada"), false),
            ("context.tenant.id", json!("acme"), true),
            ("context.app.id", json!("web"), false),
            ("workflow.identifier", json!("order-shipped"), true),
            ("subscriber.channels", json!(null), true),
        ] {
            let mut world = World::on(Channel::Email);
            world.actor = Some(sample::subscriber(json!({ "firstName": "Grace" })));
            let key = "tenant:acme".parse().unwrap();
            let data = Object::default();
            world.contexts =
                vec![Context::new(sample::id(7), &sample::home(), key, data, sample::at(0))];
            let rule = json!({ "===": [{ "var": name }, value] });
            let rule = Rule::new(rule).unwrap();
            say(&mut world, Preference::default().condition(rule).unwrap());
            if holds {
                assert!(world.dispatch().is_ok(), "{name}");
            } else {
                check(&world, RefusalKind::Skip, detail);
            }
        }
    }
}

/// Only conditions of steps have the results of steps and the events of a digest, however they name them.
#[test]
fn the_condition_of_a_preference_has_the_data_that_its_check_knows() {
    let world = World::on(Channel::Email);
    let mut run = Run::of(&world.notification);
    let step = &world.workflow.as_ref().unwrap().steps[0];
    run.results.insert(step, "completed", StepOutput::Nothing);
    run = run.passing(0);
    for (root, is_known) in [
        (vec!["payload", ""], true),
        (vec!["work", "flow"], true),
        (vec!["st", "eps"], false),
        (vec!["ev", "ents"], false),
        (vec!["fir", "st"], false),
        (vec!["la", "st"], false),
        (vec!["total", "_count"], false),
    ] {
        let path = json!({ "var": { "cat": root } });
        let of = |rule: Value| Rule::new(json!({ "!==": [rule, null] })).unwrap();
        let run_if = |run_if| {
            let mut workflow = world.workflow.clone().unwrap();
            workflow.steps[0].definition.run_if = Some(run_if);
            let facts = Facts { workflow: Some(&workflow), ..world.facts() };
            turn(&run, facts).iter().any(|action| matches!(action, Action::Send { .. }))
        };
        assert!(run_if(of(path.clone())), "{path}");
        let global = Preference::default().condition(of(path.clone())).unwrap();
        let facts = Facts { global: Some(&global), ..world.facts() };
        let is_sent = turn(&run, facts).iter().any(|action| matches!(action, Action::Send { .. }));
        assert_eq!(is_sent, is_known, "{path}");
    }
}

/// One row per delay that is over at once: whether it is extended to the opening of the schedule, on
/// Friday. It is Thursday.
#[test]
fn the_end_of_a_delay_that_is_over_at_once_may_be_outside_the_schedule() {
    let hours = json!({ "isEnabled": true, "hours": [{ "start": "09:00 AM", "end": "05:00 PM" }] });
    let open = |days: Value| -> Schedule {
        serde_json::from_value(json!({ "isEnabled": true, "weeklySchedule": days })).unwrap()
    };
    let on_friday = open(json!({ "friday": hours }));
    let today = open(json!({ "thursday": { "isEnabled": true } }));
    let never = open(json!({ "friday": { "isEnabled": false } }));
    let until = "1970-01-02T09:00:00Z".parse().unwrap();
    let extends = |mut metadata: Value| {
        metadata["extendToSchedule"] = json!(true);
        metadata
    };
    let none = json!({ "type": "regular" });
    let zero = extends(json!({ "type": "regular", "amount": 0 }));
    let past = extends(json!({ "type": "scheduled", "delayPath": "past" }));
    let dynamic = extends(json!({ "type": "dynamic", "dynamicKey": "past" }));
    let mut skips = past.clone();
    skips["onPast"] = json!("skip");
    let over = |detail| Action::Complete(0, detail);
    let passes = || over(Detail::DelayFinished);
    for (metadata, schedule, critical, extensions, expected) in [
        (extends(none.clone()), Some(&on_friday), false, 0, Action::Delay { job: 0, until }),
        (zero.clone(), Some(&on_friday), false, 0, Action::Delay { job: 0, until }),
        (past.clone(), Some(&on_friday), false, 0, Action::Delay { job: 0, until }),
        (dynamic, Some(&on_friday), false, 0, Action::Delay { job: 0, until }),
        (none, Some(&on_friday), false, 0, passes()),
        (zero.clone(), None, false, 0, passes()),
        (zero.clone(), Some(&today), false, 0, passes()),
        (zero.clone(), Some(&never), false, 0, passes()),
        (zero.clone(), Some(&on_friday), true, 0, passes()),
        (zero, Some(&on_friday), false, 3, over(Detail::MaxExtensionsReached)),
        (
            skips,
            Some(&on_friday),
            false,
            0,
            Action::Refuse(0, Refusal::new(RefusalKind::Skip, Detail::DelayTimePassed)),
        ),
    ] {
        let mut world = World::with(json!([{ "type": "delay", "metadata": metadata }]));
        world.workflow.as_mut().unwrap().critical = critical;
        world.notification.payload =
            Some(sample::object(json!({ "past": "1969-12-31T00:00:00Z" })));
        let mut run = Run::of(&world.notification);
        run.jobs[0].extensions = extensions;
        let evidence = EvidenceLog::default();
        let facts = Facts { schedule, evidence: Some(&evidence), ..world.facts() };
        assert_eq!(turn(&run, facts), [expected], "{metadata} {critical}");
        let step = world.workflow.as_ref().unwrap().steps[0].id;
        let noted = evidence.take(("ada".parse().unwrap(), step)).into_iter();
        let noted: Vec<_> = noted.map(|evidence| evidence.kind).collect();
        let is_extended = noted.contains(&EvidenceKind::Extended { until });
        let delayed = turn(&run, facts)[0] == Action::Delay { job: 0, until };
        assert_eq!(is_extended, delayed, "{metadata} {noted:?}");
        if delayed {
            assert_eq!(noted[0], EvidenceKind::Delay { end: DelayEnd::Over });
            // At the opening, the delay is over.
            run.jobs[0].status = JobStatus::Delayed { until };
            assert_eq!(turn(&run, Facts { now: until, ..facts }), [passes()], "{metadata}");
        }
    }
}

#[test]
fn a_custom_step_calls_its_handler() {
    let mut world = World::on(Channel::Email);
    let custom = json!({ "type": "custom", "metadata": { "handler": "charge" } });
    world.step().kind = serde_json::from_value(custom).unwrap();
    assert_eq!(world.step().kind.step_type(), StepType::Custom);
    assert_eq!(world.turn(), Action::Call(0));
    let run = Run::of(&world.notification);
    assert_eq!(call(&run, run.jobs[0], world.facts()), Ok("charge"));
}

#[test]
fn a_refusal_says_why() {
    let mut world = World::on(Channel::Email);
    world.step().filters = filters("payload", "total", "1");
    let report = json!({ "holds": false, "checks": [{
        "field": "total", "operator": "EQUAL", "on": "payload", "expected": "1", "actual": 42,
        "held": false,
    }] });
    let raw = world.refusal().unwrap().raw.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&raw).unwrap(), report);

    let raw = World::with_body("\n{{ 'x' * 1000000000000 }}").refusal().unwrap().raw.unwrap();
    assert!(raw.ends_with(" in line 2"), "{raw}");
}

/// One row per set of variants, by activity and plan: the rendered content.
#[test]
fn the_first_matching_variant_is_used() {
    let variant = |body: &str, active: bool, plan: Option<&str>| {
        let filters = plan.map_or(json!([]), |plan| only_if("subscriber", "data.plan", plan));
        json!({
            "type": "in_app", "template": { "body": body }, "active": active, "filters": filters,
        })
    };
    for (variants, given) in [
        (vec![], "base"),
        (vec![variant("a", true, Some("pro"))], "a"),
        (vec![variant("a", true, Some("free"))], "base"),
        (vec![variant("a", false, Some("pro"))], "base"),
        (vec![variant("a", true, None)], "base"),
        (vec![variant("a", true, Some("free")), variant("b", true, Some("pro"))], "b"),
        (vec![variant("a", true, Some("pro")), variant("b", true, Some("pro"))], "a"),
        (vec![variant("a", false, Some("pro")), variant("b", true, Some("pro"))], "b"),
    ] {
        let step =
            json!({ "type": "in_app", "template": { "body": "base" }, "variants": variants });
        assert_eq!(World::with(json!([step])).text(), given);
    }
}

#[test]
fn a_trigger_may_name_the_integration() {
    let other = Integration {
        standing: Standing::Active { primary: false, priority: 0 },
        ..sample::integration(200, "other", Channel::Email)
    };
    for (overrides, chosen) in [
        (json!({}), Some("email")),
        (json!({ "email": {} }), Some("email")),
        (json!({ "email": { "integrationIdentifier": "other" } }), Some("other")),
        (json!({ "sms": { "integrationIdentifier": "other" } }), Some("email")),
        (json!({ "email": { "integrationIdentifier": 7 } }), Some("email")),
        (json!({ "email": { "integrationIdentifier": "nobody" } }), None),
    ] {
        let mut world = World::on(Channel::Email).overriding(overrides.clone());
        world.integrations.push(other.clone().into());
        let integration = world.dispatch().map(|dispatch| dispatch.integration.identifier);
        let integration = integration.map_err(|refusal| refusal.detail);
        let expected = chosen.ok_or(Detail::NoActiveIntegration);
        assert_eq!(
            integration.as_ref().map(crate::ids::IntegrationIdentifier::as_str),
            expected.as_ref().copied(),
            "{overrides}"
        );
    }
}

#[test]
fn a_condition_may_choose_the_integration() {
    let mut world = World::on(Channel::Email);
    let identifier = "for-pro".parse().unwrap();
    let for_pro = Integration {
        filters: filters("subscriber", "data.plan", "pro"),
        identifier,
        id: sample::id(200),
        standing: Standing::Active { primary: false, priority: 1 },
        ..active(Channel::Email)
    };
    world.integrations.push(for_pro.into());
    assert_eq!(world.dispatch().unwrap().integration.identifier.as_str(), "for-pro");
    world.profile().data = None;
    assert_eq!(world.dispatch().unwrap().integration.identifier.as_str(), "email");
}

#[test]
fn a_template_knows_what_the_message_is_about() {
    for (body, given) in [
        ("{{ subscriber.firstName }} {{ subscriber.subscriberId }}", "Ada ada"),
        ("{{ subscriber.data.plan }}", "pro"),
        ("{{ payload.total }}", "42"),
        ("{{ workflow.name }} {{ workflow.identifier }}", "Order shipped order-shipped"),
        ("{{ context.tenant.id }} {{ context.tenant.data.name }}", "acme Acme Inc."),
        ("({{ context.app.id }}{{ context.tenant['created' ~ 'At'] }})", "()"),
    ] {
        let mut world = World::with_body(body);
        world.contexts = vec![Context {
            id: sample::id(7),
            organization_id: sample::home().organization_id,
            environment_id: sample::id(1),
            key: "tenant:acme".parse().unwrap(),
            data: sample::object(json!({ "name": "Acme Inc." })),
            created_at: sample::at(0),
            updated_at: sample::at(0),
        }];
        assert_eq!(world.text(), given);
    }
}

#[test]
fn the_settings_of_channels_are_not_known_to_templates_and_conditions() {
    for body in
        ["{{ subscriber }}", "{{ subscriber['chan' ~ 'nels'] }}", "{{ subscriber | items }}"]
    {
        assert!(!World::with_body(body).text().contains("s3cr3t"), "{body}");
    }
    let mut world = World::with_body("");
    let field = "channels.0.credentials.webhookUrl";
    world.step().filters = filters("subscriber", field, SECRET);
    let refusal = world.refusal().unwrap();
    assert_eq!(refusal.detail, Detail::FilteredByStepConditions);
    let report: Value = serde_json::from_str(&refusal.raw.unwrap()).unwrap();
    assert_eq!(report["checks"][0].get("actual"), None);
}

#[test]
fn a_subscriber_with_the_deepest_data_there_is_is_known() {
    let deepest = (1..Object::MAX_DEPTH).fold(json!("pro"), |inner, _| json!({ "in": inner }));
    let mut world = World::with_body("{{ subscriber.subscriberId }}");
    world.profile().data = Some(sample::object(json!({ "plan": deepest })));
    assert_eq!(world.text(), "ada");
}

#[test]
fn a_dispatch_prints_no_secrets() {
    let dispatch = World::on(Channel::Chat).dispatch().unwrap();
    assert!(!format!("{dispatch:?}").contains("s3cr3t"));
}

/// One row per time of expiry: the decision at 60,000 ms.
#[test]
fn what_has_expired_is_skipped() {
    for (expires_at, skipped) in [(None, false), (Some(60_001), false), (Some(60_000), true)] {
        for channel in [Channel::InApp, Channel::Email] {
            let mut world = World::on(channel);
            world.notification.expires_at = expires_at.map(sample::at);
            let expected = skipped.then_some((RefusalKind::Skip, Detail::Expired));
            let refused = world.refusal().map(|refusal| (refusal.kind, refusal.detail));
            assert_eq!(refused, expected, "{channel} {expires_at:?}");
            if channel == Channel::Email {
                let refused = world.attempt(Content::Kept).err();
                let refused = refused.map(|refusal| (refusal.kind, refusal.detail));
                assert_eq!(refused, expected, "{channel} {expires_at:?}");
            }
        }
    }
}

/// One row per decision: the turn, an attempt, and another one after a refusal of the provider.
#[test]
fn a_canceled_event_is_not_sent() {
    let canceled = Refusal::new(RefusalKind::Cancel, Detail::Canceled);
    for &channel in Channel::ALL {
        let mut world = World::on(channel);
        world.canceled = true;
        // Cancellation comes before all other reasons.
        world.subscriber = None;
        world.notification.expires_at = Some(sample::at(0));
        assert_eq!(world.refusal(), Some(canceled.clone()), "{channel}");
        assert_eq!(world.attempt(Content::Kept), Err(canceled.clone()), "{channel}");
    }
}

/// One row per combination of what is paused: the decision of an attempt. What ends the message comes
/// before what holds it, and a message whose content cannot be rendered waits too.
#[test]
fn a_message_waits_for_what_is_paused() {
    let workflow = Some(Attempt::WorkflowPaused);
    let integration = Some(Attempt::IntegrationPaused(sample::id(number(Channel::Email))));
    for (workflow_is, integration_is, expected) in [
        (false, false, None),
        (true, false, workflow.clone()),
        (false, true, integration),
        (true, true, workflow),
    ] {
        let mut world = World::on(Channel::Email);
        let paused_at = |is_paused: bool| is_paused.then(|| sample::at(1));
        world.workflow.as_mut().unwrap().paused_at = paused_at(workflow_is);
        for integration in &mut world.integrations {
            Arc::make_mut(integration).paused_at = paused_at(integration_is);
        }
        let run = Run::of(&world.notification);
        for content in [Content::New, Content::Kept] {
            let attempt = attempt(&run, run.jobs[0], world.facts(), content).unwrap();
            let paused = Some(attempt).filter(|attempt| !matches!(attempt, Attempt::Send(_)));
            assert_eq!(paused, expected, "{workflow_is} {integration_is}");
        }
        let canceled = Facts { canceled: true, ..world.facts() };
        let refused = attempt(&run, run.jobs[0], canceled, Content::New).unwrap_err();
        assert_eq!(refused.detail, Detail::Canceled);
    }
}

#[test]
fn templates_know_the_actor() {
    let mut world = World::with_body("{{ actor.firstName }} follows you");
    world.actor = Some(sample::subscriber(json!({ "firstName": "Grace" })));
    assert_eq!(world.text(), "Grace follows you");
}

/// Recipients of an event share a content that depends on none of them.
#[test]
fn recipients_share_what_is_the_same_for_all() {
    let by_name = json!([{ "type": "in_app", "template": { "body": "Bob" },
        "filters": only_if("subscriber", "firstName", "Bob") }]);
    let cases = [
        ("{{ payload.total }} {{ workflow.name }} {{ actor.firstName }}", json!([]), true),
        ("{{ payload.at | date('%H:%M', zone='Asia/Tokyo') }}", json!([]), true),
        ("{{ payload.total + 1 }} {{ payload.at ~ '!' }} {{ payload.total * 2 }}", json!([]), true),
        ("{% if payload.total == 42 %}{{ payload['at'][:4] }}{% endif %}", json!([]), true),
        ("{% set a = [{'b': payload.total}] %}{{ a[range(1) | first].b }}", json!([]), true),
        ("{% for a in range(2) %}{{ a ~ subscriber.firstName }}{% endfor %}", json!([]), false),
        ("{{ payload.total }}", by_name, false),
        ("{{ subscriber.firstName }}", json!([]), false),
        ("{% if subscriber.firstName == 'Ada' %}Ada{% else %}-{% endif %}", json!([]), false),
        ("{{ payload.at | time }}", json!([]), false),
    ];
    for (body, variants, is_shared) in cases {
        let step = json!({ "type": "in_app", "template": { "body": body }, "variants": variants });
        let mut world = World::with(json!([step]));
        let ada = world.subscriber.clone().unwrap();
        let mut bob = ada.clone();
        bob.profile.first_name = Some("Bob".into());
        bob.profile.timezone = Some("Europe/Berlin".parse().unwrap());
        let payload = json!({ "total": 42, "at": "2026-01-01T10:00:00Z" });
        let workflow = world.workflow.clone().unwrap();
        world.notification = sample::notification(&workflow, &ada, payload);
        for recipients in [[&ada, &bob], [&bob, &ada]] {
            let run = Run::of(&world.notification);
            for subscriber in recipients {
                let facts = Facts { subscriber: Some(subscriber), ..world.facts() };
                assert_eq!(turn(&run, facts), turn(&Run::of(&world.notification), facts), "{body}");
            }
            let shared = run.shared.content(workflow.steps[0].id);
            assert_eq!(shared.is_some(), is_shared, "{body}");
        }
    }
}
