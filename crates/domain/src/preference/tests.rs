use proptest::prelude::*;

use super::*;

const ON: Option<bool> = Some(true);
const OFF: Option<bool> = Some(false);

/// Every row of the truth table for one channel: what the workflow (W), the subscriber in general
/// (G) and the subscriber about this workflow (S) say, and what holds.
#[test]
fn the_most_specific_word_wins() {
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
        // The word may stand for the channel or for all channels.
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

            let dashboard = Layers { definition: None, dashboard: Some(&definition), ..critical };
            check(dashboard, workflow == ON, Layer::Dashboard);
        }
    }
}

#[test]
fn nobody_objects() {
    check(Layers::default(), true, Layer::Default);
    check(Layers { critical: true, ..Layers::default() }, true, Layer::Default);
}

#[test]
fn the_dashboard_overrules_the_definition() {
    let (off, on) = (channel(OFF), channel(ON));
    let layers = Layers { definition: Some(&off), dashboard: Some(&on), ..Layers::default() };
    check(layers, true, Layer::Dashboard);
}

/// The worked examples of the specification, by their names there.
mod examples {
    use super::*;

    #[test]
    fn p1_a_subscriber_turns_one_channel_off() {
        let workflow = Preference::default().with_all(true);
        let global = Preference::default().with(Channel::Email, false);
        let layers = of(&workflow, &global);
        check(layers, false, Layer::SubscriberGlobal);
        let sms = resolve(layers, Channel::Sms);
        assert_eq!(sms, Verdict { enabled: true, decided_by: Layer::Definition });
    }

    #[test]
    fn p2_p3_the_word_for_a_workflow_beats_the_general_one() {
        let workflow = Preference::default().with_all(true);
        let global = Preference::default().with(Channel::Email, false);
        let specific = Preference::default().with(Channel::Email, true);
        let layers = Layers { subscriber_workflow: Some(&specific), ..of(&workflow, &global) };
        check(layers, true, Layer::SubscriberWorkflow);
    }

    #[test]
    fn p4_muting_everything_beats_a_channel_of_the_workflow() {
        let workflow = Preference::default().with_all(true).with(Channel::Email, true);
        let global = Preference::default().with_all(false);
        check(of(&workflow, &global), false, Layer::SubscriberGlobal);
    }

    #[test]
    fn p5_muting_everything_beats_a_workflow_that_is_on() {
        let workflow = Preference::default().with_all(true);
        let global = Preference::default().with_all(false);
        check(of(&workflow, &global), false, Layer::SubscriberGlobal);
    }

    #[test]
    fn p6_a_layer_that_says_nothing_has_no_effect() {
        let workflow = Preference::default().with_all(false);
        check(of(&workflow, &Preference::default()), false, Layer::Definition);
    }

    #[test]
    fn p7_a_critical_workflow_adds_no_channel() {
        let workflow = channel(OFF);
        let global = channel(ON);
        let layers = Layers { critical: true, ..of(&workflow, &global) };
        check(layers, false, Layer::Definition);
    }

    #[test]
    fn p9_the_layer_that_spoke_is_the_one_named() {
        let workflow = Preference::default().with_all(true);
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
            (Channel::InApp, OverrideSource::Template),
            (Channel::Email, OverrideSource::Template),
            (Channel::Sms, OverrideSource::Template),
            (Channel::Chat, OverrideSource::Template),
            (Channel::Push, OverrideSource::Subscriber),
        ]
    );
}

#[test]
fn merging_keeps_what_is_not_named() {
    let mut words = PreferenceChannels { in_app: ON, email: ON, ..Default::default() };
    words.merge(&PreferenceChannels { email: OFF, ..Default::default() });
    let expected = PreferenceChannels { in_app: ON, email: OFF, ..Default::default() };
    assert_eq!(words, expected);
}

// The rule in other words: the layers speak one after the other, and the last word counts.
fn last_word(layers: Layers<'_>, channel: Channel) -> Verdict {
    let mut speakers =
        vec![(Layer::Definition, layers.definition), (Layer::Dashboard, layers.dashboard)];
    if !layers.critical {
        speakers.push((Layer::SubscriberGlobal, layers.subscriber_global));
        speakers.push((Layer::SubscriberWorkflow, layers.subscriber_workflow));
    }
    let mut verdict = Verdict { enabled: true, decided_by: Layer::Default };
    for (decided_by, preference) in speakers {
        let words = preference.map(|said| [said.enabled, said.channels.get(channel)]);
        for enabled in words.into_iter().flatten().flatten() {
            verdict = Verdict { enabled, decided_by };
        }
    }
    verdict
}

fn preference() -> impl Strategy<Value = Option<Preference>> {
    let word = || any::<Option<bool>>();
    let channels =
        (word(), word(), word(), word(), word()).prop_map(|(email, sms, in_app, chat, push)| {
            PreferenceChannels { email, sms, in_app, chat, push }
        });
    let preference =
        (word(), channels).prop_map(|(enabled, channels)| Preference { enabled, channels });
    proptest::option::of(preference)
}

proptest! {
    #[test]
    fn the_last_word_decides(
        said in prop::array::uniform4(preference()),
        critical in any::<bool>(),
        channel in proptest::sample::select(Channel::ALL),
    ) {
        let [definition, dashboard, global, specific] = &said;
        let layers = Layers {
            definition: definition.as_ref(),
            dashboard: dashboard.as_ref(),
            subscriber_global: global.as_ref(),
            subscriber_workflow: specific.as_ref(),
            critical,
        };
        let verdict = resolve(layers, channel);
        prop_assert_eq!(verdict, last_word(layers, channel));
        prop_assert_eq!(PreferenceChannels::resolved(layers).get(channel), Some(verdict.enabled));
        let named = PreferenceOverride::all(layers);
        let named = named.iter().find(|entry| entry.channel == channel).unwrap();
        prop_assert_eq!(named.layer, verdict.decided_by);
    }

    #[test]
    fn a_preference_is_read_as_it_is_written(preference in preference()) {
        let preference = preference.unwrap_or_default();
        let json = serde_json::to_string(&preference).unwrap();
        prop_assert_eq!(serde_json::from_str::<Preference>(&json).unwrap(), preference);
    }
}

#[test]
fn a_criticality_shows_its_workflows() {
    for (criticality, critical, other) in [
        (Criticality::Critical, true, false),
        (Criticality::NonCritical, false, true),
        (Criticality::All, true, true),
    ] {
        assert_eq!((criticality.shows(true), criticality.shows(false)), (critical, other));
    }
    assert_eq!(Criticality::default(), Criticality::NonCritical);
}

#[test]
fn a_bulk_is_about_1_to_100_workflows() {
    let channels = PreferenceChannels::default();
    let item = |_| BulkPreference { workflow_id: "w".into(), channels };
    let check = |count| {
        let bulk = BulkPreferences { preferences: (0..count).map(item).collect(), context: None };
        bulk.check().map_err(|invalid| invalid.to_string())
    };
    assert_eq!([check(1), check(100)], [Ok(()), Ok(())]);
    assert_eq!(check(0), Err("`preferences` must not be empty".into()));
    assert_eq!(check(101), Err("`preferences` must have at most 100 items".into()));
}

#[track_caller]
fn check(layers: Layers<'_>, enabled: bool, decided_by: Layer) {
    assert_eq!(resolve(layers, Channel::Email), Verdict { enabled, decided_by });
}

fn channel(word: Option<bool>) -> Preference {
    let channels = PreferenceChannels { email: word, ..PreferenceChannels::default() };
    Preference { enabled: None, channels }
}

fn all(word: Option<bool>) -> Preference {
    Preference { enabled: word, ..Preference::default() }
}
