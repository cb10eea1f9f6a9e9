use domain::notification::{Notification, NotificationQuery};
use domain::patch::Patch;
use domain::preference::PreferencesQuery;
use domain::step::Step;
use domain::subscriber::{Subscriber, SubscriberCreate, SubscriberUpdate};
use domain::subscription::Subscribe;
use domain::trigger::Trigger;
use domain::workflow::{Workflow, WorkflowCreate, WorkflowSync};
use serde_json::json;
use store::memory::MemoryStore;
use store::{
    ChangeKind, Decision, Key, ReadBody, ReadRecords, Record, Store, WriteBody, WriteRecords,
    layout,
};

use super::*;
use crate::resources::subscribers::upsert;
use crate::{Error, Result, Scope};

// A store that runs each body twice.
#[derive(Debug, Default)]
struct Twice(MemoryStore);

impl Store for Twice {
    fn read(&self, body: &mut ReadBody<'_>) -> store::Result<()> {
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> store::Result<()> {
        self.0.write(&mut |writer| body(writer).map(|_| Decision::Abort))?;
        self.0.write(body)
    }
}

fn scope(store: impl Store) -> Scope {
    Engine::builder().build(store).organization("acme").unwrap().development().unwrap()
}

// The changes that `body` reports, as kinds and keys.
fn changes(
    env: &Scope,
    mut body: impl FnMut(&mut Tx<'_>) -> Result<()>,
) -> Result<Vec<(ChangeKind, Vec<u8>)>> {
    let scope = store::WriteScope::Environment(env.environment_id());
    let within = &mut |draft: &mut Draft<'_>| body(&mut draft.within(&env.home));
    let changes = env.engine.record(scope, env.engine.now(), within)?.into_iter();
    Ok(changes.map(|change| (change.kind, change.key)).collect())
}

fn key<R: Record>(record: &R) -> Vec<u8> {
    Key::as_bytes(&record.key()).to_vec()
}

fn find(env: &Scope, id: &str) -> Subscriber {
    env.subscribers().get(id).unwrap()
}

#[test]
fn a_transaction_reports_its_changes_once_and_in_order() {
    use ChangeKind::{Inserted, Removed, Replaced};
    for env in [scope(MemoryStore::default()), scope(Twice::default())] {
        let grace = env.subscribers().create(&SubscriberCreate::new("grace").unwrap()).unwrap();
        let ada = SubscriberCreate::new("ada").unwrap();
        let named = ada.clone().first_name("Ada");
        let reported = changes(&env, |tx| {
            upsert(tx, &ada)?;
            tx.remove(&grace)?;
            upsert(tx, &named)?;
            Ok(())
        });
        let ada = find(&env, "ada");
        let expected = [(Inserted, key(&ada)), (Removed, key(&grace)), (Replaced, key(&ada))];
        assert_eq!(reported.unwrap(), expected);
    }
}

#[test]
fn a_write_without_effect_reports_no_change() {
    let env = scope(MemoryStore::default());
    let ada = SubscriberCreate::new("ada").unwrap().first_name("Ada");
    let twice = |tx: &mut Tx<'_>| {
        let before = upsert(tx, &ada)?;
        tx.replace(&before, &before)?;
        Ok(())
    };
    assert_eq!(changes(&env, twice).unwrap().len(), 1);
    assert_eq!(changes(&env, twice).unwrap(), []);
}

#[test]
fn a_workflow_that_changes_is_not_kept_decoded() {
    for is_refused in [false, true] {
        let env = scope(MemoryStore::default());
        let create = WorkflowCreate::new("greeting", "Greeting").unwrap();
        env.workflows().create(&create.step(Step::in_app("Hello!").unwrap())).unwrap();
        env.subscribers().create(&SubscriberCreate::new("ada").unwrap()).unwrap();
        let kept = || format!("{:?}", env.engine.parts.decoded.workflows);
        env.preferences("ada").unwrap().get(&PreferencesQuery::default()).unwrap();
        assert_eq!(kept(), "Decoded { records: 1, .. }");
        let outcome = env.write("test", (), |tx| {
            for workflow in tx.all::<Workflow>(&layout::workflows(tx.environment_id()))? {
                tx.remove(&workflow)?;
            }
            if is_refused { Err(Error::not_found(crate::Entity::Topic, "news")) } else { Ok(()) }
        });
        assert_eq!(outcome.is_err(), is_refused);
        let expected = u8::from(is_refused);
        assert_eq!(kept(), format!("Decoded {{ records: {expected}, .. }}"));
    }
}

#[test]
fn a_workflow_that_is_chosen_by_its_tags_is_kept_decoded() {
    let env = scope(MemoryStore::default());
    let create = WorkflowCreate::new("greeting", "Greeting").unwrap().tags(["red"]);
    env.workflows().create(&create).unwrap();
    env.subscribers().create(&SubscriberCreate::new("ada").unwrap()).unwrap();
    let red =
        json!({ "subscriptions": ["ada"], "preferences": [{ "filter": { "tags": ["red"] } }] });
    let red: Subscribe = serde_json::from_value(red).unwrap();
    let made = env.topics().subscribe("news", &red).unwrap();
    assert_eq!(made.data.first().map(|one| one.preferences.len()), Some(1));
    assert_eq!(format!("{:?}", env.engine.parts.decoded.workflows), "Decoded { records: 1, .. }");
}

/// The undeclared ones are looked for in a transaction that has changed others.
#[test]
fn workflows_that_are_synchronized_are_kept_decoded() {
    let env = scope(MemoryStore::default());
    let create = |name: &str| WorkflowCreate::new("greeting", name).unwrap();
    let other = WorkflowCreate::new("parting", "Parting").unwrap();
    env.workflows().sync(&WorkflowSync::new([create("Greeting"), other])).unwrap();
    let kept = || format!("{:?}", env.engine.parts.decoded.prepared);
    assert_eq!(kept(), "Decoded { records: 2, .. }");
    let report = env.workflows().sync(&WorkflowSync::new([create("Hello")])).unwrap();
    assert_eq!((report.changed.len(), report.undeclared.len()), (1, 1));
    assert_eq!(kept(), "Decoded { records: 1, .. }");
    assert_eq!(env.workflows().get("greeting").unwrap().name, "Hello");
}

#[test]
fn a_notification_that_changes_is_not_kept_decoded() {
    let env = scope(MemoryStore::default());
    let create = WorkflowCreate::new("greeting", "Greeting").unwrap();
    env.workflows().create(&create.step(Step::in_app("Hello!").unwrap())).unwrap();
    env.events().trigger(&Trigger::new("greeting", "ada").unwrap()).unwrap();
    let list = || env.notifications().list(&NotificationQuery::default()).unwrap().data;
    let kept = || format!("{:?}", env.engine.parts.decoded.notifications);
    let found = [list(), list(), list()].map(|page| page.into_iter().next().unwrap());
    assert_eq!(kept(), "Decoded { records: 1, .. }");
    let [first, ..] = &found;
    assert!(first.subscriber.is_some() && found.iter().all(|one| one == first));
    assert_eq!(env.notifications().get(first.id).unwrap(), *first);

    let mut ada = SubscriberUpdate::default();
    ada.first_name = Patch::Set("Ada".into());
    env.subscribers().update("ada", &ada).unwrap();
    let named = |one: &Notification| one.subscriber.as_ref()?.first_name.clone();
    assert_eq!(list().first().and_then(named).as_deref(), Some("Ada"));
    env.notifications().delete(first.id).unwrap();
    assert_eq!(kept(), "Decoded { records: 0, .. }");
    assert_eq!(list(), []);
}
