//! Operations on every entity of an environment, against a model that is obviously right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use domain::dead_letter::{DeadLetter, DeadLetterQuery};
use domain::ids::{IntegrationId, MessageId, NotificationId};
use domain::message::MessageQuery;
use domain::time::Timestamp;
use serde_json::{Value, json};
use store::memory::MemoryStore;
use tidings::Builder;

use crate::effort::Effort;
use crate::facade::restarted;
use crate::interposed::Interposed;
use crate::parsed;
use crate::requests::{self, Answer, Refusal};
use crate::world::{World, time};

mod compare;
mod model;
mod op;
mod post;

pub use op::{Change, Flow, Named, Op, Report, Step, Text, Verb, Who};

use model::{Event, Letter, Mail, Model, Status};
use post::Post;

/// The most steps of a history.
const LONGEST: usize = 64;

/// The most steps of a history in most runs of a fuzzer.
const FEW: usize = 12;

/// Runs `steps` in a copy of a small world, and compares it with a model that has done the same. A
/// fuzzer compares them at the end.
///
/// # Panics
///
/// If an answer or an entity is not that of the model, or an index contradicts the records.
pub fn run(steps: &[Step], effort: Effort) {
    let mut history = History::start();
    for step in effort.first_of(&steps[..LONGEST.min(steps.len())], FEW, LONGEST) {
        history.run(*step);
        if effort == Effort::Full {
            compare::all(&history.world, &history.model);
        }
    }
    history.repeat();
    compare::all(&history.world, &history.model);
    effort.check_at_the_end(&history.world.store, 16);
}

/// A world, its model, and what is known about both.
struct History {
    world: World,
    post: Post,
    account: IntegrationId,
    model: Model,
    /// Request and status of each call with an idempotency key.
    calls: BTreeMap<String, (Value, Status)>,
    /// Notifications of the last trigger that happened under each transaction id.
    told: BTreeMap<String, BTreeSet<NotificationId>>,
    /// Answers to the cancellations of events, by their transaction ids.
    canceled: BTreeMap<String, Value>,
    /// Number of erasures. Each may remove stored answers, so that keys are new.
    erasures: usize,
    triggers: usize,
}

impl History {
    fn start() -> Self {
        let post = Post::default();
        let store = Interposed::new(BASE.0.fork());
        let world = World::with(store, sends_by(&post, 1));
        Self {
            world,
            post,
            account: BASE.1,
            model: Model::default(),
            calls: BTreeMap::new(),
            told: BTreeMap::new(),
            canceled: BTreeMap::new(),
            erasures: 0,
            triggers: 0,
        }
    }

    fn run(&mut self, step: Step) {
        match step.op {
            Op::Named(named) => self.named(step.key, named),
            Op::Trigger(flow, to, transaction) => self.trigger(flow, to, transaction),
            Op::Inbox(who, bits, change) => self.change(who, bits, change),
            Op::Refuse(which, refuses) => {
                let address = op::email(which);
                self.post.refuse(&address, refuses);
                if refuses {
                    self.model.refused.insert(address);
                } else {
                    self.model.refused.remove(&address);
                }
            }
            Op::Deliver => self.deliver(),
            Op::Redrive(which) => self.letter(which, "dead_letters.redrive", Mail::Waiting),
            Op::Discard(which) => self.letter(which, "dead_letters.discard", Mail::None),
            Op::Receipt(which, report) => self.report(which, report),
            Op::Forget(which) => self.forget(which),
            Op::Cancel(which) => self.cancel(which),
            Op::Wait(seconds) => {
                self.world.clock.advance(op::span(seconds));
                self.model.now += op::span(seconds).as_secs();
            }
        }
    }

    fn named(&mut self, key: Option<u8>, named: Named) {
        let request = named.request(&self.world);
        let Some(key) = key else {
            let expected = self.model.apply(named);
            if let Named::Erase(who) = named {
                self.erased(who, &request, expected);
            } else {
                self.expect(&request, expected);
            }
            // Lists show what their indexes lead to.
            if let Some(get) = named.of_what_is_gone() {
                self.expect(&get, 404);
            }
            return;
        };
        // An erasure may remove its own answer.
        if matches!(named, Named::Erase(_)) {
            return;
        }
        let key = format!("key {} of {}", key % 3, self.erasures);
        let expected = match self.calls.get(&key) {
            Some((before, status)) if *before == request => *status,
            Some(_) => 409,
            None => {
                let status = self.model.apply(named);
                self.calls.insert(key.clone(), (request.clone(), status));
                status
            }
        };
        self.expect(&once(&key, &request), expected);
    }

    // Calls that have happened are made again, and happen once.
    fn repeat(&self) {
        for (key, (request, status)) in &self.calls {
            if key.ends_with(&format!(" of {}", self.erasures)) {
                self.expect(&once(key, request), *status);
            }
        }
    }

    // Of a person who is not there, stored answers may be left, and tasks of anybody, which the model does
    // not know.
    fn erased(&mut self, who: Who, request: &Value, expected: Status) {
        self.erasures += 1;
        let answer = requests::call(&self.world.engine, &self.world.env, request);
        let number =
            |of: &str| answer.as_ref().map_or(0, |said| said.json()[of].as_u64().unwrap_or(0));
        let is_named = self.calls.values().any(|(call, _)| call.to_string().contains(who.name()));
        let is_left = number("answers") > 0 && is_named || number("orphans") > 0;
        let expected = if is_left { 200 } else { expected };
        assert_eq!(status(&answer), expected, "{request} is answered with {answer:?}");
    }

    #[track_caller]
    fn expect(&self, request: &Value, expected: Status) {
        let answer = requests::call(&self.world.engine, &self.world.env, request);
        assert_eq!(status(&answer), expected, "{request} is answered with {answer:?}");
    }

    // Every fourth trigger has the transaction of another one.
    fn trigger(&mut self, flow: Flow, to: u8, transaction: u8) {
        self.triggers += 1;
        let transaction = match transaction % 4 {
            0 => format!("again {}", transaction / 4 % 2),
            _ => format!("event {}", self.triggers),
        };
        let told = (0..3).filter(|bit| to >> bit & 1 == 1).map(Who);
        let told: Vec<Who> = told.chain((to.trailing_zeros() >= 3).then_some(Who(0))).collect();
        let names: Vec<_> = told.iter().map(|who| who.name()).collect();
        let trigger = json!({ "name": flow.name(), "to": names, "transactionId": transaction, "payload": {} });
        let receipt = self.world.env.events().trigger(&parsed(trigger)).expect("it is sound");
        let ids: Vec<_> = receipt.notifications.iter().map(|one| one.notification_id).collect();
        if self.model.has_happened(&transaction) {
            let told = &self.told[&transaction];
            return assert!(ids.iter().all(|id| told.contains(id)), "{transaction} happens twice");
        }
        let is_known = |id| self.told.values().any(|known| known.contains(id));
        assert!(!ids.iter().any(is_known), "{transaction} does not happen anew");
        self.told.insert(transaction.clone(), ids.iter().copied().collect());
        self.canceled.remove(&transaction);
        self.model.trigger(&transaction, flow, told.into_iter().zip(ids));
    }

    fn change(&mut self, who: Who, bits: u8, change: Change) {
        let letters = self.model.people.get(who.name()).map(|it| it.letters.as_slice());
        let in_app = letters.unwrap_or_default().iter().filter(|it| it.flow == Flow::Inbox);
        let chosen = in_app.enumerate().filter(|(at, _)| bits >> (at % 8) & 1 == 1);
        let chosen: Vec<Letter> = chosen.map(|(_, letter)| letter.clone()).collect();
        if chosen.is_empty() {
            return;
        }
        let shown = inbox(&self.world, who.name());
        let ids: Vec<&MessageId> =
            chosen.iter().map(|letter| &shown[&letter.notification]).collect();
        let request = match change {
            Change::Seen => json!(["inbox.mark_as", who.name(), ids, "seen"]),
            Change::Read => json!(["inbox.mark_as", who.name(), ids, "read"]),
            Change::Unread => json!(["inbox.mark_as", who.name(), ids, "unread"]),
            Change::Unseen => json!(["inbox.mark_as", who.name(), ids, "unseen"]),
            Change::Archive => json!(["inbox.archive", who.name(), ids]),
            Change::Unarchive => json!(["inbox.unarchive", who.name(), ids]),
            Change::Snooze(seconds) => {
                let until = self.world.now().after(op::span(seconds));
                json!(["inbox.snooze", who.name(), ids, until])
            }
            Change::Unsnooze => json!(["inbox.unsnooze", who.name(), ids]),
            Change::Delete => json!(["inbox.delete", who.name(), ids]),
        };
        let expected = self.model.change(who, &chosen, change);
        if change == Change::Delete
            && let Some(person) = self.model.people.get_mut(who.name())
        {
            person.deleted.extend(ids.iter().copied());
        }
        self.expect(&request, expected);
    }

    fn deliver(&mut self) {
        self.model.deliver();
        for _ in 0..LONGEST {
            let report = self.world.engine.delivery().run_due(100).expect("the store works");
            if report == tidings::DeliveryReport::default() {
                return;
            }
        }
        panic!("a delivery comes to no end");
    }

    // Redrives or discards a dead letter.
    fn letter(&mut self, which: u8, operation: &str, then: Mail) {
        let found = dead_letters(&self.world);
        let Some(at) = usize::from(which).checked_rem(found.len()) else { return };
        let letter = &found[at];
        let is_of = |event: &&mut Event| event.notification == letter.notification_id;
        let event = self.model.events.iter_mut().find(is_of).expect("the model knows it");
        let people = &self.model.people;
        let is_there = people.get(event.name).is_some_and(|found| found.number == event.person);
        if then == Mail::Waiting && !is_there {
            return self.expect(&json!([operation, letter.id]), 409);
        }
        event.mail = then;
        self.expect(&json!([operation, letter.id]), 200);
    }

    // A report about a message whose notification and reader are there.
    fn report(&mut self, which: u8, report: Report) {
        let sent = self.post.sent();
        let Some(at) = usize::from(which).checked_rem(sent.len()) else { return };
        let post::Sent { to, number, notification } = &sent[at];
        let is_of = |it: &&Event| it.notification == *notification && it.mail == Mail::Sent;
        let Some(event) = self.model.events.iter().find(is_of) else { return };
        if self.model.people.get(event.name).is_none_or(|person| person.number != event.person) {
            return;
        }
        let (word, event) = match report {
            Report::Delivered => ("delivered", "1"),
            Report::Bounced => ("bounced", "2"),
            Report::Complained => ("complained", "3"),
        };
        let receipt = json!({ "providerMessageId": number, "type": word, "eventId": event });
        let request = json!(["integrations.ingest_receipt", self.account, receipt]);
        let answer = requests::call(&self.world.engine, &self.world.env, &request);
        let answer = answer.expect("the integration is there").json();
        if answer["outcome"] == "recorded" {
            self.model.report(to.clone(), report);
        }
        assert_ne!(answer["outcome"], "unknownMessage", "{request} is about a message");
    }

    // Cancels an event without a dead letter, which stays one.
    fn cancel(&mut self, which: u8) {
        let Some(at) = usize::from(which).checked_rem(self.model.events.len()) else { return };
        let transaction = self.model.events[at].transaction.clone();
        let of_it = |event: &&Event| event.transaction == transaction;
        if self.model.events.iter().filter(of_it).any(|event| event.mail == Mail::Dead) {
            return;
        }
        let request = json!(["events.cancel", transaction]);
        let answer = requests::call(&self.world.engine, &self.world.env, &request);
        let answer = answer.expect("the event is there").json();
        if let Some(before) = self.canceled.get(&transaction) {
            return assert_eq!(answer, *before, "{request} is answered otherwise");
        }
        self.model.cancel(&transaction);
        self.canceled.insert(transaction, answer);
    }

    fn forget(&mut self, which: u8) {
        let Some(at) = usize::from(which).checked_rem(self.model.events.len()) else { return };
        let id = self.model.events.remove(at).notification;
        self.expect(&json!(["notifications.delete", id]), 200);
        self.expect(&json!(["notifications.get", id]), 404);
    }
}

/// A store with two workflows, two integrations and places of deleted notifications, and the
/// integration for e-mail.
static BASE: LazyLock<(MemoryStore, IntegrationId)> = LazyLock::new(|| {
    let store = MemoryStore::default();
    let world = World::with(Interposed::new(store.clone()), sends_by(&Post::default(), 0));
    world.in_app_workflow(Flow::Inbox.name());
    world.workflow_of(Flow::Mail.name(), &[crate::world::email()]);
    let account = world.active_integration("email", "post").id;
    world.active_integration("chat", "slack");
    // Two notifications more fill a segment of the activity index, and so a span.
    for _ in 0..62 {
        world.notify(Flow::Inbox.name(), "nobody");
    }
    let erased = world.env.subscribers().erase("nobody").expect("it is there");
    assert!(erased.is_finished);
    (store, account)
});

fn sends_by(post: &Post, restarts: u64) -> impl FnOnce(Builder) -> Builder {
    let (post, restarted) = (post.clone(), restarted(restarts));
    move |builder| restarted(builder).circuit(None).default_provider(post)
}

/// The request with an idempotency key.
fn once(key: &str, request: &Value) -> Value {
    let parts = request.as_array().cloned().unwrap_or_default();
    Value::Array([json!("idempotent"), json!(key)].into_iter().chain(parts).collect())
}

/// The items that a list shows.
#[track_caller]
fn listed(world: &World, request: &Value) -> Vec<Value> {
    let answer = requests::call(&world.engine, &world.env, request);
    let answer = answer.unwrap_or_else(|why| panic!("{request} is refused: {why:?}"));
    let mut json = answer.json();
    match if json.is_array() { json } else { json["data"].take() } {
        Value::Array(items) => items,
        other => panic!("{request} shows no list: {other}"),
    }
}

fn status(answer: &Answer) -> Status {
    match answer {
        Ok(_) => 200,
        Err(Refusal::By(error)) => error.status(),
        Err(Refusal::Unreadable(why)) => panic!("a request of ours is not readable: {why}"),
    }
}

/// The time so many seconds after the beginning.
fn at(seconds: u64) -> Timestamp {
    time(crate::world::START).after(std::time::Duration::from_secs(seconds))
}

/// The messages of an inbox by notification, also those that are put away.
fn inbox(world: &World, who: &str) -> BTreeMap<NotificationId, MessageId> {
    let inbox = world.env.inbox(who).expect("an id");
    let open = MessageQuery::default().limit(100);
    let lists = [open.clone(), open.clone().archived(), open.snoozed()];
    let pages = lists.map(|query| inbox.list(&query).expect("the subscriber is there").data);
    let messages = pages.into_iter().flatten();
    messages.map(|message| (message.notification_id, message.id)).collect()
}

fn dead_letters(world: &World) -> Vec<DeadLetter> {
    let page = world.env.dead_letters().list(&DeadLetterQuery::default().limit(100));
    page.expect("they can be listed").data
}
