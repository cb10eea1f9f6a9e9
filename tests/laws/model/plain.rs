//! The main job in plain data: who there is, what happened to whom, and what lies in which inbox.

use std::mem;

use tidings::message::{InboxCounts, MarkAs};
use tidings::vocabulary::{Channel, Severity, StepType};

use super::history::{Happening, Question, Step, WORKFLOWS};

/// Everything that the engine is compared in.
#[derive(Debug, Default)]
pub struct Model {
    /// Milliseconds since the history began.
    pub now: u64,
    /// Those who are there, oldest first.
    pub people: Vec<Person>,
    /// What was triggered for whom, oldest first.
    pub events: Vec<Event>,
    /// How many notifications there have ever been.
    pub created: usize,
    newcomers: usize,
}

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Person {
    /// Which newcomer it was: who comes back is somebody else.
    pub number: usize,
    pub name: &'static str,
    pub email: Option<&'static str>,
    /// What was said about each workflow.
    pub words: [Option<bool>; WORKFLOWS.len()],
    /// What reached the subscriber, oldest first.
    pub letters: Vec<Letter>,
}

/// A notification.
#[derive(Clone, Debug)]
pub struct Event {
    pub transaction: String,
    pub person: usize,
    pub workflow: usize,
    pub tenant: Option<&'static str>,
    pub urgent: bool,
    pub at: u64,
    /// Whether its e-mail waits to be sent.
    pub waits: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    pub transaction: String,
    pub channel: Channel,
    pub seen: Option<u64>,
    pub read: Option<u64>,
}

impl Model {
    pub fn run(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Say(name, email) => {
                let person = self.welcome(name);
                person.email = email.or(person.email);
            }
            Step::Leave(name) => self.people.retain(|person| person.name != *name),
            Step::Trigger(happening) => self.trigger(happening),
            Step::Mark(name, which, mark) => {
                let letters = self.letters(name).rev().enumerate();
                let marked = letters.filter(|(at, _)| is_set(*which, *at));
                marked.for_each(|(_, letter)| letter.mark(*mark, now));
            }
            Step::Mute(name, workflow, word) => {
                let mut people = self.people.iter_mut();
                let person = people.find(|person| person.name == *name);
                if let Some(person) = person.filter(|_| !WORKFLOWS[*workflow].critical) {
                    person.words[*workflow] = Some(*word);
                }
            }
            Step::Deliver => {
                let mut waiting: Vec<Event> = Vec::new();
                for event in &mut self.events {
                    if mem::take(&mut event.waits) {
                        waiting.push(event.clone());
                    }
                }
                // The order of lanes whose tasks are claimed one by one.
                waiting.sort_by_key(|event| (!event.is_urgent(), event.at, event.workflow));
                for event in &waiting {
                    self.send(event);
                }
            }
            Step::Wait(millis) => self.now += millis,
            Step::Forget(which) => {
                if let Some(at) = self.place(*which) {
                    self.events.remove(at);
                }
            }
            Step::Sweep(millis) => {
                let since = self.now.saturating_sub(*millis);
                self.events.retain(|event| event.at >= since);
            }
            Step::Rebuild => {}
        }
    }

    /// Where the notification is that is so many behind the newest.
    pub fn place(&self, which: usize) -> Option<usize> {
        self.events.len().checked_sub(which + 1)
    }

    /// Who is there under that name.
    pub fn person(&self, name: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.name == name)
    }

    /// What the next trigger is called.
    pub fn next_transaction(&self) -> String {
        format!("after {}", self.created)
    }

    /// The notifications that a question is about, newest first.
    pub fn asked_for(&self, question: &Question) -> Vec<&Event> {
        self.events.iter().rev().filter(|event| self.is_asked_for(event, question)).collect()
    }

    // The subscriber, who comes if need be.
    fn welcome(&mut self, name: &'static str) -> &mut Person {
        let known = self.people.iter().position(|person| person.name == name);
        let place = known.unwrap_or_else(|| {
            let words = [None; WORKFLOWS.len()];
            let (number, letters) = (self.newcomers, Vec::new());
            self.people.push(Person { number, name, email: None, words, letters });
            self.newcomers += 1;
            self.people.len() - 1
        });
        &mut self.people[place]
    }

    fn trigger(&mut self, happening: &Happening) {
        let transaction = self.next_transaction();
        let is_email = WORKFLOWS[happening.workflow].channel == Channel::Email;
        for name in &happening.to {
            let person = self.welcome(name);
            // What is not welcome at the trigger is skipped at once.
            let waits = is_email && person.welcomes(happening.workflow, happening.tenant);
            let event = Event {
                transaction: transaction.clone(),
                person: person.number,
                workflow: happening.workflow,
                tenant: happening.tenant,
                urgent: happening.urgent,
                at: self.now,
                waits,
            };
            if !is_email {
                self.send(&event);
            }
            self.events.push(event);
            self.created += 1;
        }
    }

    fn letters(
        &mut self,
        name: &str,
    ) -> impl DoubleEndedIterator<Item = &mut Letter> + ExactSizeIterator {
        let mut people = self.people.iter_mut();
        let person = people.find(|person| person.name == name);
        person.map(|person| person.letters.as_mut_slice()).unwrap_or_default().iter_mut()
    }

    fn send(&mut self, event: &Event) {
        let channel = WORKFLOWS[event.workflow].channel;
        let person = self.people.iter_mut().find(|person| person.number == event.person);
        let is_welcome = |person: &&mut Person| person.welcomes(event.workflow, event.tenant);
        let is_reached = |person: &&mut Person| channel != Channel::Email || person.email.is_some();
        if let Some(person) = person.filter(is_welcome).filter(is_reached) {
            for _ in 0..WORKFLOWS[event.workflow].steps {
                let transaction = event.transaction.clone();
                person.letters.push(Letter { transaction, channel, seen: None, read: None });
            }
        }
    }

    fn is_asked_for(&self, event: &Event, question: &Question) -> bool {
        let workflow = &WORKFLOWS[event.workflow];
        let job = match workflow.channel {
            Channel::Email => StepType::Email,
            _ => StepType::InApp,
        };
        let severity = if event.urgent { Severity::High } else { workflow.severity };
        (question.templates.is_empty() || question.templates.contains(&event.workflow))
            && (question.channels.is_empty() || question.channels.contains(&job))
            && (question.severity.is_empty() || question.severity.contains(&severity))
            && question.transaction.as_ref().is_none_or(|id| event.transaction == *id)
            && question.tenants.as_deref().is_none_or(|tenants| event.tenant.as_slice() == tenants)
            && question.after.is_none_or(|after| event.at >= after)
            && question.before.is_none_or(|before| event.at <= before)
            && self.is_about_somebody_named(event, question)
    }

    fn is_about_somebody_named(&self, event: &Event, question: &Question) -> bool {
        let Question { names, emails, search, .. } = question;
        if names.is_empty() && emails.is_empty() && search.is_none() {
            return true;
        }
        let person = self.people.iter().find(|person| person.number == event.person);
        person.is_some_and(|person| {
            let email = person.email;
            names.contains(&person.name)
                || email.is_some_and(|email| emails.contains(&email))
                || search.is_some_and(|search| {
                    person.name == search || email.is_some_and(|email| email.contains(search))
                })
        })
    }
}

impl Event {
    fn is_urgent(&self) -> bool {
        let workflow = &WORKFLOWS[self.workflow];
        self.urgent || workflow.critical || workflow.severity == Severity::High
    }
}

impl Person {
    // A word for no context says nothing about one.
    fn welcomes(&self, workflow: usize, tenant: Option<&str>) -> bool {
        tenant.is_some() || self.words[workflow] != Some(false)
    }

    pub fn counts(&self) -> InboxCounts {
        let inbox = self.letters.iter().filter(|letter| letter.channel == Channel::InApp);
        let unseen = inbox.clone().filter(|letter| letter.seen.is_none()).count();
        InboxCounts::new(unseen, inbox.filter(|letter| letter.read.is_none()).count())
    }
}

impl Letter {
    fn mark(&mut self, mark: MarkAs, now: u64) {
        if mark == MarkAs::Unseen {
            (self.seen, self.read) = (None, None);
            return;
        }
        self.seen = self.seen.or(Some(now));
        match mark {
            MarkAs::Read => self.read = self.read.or(Some(now)),
            MarkAs::Unread => self.read = None,
            MarkAs::Seen | MarkAs::Unseen => {}
        }
    }
}

/// Whether the bit for the item at that place is set.
pub fn is_set(bits: u8, place: usize) -> bool {
    bits >> (place % 8) & 1 == 1
}
