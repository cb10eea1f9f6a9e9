use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::context::ContextSet;
use crate::sample;
use crate::workflow::Workflow;

const ON: Option<bool> = Some(true);
const OFF: Option<bool> = Some(false);

/// Every row of the truth table for one channel: the settings of the workflow (W), of the
/// subscriber in general (G) and of the subscriber for this workflow (S), and the result.
#[test]
fn the_most_specific_setting_wins() {
    for (workflow, global, specific, holds) in [
        (ON, None, None, true),
        (ON, None, ON, true),
        (ON, None, OFF, false),
        (ON, ON, None, true),
        (ON, ON, ON, true),
        (ON, ON, OFF, false),
        (ON, OFF, None, false),
        (ON, OFF, ON, true),
        (ON, OFF, OFF, false),
        (OFF, None, None, false),
        (OFF, None, ON, true),
        (OFF, None, OFF, false),
        (OFF, ON, None, true),
        (OFF, ON, ON, true),
        (OFF, ON, OFF, false),
        (OFF, OFF, None, false),
        (OFF, OFF, ON, true),
        (OFF, OFF, OFF, false),
    ] {
        let decider = match (global, specific) {
            (_, Some(_)) => Layer::SubscriberWorkflow,
            (Some(_), None) => Layer::SubscriberGlobal,
            (None, None) => Layer::Definition,
        };
        // The setting may be that of the channel or of all channels.
        for say in [channel as fn(Option<bool>) -> Preference, all] {
            let (definition, global, specific) = (say(workflow), say(global), say(specific));
            let layers = Layers {
                definition: Some(&definition),
                subscriber_global: Some(&global),
                subscriber_workflow: Some(&specific),
                ..Layers::default()
            };
            check(layers, holds, decider);

            let critical = Layers { critical: true, ..layers };
            check(critical, workflow == ON, Layer::Definition);

            let operator = Layers { definition: None, operator: Some(&definition), ..critical };
            check(operator, workflow == ON, Layer::Operator);
        }
    }
}

#[test]
fn nobody_objects() {
    check(Layers::default(), true, Layer::Default);
    check(Layers { critical: true, ..Layers::default() }, true, Layer::Default);
}

#[test]
fn the_operator_overrules_the_definition() {
    let (off, on) = (channel(OFF), channel(ON));
    let layers = Layers { definition: Some(&off), operator: Some(&on), ..Layers::default() };
    check(layers, true, Layer::Operator);
}

/// Worked examples of the specification, by name.
mod examples {
    use super::*;

    #[test]
    fn p1_a_subscriber_turns_one_channel_off() {
        let workflow = Preference::default().enabled(true);
        let global = Preference::default().with(Channel::Email, false);
        let layers = of(&workflow, &global);
        check(layers, false, Layer::SubscriberGlobal);
        let sms = resolve(layers, Channel::Sms);
        assert_eq!(sms, Resolved::Enabled(Layer::Definition));
    }

    #[test]
    fn p2_p3_the_word_for_a_workflow_beats_the_general_one() {
        let workflow = Preference::default().enabled(true);
        let global = Preference::default().with(Channel::Email, false);
        let specific = Preference::default().with(Channel::Email, true);
        let layers = Layers { subscriber_workflow: Some(&specific), ..of(&workflow, &global) };
        check(layers, true, Layer::SubscriberWorkflow);
    }

    #[test]
    fn p4_muting_everything_beats_a_channel_of_the_workflow() {
        let workflow = Preference::default().enabled(true).with(Channel::Email, true);
        let global = Preference::default().enabled(false);
        check(of(&workflow, &global), false, Layer::SubscriberGlobal);
    }

    #[test]
    fn p5_muting_everything_beats_a_workflow_that_is_on() {
        let workflow = Preference::default().enabled(true);
        let global = Preference::default().enabled(false);
        check(of(&workflow, &global), false, Layer::SubscriberGlobal);
    }

    #[test]
    fn p6_a_layer_that_says_nothing_has_no_effect() {
        let workflow = Preference::default().enabled(false);
        check(of(&workflow, &Preference::default()), false, Layer::Definition);
    }

    #[test]
    fn p7_a_critical_workflow_adds_no_channel() {
        let workflow = channel(OFF);
        let global = channel(ON);
        let layers = Layers { critical: true, ..of(&workflow, &global) };
        check(layers, false, Layer::Definition);
    }

    /// One value says whether a workflow is critical, for preferences and for schedules.
    #[test]
    fn p8_a_critical_workflow_takes_the_word_of_its_operator_only() {
        let (definition, operator) = (channel(OFF), channel(ON));
        let global = Preference::default().with(Channel::Email, false);
        let layers =
            Layers { critical: true, operator: Some(&operator), ..of(&definition, &global) };
        check(layers, true, Layer::Operator);
        check(Layers { critical: false, ..layers }, false, Layer::SubscriberGlobal);
    }

    #[test]
    fn p9_the_layer_that_spoke_is_the_one_named() {
        let workflow = Preference::default().enabled(true);
        let global = Preference::default().with(Channel::Email, false);
        let specific = Preference::default().with(Channel::Sms, true);
        let layers = Layers { subscriber_workflow: Some(&specific), ..of(&workflow, &global) };
        check(layers, false, Layer::SubscriberGlobal);
    }

    fn of<'a>(workflow: &'a Preference, global: &'a Preference) -> Layers<'a> {
        let (definition, subscriber_global) = (Some(workflow), Some(global));
        Layers { definition, subscriber_global, ..Layers::default() }
    }
}

#[test]
fn every_channel_is_shown_with_its_decider() {
    let global = Preference::default().with(Channel::Push, false);
    let layers = Layers { subscriber_global: Some(&global), ..Layers::default() };

    let channels = PreferenceChannels::resolved(layers);
    assert_eq!(
        serde_json::to_string(&channels).unwrap(),
        r#"{"email":true,"sms":true,"in_app":true,"chat":true,"push":false}"#
    );
    let overrides = PreferenceOverride::all(layers);
    let sources: Vec<_> = overrides.iter().map(|entry| (entry.channel, entry.source)).collect();
    assert_eq!(
        sources,
        [
            (Channel::InApp, OverrideSource::Workflow),
            (Channel::Email, OverrideSource::Workflow),
            (Channel::Sms, OverrideSource::Workflow),
            (Channel::Chat, OverrideSource::Workflow),
            (Channel::Push, OverrideSource::Subscriber),
        ]
    );
}

#[test]
fn an_update_keeps_what_is_not_named() {
    let mut words = PreferenceChannels { in_app: ON, email: ON, sms: ON, ..Default::default() };
    let update = PreferenceChannelsUpdate::default();
    update.with(Channel::Email, false).clear(Channel::Sms).clear(Channel::Push).apply(&mut words);
    let expected = PreferenceChannels { in_app: ON, email: OFF, ..Default::default() };
    assert_eq!(words, expected);
}

// The same rule as a fold: the last layer with a setting counts.
fn last_word(layers: Layers<'_>, channel: Channel) -> Resolved {
    let mut speakers =
        vec![(Layer::Definition, layers.definition), (Layer::Operator, layers.operator)];
    if !layers.critical {
        speakers.push((Layer::SubscriberGlobal, layers.subscriber_global));
        speakers.push((Layer::SubscriberWorkflow, layers.subscriber_workflow));
    }
    let mut resolved = Resolved::Enabled(Layer::Default);
    for (decided_by, preference) in speakers {
        let words = preference.map(|given| [given.enabled, given.channels.get(channel)]);
        for enabled in words.into_iter().flatten().flatten() {
            resolved = resolved_of(enabled, decided_by);
        }
    }
    resolved
}

fn preference() -> impl Strategy<Value = Option<Preference>> {
    let word = || any::<Option<bool>>();
    let channels =
        (word(), word(), word(), word(), word()).prop_map(|(email, sms, in_app, chat, push)| {
            PreferenceChannels { email, sms, in_app, chat, push }
        });
    let preference = (word(), channels).prop_map(|(enabled, channels)| Preference {
        enabled,
        channels,
        condition: None,
    });
    proptest::option::of(preference)
}

proptest! {
    #[test]
    fn the_last_word_decides(
        given in prop::array::uniform4(preference()),
        critical in any::<bool>(),
        channel in proptest::sample::select(Channel::ALL),
    ) {
        let [definition, operator, global, specific] = &given;
        let layers = Layers {
            definition: definition.as_ref(),
            operator: operator.as_ref(),
            subscriber_global: global.as_ref(),
            subscriber_workflow: specific.as_ref(),
            critical,
            data: ConditionData::Missing,
        };
        let resolved = resolve(layers, channel);
        prop_assert_eq!(resolved, last_word(layers, channel));
        prop_assert_eq!(PreferenceChannels::resolved(layers).get(channel), Some(resolved.is_enabled()));
        let named = PreferenceOverride::all(layers);
        let named = named.iter().find(|entry| entry.channel == channel).unwrap();
        prop_assert_eq!(named.layer, resolved.decided_by());
    }

    #[test]
    fn without_conditions_data_decides_nothing(
        given in prop::array::uniform4(preference()),
        critical in any::<bool>(),
        channel in proptest::sample::select(Channel::ALL),
    ) {
        let [definition, operator, global, specific] = &given;
        let layers = Layers {
            definition: definition.as_ref(),
            operator: operator.as_ref(),
            subscriber_global: global.as_ref(),
            subscriber_workflow: specific.as_ref(),
            critical,
            data: ConditionData::Missing,
        };
        prop_assert!(!layers.have_conditions());
        let data = json!({ "payload": { "tier": "premium" } });
        let informed = Layers { data: ConditionData::Known(&data), ..layers };
        prop_assert_eq!(resolve(informed, channel), resolve(layers, channel));
        prop_assert_eq!(resolve_unnamed(informed), resolve_unnamed(layers));
    }

    #[test]
    fn a_condition_stands_in_for_the_word_about_all_channels(
        given in preference(),
        below in preference(),
        holds in any::<bool>(),
        channel in proptest::sample::select(Channel::ALL),
    ) {
        let given = given.unwrap_or_default();
        let word = Preference { enabled: Some(holds), ..given.clone() };
        let condition = given.condition(tier("premium")).unwrap();
        let data = json!({ "payload": { "tier": if holds { "premium" } else { "free" } } });
        let layers = |global| Layers {
            subscriber_global: Some(global),
            definition: below.as_ref(),
            data: ConditionData::Known(&data),
            ..Layers::default()
        };
        let resolved = resolve(layers(&condition), channel);
        prop_assert_eq!(resolved.decided_by(), Layer::SubscriberGlobal);
        let unconditional = resolve(layers(&word), channel).is_enabled();
        prop_assert_eq!(resolved.is_enabled(), holds && unconditional);
        prop_assert_eq!(resolve_unnamed(layers(&condition)).is_enabled(), holds);
    }

    #[test]
    fn a_preference_is_read_as_it_is_written(preference in preference()) {
        let preference = preference.unwrap_or_default();
        let json = serde_json::to_string(&preference).unwrap();
        prop_assert_eq!(serde_json::from_str::<Preference>(&json).unwrap(), preference);
    }
}

fn rule(source: Value) -> Rule {
    Rule::new(source).unwrap()
}

fn tier(tier: &str) -> Rule {
    rule(json!({ "===": [{ "var": "payload.tier" }, tier] }))
}

/// One row per layer with a condition: the setting for e-mails if the condition holds, fails or is
/// undecided. The workflow switches everything off.
#[test]
fn a_condition_replaces_the_setting_for_all_and_gates_the_others() {
    let silent = Preference::default();
    for (given, holding, failing) in [
        (silent.clone(), true, false),
        (silent.clone().enabled(true), true, false),
        (silent.clone().enabled(false), true, false),
        (silent.clone().with(Channel::Email, true), true, false),
        (silent.clone().with(Channel::Email, false), false, false),
        (silent.clone().enabled(false).with(Channel::Email, true), true, false),
        (silent.clone().enabled(true).with(Channel::Email, false), false, false),
        // A setting for another channel has no effect on this one.
        (silent.clone().with(Channel::Sms, false), true, false),
    ] {
        let given = given.condition(tier("premium")).unwrap();
        let off = Preference::default().enabled(false);
        for (data, expected) in [
            (Some(json!({ "payload": { "tier": "premium" } })), holding),
            (Some(json!({ "payload": { "tier": "free" } })), failing),
            (Some(json!({})), failing),
            (None, holding),
        ] {
            let data = data.as_ref().map_or(ConditionData::AssumedToHold, ConditionData::Known);
            let below = Layers { definition: Some(&off), data, ..Layers::default() };
            let rows = [
                (Layers { operator: Some(&given), ..below }, Layer::Operator),
                (Layers { subscriber_global: Some(&given), ..below }, Layer::SubscriberGlobal),
                (Layers { subscriber_workflow: Some(&given), ..below }, Layer::SubscriberWorkflow),
                (Layers { definition: Some(&given), data, ..Layers::default() }, Layer::Definition),
            ];
            for (layers, layer) in rows {
                check(layers, expected, layer);
                assert!(layers.have_conditions());
            }
        }
    }
}

/// One row per layer: without data the condition is undecided, unless the channel is off anyway.
#[test]
fn a_condition_without_data_is_undecided() {
    let given = Preference::default().with(Channel::Sms, false).condition(tier("premium")).unwrap();
    let layers = Layers::default();
    for (layers, layer) in [
        (Layers { definition: Some(&given), ..layers }, Layer::Definition),
        (Layers { operator: Some(&given), ..layers }, Layer::Operator),
        (Layers { subscriber_global: Some(&given), ..layers }, Layer::SubscriberGlobal),
        (Layers { subscriber_workflow: Some(&given), ..layers }, Layer::SubscriberWorkflow),
    ] {
        assert_eq!(resolve(layers, Channel::Email), Resolved::Undecided(layer));
        assert_eq!(resolve_unnamed(layers), Resolved::Undecided(layer));
        assert!(!Resolved::Undecided(layer).is_enabled());
        assert_eq!(resolve(layers, Channel::Sms), Resolved::Disabled(layer));
        let assumed = Layers { data: ConditionData::AssumedToHold, ..layers };
        assert_eq!(resolve(assumed, Channel::Email), Resolved::Enabled(layer));
    }
    let above = Preference::default().with(Channel::Email, true);
    let layers =
        Layers { subscriber_global: Some(&given), subscriber_workflow: Some(&above), ..layers };
    check(layers, true, Layer::SubscriberWorkflow);
}

#[test]
fn a_condition_holds_if_it_comes_to_true_and_to_nothing_else() {
    for (source, holds) in [
        (json!({ "==": [1, 1] }), true),
        (json!({ "+": [1] }), false),
        (json!({ "cat": ["true"] }), false),
        (json!({ "merge": [true] }), false),
        (json!({ "var": "yes" }), true),
        (json!({ "var": "one" }), false),
        (json!({ "var": "nowhere" }), false),
    ] {
        let given = Preference::default().condition(rule(source)).unwrap();
        let data = json!({ "yes": true, "one": 1 });
        let layers = Layers {
            subscriber_global: Some(&given),
            data: ConditionData::Known(&data),
            ..Layers::default()
        };
        check(layers, holds, Layer::SubscriberGlobal);
        let unnamed = resolved_of(holds, Layer::SubscriberGlobal);
        assert_eq!(resolve_unnamed(layers), unnamed);
    }
}

#[test]
fn a_critical_workflow_asks_no_condition_of_its_subscribers() {
    let never = Preference::default().condition(rule(json!({ "==": [1, 2] }))).unwrap();
    let data = json!({});
    let layers = Layers {
        subscriber_global: Some(&never),
        subscriber_workflow: Some(&never),
        data: ConditionData::Known(&data),
        ..Layers::default()
    };
    check(layers, false, Layer::SubscriberWorkflow);
    let critical = Layers { critical: true, ..layers };
    check(critical, true, Layer::Default);
    assert!(layers.have_conditions() && !critical.have_conditions());

    let of_its_own = Layers { definition: Some(&never), ..critical };
    check(of_its_own, false, Layer::Definition);
    assert!(of_its_own.have_conditions());
}

/// One row per layer: the result for a channel without a setting of its own.
#[test]
fn a_channel_without_a_setting_follows_the_setting_for_all_says() {
    let silent = Preference::default();
    let never = rule(json!({ "==": [1, 2] }));
    for (given, expected) in [
        (silent.clone(), None),
        (silent.clone().with(Channel::Email, false), None),
        (silent.clone().enabled(true), Some(true)),
        (silent.clone().enabled(false).with(Channel::Email, true), Some(false)),
        (silent.clone().enabled(true).condition(never.clone()).unwrap(), Some(false)),
        (silent.with(Channel::Email, true).condition(never).unwrap(), Some(false)),
    ] {
        let data = json!({});
        let layers = Layers {
            subscriber_global: Some(&given),
            data: ConditionData::Known(&data),
            ..Layers::default()
        };
        let (enabled, decided_by) = match expected {
            Some(enabled) => (enabled, Layer::SubscriberGlobal),
            None => (true, Layer::Default),
        };
        assert_eq!(resolve_unnamed(layers), resolved_of(enabled, decided_by));
    }
}

mod record {
    use super::*;
    use crate::schedule::{Outside, Schedule};

    fn word(scope: PreferenceScope) -> SubscriberPreference {
        let contexts = ContextSet::default();
        SubscriberPreference::new(sample::id(1), sample::id(2), contexts, scope, sample::at(1))
    }

    fn about_one() -> SubscriberPreference {
        word(PreferenceScope::Workflow { workflow_id: sample::id(3) })
    }

    /// One row per update for a workflow: the stored preference after it.
    #[test]
    fn an_update_keeps_absent_channels() {
        let before = SubscriberPreference {
            preference: Preference::default()
                .with(Channel::Email, false)
                .condition(tier("a"))
                .unwrap(),
            ..about_one()
        };
        let given = &before.preference;
        let unconditional = Preference { condition: None, ..given.clone() };
        for (json, expected) in [
            (json!({ "channels": {} }), given.clone()),
            (json!({ "channels": { "email": false } }), given.clone()),
            (json!({ "channels": { "sms": true } }), given.clone().with(Channel::Sms, true)),
            (json!({ "channels": { "email": true } }), given.clone().with(Channel::Email, true)),
            (
                json!({ "channels": { "email": null } }),
                Preference { channels: PreferenceChannels::default(), ..given.clone() },
            ),
            (json!({ "channels": { "sms": null } }), given.clone()),
            (json!({ "channels": {}, "enabled": false }), given.clone().enabled(false)),
            (json!({ "channels": {}, "enabled": null }), given.clone()),
            (json!({ "channels": {}, "condition": null }), unconditional),
            (
                json!({ "channels": {}, "condition": tier("b") }),
                given.clone().condition(tier("b")).unwrap(),
            ),
            (json!({ "channels": {}, "condition": tier("a") }), given.clone()),
        ] {
            let mut json = json;
            json["workflowId"] = "order-shipped".into();
            let bulk: WorkflowPreferenceUpdate = serde_json::from_value(json).unwrap();
            let after = before.updated_for_workflow(&bulk, sample::at(9));
            // An update without a difference changes no time.
            let updated_at = sample::at(if expected == *given { 1 } else { 9 });
            let expected =
                SubscriberPreference { preference: expected, updated_at, ..before.clone() };
            assert_eq!(after, expected);
        }
    }

    /// One row per update for every workflow: the stored preference after it.
    #[test]
    fn an_update_for_every_workflow_keeps_absent_channels() {
        let hours = Schedule::open().with_outside(Channel::Sms, Outside::Drop);
        let before = SubscriberPreference {
            preference: Preference::default().enabled(false).condition(tier("a")).unwrap(),
            ..word(PreferenceScope::Global { schedule: Some(hours.clone()) })
        };
        let given = &before.preference;
        for (json, expected, schedule) in [
            (json!({}), given.clone(), Some(&hours)),
            (json!({ "enabled": true }), given.clone().enabled(true), Some(&hours)),
            (
                json!({ "enabled": null }),
                Preference { enabled: None, ..given.clone() },
                Some(&hours),
            ),
            (
                json!({ "condition": null }),
                Preference { condition: None, ..given.clone() },
                Some(&hours),
            ),
            (
                json!({ "condition": tier("b") }),
                given.clone().condition(tier("b")).unwrap(),
                Some(&hours),
            ),
            (
                json!({ "channels": { "push": true } }),
                given.clone().with(Channel::Push, true),
                Some(&hours),
            ),
            (json!({ "schedule": { "isEnabled": true } }), given.clone(), Some(&hours)),
            (json!({ "schedule": null }), given.clone(), None),
        ] {
            let update: GlobalPreferenceUpdate = serde_json::from_value(json).unwrap();
            let after = before.updated(&update, sample::at(9));
            let same = expected == *given && schedule.is_some();
            let updated_at = sample::at(if same { 1 } else { 9 });
            let scope = PreferenceScope::Global { schedule: schedule.cloned() };
            let expected =
                SubscriberPreference { preference: expected, scope, updated_at, ..before.clone() };
            assert_eq!(after, expected);
        }
    }
}

/// One row per preference: whether it has something to say.
#[test]
fn a_preference_without_settings_is_empty() {
    let of = |preference: Preference, scope: PreferenceScope| {
        let contexts = ContextSet::default();
        let new =
            SubscriberPreference::new(sample::id(1), sample::id(2), contexts, scope, sample::at(1));
        SubscriberPreference { preference, ..new }
    };
    let one = || PreferenceScope::Workflow { workflow_id: sample::id(3) };
    let all = |schedule: Option<crate::schedule::Schedule>| PreferenceScope::Global { schedule };
    let nothing = Preference::default;
    for (preference, scope, is_empty) in [
        (nothing(), one(), true),
        (nothing(), all(None), true),
        (nothing(), all(Some(crate::schedule::Schedule::open())), false),
        (nothing().enabled(true), one(), false),
        (nothing().with(Channel::Chat, true), all(None), false),
        (nothing().condition(tier("a")).unwrap(), one(), false),
    ] {
        assert_eq!(of(preference, scope).is_empty(), is_empty);
    }
}

#[test]
fn a_condition_that_is_no_rule_is_refused() {
    for json in [
        json!({ "workflowId": "w", "channels": {}, "condition": { "nope": [1] } }),
        json!({ "workflowId": "w", "channels": {}, "condition": true }),
        json!({ "workflowId": "w", "channels": {}, "condition": {} }),
    ] {
        let error =
            serde_json::from_value::<WorkflowPreferenceUpdate>(json).unwrap_err().to_string();
        assert!(error.contains("`condition`"), "{error}");
    }
}

#[test]
fn a_criticality_shows_its_workflows() {
    for (criticality, critical, other) in [
        (Criticality::Critical, true, false),
        (Criticality::NonCritical, false, true),
        (Criticality::All, true, true),
    ] {
        assert_eq!((criticality.matches(true), criticality.matches(false)), (critical, other));
    }
    assert_eq!(Criticality::default(), Criticality::NonCritical);
}

#[test]
fn a_bulk_is_about_1_to_100_workflows() {
    let item = |_| WorkflowPreferenceUpdate::new("w");
    let check = |count| {
        let bulk = WorkflowPreferenceUpdates {
            preferences: (0..count).map(item).collect(),
            context: None,
        };
        bulk.check().map_err(|invalid| invalid.to_string())
    };
    assert_eq!([check(1), check(100)], [Ok(()), Ok(())]);
    assert_eq!(check(0), Err("`preferences` must not be empty".into()));
    assert_eq!(check(101), Err("`preferences` must have at most 100 items".into()));
}

#[test]
fn a_bulk_changes_each_workflow_once_unless_one_is_missing_or_critical() {
    let workflow = |id: u128, critical: bool| {
        Some(Workflow { id: sample::id(id), critical, ..sample::workflow(json!([])) })
    };
    let names = |names: &str| names.split_terminator(' ').map(str::to_owned).collect::<Vec<_>>();
    let bulk = |items: &str| WorkflowPreferenceUpdates {
        preferences: names(items).into_iter().map(WorkflowPreferenceUpdate::new).collect(),
        context: None,
    };
    let [a, b, critical] = [workflow(1, false), workflow(2, false), workflow(3, true)];
    for (items, found, expected) in [
        ("", vec![], Ok("")),
        ("a b", vec![&a, &b], Ok("1:a 2:b ")),
        ("a b again", vec![&a, &b, &a], Ok("1:again 2:b ")),
        ("a c", vec![&a, &critical], Err(BulkRefusal::Critical(names("c")))),
        ("no c none", vec![&None, &critical, &None], Err(BulkRefusal::Missing(names("no none")))),
    ] {
        let bulk = bulk(items);
        let changes = bulk.changes(found.into_iter().cloned()).map(|changes| {
            let one = |(workflow, item): &(Workflow, &WorkflowPreferenceUpdate)| {
                let number = uuid::Uuid::from(workflow.id).as_u128();
                format!("{number}:{} ", item.workflow_id)
            };
            changes.iter().map(one).collect::<String>()
        });
        assert_eq!(changes, expected.map(str::to_owned), "{items}");
    }
}

#[track_caller]
fn resolved_of(enabled: bool, layer: Layer) -> Resolved {
    if enabled { Resolved::Enabled(layer) } else { Resolved::Disabled(layer) }
}

fn check(layers: Layers<'_>, enabled: bool, decided_by: Layer) {
    assert_eq!(resolve(layers, Channel::Email), resolved_of(enabled, decided_by));
}

fn channel(word: Option<bool>) -> Preference {
    let channels = PreferenceChannels { email: word, ..PreferenceChannels::default() };
    Preference { channels, ..Preference::default() }
}

fn all(word: Option<bool>) -> Preference {
    Preference { enabled: word, ..Preference::default() }
}
