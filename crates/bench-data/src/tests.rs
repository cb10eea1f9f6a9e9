use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use domain::environment::Home;
use domain::ids::OrganizationId;
use domain::job::{Detail, JobStatus};
use domain::notification::Notification;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::vocabulary::{Severity, StepType};
use domain::workflow::Workflow;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::*;

fn home() -> Home {
    let organization_id = OrganizationId::new("acme").unwrap();
    Home { organization_id, environment_id: Uuid::from_u128(1).into() }
}

fn activity(bodies: bool, seed: u64) -> Activity {
    Activity::new(Profile { bodies, ..Profile::default() }, home(), seed)
}

fn notifications(bodies: bool, seed: u64) -> impl Iterator<Item = Notification> {
    activity(bodies, seed).flat_map(|triggered| triggered.notifications)
}

// Triggers by the default profile, but of few notifications, which are quick.
fn triggers(many: usize, fan_out: usize) -> Vec<Triggered> {
    let profile = Profile { bodies: false, fan_out, ..Profile::default() };
    Activity::new(profile, home(), 1).take(many).collect()
}

#[track_caller]
fn about(found: usize, of: usize, share: f64, tolerance: f64, what: &str) {
    let found = f64::from(u32::try_from(found).unwrap()) / f64::from(u32::try_from(of).unwrap());
    assert!((found / share - 1.0).abs() < tolerance, "{what}: {found} in place of {share}");
}

/// Measurements with different data are not comparable. The hash therefore changes on purpose only:
/// with the generated data, or with the wire form of a notification.
#[test]
fn the_data_is_what_it_was() {
    let digest = notifications(true, 42).take(1_000).fold(Sha256::new(), |hash, notification| {
        hash.chain_update(serde_json::to_vec(&notification).unwrap())
    });
    let [a, b, c, d, ..] = digest.finalize().0;
    let start = u32::from_be_bytes([a, b, c, d]);
    assert_eq!(format!("{start:08x}"), "0b63e0bc", "the start of the hash");
}

#[test]
fn a_seed_is_one_course_of_events() {
    let first = |seed| activity(true, seed).take(200).collect::<Vec<_>>();
    assert_eq!(first(7), first(7));
    assert_ne!(first(7), first(8));
    let people = |seed| Population::new(Profile::default(), home(), seed);
    assert_eq!(people(7).subscriber(3), people(7).subscriber(3));
    assert_ne!(people(7).subscriber(3).id, people(8).subscriber(3).id);
    assert_ne!(people(7).transaction_id(3), people(8).transaction_id(3));
}

#[test]
fn without_bodies_the_rest_is_the_same() {
    let whole = notifications(true, 3).take(2_000).map(|mut notification| {
        notification.updated_at = notification.created_at;
        notification.jobs.clear();
        notification.tags.clear();
        notification.payload = None;
        notification.overrides = None;
        notification.to = None;
        notification
    });
    assert!(whole.eq(notifications(false, 3).take(2_000)));
}

#[test]
fn ordinals_are_dense_and_time_goes_on() {
    let mut before = Profile::default().start;
    let mut ordinal = 0;
    for triggered in triggers(5_000, 20) {
        assert!(triggered.created_at >= before);
        before = triggered.created_at;
        assert!(!triggered.notifications.is_empty());
        for notification in &triggered.notifications {
            assert_eq!(notification.created_at, triggered.created_at);
            assert_eq!(notification.transaction_id, triggered.transaction_id);
            assert_eq!(notification.id.ordinal().get(), ordinal);
            ordinal += 1;
        }
    }
}

#[test]
fn nothing_is_called_like_another() {
    let mut known = HashSet::new();
    let mut add = |id: Uuid| assert!(known.insert(id), "{id}");
    for notification in notifications(true, 1).take(3_000) {
        add(notification.id.into());
        for job in &notification.jobs {
            add(job.id.into());
            job.message_id.into_iter().for_each(|id| add(id.into()));
            job.execution_details.iter().for_each(|entry| add(entry.id.into()));
        }
    }
    let population = Population::new(Profile::default(), home(), 1);
    population.subscribers().take(5_000).for_each(|subscriber| add(subscriber.id.into()));
    population.topics().iter().for_each(|topic| add(topic.id.into()));
    for Workflow { id, steps, .. } in population.workflows() {
        add((*id).into());
        for step in steps {
            add(step.id.into());
            add(step.content_id.into());
        }
    }
    let transactions: HashSet<_> = (0..5_000).map(|n| population.transaction_id(n)).collect();
    let sets: HashSet<_> = population.context_sets().iter().collect();
    assert_eq!((transactions.len(), sets.len()), (5_000, 5_000));
    let identifiers = population.workflows().iter().map(Workflow::identifier);
    assert_eq!(identifiers.collect::<HashSet<_>>().len(), 50);
}

/// One row per kind of thing: what comes up of each rank among so many triggers or notifications.
#[test]
fn few_come_up_often() {
    let triggers = triggers(60_000, 1);
    let people = Population::new(Profile::default(), home(), 1);
    let Profile { subscribers, workflows, topics, context_sets, .. } = people.profile().clone();
    let is_direct = |one: &&Triggered| one.notifications.len() == 1 && !through_topic(one);
    let direct: Vec<_> = triggers.iter().filter(is_direct).collect();
    let through: Vec<_> = triggers.iter().filter(|one| through_topic(one)).collect();
    let with: Vec<_> = triggers.iter().filter(|one| !first(one).context_keys.is_empty()).collect();
    for rank in [0, 1, 2, 4, 9] {
        let count = |among: &[&Triggered], is: &dyn Fn(&Notification) -> bool| {
            (among.iter().filter(|one| is(first(one))).count(), among.len())
        };
        let all: Vec<_> = triggers.iter().collect();
        let workflow = people.workflow_id(rank);
        let (found, of) = count(&all, &|one| one.workflow_id == Some(workflow));
        about(found, of, workflows.share(rank), 0.1, "workflow");
        let subscriber = people.internal_subscriber_id(rank);
        let (found, of) = count(&direct, &|one| one.subscriber_id == subscriber);
        about(found, of, subscribers.share(rank), 0.15, "subscriber");
        let key = people.topic_key(rank);
        let (found, of) = count(&through, &|one| one.topics[0].topic_key == key);
        about(found, of, topics.share(rank), 0.1, "topic");
        let set = people.context_set(rank);
        let (found, of) = count(&with, &|one| one.context_keys == set);
        about(found, of, context_sets.share(rank), 0.15, "context set");
    }
}

fn first(triggered: &Triggered) -> &Notification {
    &triggered.notifications[0]
}

fn through_topic(triggered: &Triggered) -> bool {
    !first(triggered).topics.is_empty()
}

#[test]
fn shares_are_those_of_the_profile() {
    let triggers = triggers(40_000, 3);
    let profile = Profile::default();
    let share = |is: &dyn Fn(&Triggered) -> bool| triggers.iter().filter(|one| is(one)).count();
    let severity = |word| move |one: &Triggered| first(one).severity == Some(word);
    for (is, expected, what) in [
        (&through_topic as &dyn Fn(&Triggered) -> bool, profile.through_topic, "through topic"),
        (&|one| first(one).context_keys.is_empty(), profile.contextless, "contextless"),
        (&severity(Severity::High), profile.severities.high, "high"),
        (&severity(Severity::Medium), profile.severities.medium, "medium"),
        (&severity(Severity::Low), profile.severities.low, "low"),
        (&severity(Severity::None), 0.84, "none"),
        (&|one| one.notifications.len() > 1 && !through_topic(one), 0.06, "several"),
    ] {
        about(share(is), triggers.len(), expected, 0.08, what);
    }
    let all: usize = triggers.iter().map(|one| one.notifications.len()).sum();
    let expected = Profile { fan_out: 3, ..profile }.per_trigger();
    about(all, triggers.len(), expected, 0.02, "notifications of a trigger");
    let mut fan_outs = triggers.iter().filter(|one| through_topic(one));
    assert!(fan_outs.all(|one| (1..=3).contains(&one.notifications.len())));
}

/// One row per profile: the shares of high, medium, low and no severity.
#[test]
fn shares_of_severities_are_one_together() {
    for (high, medium, low, shares) in [
        (0.02, 0.06, 0.08, "0.02 0.06 0.08 0.84"),
        (0.5, 0.75, 0.5, "0.50 0.50 0.00 0.00"),
        (-1.0, f64::NAN, 0.25, "0.00 0.00 0.25 0.75"),
    ] {
        let found = Severities { high, medium, low }.shares().map(|(_, share)| share);
        assert_eq!(found.map(|share| format!("{share:.2}")).join(" "), shares);
    }
}

#[test]
fn nobody_is_told_twice() {
    let mut profile = Profile { bodies: false, fan_out: 100, ..Profile::default() };
    profile.subscribers.count = 3;
    for triggered in Activity::new(profile, home(), 5).take(500) {
        let mut known = HashSet::new();
        assert!(triggered.notifications.iter().all(|one| known.insert(one.subscriber_id)));
    }
}

/// One row per pace: how many come in a day, and how many of them at once.
#[test]
fn time_advances_in_bursts_at_the_pace_of_the_profile() {
    let day = Duration::from_secs(24 * 60 * 60);
    for (per_day, burst) in [(11_112, 20), (11_112, 1), (1_000_000, 20), (1_000_000_000, 100)] {
        let profile = Profile { per_day, burst, bodies: false, fan_out: 2, ..Profile::default() };
        let start = profile.start;
        let mut activity = Activity::new(profile, home(), 2);
        let times: Vec<_> = activity.by_ref().take(50_000).map(|one| one.created_at).collect();
        let passed = times.last().unwrap().since(start).as_secs_f64() / day.as_secs_f64();
        let found = f64::from(u32::try_from(activity.notifications()).unwrap()) / passed;
        let pace = found / f64::from(per_day);
        assert!((0.9..1.1).contains(&pace), "{per_day}, {burst}: {found}");
        let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
        let at_once = gaps.filter(|gap| *gap < Duration::from_millis(100)).count();
        let expected = 50_000 - 50_000 / usize::try_from(burst).unwrap();
        assert!(at_once + 3_000 > expected, "{per_day}, {burst}: {at_once}");
    }
}

#[test]
fn what_is_asked_for_by_rank_is_in_the_data() {
    let mut activity = activity(true, 4);
    let triggers: Vec<_> = activity.by_ref().take(300).collect();
    assert_eq!(activity.triggers(), 300);
    let said: Vec<_> = triggers.iter().map(|one| first(one).payload.as_ref().unwrap()).collect();
    let references: HashSet<_> = said.iter().map(|said| said["reference"].as_str()).collect();
    assert!(references.len() > 295, "{}", references.len());
    let people = activity.population();
    let ranks: BTreeMap<_, _> =
        people.subscribers().enumerate().map(|(rank, one)| (one.id, rank)).collect();
    for (n, triggered) in (0..).zip(&triggers) {
        assert_eq!(triggered.transaction_id, people.transaction_id(n));
        for notification in &triggered.notifications {
            assert_eq!(notification.payload, first(triggered).payload);
            let rank = ranks[&notification.subscriber_id];
            let subscriber = people.subscriber(rank);
            assert_eq!(subscriber.id, people.internal_subscriber_id(rank));
            let email = format!("user-{rank}@example.com");
            assert_eq!(subscriber.profile.email.unwrap().as_str(), email);
            let to = &notification.to.as_ref().unwrap()["subscriberId"];
            assert_eq!(to.as_str(), Some(people.subscriber_id(rank).as_str()));
            for topic in &notification.topics {
                let at = people.topics().iter().position(|one| one.id == topic.topic_id).unwrap();
                assert_eq!(
                    (topic.topic_id, &topic.topic_key),
                    (people.topic_id(at), &people.topic_key(at))
                );
                let through = people.subscription_identifier(at, rank, &notification.context_keys);
                let (key, subscriber) = (&topic.topic_key, &subscriber.subscriber_id);
                let made =
                    Subscription::made_identifier(key, subscriber, &notification.context_keys);
                assert_eq!(Ok(&through), made.as_ref());
                assert_eq!(topic.subscription_ids, [through]);
            }
        }
    }
}

/// One row per course that a job takes, and how often it does, from seldom to often.
#[test]
fn jobs_take_the_courses_that_the_engine_writes_down() {
    use Detail::{
        FilteredBySubscriberWorkflowPreference as Filtered, IntegrationSelected as Selected,
        MessageCreated, MessageSent, MissingChatWebhook, MissingEmail, MissingPhone,
        MissingPushTokens, ProviderError, ProviderRetry, StepQueued,
    };
    let mut courses: BTreeMap<(Vec<Detail>, &str), usize> = BTreeMap::new();
    for job in notifications(true, 6).take(10_000).flat_map(|notification| notification.jobs) {
        let details = job.execution_details.iter().map(|entry| entry.detail);
        *courses.entry((details.collect(), job.status.as_str())).or_default() += 1;
    }
    for (details, status, often) in [
        (&[StepQueued, Selected, MessageSent] as &[Detail], "completed", 5_000..20_000),
        (&[MessageCreated], "completed", 5_000..20_000),
        (&[StepQueued], "completed", 500..5_000),
        (&[StepQueued, Selected, ProviderRetry, Selected, MessageSent], "completed", 50..1_000),
        (&[StepQueued, Selected, ProviderError], "failed", 50..1_000),
        (&[StepQueued, Selected, ProviderRetry, Selected, ProviderError], "failed", 1..50),
        (&[Filtered], "skipped", 50..1_000),
        (&[StepQueued, Filtered], "skipped", 50..1_000),
        (&[StepQueued, MissingEmail], "skipped", 5..500),
        (&[StepQueued, MissingPhone], "skipped", 5..500),
        (&[StepQueued, MissingPushTokens], "skipped", 5..500),
        (&[StepQueued, MissingChatWebhook], "skipped", 5..500),
    ] {
        let count = courses.remove(&(details.to_vec(), status)).unwrap_or_default();
        assert!(often.contains(&count), "{details:?}: {count}");
    }
    assert_eq!(courses, BTreeMap::new());
}

#[test]
fn records_are_such_as_the_engine_writes() {
    let people = Population::new(Profile::default(), home(), 6);
    let workflows: BTreeMap<_, _> = people.workflows().iter().map(|one| (one.id, one)).collect();
    for notification in notifications(true, 6).take(5_000) {
        let json = serde_json::to_vec(&notification).unwrap();
        assert_eq!(serde_json::from_slice::<Notification>(&json).unwrap(), notification);
        assert!((1_000..6_000).contains(&json.len()), "{}", json.len());
        let workflow = workflows[&notification.workflow_id.unwrap()];
        assert_eq!(Home::from(&notification), home());
        assert_eq!(notification.step_types, workflow.step_types());
        assert_eq!(notification.jobs.len(), workflow.steps.len());
        let said = notification.overrides.as_ref().map(|overrides| &overrides["severity"]);
        let severity = said.map_or("none", |word| word.as_str().unwrap());
        assert_eq!(notification.severity.map(Severity::as_str), Some(severity));
        let mut now = notification.created_at;
        for (job, step) in notification.jobs.iter().zip(&workflow.steps) {
            assert_eq!((job.step.id, job.kind), (step.id, step.definition.kind.step_type()));
            let sends = job.kind.channel().is_some() && job.status != JobStatus::Skipped;
            assert_eq!(job.message_id.is_some(), sends);
            assert_eq!(job.digest.is_some(), job.kind == StepType::Digest);
            let written = job.execution_details.iter().filter_map(|entry| entry.created_at);
            for at in written.chain(job.updated_at) {
                assert!(at >= now);
                now = at;
            }
        }
        assert_eq!(notification.updated_at, now);
    }
}

#[test]
fn what_there_is_can_be_stored() {
    let people = Population::new(Profile::default(), home(), 6);
    assert_eq!(people.subscribers().count(), 100_000);
    for subscriber in people.subscribers().take(100) {
        let json = serde_json::to_value(&subscriber).unwrap();
        assert_eq!(serde_json::from_value::<Subscriber>(json).unwrap(), subscriber);
    }
    for (rank, workflow) in people.workflows().iter().enumerate() {
        let json = serde_json::to_value(workflow).unwrap();
        assert_eq!(serde_json::from_value::<Workflow>(json).unwrap(), *workflow);
        assert_eq!(workflow.id, people.workflow_id(rank));
        let parents: Vec<_> = workflow.steps.iter().map(|step| step.parent_id).collect();
        let before = workflow.steps.iter().map(|step| Some(step.id));
        assert!(
            parents.into_iter().eq([None].into_iter().chain(before).take(workflow.steps.len()))
        );
    }
}

/// One row per profile that makes no sense: something happens nevertheless.
#[test]
fn what_makes_no_sense_is_taken_as_the_nearest_that_does() {
    let none = Ranked { count: 0, exponent: f64::NAN };
    let steep = Ranked { count: 9, exponent: -1e9 };
    let much = Severities { high: 0.9, medium: 7.0, low: f64::NAN };
    let normal = Profile::default;
    for profile in [
        Profile {
            subscribers: none,
            workflows: none,
            topics: none,
            context_sets: none,
            ..normal()
        },
        Profile { subscribers: steep, topics: steep, ..normal() },
        Profile { through_topic: 9.0, contextless: -1.0, fan_out: 0, ..normal() },
        Profile { through_topic: f64::NAN, severities: much, ..normal() },
        Profile { per_day: 0, burst: 0, ..normal() },
        Profile { per_day: u32::MAX, burst: u32::MAX, ..normal() },
    ] {
        let row = format!("{profile:?}");
        assert_eq!(Activity::new(profile, home(), 0).take(500).count(), 500, "{row}");
    }
    assert_eq!(format!("{} {}", none.share(0), none.share(1)), "1 0");
}

#[test]
fn calls_are_random_and_name_their_workflows() {
    let calls = |seed| {
        let mut calls = Calls::new(seed, 1_000);
        (0..200).map(|_| calls.trigger(100)).collect::<Vec<_>>()
    };
    assert_eq!(calls(1), calls(1));
    assert_ne!(calls(1), calls(2));
    let triggers = calls(1);
    let transactions: Vec<_> = triggers.iter().map(|one| one.transaction_id.as_ref()).collect();
    assert!(!transactions.is_sorted());
    assert_eq!(transactions.iter().collect::<HashSet<_>>().len(), 200);
    let workflows: HashSet<_> = Calls::workflows().map(|one| one.identifier).collect();
    let named: HashSet<_> = triggers.iter().map(|one| one.workflow.clone()).collect();
    assert_eq!(named, workflows);
    let contexts: HashSet<_> = triggers.iter().map(|one| format!("{:?}", one.context)).collect();
    assert_eq!(contexts.len(), 5);
    for trigger in triggers {
        let audience = trigger.audience().unwrap();
        let recipients: Vec<_> = audience.subscribers.iter().map(|one| one.to_create()).collect();
        let different: HashSet<_> = recipients.iter().map(|one| &one.subscriber_id).collect();
        assert_eq!(different.len(), 100);
        assert!(!recipients.is_sorted_by_key(|one| one.subscriber_id.as_str()));
    }
}
