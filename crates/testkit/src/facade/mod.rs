//! Histories of operations of the facade, run over both stores.

use std::fmt::Debug;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use domain::ids::{IntegrationId, MessageId};
use domain::integration::IntegrationDelete;
use domain::message::{MarkAs, MessageQuery};
use domain::notification::NotificationQuery;
use domain::page::{Direction, PageQuery};
use domain::preference::PreferencesQuery;
use domain::subscriber::SubscriberQuery;
use domain::workflow::WorkflowQuery;
use serde_json::{Value, json};
use store::Store;
use store::memory::MemoryStore;
use tidings::{Builder, Result, SeededEntropy, SubscriberPreferences};

use crate::disk::Disk;
use crate::effort::Effort;
use crate::interposed::Interposed;
use crate::requests;
use crate::sealed;
use crate::tables::dump;
use crate::world::{Backend, World, changed};

mod asked;
mod deeds;
mod inputs;

pub use asked::{Asked, Change, Channel, Verb, Wish};
pub use deeds::Deed;
pub use inputs::{About, Account, Event, Mark, Profile, Refusal, Shape, Span, Which, Who, Word};

/// One call of the facade, or something that happens around it.
#[derive(Clone, Copy, Debug, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    Trigger(Event),
    TriggerTwo(Event, Event),
    Mark(Who, u8, Mark),
    RunDue(u8),
    CreateSubscriber(Who, Profile),
    UpsertSubscriber(Who, Profile),
    UpdateSubscriber(Who, Profile),
    DeleteSubscriber(Who),
    CreateWorkflow(Which, Shape),
    UpdateWorkflow(Which, Shape),
    DeleteWorkflow(Which),
    CreateIntegration(Account),
    UpdateIntegration(u8, Account),
    SetPrimary(u8),
    DeleteIntegration(u8, bool),
    Prefer(Who, Which, Which, Word, About),
    PreferGlobally(Who, Word, About),
    CreateEnvironment(u8),
    Look(Who),
    /// The next delivery is refused.
    Refuse(Refusal),
    /// Time passes.
    Wait(Span),
    /// The process is killed and started again.
    Restart,
    /// Another request is made, perhaps with one of four idempotency keys.
    Ask(Option<u8>, Asked),
    /// An operation on the activity list runs.
    Activity(Deed, u8),
}

/// The most operations of a history that a fuzzer runs.
const LONGEST: usize = 16;

/// The most operations of a history in most runs of a fuzzer.
const FEW: usize = 8;

/// A process that runs operations in a world, and can be restarted.
#[derive(Debug)]
pub struct Process {
    /// The world.
    pub world: World,
    backend: Backend,
    restarts: u64,
    is_sealed: bool,
    integrations: Vec<IntegrationId>,
}

/// Runs `ops` over both stores, and checks after each of them that answers and tables are the
/// same, and that the indexes agree with the records. A fuzzer runs most of them over two copies of a
/// store in memory, of which one runs every transaction twice, and compares the tables at the end.
///
/// # Panics
///
/// If answers or tables differ, or an index contradicts the records.
pub fn run(ops: &[Op], effort: Effort) {
    if effort.is_one_of(256) {
        return run_beside(Process::on(Backend::Redb(Disk::new())), ops, effort);
    }
    compare(Process::forked(false), Process::forked(true), ops, effort);
}

/// Runs `ops` as [`run`] does, over memory and over the backend of `other`.
///
/// # Panics
///
/// If answers or tables differ, or an index contradicts the records.
pub fn run_beside(other: Process, ops: &[Op], effort: Effort) {
    let mut one = Process::in_memory();
    if other.world.store.runs_side_by_side() {
        // A seed for each claim, so the ids are the same if the claims are.
        one.world.store = one.world.store.side_by_side();
    }
    compare(one, other, ops, effort);
}

fn compare(mut one: Process, mut other: Process, ops: &[Op], effort: Effort) {
    for op in effort.first_of(ops, FEW, LONGEST) {
        assert_eq!(one.run(*op), other.run(*op), "{op:?} gives another answer");
        if effort == Effort::Full {
            let (left, others) = (dump(&one.world.store), dump(&other.world.store));
            assert!(left == others, "{op:?} leaves other tables");
        }
        effort.check(&one.world.store);
    }
    let (backend, left) = (other.backend.clone(), dump(&other.world.store));
    assert!(dump(&one.world.store) == left, "the histories leave other tables");
    effort.check_at_the_end(&one.world.store, 64);
    drop(other);
    // What is in memory is never closed.
    if !matches!(backend, Backend::Memory(_)) {
        assert!(dump(&*backend.open()) == left, "the store is another one after it was closed");
    }
}

/// A store with an organization and its environments.
static BASE: LazyLock<MemoryStore> = LazyLock::new(|| {
    let store = MemoryStore::default();
    drop(World::with(Interposed::new(store.clone()), configured(0, false)));
    store
});

/// The engine of a process that was restarted so many times. Its segments are as short as
/// possible. An existing environment keeps its length.
pub fn restarted(restarts: u64) -> impl Fn(Builder) -> Builder {
    move |builder| {
        let segment = if restarts.is_multiple_of(2) { 16 } else { 32 };
        builder.entropy(SeededEntropy::new(restarts)).activity_segments(segment)
    }
}

impl Process {
    /// A process in memory.
    pub fn in_memory() -> Self {
        Self::on(Backend::Memory(MemoryStore::default()))
    }

    /// A process over a backend.
    pub fn on(backend: Backend) -> Self {
        Self::started(backend, false)
    }

    /// A process over a backend whose records are sealed. Each restart has a new key.
    pub fn sealed(backend: Backend) -> Self {
        Self::started(backend, true)
    }

    // A process over a copy of a store in memory, which may run every transaction twice.
    fn forked(repeats: bool) -> Self {
        let backend = Backend::Memory(BASE.fork());
        let store = Interposed::over(backend.open());
        Self::with(backend, if repeats { store.repeating() } else { store }, 1, false)
    }

    fn started(backend: Backend, is_sealed: bool) -> Self {
        let store = Interposed::over(backend.open());
        Self::with(backend, store, 0, is_sealed)
    }

    fn with(backend: Backend, store: Interposed, restarts: u64, is_sealed: bool) -> Self {
        let world = World::with(store, configured(restarts, is_sealed));
        Self { world, backend, restarts, is_sealed, integrations: Vec::new() }
    }

    /// Runs `op`, and returns the text of the answer.
    pub fn run(&mut self, op: Op) -> String {
        let (env, subscribers) = (&self.world.env, self.world.env.subscribers());
        match op {
            Op::Trigger(event) => text(env.events().trigger(&event.trigger())),
            Op::TriggerTwo(one, two) => {
                let receipts = env.events().trigger_bulk(&[one.trigger(), two.trigger()]);
                text(receipts.map(|receipts| receipts.into_iter().map(text).collect::<Vec<_>>()))
            }
            Op::Mark(who, which, mark) => self.mark(who, which, mark.into()),
            Op::RunDue(limit) => {
                let report = self.world.engine.delivery().run_due(usize::from(limit % 8));
                format!("{} {:?}", text(report), self.world.recorder.sent())
            }
            Op::CreateSubscriber(who, profile) => {
                text(subscribers.create(&profile.create(who, &self.integrations)))
            }
            Op::UpsertSubscriber(who, profile) => {
                text(subscribers.upsert(&profile.create(who, &self.integrations)))
            }
            Op::UpdateSubscriber(who, profile) => {
                text(subscribers.update(who.id(), &profile.update()))
            }
            Op::DeleteSubscriber(who) => text(subscribers.delete(who.id())),
            Op::CreateWorkflow(which, shape) => text(env.workflows().create(&shape.create(which))),
            Op::UpdateWorkflow(which, shape) => {
                text(env.workflows().update(which.name(), &shape.update()))
            }
            Op::DeleteWorkflow(which) => text(env.workflows().delete(which.name())),
            Op::CreateIntegration(account) => {
                let created = env.integrations().create(&account.create());
                self.integrations.extend(created.as_ref().map(|integration| integration.id));
                text(created)
            }
            Op::UpdateIntegration(at, account) => {
                self.on_integration(at, |id| text(env.integrations().update(id, &account.update())))
            }
            Op::SetPrimary(at) => {
                self.on_integration(at, |id| text(env.integrations().set_primary(id)))
            }
            Op::DeleteIntegration(at, promote) => self.on_integration(at, |id| {
                text(env.integrations().delete(
                    id,
                    &changed(IntegrationDelete::default(), |delete| delete.promote = promote),
                ))
            }),
            Op::Prefer(who, one, two, word, about) => text(self.prefer(who, |preferences| {
                preferences.update_bulk(&word.bulk(&[one, two], about))
            })),
            Op::PreferGlobally(who, word, about) => {
                text(self.prefer(who, |preferences| preferences.update_global(&word.global(about))))
            }
            Op::CreateEnvironment(name) => {
                text(self.world.organization.environments().create(&inputs::environment(name)))
            }
            Op::Look(who) => self.look(who),
            Op::Refuse(refusal) => {
                self.world.recorder.refuse_next(refusal.into());
                String::new()
            }
            Op::Wait(span) => {
                self.world.clock.advance(span.duration());
                String::new()
            }
            Op::Restart => {
                self.restart();
                String::new()
            }
            Op::Ask(None, asked) => self.ask(&asked.request()),
            Op::Ask(Some(key), asked) => {
                let mut request = vec![json!("idempotent"), json!(format!("key {}", key % 4))];
                request.extend(asked.request().as_array().cloned().unwrap_or_default());
                self.ask(&json!(request))
            }
            Op::Activity(deed, which) => self.activity(deed, which),
        }
    }

    // Marks those messages of a subscriber whose bits are set, counting from the newest one.
    fn mark(&self, who: Who, which: u8, mark: MarkAs) -> String {
        let messages = self.world.env.messages();
        let known = messages.list(who.id(), &MessageQuery::default());
        let known = known.map(|page| page.data).unwrap_or_default();
        let marked = known.iter().enumerate().filter(|(at, _)| which >> (at % 8) & 1 == 1);
        let ids: Vec<MessageId> = marked.map(|(_, message)| message.id).collect();
        text(messages.mark(who.id(), ids, mark))
    }

    fn prefer<T>(
        &self,
        who: Who,
        operation: impl FnOnce(&SubscriberPreferences<'_>) -> Result<T>,
    ) -> Result<T> {
        operation(&self.world.env.preferences(who.id())?)
    }

    fn on_integration(&self, at: u8, operation: impl FnOnce(IntegrationId) -> String) -> String {
        let known = usize::from(at).checked_rem(self.integrations.len());
        known.map_or_else(String::new, |at| operation(self.integrations[at]))
    }

    fn look(&self, who: Who) -> String {
        let (env, id) = (&self.world.env, who.id());
        let page = PageQuery::default().limit(2).order_direction(Direction::Ascending);
        let subscribers = SubscriberQuery::default().page(page.clone());
        let workflows = WorkflowQuery::default().page(page);
        let inbox = env.inbox(&id).expect("the id is one");
        [
            text(env.subscribers().get(&id)),
            text(env.subscribers().list(&subscribers)),
            text(env.workflows().list(&workflows)),
            text(env.integrations().list_active()),
            text(env.messages().list(&id, &MessageQuery::default())),
            text(inbox.list(&MessageQuery::default())),
            text(inbox.counts()),
            text(self.prefer(who, |preferences| preferences.get(&PreferencesQuery::default()))),
            text(
                env.notifications()
                    .list(&NotificationQuery::default().subscriber_ids([&id]).unwrap()),
            ),
            text(env.notifications().list(&NotificationQuery::default())),
            text(env.notifications().count(&NotificationQuery::default())),
            text(env.environments().list()),
            self.ask(&json!(["contexts.list", { "orderBy": "updatedAt" }])),
            self.ask(&json!(["channel_connections.list", { "orderBy": "updatedAt" }])),
            self.ask(&json!(["channel_endpoints.list", { "subscriberId": id }])),
            self.ask(&json!(["topics.list", { "orderBy": "key", "limit": 1 }])),
            self.ask(&json!(["topics.subscriptions", asked::topic(who.0), { "limit": 2 }])),
            self.ask(&json!(["layouts.list", {}])),
            self.ask(&json!(["translations.list", {}])),
        ]
        .join("\n")
    }

    fn ask(&self, request: &Value) -> String {
        requests::text(&requests::call(&self.world.engine, &self.world.env, request))
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.backend = self.backend.after_kill();
        self.world.store.reopen(|| self.backend.open());
        self.world.restart_with(configured(self.restarts, self.is_sealed));
    }
}

fn configured(restarts: u64, is_sealed: bool) -> impl Fn(Builder) -> Builder {
    let restarted = restarted(restarts);
    move |builder| {
        let keys: Vec<u32> = (0..=u32::try_from(restarts).expect("a few")).rev().collect();
        let builder = restarted(builder);
        if is_sealed { builder.sealing(sealed::keyring(&keys)) } else { builder }
    }
}

/// Answer of an operation.
pub fn text<T: Debug>(answer: Result<T>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => error.to_string(),
    }
}
