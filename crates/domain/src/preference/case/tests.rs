use super::*;

fn rule(source: Value) -> Rule {
    Rule::new(source).unwrap()
}

fn case(fields: Value) -> PreferenceCase {
    let mut create = json!({ "workflowId": "shipped", "name": "Shipped", "steps": [] });
    create.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    PreferenceCase::new(&serde_json::from_value(create).unwrap())
}

fn on_if(source: Value) -> PreferenceCase {
    case(json!({})).subscriber_global(Preference::default().only_if(rule(source)).unwrap())
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn every_layer_has_its_say() {
    let off = Preference::default().with_all(false);
    let email = |case: &PreferenceCase| case.decide(Channel::Email);
    assert_eq!(email(&case(json!({}))), Decision::Send(Layer::Default));
    let defined = case(json!({ "preferenceSettings": { "email": false } }));
    assert_eq!(email(&defined), Decision::Disabled(Layer::Definition));
    assert_eq!(defined.decide(Channel::Sms), Decision::Send(Layer::Default));
    let case = defined.dashboard(Preference::default().with_all(true));
    assert_eq!(email(&case), Decision::Send(Layer::Dashboard));
    let case = case.subscriber_global(off.clone());
    assert_eq!(email(&case), Decision::Disabled(Layer::SubscriberGlobal));
    let case = case.subscriber_workflow(Preference::default().with(Channel::Email, true));
    assert_eq!(email(&case), Decision::Send(Layer::SubscriberWorkflow));
    assert_eq!(case.decide(Channel::Sms), Decision::Disabled(Layer::SubscriberGlobal));
}

#[test]
fn a_critical_workflow_takes_no_word_of_a_subscriber() {
    let off = Preference::default().with_all(false);
    let case = case(json!({ "critical": true })).subscriber_global(off);
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
        about("context.tenant.data.plan").context("tenant", "acme", pro["data"].clone()),
        about("context.tenant.id").context("tenant", "pro", json!({})),
        on_if(json!({ "==": [{ "var": "workflow.identifier" }, "shipped"] })).payload(json!({})),
        on_if(json!({ "==": [{ "var": "workflow.name" }, "Shipped"] })).payload(json!({})),
    ] {
        let case = case.unwrap();
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
    assert_eq!(decide(known(true).subscription_if(vip())), sent);
    assert_eq!(decide(known(false).subscription_if(vip())), Decision::NotSubscribed);
    let open = case(json!({})).subscription(false).subscription_if(vip());
    assert_eq!(decide(open.clone()), Decision::SubscriptionUndecided);
    assert_eq!(decide(open.subscription(true)), sent);
    // The preferences come after the subscriptions.
    let off = Preference::default().with_all(false);
    let off = case(json!({})).subscriber_global(off);
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
    let scheduled = |fields| case(fields).schedule(mornings.clone());
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
    let disabled = case(json!({})).schedule(Schedule { is_enabled: false, ..mornings.clone() });
    assert_eq!(disabled.decide(Channel::Email), sent);
    let never = serde_json::from_value(json!({ "isEnabled": true, "weeklySchedule": {} })).unwrap();
    let never = early(case(json!({})).schedule(never)).decide(Channel::Email);
    assert_eq!(never, Decision::OutsideSchedule { next_opening: None });
    // The schedule does not delay a message that is switched off.
    let off = closed.subscriber_global(Preference::default().with_all(false));
    assert_eq!(off.decide(Channel::Email), Decision::Disabled(Layer::SubscriberGlobal));
}
