//! The entities in plain data.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::{MessageId, NotificationId};

use super::op::{self, Change, Flow, Named, Report, Text, Verb, Who, email, one_of};

/// HTTP status of an answer.
pub type Status = u16;

const DONE: Status = 200;
const REFUSED: Status = 400;
const MISSING: Status = 404;
const CONFLICT: Status = 409;

/// Everything that an environment holds.
#[derive(Debug, Default)]
pub struct Model {
    /// Seconds since the beginning.
    pub now: u64,
    pub people: BTreeMap<&'static str, Person>,
    pub workflows: BTreeMap<String, Workflow>,
    /// Whether each integration was declared.
    pub integrations: BTreeMap<String, bool>,
    /// Number in the data of each context.
    pub contexts: BTreeMap<&'static str, u8>,
    pub topics: BTreeMap<String, Topic>,
    /// Owner and workspace of each connection.
    pub connections: BTreeMap<String, (&'static str, String)>,
    /// Owner and channel of each endpoint.
    pub endpoints: BTreeMap<String, (&'static str, String)>,
    pub layouts: BTreeSet<String>,
    /// Last verb of each translation.
    pub translations: BTreeMap<(Text, &'static str), String>,
    /// Resources that are translated.
    pub groups: BTreeSet<Text>,
    /// Suppressions by their addresses.
    pub suppressions: BTreeMap<String, Suppression>,
    pub keys: BTreeSet<String>,
    pub environments: BTreeSet<String>,
    /// Whether the workflow for e-mail is paused.
    pub is_held: bool,
    /// Notifications, oldest first.
    pub events: Vec<Event>,
    /// Addresses that the provider refuses.
    pub refused: BTreeSet<String>,
    newcomers: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Person {
    /// Number of the newcomer: a name that comes back is another person.
    pub number: usize,
    pub email: Option<String>,
    pub about: BTreeMap<Flow, bool>,
    pub in_general: Option<bool>,
    /// Messages, oldest first.
    pub letters: Vec<Letter>,
    /// Messages of the inbox that were deleted.
    pub deleted: BTreeSet<MessageId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workflow {
    pub name: String,
    pub is_paused: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    pub name: Option<String>,
    pub members: BTreeSet<&'static str>,
}

/// A notification.
#[derive(Clone, Debug)]
pub struct Event {
    pub notification: NotificationId,
    pub transaction: String,
    pub name: &'static str,
    pub person: usize,
    pub mail: Mail,
}

/// That nothing is sent to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub end: Option<u64>,
    /// Whether the address is known by its hash only.
    pub is_erased: bool,
}

/// State of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mail {
    /// There is none.
    None,
    Waiting,
    Sent,
    Dead,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Letter {
    pub notification: NotificationId,
    pub flow: Flow,
    /// Address of an e-mail.
    pub to: Option<String>,
    pub stage: Stage,
    pub snoozed_until: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Unseen,
    Seen,
    Read,
    Archived,
}

impl Model {
    /// Does what the operation says, and returns the status of its answer.
    pub fn apply(&mut self, named: Named) -> Status {
        match named {
            Named::Subscriber(verb, who, address) => self.subscriber(verb, who, address),
            Named::Erase(who) => self.erase(who),
            Named::Workflow(verb, which) => self.workflow(verb, which),
            Named::Pause(which, is_paused) => {
                let found = self.workflows.get_mut(&one_of("workflow", which));
                found.map_or(MISSING, |found| {
                    found.is_paused = is_paused;
                    DONE
                })
            }
            Named::Integration(Verb::Update, which) => {
                self.integrations.insert(one_of("integration", which), true);
                DONE
            }
            Named::Integration(verb, which) => {
                changed(&mut self.integrations, one_of("integration", which), verb, false)
            }
            Named::Context(verb, which, data) => {
                changed(&mut self.contexts, op::context(which), verb, data)
            }
            Named::Prefer(who, flow, wanted) => self.person(who, |person| {
                person.about.insert(flow, wanted);
            }),
            Named::PreferGlobally(who, wanted) => {
                self.person(who, |person| person.in_general = Some(wanted))
            }
            Named::Topic(verb, which, name) => self.topic(verb, which, name),
            Named::Subscribe(which, who) => self.subscribe(which, who),
            Named::Unsubscribe(which, who) => self.unsubscribe(which, who),
            Named::Connection(verb, which, who) => self.connection(verb, which, who),
            Named::Endpoint(verb, which, who, through) => self.endpoint(verb, which, who, through),
            Named::Layout(verb, which) => self.layout(verb, which),
            Named::Translation(verb, text, language) => {
                self.translation(verb, text.normal(), language)
            }
            Named::Untranslate(text) => self.untranslate(text.normal()),
            Named::Suppress(which, seconds) => {
                let end = seconds.map(|seconds| self.now + op::span(seconds).as_secs());
                self.suppress(email(which), end);
                DONE
            }
            Named::Unsuppress(which) => {
                let is_there = self.is_suppressed(&email(which));
                self.suppressions.remove(&email(which));
                if is_there { DONE } else { MISSING }
            }
            Named::ClearSuppressions => {
                self.suppressions.clear();
                DONE
            }
            Named::Key(which) => created(&mut self.keys, one_of("key", which)),
            Named::Environment(which) => created(&mut self.environments, one_of("env", which)),
            Named::Revoke(which) => {
                if self.keys.remove(&one_of("key", which)) {
                    DONE
                } else {
                    MISSING
                }
            }
            Named::Hold(is_held) => {
                self.is_held = is_held;
                DONE
            }
        }
    }

    /// Returns `true` if a trigger with this transaction id is not new. Its last notification frees
    /// the id.
    pub fn has_happened(&self, transaction: &str) -> bool {
        self.events.iter().any(|event| event.transaction == transaction)
    }

    /// Tells subscribers an event, each in a notification.
    pub fn trigger(
        &mut self,
        transaction: &str,
        flow: Flow,
        to: impl Iterator<Item = (Who, NotificationId)>,
    ) {
        let is_held = self.is_held;
        for (who, notification) in to {
            let person = self.welcome(who.name());
            let (number, is_welcome) = (person.number, person.welcomes(flow));
            let mail = match flow {
                Flow::Inbox if is_welcome => {
                    person.letters.push(Letter::new(notification, flow, None));
                    Mail::None
                }
                // A workflow that is held decides later.
                Flow::Mail if is_welcome || is_held => Mail::Waiting,
                Flow::Inbox | Flow::Mail => Mail::None,
            };
            let transaction = transaction.to_owned();
            let event = Event { notification, transaction, name: who.name(), person: number, mail };
            self.events.push(event);
        }
    }

    /// Cancels an event.
    pub fn cancel(&mut self, transaction: &str) {
        let of_it = self.events.iter_mut().filter(|event| event.transaction == transaction);
        for event in of_it.filter(|event| event.mail == Mail::Waiting) {
            event.mail = Mail::None;
        }
    }

    /// Sends the e-mails that wait, and ends the snoozes that are over.
    pub fn deliver(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        let goes_on = !self.is_held;
        for event in events.iter_mut().filter(|event| goes_on && event.mail == Mail::Waiting) {
            event.mail = self.send(event);
        }
        self.events = events;
        let now = self.now;
        for letter in self.people.values_mut().flat_map(|person| &mut person.letters) {
            if letter.snoozed_until.is_some_and(|end| end <= now) {
                (letter.snoozed_until, letter.stage) = (None, Stage::Unseen);
            }
        }
    }

    fn send(&mut self, event: &Event) -> Mail {
        let person = self.people.get(event.name).filter(|person| person.number == event.person);
        let Some(to) = person.and_then(|person| person.email.clone()) else { return Mail::None };
        let is_known = person.is_some_and(|person| person.has(event.notification, Flow::Mail));
        let is_welcome = person.is_some_and(|person| person.welcomes(Flow::Mail));
        if !is_known && (!is_welcome || self.is_suppressed(&to)) {
            return Mail::None;
        }
        let mail = if self.refused.contains(&to) { Mail::Dead } else { Mail::Sent };
        if let Some(person) = self.people.get_mut(event.name).filter(|_| !is_known) {
            person.letters.push(Letter::new(event.notification, Flow::Mail, Some(to)));
        }
        mail
    }

    /// Changes messages of an inbox.
    pub fn change(&mut self, who: Who, letters: &[Letter], change: Change) -> Status {
        let now = self.now;
        let Some(person) = self.people.get_mut(who.name()) else { return MISSING };
        if change == Change::Delete {
            person.letters.retain(|letter| !letters.contains(letter));
        }
        for letter in person.letters.iter_mut().filter(|letter| letters.contains(letter)) {
            letter.change(change, now);
        }
        DONE
    }

    /// Records a report about an e-mail of the event with that index.
    pub fn report(&mut self, to: String, report: Report) {
        match report {
            Report::Delivered => {}
            Report::Bounced => {
                let end = self.now + 90 * 24 * 60 * 60;
                self.suppress(to, Some(end));
            }
            Report::Complained => self.suppress(to, None),
        }
    }

    /// Returns `true` if messages to the address are not sent.
    pub fn is_suppressed(&self, address: &str) -> bool {
        self.suppression(address).is_some()
    }

    /// The suppression of an address, if it is in force.
    fn suppression(&self, address: &str) -> Option<Suppression> {
        let found = self.suppressions.get(address).copied();
        found.filter(|found| found.end.is_none_or(|end| end > self.now))
    }

    // A suppression is renewed if it ends later than before.
    fn suppress(&mut self, address: String, end: Option<u64>) {
        let before = self.suppression(&address);
        let end = match (before.map(|before| before.end), end) {
            (Some(None), _) | (_, None) => None,
            (Some(Some(before)), Some(end)) => Some(before.max(end)),
            (None, Some(end)) => Some(end),
        };
        let is_erased = before.is_some_and(|before| before.is_erased);
        self.suppressions.insert(address, Suppression { end, is_erased });
    }

    fn welcome(&mut self, name: &'static str) -> &mut Person {
        let newcomers = &mut self.newcomers;
        self.people.entry(name).or_insert_with(|| {
            *newcomers += 1;
            Person { number: *newcomers, ..Person::default() }
        })
    }

    fn person(&mut self, who: Who, change: impl FnOnce(&mut Person)) -> Status {
        self.people.get_mut(who.name()).map_or(MISSING, |person| {
            change(person);
            DONE
        })
    }

    fn subscriber(&mut self, verb: Verb, who: Who, address: Option<u8>) -> Status {
        let address = address.map(email);
        match verb {
            Verb::Create if self.people.contains_key(who.name()) => CONFLICT,
            Verb::Create => {
                self.welcome(who.name()).email = address;
                DONE
            }
            Verb::Update => self.person(who, |person| {
                person.email = address.or(person.email.take());
            }),
            Verb::Delete if !self.people.contains_key(who.name()) => MISSING,
            Verb::Delete => {
                self.remove(who);
                DONE
            }
        }
    }

    fn remove(&mut self, who: Who) -> Option<Person> {
        for topic in self.topics.values_mut() {
            topic.members.remove(who.name());
        }
        self.connections.retain(|_, (owner, _)| *owner != who.name());
        self.endpoints.retain(|_, (owner, _)| *owner != who.name());
        self.people.remove(who.name())
    }

    // Reaches all who had the name, one after the other. Those who were deleted have notifications.
    fn erase(&mut self, who: Who) -> Status {
        let removed = self.remove(who);
        let is_told = self.events.iter().any(|event| event.name == who.name());
        if removed.is_none() && !is_told {
            return MISSING;
        }
        let person = removed.unwrap_or_default();
        let is_told = |letter: &&Letter| {
            self.events.iter().any(|event| event.notification == letter.notification)
        };
        let told = person.letters.iter().filter(is_told).filter_map(|letter| letter.to.clone());
        for address in told.chain(person.email.clone()) {
            if let Some(suppression) = self.suppressions.get_mut(&address) {
                suppression.is_erased = true;
            }
        }
        self.events.retain(|event| event.name != who.name());
        DONE
    }

    fn workflow(&mut self, verb: Verb, which: u8) -> Status {
        let id = one_of("workflow", which);
        match verb {
            Verb::Create if self.workflows.contains_key(&id) => CONFLICT,
            Verb::Create => {
                let workflow = Workflow { name: id.clone(), is_paused: false };
                self.workflows.insert(id, workflow);
                DONE
            }
            Verb::Update => self.workflows.get_mut(&id).map_or(MISSING, |workflow| {
                "Another".clone_into(&mut workflow.name);
                DONE
            }),
            Verb::Delete if self.workflows.remove(&id).is_none() => MISSING,
            Verb::Delete => {
                self.forget_texts(Text::Workflow(which % 2));
                DONE
            }
        }
    }

    fn topic(&mut self, verb: Verb, which: u8, name: u8) -> Status {
        let key = one_of("topic", which);
        let name = Some(format!("Topic {name}"));
        match (verb, self.topics.get_mut(&key)) {
            (Verb::Create, Some(_)) => CONFLICT,
            (Verb::Create, None) => {
                self.topics.insert(key, Topic { name, ..Topic::default() });
                DONE
            }
            (Verb::Update | Verb::Delete, None) => MISSING,
            (Verb::Update, Some(topic)) => {
                topic.name = name;
                DONE
            }
            (Verb::Delete, Some(_)) => {
                self.topics.remove(&key);
                DONE
            }
        }
    }

    // The first subscription creates the topic. A subscriber who does not exist is refused.
    fn subscribe(&mut self, which: u8, who: Who) -> Status {
        if !self.people.contains_key(who.name()) {
            return REFUSED;
        }
        let topic = self.topics.entry(one_of("topic", which)).or_default();
        topic.members.insert(who.name());
        DONE
    }

    fn unsubscribe(&mut self, which: u8, who: Who) -> Status {
        let topic = self.topics.get_mut(&one_of("topic", which));
        topic.map_or(MISSING, |topic| if topic.members.remove(who.name()) { DONE } else { REFUSED })
    }

    fn connection(&mut self, verb: Verb, which: u8, who: Who) -> Status {
        let (id, workspace) = (one_of("connection", which), format!("T-{}", who.name()));
        match (verb, self.connections.get_mut(&id)) {
            (Verb::Create, _) if !self.people.contains_key(who.name()) => MISSING,
            (Verb::Create, Some(_)) => CONFLICT,
            (Verb::Create, None) => {
                if self.connections.values().any(|(owner, _)| *owner == who.name()) {
                    return CONFLICT;
                }
                self.connections.insert(id, (who.name(), workspace));
                DONE
            }
            (Verb::Update | Verb::Delete, None) => MISSING,
            (Verb::Update, Some(connection)) => {
                connection.1 = workspace;
                DONE
            }
            (Verb::Delete, Some(_)) => {
                self.connections.remove(&id);
                DONE
            }
        }
    }

    fn endpoint(&mut self, verb: Verb, which: u8, who: Who, through: Option<u8>) -> Status {
        let (id, channel) = (one_of("endpoint", which), format!("C-{}", who.name()));
        let connection = through.map(|through| one_of("connection", through));
        match (verb, self.endpoints.get_mut(&id)) {
            (Verb::Create, _) if !self.people.contains_key(who.name()) => MISSING,
            (Verb::Create, Some(_)) => CONFLICT,
            (Verb::Create, None) => {
                if connection.is_some_and(|through| !self.connections.contains_key(&through)) {
                    return MISSING;
                }
                self.endpoints.insert(id, (who.name(), channel));
                DONE
            }
            (Verb::Update | Verb::Delete, None) => MISSING,
            (Verb::Update, Some(endpoint)) => {
                endpoint.1 = channel;
                DONE
            }
            (Verb::Delete, Some(_)) => {
                self.endpoints.remove(&id);
                DONE
            }
        }
    }

    fn layout(&mut self, verb: Verb, which: u8) -> Status {
        let id = one_of("layout", which);
        match verb {
            Verb::Create | Verb::Update => {
                self.layouts.insert(id);
                DONE
            }
            Verb::Delete if !self.layouts.remove(&id) => MISSING,
            Verb::Delete => {
                self.forget_texts(Text::Layout(which % 2));
                DONE
            }
        }
    }

    fn translation(&mut self, verb: Verb, text: Text, language: u8) -> Status {
        let place = (text, op::locale(language));
        if !self.is_resource(text) {
            return MISSING;
        }
        match verb {
            Verb::Delete if self.translations.remove(&place).is_none() => MISSING,
            Verb::Delete => DONE,
            Verb::Create | Verb::Update => {
                self.groups.insert(text);
                self.translations.insert(place, format!("{verb:?}"));
                DONE
            }
        }
    }

    fn untranslate(&mut self, text: Text) -> Status {
        if !self.groups.contains(&text) {
            return MISSING;
        }
        self.forget_texts(text);
        DONE
    }

    fn forget_texts(&mut self, text: Text) {
        self.groups.remove(&text);
        self.translations.retain(|(of, _), _| *of != text);
    }

    fn is_resource(&self, text: Text) -> bool {
        match text {
            Text::Workflow(which) => self.workflows.contains_key(&one_of("workflow", which)),
            Text::Layout(which) => self.layouts.contains(&one_of("layout", which)),
        }
    }
}

impl Person {
    /// Returns `true` if the person accepts messages of the workflow.
    pub fn welcomes(&self, flow: Flow) -> bool {
        self.about.get(&flow).copied().or(self.in_general).unwrap_or(true)
    }

    fn has(&self, notification: NotificationId, flow: Flow) -> bool {
        self.letters.iter().any(|it| it.notification == notification && it.flow == flow)
    }
}

impl Letter {
    fn new(notification: NotificationId, flow: Flow, to: Option<String>) -> Self {
        Self { notification, flow, to, stage: Stage::Unseen, snoozed_until: None }
    }

    fn change(&mut self, change: Change, now: u64) {
        self.stage = match (change, self.stage) {
            (Change::Unseen, _) => Stage::Unseen,
            (Change::Seen, Stage::Unseen) | (Change::Unread, _) => Stage::Seen,
            (Change::Read, Stage::Unseen | Stage::Seen)
            | (Change::Unarchive | Change::Snooze(_), Stage::Archived) => Stage::Read,
            (Change::Archive, _) => Stage::Archived,
            (_, stage) => stage,
        };
        match change {
            Change::Archive | Change::Unsnooze => self.snoozed_until = None,
            Change::Snooze(seconds) => self.snoozed_until = Some(now + op::span(seconds).as_secs()),
            _ => {}
        }
    }
}

fn created(names: &mut BTreeSet<String>, name: String) -> Status {
    if names.insert(name) { DONE } else { CONFLICT }
}

fn changed<N: Ord, V>(all: &mut BTreeMap<N, V>, name: N, verb: Verb, value: V) -> Status {
    let is_there = all.contains_key(&name);
    match (verb, is_there) {
        (Verb::Create, true) => return CONFLICT,
        (Verb::Update | Verb::Delete, false) => return MISSING,
        (Verb::Delete, true) => drop(all.remove(&name)),
        (Verb::Create, false) | (Verb::Update, true) => drop(all.insert(name, value)),
    }
    DONE
}
