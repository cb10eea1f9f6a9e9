//! The law of delivery by SMTP: every e-mail at least once, and twice only if an answer was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::waiting::{PATIENCE, wait_until};
use tidings::integration::IntegrationCreate;
use tidings::job::{Detail, RetryPolicy};
use tidings::notification::NotificationQuery;
use tidings::step::Step;
use tidings::store::memory::MemoryStore;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};
use tidings_providers::Smtp;

use crate::account;
use crate::server::{Act, Moment, Server, polite};

pub const MAILS: usize = 500;

/// A time in which each e-mail is sent on any machine. One that takes longer would be sent again.
pub const AMPLE: Duration = Duration::from_secs(600);

/// Number of times that the server was asked to take the e-mail of each recipient.
pub type Tries = Arc<Mutex<BTreeMap<String, usize>>>;

// A third of the recipients is refused twice, others lose the connection before the content or
// behind it, and every e-mail takes a while.
pub fn unreliable(tries: Tries) -> impl Fn(Moment) -> Vec<Act> {
    move |moment| match &moment {
        Moment::Command(line) if line.starts_with("RCPT") => {
            let mut tries = tries.lock().unwrap();
            let count = tries.entry(line["RCPT TO:".len()..].to_owned()).or_default();
            *count += 1;
            match (number(line), *count) {
                (number, 1 | 2) if number % 3 == 0 => vec![Act::Say("451 busy".into())],
                (number, 1) if number % 7 == 1 => vec![Act::HangUp],
                _ => polite(moment),
            }
        }
        Moment::Sent(mail) => {
            std::thread::sleep(Duration::from_millis(4));
            let count = tries.lock().unwrap()[&mail.to[0]];
            match (number(&mail.to[0]), count) {
                // The e-mail is kept, and the answer is lost.
                (number, 1) if number % 5 == 2 => vec![Act::Keep(mail.clone()), Act::HangUp],
                // The e-mail is lost as well.
                (number, 1) if number % 11 == 4 => vec![Act::HangUp],
                _ => polite(moment),
            }
        }
        _ => polite(moment),
    }
}

pub fn number(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

pub fn triggered(engine: &Engine, server: &Server) -> Scope {
    let env = engine.organization("acme").unwrap().development().unwrap();
    let relay =
        IntegrationCreate::new("smtp", Channel::Email).unwrap().credentials(account(server));
    env.integrations().create(&relay).unwrap();
    let mail = Step::email("Hello", "<p>Hello {{ subscriber.subscriberId }}</p>").unwrap();
    env.workflows().create(&WorkflowCreate::new("mail", "Mail").unwrap().step(mail)).unwrap();
    for number in 0..MAILS {
        let to = SubscriberCreate::new(format!("s{number}")).unwrap();
        let to = to.email(format!("s{number}@example.org")).unwrap();
        env.events().trigger(&Trigger::new("mail", to).unwrap()).unwrap();
    }
    env
}

#[test]
fn each_email_arrives_and_arrives_twice_only_if_an_answer_was_lost() {
    let tries = Tries::default();
    let server = Server::start(unreliable(tries.clone()));
    let engine = Engine::builder()
        .provider("smtp", Smtp::default().timeout(AMPLE).acceptance_timeout(AMPLE))
        .lease(AMPLE * 3)
        .retry(RetryPolicy::new(8, Duration::from_millis(20)))
        .build(MemoryStore::default());
    let env = triggered(&engine, &server);

    let worker = engine.worker().threads(8).start().unwrap();
    wait_until(|| engine.delivery().stats().unwrap().total() == tidings::QueueDepth::default());
    assert_eq!(worker.stop(PATIENCE).running, 0);

    let mut kept = BTreeMap::<String, Vec<String>>::new();
    for mail in server.kept() {
        kept.entry(mail.to[0].clone()).or_default().push(mail.content);
    }
    assert_eq!(kept.len(), MAILS);
    let mut ids = BTreeSet::new();
    for (recipient, mails) in &kept {
        let number = number(recipient);
        let at_first = !number.is_multiple_of(3) && number % 7 != 1;
        let lost_answers = usize::from(at_first && number % 5 == 2);
        assert_eq!(mails.len(), 1 + lost_answers, "{recipient}");
        assert!(mails.iter().all(|mail| *mail == mails[0]), "{recipient}");
        let header = mails[0].lines().find(|line| line.starts_with("Message-ID: ")).unwrap();
        ids.insert(header.to_owned());
    }
    assert_eq!(ids.len(), MAILS);
    assert_eq!(recorded(&env), *tries.lock().unwrap());
}

// Returns the number of tries in the record, by recipient.
fn recorded(env: &Scope) -> BTreeMap<String, usize> {
    let mut tries = BTreeMap::new();
    for page in 0.. {
        let query = NotificationQuery::default().limit(50).page_number(page);
        let listed = env.notifications().list(&query).unwrap();
        for notification in &listed.data {
            let found = env.notifications().get(notification.id).unwrap();
            let details = found.jobs.iter().flat_map(|job| &job.execution_details);
            let is_try = |detail| matches!(detail, Detail::ProviderRetry | Detail::MessageSent);
            let count = details.filter(|entry| is_try(entry.detail)).count();
            let email = found.subscriber.as_ref().and_then(|one| one.email.clone()).unwrap();
            tries.insert(format!("<{}>", email.as_str()), count);
        }
        if !listed.has_more {
            break;
        }
    }
    tries
}
