use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::context::{Context, ContextSet};
use crate::event::Event;
use crate::patch::Patch;
use crate::schedule::{DaySchedule, Outside};
use crate::subscriber::Subscriber;
use crate::subscription::{ResolvedSetting, Subscription};
use crate::topic::{Topic, TopicCreate};
use crate::trigger::Trigger;
use crate::vocabulary::Weekday;
use crate::workflow::Workflow;
use crate::{sample, template_data};

fn rule(source: Value) -> Rule {
    Rule::new(source).unwrap()
}

fn case(fields: Value) -> PreferenceCase {
    let mut create = json!({ "workflowId": "shipped", "name": "Shipped", "steps": [] });
    create.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    PreferenceCase::new(&serde_json::from_value(create).unwrap()).unwrap()
}

fn on_if(source: Value) -> PreferenceCase {
    let preference = Preference::default().condition(rule(source)).unwrap();
    case(json!({})).subscriber_global(preference).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn every_layer_has_its_say() {
    let off = Preference::default().enabled(false);
    let email = |case: &PreferenceCase| case.decide(Channel::Email);
    assert_eq!(email(&case(json!({}))), Decision::Send(Layer::Default));
    let defined = case(json!({ "preferenceSettings": { "email": false } }));
    assert_eq!(email(&defined), Decision::Disabled(Layer::Definition));
    assert_eq!(defined.decide(Channel::Sms), Decision::Send(Layer::Default));
    let case = defined.operator(Preference::default().enabled(true)).unwrap();
    assert_eq!(email(&case), Decision::Send(Layer::Operator));
    let case = case.subscriber_global(off.clone()).unwrap();
    assert_eq!(email(&case), Decision::Disabled(Layer::SubscriberGlobal));
    let case = case.subscriber_workflow(Preference::default().with(Channel::Email, true)).unwrap();
    assert_eq!(email(&case), Decision::Send(Layer::SubscriberWorkflow));
    assert_eq!(case.decide(Channel::Sms), Decision::Disabled(Layer::SubscriberGlobal));
}

#[test]
fn a_critical_workflow_takes_no_word_of_a_subscriber() {
    let off = Preference::default().enabled(false);
    let case = case(json!({ "critical": true })).subscriber_global(off).unwrap();
    assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::Default));
}

/// One row per part of the case that a condition reads.
#[test]
fn a_condition_sees_each_part_of_the_case() {
    let pro = json!({ "data": { "plan": "pro" } });
    let about = |path: &str| on_if(json!({ "==": [{ "var": path }, "pro"] }));
    for case in [
        about("payload.data.plan").payload(pro.clone()),
        about("subscriber.data.plan").subscriber(pro.clone()),
        about("actor.data.plan").actor(pro.clone()),
        about("context.tenant.data.plan").context("tenant", "acme", pro["data"].clone()),
        about("context.tenant.id").context("tenant", "pro", json!({})),
        on_if(json!({ "==": [{ "var": "workflow.identifier" }, "shipped"] })).payload(json!({})),
        on_if(json!({ "==": [{ "var": "workflow.name" }, "Shipped"] })).payload(json!({})),
    ] {
        let case = case.unwrap();
        let keys: Vec<_> = case.contexts.values().map(|(key, _)| key.clone()).collect();
        let case = case.saved_for(keys).unwrap();
        assert_eq!(
            case.decide(Channel::Email),
            Decision::Send(Layer::SubscriberGlobal),
            "{case:?}"
        );
    }
    let free = about("payload.data.plan").payload(json!({})).unwrap();
    assert_eq!(free.decide(Channel::Email), Decision::Disabled(Layer::SubscriberGlobal));
    let unknown = about("payload.data.plan");
    assert_eq!(unknown.decide(Channel::Email), Decision::Undecided(Layer::SubscriberGlobal));
    assert!(about("").context("no type", "acme", json!({})).is_err());
    assert!(about("").payload(json!([])).is_err());
    assert!(about("").subscriber(json!(1)).is_err());
    assert!(about("").actor(json!(1)).is_err());
    // An event without an actor.
    let no_actor = on_if(json!({ "==": [{ "var": "actor" }, null] })).payload(json!({})).unwrap();
    assert_eq!(no_actor.decide(Channel::Email), Decision::Send(Layer::SubscriberGlobal));
}

#[test]
fn one_topic_subscription_that_lets_it_through_is_enough() {
    let vip = || rule(json!({ "var": "payload.vip" }));
    let decide = |case: PreferenceCase| case.decide(Channel::Email);
    let known = |vip: bool| case(json!({})).payload(json!({ "vip": vip })).unwrap();
    let sent = Decision::Send(Layer::Default);
    assert_eq!(decide(case(json!({})).subscription(true)), sent);
    assert_eq!(decide(case(json!({})).subscription(false)), Decision::NotSubscribed);
    assert_eq!(decide(case(json!({})).subscription(false).subscription(true)), sent);
    assert_eq!(decide(known(true).subscription_if(vip()).unwrap()), sent);
    assert_eq!(decide(known(false).subscription_if(vip()).unwrap()), Decision::NotSubscribed);
    let open = case(json!({})).subscription(false).subscription_if(vip()).unwrap();
    assert_eq!(decide(open.clone()), Decision::SubscriptionUndecided);
    assert_eq!(decide(open.subscription(true)), sent);
    // The preferences come after the subscriptions.
    let off = Preference::default().enabled(false);
    let off = case(json!({})).subscriber_global(off).unwrap();
    assert_eq!(decide(off.clone().subscription(false)), Decision::NotSubscribed);
    assert_eq!(decide(off.subscription(true)), Decision::Disabled(Layer::SubscriberGlobal));
}

#[test]
fn a_closed_schedule_holds_back_what_disturbs() {
    let mornings: Schedule = serde_json::from_value(json!({
        "isEnabled": true,
        "weeklySchedule": { "monday": {
            "isEnabled": true, "hours": [{ "start": "09:00 AM", "end": "12:00 PM" }],
        } },
    }))
    .unwrap();
    let (berlin, sent) = (TimeZone::new("Europe/Berlin").unwrap(), Decision::Send(Layer::Default));
    let scheduled = |fields| case(fields).schedule(mornings.clone()).unwrap();
    let early = |case: PreferenceCase| case.at(time("2026-11-23T07:00:00Z"), berlin);

    assert_eq!(scheduled(json!({})).decide(Channel::Email), Decision::ScheduleUndecided);
    let next_opening = Some(time("2026-11-23T08:00:00Z"));
    let closed = early(scheduled(json!({})));
    assert_eq!(closed.decide(Channel::Email), Decision::OutsideSchedule { next_opening });
    assert_eq!(closed.decide(Channel::InApp), sent);
    let open = scheduled(json!({})).at(time("2026-11-23T08:00:00Z"), berlin);
    assert_eq!(open.decide(Channel::Email), sent);
    let critical = early(scheduled(json!({ "critical": true })));
    assert_eq!(critical.decide(Channel::Email), sent);
    let disabled = Schedule { is_enabled: false, ..mornings.clone() };
    let disabled = case(json!({})).schedule(disabled).unwrap();
    assert_eq!(disabled.decide(Channel::Email), sent);
    let never =
        json!({ "isEnabled": true, "weeklySchedule": { "friday": { "isEnabled": false } } });
    let never = case(json!({})).schedule(serde_json::from_value(never).unwrap()).unwrap();
    assert_eq!(
        early(never).decide(Channel::Email),
        Decision::OutsideSchedule { next_opening: None }
    );
    // The schedule does not delay a message that is switched off.
    let off = closed.subscriber_global(Preference::default().enabled(false)).unwrap();
    assert_eq!(off.decide(Channel::Email), Decision::Disabled(Layer::SubscriberGlobal));
}

/// One row per setting outside the open hours: with a moment in them, and without a moment.
#[test]
fn a_closed_schedule_defers_drops_or_delivers() {
    let mondays = Schedule::open().day(Weekday::Monday, DaySchedule::open());
    let sent = Decision::Send(Layer::Default);
    let next_opening = Some(time("2026-11-30T00:00:00Z"));
    for (outside, closed, undecided) in [
        (Outside::Defer, Decision::OutsideSchedule { next_opening }, Decision::ScheduleUndecided),
        (Outside::Drop, Decision::DroppedBySchedule, Decision::ScheduleUndecided),
        (Outside::Deliver, sent, sent),
    ] {
        let schedule = mondays.clone().with_outside(Channel::Email, outside);
        let case = case(json!({})).schedule(schedule).unwrap();
        assert_eq!(case.decide(Channel::Email), undecided, "{outside:?}");
        let case = case.at(time("2026-11-24T07:00:00Z"), TimeZone::UTC);
        assert_eq!(case.decide(Channel::Email), closed, "{outside:?}");
    }
    let always = case(json!({})).schedule(Schedule::open()).unwrap();
    assert_eq!(always.decide(Channel::Email), sent);
}

/// One row per context set for which everything is saved: what comes of an e-mail and of a text about
/// `tenant:acme`, at a time when the schedule is closed.
#[test]
fn what_is_saved_for_other_contexts_does_not_count() {
    let closed = Schedule::open().day(Weekday::Monday, DaySchedule::open());
    let off = || Preference::default().with(Channel::Email, false);
    let (off_globally, off_here) = (
        Decision::Disabled(Layer::SubscriberGlobal),
        Decision::Disabled(Layer::SubscriberWorkflow),
    );
    let held_back = Decision::OutsideSchedule { next_opening: Some(time("2026-11-30T00:00:00Z")) };
    let sent = Decision::Send(Layer::Default);
    for (saved, email, specific, sms, subscribed) in [
        (vec![], held_back, held_back, held_back, Decision::NotSubscribed),
        (vec!["tenant:acme"], off_globally, off_here, held_back, held_back),
        (vec!["tenant:globex"], sent, sent, sent, Decision::NotSubscribed),
        (vec!["app:web", "tenant:acme"], sent, sent, sent, Decision::NotSubscribed),
    ] {
        let case = case(json!({})).context("tenant", "acme", json!({})).unwrap();
        let case = case.schedule(closed.clone()).unwrap().saved_for(saved.clone()).unwrap();
        let case = case.at(time("2026-11-24T07:00:00Z"), TimeZone::UTC);
        let global = case.clone().subscriber_global(off()).unwrap();
        assert_eq!(global.decide(Channel::Email), email, "{saved:?}");
        assert_eq!(global.decide(Channel::Sms), sms, "{saved:?}");
        let of_workflow = case.clone().subscriber_workflow(off()).unwrap();
        assert_eq!(of_workflow.decide(Channel::Email), specific, "{saved:?}");
        assert_eq!(case.subscription(true).decide(Channel::Sms), subscribed, "{saved:?}");
    }
}

/// One row per part of a case: what an engine refuses too, in the same words.
#[test]
fn what_an_engine_refuses_is_refused() {
    let misspelled = || rule(json!({ "var": "paylod.x" }));
    let on_if = || Preference::default().condition(misspelled()).unwrap();
    let unknown = "condition.var` has no variable `paylod.x`; did you mean `payload`?";
    let case = || case(json!({}));
    let about = |subscriber: Value| case().subscriber(subscriber);
    let nine = json!({ "start": "09:00 AM", "end": "09:00 AM" });
    let days = json!({ "friday": { "isEnabled": true, "hours": [nine] } });
    let spanless = json!({ "isEnabled": true, "weeklySchedule": days });
    let twice = case().context("tenant", "a", json!({}));
    let twice = twice.and_then(|case| case.context("tenant", "b", json!({})));
    assert_eq!(twice.unwrap_err().to_string(), "`context.tenant` must not be given twice");
    let six = (0..6).try_fold(case(), |case, n| case.context(&format!("t{n}"), "a", json!({})));
    let mut create = WorkflowCreate::new("shipped", "Shipped").unwrap();
    create.preference_settings = on_if();
    for (refused, problem) in [
        (PreferenceCase::new(&create), format!("`preferenceSettings.{unknown}")),
        (case().operator(on_if()), format!("`preferences.{unknown}")),
        (case().subscriber_global(on_if()), format!("`{unknown}")),
        (case().subscriber_workflow(on_if()), format!("`{unknown}")),
        (case().subscription_if(misspelled()), format!("`{unknown}")),
        (
            about(json!({ "frstName": "Ada" })),
            "`subscriber.frstName` is not known; did you mean `firstName`?".into(),
        ),
        (about(json!({ "plan": "pro" })), "`subscriber.plan` is not known".into()),
        (
            case().actor(json!({ "frstName": "Ada" })),
            "`actor.frstName` is not known; did you mean `firstName`?".into(),
        ),
        (about(json!({ "email": "ada" })), "`subscriber.email` must be an e-mail address".into()),
        (
            case().schedule(serde_json::from_value(spanless).unwrap()),
            "`schedule.weeklySchedule.friday.hours` must be spans whose start and end differ"
                .into(),
        ),
        (case().saved_for(["tenant"]), "`contextKeys[0]` must be `type:id`".into()),
        (six, "`context` must have at most 5 items".into()),
    ] {
        assert_eq!(refused.unwrap_err().to_string(), problem);
    }
}

// Rule over one of the parts that conditions see.
fn any_rule() -> impl Strategy<Value = Rule> {
    let paths = [
        "payload.plan",
        "subscriber.data.plan",
        "subscriber.subscriberId",
        "actor.data.plan",
        "actor.subscriberId",
        "context.tenant.id",
        "context.tenant.data.plan",
        "workflow.identifier",
        "workflow.name",
    ];
    let words = ["pro", "free", "ada", "shipped", "Shipped"];
    (select(paths.to_vec()), select(words.to_vec()))
        .prop_map(|(path, word)| rule(json!({ "==": [{ "var": path }, word] })))
}

fn any_preference() -> impl Strategy<Value = Option<Preference>> {
    let preference = (any::<bool>(), any::<bool>(), option::of(any_rule()));
    option::of(preference.prop_map(|(all, email, rule)| {
        let preference = Preference::default().enabled(all).with(Channel::Email, email);
        match rule {
            Some(rule) => preference.condition(rule).unwrap(),
            None => preference,
        }
    }))
}

// Facts of one notification, as the engine stores them.
#[derive(Debug)]
struct Facts {
    workflow: Workflow,
    subscriber: Subscriber,
    actor: Option<Subscriber>,
    payload: Object,
    context: Option<Context>,
    settings: Vec<(bool, Option<Rule>)>,
    layers: [Option<Preference>; 2],
    // Of the settings and the layers.
    saved_for: ContextSet,
}

impl Facts {
    fn event_decides(&self, channel: Channel) -> Decision {
        let recipient = self.subscriber.subscriber_id.clone();
        let mut trigger = Trigger::new(self.workflow.identifier().clone(), recipient).unwrap();
        trigger.payload.clone_from(&self.payload);
        let contexts: Vec<_> = self.context.iter().cloned().collect();
        let keys: ContextSet = contexts.iter().map(|context| context.key.clone()).collect();
        let event = Event {
            actor: self.actor.as_ref(),
            home: &sample::home(),
            trigger: &trigger,
            transaction_id: &"txn".parse().unwrap(),
            workflow: &self.workflow,
            contexts: &contexts,
            context_keys: &keys,
            now: sample::at(0),
        };
        let data = event.data(&self.subscriber);
        let mut subscriptions = self.settings.iter().map(|set| self.subscription(set));
        if !self.settings.is_empty() && !subscriptions.any(|one| one.admits(&event, &&data)) {
            return Decision::NotSubscribed;
        }
        let counts = self.saved_for == keys;
        let [global, specific] =
            self.layers.each_ref().map(|layer| layer.as_ref().filter(|_| counts));
        let layers = self.workflow.layers(global, specific);
        match resolve(Layers { data: ConditionData::Known(&data), ..layers }, channel) {
            Resolved::Enabled(layer) => Decision::Send(layer),
            Resolved::Disabled(layer) => Decision::Disabled(layer),
            Resolved::Undecided(layer) => Decision::Undecided(layer),
        }
    }

    fn subscription(&self, (enabled, condition): &(bool, Option<Rule>)) -> Subscription {
        let create = TopicCreate::new("orders").unwrap();
        let topic = Topic::new(sample::id(7), &sample::home(), create, sample::at(0));
        let (identifier, of) = ("it".parse().unwrap(), (&topic, &self.subscriber));
        let keys = self.saved_for.clone();
        let new =
            Subscription::new(sample::id(8), identifier, &sample::home(), of, keys, sample::at(1));
        let (enabled, condition) = (*enabled, condition.clone());
        let setting = ResolvedSetting { workflow_id: self.workflow.id, enabled, condition };
        new.updated(Patch::Keep, Some(&[setting]), sample::at(1))
    }

    fn case_decides(&self, create: &WorkflowCreate, channel: Channel) -> Decision {
        let mut case = PreferenceCase::new(create)
            .and_then(|case| case.saved_for(self.saved_for.keys()))
            .and_then(|case| case.subscriber(template_data::subscriber_data(&self.subscriber)))
            .and_then(|case| case.payload(self.payload.clone()))
            .unwrap();
        if let Some(actor) = &self.actor {
            case = case.actor(template_data::subscriber_data(actor)).unwrap();
        }
        if let Some(Context { key, data, .. }) = &self.context {
            case = case.context(key.kind(), key.id(), data.clone()).unwrap();
        }
        for (enabled, condition) in self.settings.clone() {
            case = match condition {
                Some(condition) => case.subscription_if(condition).unwrap(),
                None => case.subscription(enabled),
            };
        }
        if let Some(operator) = self.workflow.operator_preference.clone() {
            case = case.operator(operator).unwrap();
        }
        let [global, specific] = self.layers.clone();
        if let Some(global) = global {
            case = case.subscriber_global(global).unwrap();
        }
        if let Some(specific) = specific {
            case = case.subscriber_workflow(specific).unwrap();
        }
        case.decide(channel)
    }
}

proptest! {
    #[test]
    fn a_case_and_an_event_of_the_same_facts_are_decided_alike(
        critical: bool,
        layers in [any_preference(), any_preference(), any_preference(), any_preference()],
        settings in vec((any::<bool>(), option::of(any_rule())), 0..3),
        [of_payload, of_ada, of_tenant] in [(); 3].map(|()| select(vec!["pro", "free"])),
        [actor, tenant, saved_for] in [(); 3].map(|()| option::of(select(vec!["pro", "free"]))),
        channel in select(vec![Channel::Email, Channel::Sms]),
    ) {
        let [definition, operator, global, specific] = layers;
        let key_of = |tenant| ContextKey::new("tenant", tenant).unwrap();
        let mut create = WorkflowCreate::new("shipped", "Shipped").unwrap();
        create.critical = critical;
        create.preference_settings = definition.unwrap_or_default();
        let ids = || (sample::id(4), sample::id(5));
        let new = Workflow::new(sample::id(3), &sample::home(), create.clone(), ids, sample::at(0));
        let mut workflow = new.unwrap();
        workflow.operator_preference = operator;
        let facts = Facts {
            workflow,
            subscriber: sample::subscriber(json!({ "data": { "plan": of_ada } })),
            actor: actor.map(|plan| sample::subscriber(json!({ "data": { "plan": plan } }))),
            payload: sample::object(json!({ "plan": of_payload })),
            saved_for: saved_for.map(key_of).into_iter().collect(),
            context: tenant.map(|tenant| {
                let key = key_of(tenant);
                let data = sample::object(json!({ "plan": of_tenant }));
                Context::new(sample::id(9), &sample::home(), key, data, sample::at(0))
            }),
            settings,
            layers: [global, specific],
        };
        let (event, case) = (facts.event_decides(channel), facts.case_decides(&create, channel));
        prop_assert_eq!(event, case);
    }
}
