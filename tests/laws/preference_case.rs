//! A case of preferences decides as an engine does, whatever was saved for which contexts.

use domain::explain::{EvidenceKind, ExplainedStep, SendTime};
use domain::vocabulary::StepType;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use testkit::parsed;
use testkit::world::{World, email, id, in_app, sms, with, workflow_of};
use tidings::condition::Rule;
use tidings::contact::TimeZone;
use tidings::preference::{Decision, Preference, PreferenceCase};
use tidings::schedule::Schedule;
use tidings::vocabulary::Channel;

const CHANNELS: [Channel; 3] = [Channel::InApp, Channel::Email, Channel::Sms];

/// What was saved, and the event. Contexts are ids by type.
#[derive(Clone, Debug)]
struct Facts {
    critical: bool,
    saved_for: Value,
    event: Value,
    global: Value,
    specific: Value,
    /// Setting of a topic subscription, if the event reaches the subscriber through one.
    subscription: Option<Value>,
    is_closed: bool,
}

fn any_contexts() -> impl Strategy<Value = Value> {
    select(vec![
        json!({}),
        json!({ "tenant": "acme" }),
        json!({ "tenant": "globex" }),
        json!({ "app": "web", "tenant": "acme" }),
    ])
}

fn any_condition() -> impl Strategy<Value = Option<Value>> {
    let paths = ["payload.plan", "subscriber.data.plan", "context.tenant.id", "workflow.name"];
    let words = ["pro", "acme", "hi"];
    let about = |(path, word)| json!({ "==": [{ "var": path }, word] });
    option::of((select(paths.to_vec()), select(words.to_vec())).prop_map(about))
}

fn any_preference() -> impl Strategy<Value = Value> {
    let word = || option::of(any::<bool>());
    (word(), word(), any_condition()).prop_map(|(email, sms, condition)| {
        let channels = json!({ "email": email, "sms": sms });
        let channels = channels.as_object().unwrap().clone();
        let said = channels.into_iter().filter(|(_, word)| !word.is_null());
        let mut preference = json!({ "channels": said.collect::<Value>() });
        if let Some(condition) = condition {
            preference["condition"] = condition;
        }
        preference
    })
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let setting = (any::<bool>(), any_condition()).prop_map(|(enabled, condition)| {
        condition.map_or(json!({ "enabled": enabled }), |rule| json!({ "condition": rule }))
    });
    let saved = (any_contexts(), any_preference(), option::of(any::<bool>()), any_preference());
    (any::<bool>(), saved, any_contexts(), option::of(setting), any::<bool>()).prop_map(
        |(critical, (saved_for, mut global, all, specific), event, subscription, is_closed)| {
            if let Some(all) = all {
                global["enabled"] = json!(all);
            }
            Facts { critical, saved_for, event, global, specific, subscription, is_closed }
        },
    )
}

fn closed() -> Value {
    json!({ "isEnabled": true, "weeklySchedule": { "monday": { "isEnabled": true, "hours": [
        { "start": "09:00 AM", "end": "05:00 PM" },
    ] } } })
}

fn workflow(critical: bool) -> Value {
    with(workflow_of("hi", &[in_app(), email(), sms()]), json!({ "critical": critical }))
}

impl Facts {
    /// Adds the contexts of what is saved to a request.
    fn saved(&self, mut request: Value) -> Value {
        if self.saved_for != json!({}) {
            request["context"] = self.saved_for.clone();
        }
        request
    }

    fn engine_decides(&self) -> Vec<Decision> {
        let world = World::in_memory();
        world.subscriber(json!({
            "subscriberId": "ada", "email": "ada@example.org", "phone": "+491",
            "data": { "plan": "pro" },
        }));
        for (channel, provider) in [("email", "ses"), ("sms", "twilio")] {
            world.active_integration(channel, provider);
        }
        // No subscriber can opt out of a critical workflow, but out of one that becomes critical.
        world.workflow(workflow(false));
        let ada = world.env.preferences(id("ada")).unwrap();
        let mut global = self.saved(self.global.clone());
        if self.is_closed {
            global["schedule"] = closed();
        }
        ada.update_global(&parsed(global)).unwrap();
        let specific = with(json!({ "workflowId": "hi" }), self.specific.clone());
        ada.update_bulk(&parsed(self.saved(json!({ "preferences": [specific] })))).unwrap();
        let critical = json!({ "critical": self.critical });
        world.env.workflows().update("hi", &parsed(critical)).unwrap();
        let mut event = json!({ "name": "hi", "to": "ada", "payload": { "plan": "pro" } });
        if let Some(setting) = &self.subscription {
            world.env.topics().create(&parsed(json!({ "key": "news" }))).unwrap();
            let setting = with(json!({ "workflowId": "hi" }), setting.clone());
            let member = json!({ "subscriberIds": ["ada"], "preferences": [setting] });
            assert_eq!(
                world.env.topics().subscribe("news", &parsed(self.saved(member))).unwrap().errors,
                []
            );
            event["to"] = json!({ "type": "Topic", "topicKey": "news" });
        }
        if self.event != json!({}) {
            event["context"] = self.event.clone();
        }
        let explanation = world.env.events().explain(&parsed(event), world.now()).unwrap();
        match explanation.recipients.as_slice() {
            [] => vec![Decision::NotSubscribed; CHANNELS.len()],
            recipients => recipients.iter().flat_map(|to| &to.steps).map(decision).collect(),
        }
    }

    fn case_decides(&self, world: &World) -> Vec<Decision> {
        let keys = |contexts: &Value| -> Vec<String> {
            let contexts = contexts.as_object().unwrap().iter();
            contexts.map(|(kind, id)| format!("{kind}:{}", id.as_str().unwrap())).collect()
        };
        let preference = |said: &Value| -> Preference {
            let mut said = said.clone();
            let channels = said.as_object_mut().unwrap().remove("channels").unwrap();
            parsed(with(said, channels))
        };
        let mut case = PreferenceCase::new(&parsed(workflow(self.critical)))
            .and_then(|case| case.saved_for(keys(&self.saved_for)))
            .and_then(|case| case.subscriber_global(preference(&self.global)))
            .and_then(|case| case.subscriber_workflow(preference(&self.specific)))
            .and_then(|case| case.subscriber(json!({ "data": { "plan": "pro" } })))
            .and_then(|case| case.payload(json!({ "plan": "pro" })))
            .unwrap()
            .at(world.now(), TimeZone::UTC);
        for (kind, id) in self.event.as_object().unwrap() {
            case = case.context(kind, id.as_str().unwrap(), json!({})).unwrap();
        }
        if self.is_closed {
            case = case.schedule(parsed::<Schedule>(closed())).unwrap();
        }
        if let Some(setting) = &self.subscription {
            case = match (setting.get("condition"), setting.get("enabled")) {
                (Some(rule), _) => case.subscription_if(Rule::new(rule.clone()).unwrap()).unwrap(),
                (None, enabled) => case.subscription(enabled == Some(&json!(true))),
            };
        }
        CHANNELS.map(|channel| case.decide(channel)).into()
    }
}

/// The decision of a step, by its evidence.
fn decision(step: &ExplainedStep) -> Decision {
    assert_ne!(step.kind, StepType::Trigger);
    let mut decision = None;
    for finding in &step.evidence {
        match &finding.kind {
            EvidenceKind::Preference { enabled, decided_by, .. } => {
                let decided = if *enabled { Decision::Send } else { Decision::Disabled };
                decision = decision.or(Some(decided(*decided_by)));
            }
            EvidenceKind::Schedule { timing: SendTime::AtOpening { at, .. }, .. } => {
                return Decision::OutsideSchedule { next_opening: Some(*at) };
            }
            _ => {}
        }
    }
    decision.unwrap_or_else(|| panic!("{step:?}"))
}

proptest! {
    #![proptest_config(crate::cases(64))]
    #[test]
    fn a_case_says_what_an_engine_does(facts in any_facts()) {
        let world = World::in_memory();
        prop_assert_eq!(facts.case_decides(&world), facts.engine_decides(), "{:?}", facts);
    }
}
