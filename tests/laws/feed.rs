//! Who follows a feed, from any cursor, over restarts, ends with the messages that are in the inbox.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::facade::{Op, Process, Who};
use testkit::world::World;
use tidings::ids::MessageId;
use tidings::message::{Changes, FeedCursor, FeedPage, InboxChange, MarkAs, Message, MessageQuery};
use tidings::{Engine, Scope};

use crate::{beginning, cases, op, parsed};

/// A client that shows the inbox of a subscriber.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) cursor: Option<FeedCursor>,
    pub(crate) shown: BTreeMap<MessageId, Message>,
}

/// Answer of an inbox to a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Seen {
    Changes(FeedPage),
    Everything(FeedCursor, Vec<Message>),
}

/// The answer of an inbox to a client with that cursor. Returns `None` if there is no such
/// subscriber.
pub(crate) fn look(env: &Scope, who: &str, cursor: Option<&FeedCursor>) -> Option<Seen> {
    let inbox = env.inbox(who).unwrap();
    let newest = inbox.cursor().ok()?;
    // A cursor is kept as its text.
    let changes =
        cursor.map(|cursor| inbox.changes_since(&cursor.to_string().parse().unwrap()).unwrap());
    let from = match changes {
        Some(Changes::Since(page)) => return Some(Seen::Changes(page)),
        Some(Changes::Reset { cursor }) => cursor,
        None => newest,
    };
    Some(Seen::Everything(from, listed(env, who).into_values().collect()))
}

/// Every message in the inbox, in whatever folder.
pub(crate) fn listed(env: &Scope, who: &str) -> BTreeMap<MessageId, Message> {
    let mut listed = BTreeMap::new();
    let inbox = env.inbox(who).unwrap();
    let folders = [
        MessageQuery::default(),
        MessageQuery::default().archived(),
        MessageQuery::default().snoozed(),
    ];
    for mut query in folders.map(|query| query.limit(100)) {
        loop {
            let page = inbox.list(&query).unwrap();
            listed.extend(page.data.into_iter().map(|message| (message.id, message)));
            let Some(next) = page.next else { break };
            query = query.after(&next);
        }
    }
    listed
}

impl Client {
    /// Asks once. Returns whether there is more.
    pub(crate) fn ask(&mut self, env: &Scope, who: &str) -> bool {
        let Some(seen) = look(env, who, self.cursor.as_ref()) else {
            *self = Self::default();
            return false;
        };
        self.take(seen)
    }

    /// Shows an answer. Returns whether there is more.
    pub(crate) fn take(&mut self, seen: Seen) -> bool {
        match seen {
            Seen::Changes(page) => {
                for change in page.changes {
                    match change {
                        InboxChange::Message { message } => {
                            self.shown.insert(message.id, *message);
                        }
                        InboxChange::Deleted { message_id } => {
                            self.shown.remove(&message_id);
                        }
                    }
                }
                self.cursor = Some(page.next);
                page.has_more
            }
            Seen::Everything(cursor, messages) => {
                let shown = messages.into_iter().map(|message| (message.id, message)).collect();
                *self = Self { cursor: Some(cursor), shown };
                true
            }
        }
    }
}

const NAMES: [&str; 4] = ["ada", "bob", "cyd", "dan"];

#[track_caller]
fn check(world: &World, clients: &mut [Client]) {
    for (number, client) in clients.iter_mut().enumerate() {
        let who = NAMES[number % NAMES.len()];
        while client.ask(&world.env, who) {}
        if world.env.inbox(who).unwrap().cursor().is_ok() {
            assert_eq!(client.shown, listed(&world.env, who), "{who}");
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn after_any_history(steps in vec((op(), any::<u8>()), 0..60)) {
        let mut process = Process::in_memory();
        // The first of them ask whenever they like, and the others at the end.
        let mut clients: Vec<Client> = (0..8).map(|_| Client::default()).collect();
        for op in beginning() {
            process.run(op);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.ask(&process.world.env, NAMES[number % NAMES.len()]);
        }
        for (op, who) in steps {
            process.run(op);
            let number = usize::from(who) % 8;
            if number < 4 {
                clients[number].ask(&process.world.env, NAMES[number]);
            }
        }
        process.run(Op::Look(Who(0)));
        check(&process.world, &mut clients);
        process.run(Op::Restart);
        check(&process.world, &mut clients);
    }
}

/// Three threads change an inbox, and one follows it. It is woken by the last change, and has missed
/// none.
#[test]
fn among_threads() {
    let engine = Engine::in_memory();
    let env = engine.organization("acme").unwrap().development().unwrap();
    let step = json!({ "type": "in_app", "template": { "body": "Hi" } });
    let workflow = json!({ "workflowId": "hi", "name": "Hi", "steps": [step] });
    env.workflows().create(&parsed(workflow)).unwrap();
    env.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
    thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut client = Client::default();
            loop {
                while client.ask(&env, "ada") {}
                if client.shown.values().any(|one| one.transaction_id.as_str() == "last") {
                    return client;
                }
                let cursor = client.cursor.unwrap();
                // The last message ends this wait, or comes before it.
                assert!(env.inbox("ada").unwrap().wait(&cursor, Duration::from_secs(60)).unwrap());
            }
        });
        let writers = [0, 1, 2].map(|writer| {
            let env = &env;
            scope.spawn(move || {
                let inbox = env.inbox("ada").unwrap();
                for round in 0..40 {
                    let found = inbox.list(&MessageQuery::default()).unwrap().data;
                    let id = found.get((writer + round) % 3).map(|message| message.id);
                    match (id, (round + writer) % 5) {
                        (Some(id), 1) => drop(inbox.mark_as([id], MarkAs::Read).unwrap()),
                        (Some(id), 2) => drop(inbox.archive([id]).unwrap()),
                        (Some(id), 3) => drop(inbox.delete([id]).unwrap()),
                        _ => {
                            let trigger = parsed(json!({ "name": "hi", "to": "ada" }));
                            env.events().trigger(&trigger).unwrap();
                        }
                    }
                }
            })
        });
        for writer in writers {
            writer.join().unwrap();
        }
        let last = json!({ "name": "hi", "to": "ada", "transactionId": "last" });
        env.events().trigger(&parsed(last)).unwrap();
        let client = follower.join().unwrap();
        assert_eq!(client.shown, listed(&env, "ada"));
    });
}
