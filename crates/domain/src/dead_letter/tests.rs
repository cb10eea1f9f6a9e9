use serde_json::json;

use super::*;
use crate::job::{Destination, JobSend, JobStatus};
use crate::notification::Notification;
use crate::sample::{self, at, id};

fn mark(number: u128, reason: DeadLetterReason) -> DeadLetterMark {
    DeadLetterMark { integration_id: Some(id(7)), ..DeadLetterMark::new(id(number), reason, at(5)) }
}

// A notification whose e-mail has failed, and one of the two sends of its push message.
fn notification() -> Notification {
    let workflow = sample::workflow(json!([
        { "type": "in_app", "template": { "body": "" } },
        { "type": "email", "template": { "subject": "", "body": "" } },
        { "type": "push", "template": { "title": "", "body": "" } },
    ]));
    let mut made =
        sample::notification(&workflow, &sample::subscriber(json!({})), json!({ "a": 1 }));
    made.jobs[1].status = JobStatus::Failed;
    made.jobs[1].dead_letter = Some(mark(1, DeadLetterReason::Refused));
    let send = |token: &str| {
        JobSend::new(id(9), SendTarget::new(id(7), Destination::Device { token: token.into() }))
    };
    let failed = JobSend { dead_letter: Some(mark(2, DeadLetterReason::NoProvider)), ..send("b") };
    made.jobs[2].sends = vec![send("a"), failed];
    made
}

#[test]
fn the_marks_of_jobs_and_sends_are_dead_letters() {
    let mut notification = notification();
    let facts: Vec<_> = notification.letter_facts().map(|one| (one.id, one.channel)).collect();
    assert_eq!(facts, [(id(1), Channel::Email), (id(2), Channel::Push)]);
    let mail = notification.dead_letter(id(1)).unwrap();
    assert_eq!((mail.idempotency_key, mail.target), (notification.jobs[1].id.into(), None));
    let push = notification.dead_letter(id(2)).unwrap();
    assert_eq!(push.idempotency_key, notification.jobs[2].sends[1].id);
    assert_eq!(push.target, Some(notification.jobs[2].sends[1].target.clone()));
    assert_eq!(notification.dead_letter(id(3)), None);

    let (place, _) = notification.mark(id(2)).unwrap();
    assert!(notification.take_mark(place).is_some());
    assert_eq!(notification.letter_facts().count(), 1);
    notification.jobs[1].unmark();
    assert_eq!(notification.letter_facts().count(), 0);
}

/// One row per condition: whether it selects the e-mail of the sample, which has failed at 5.
#[test]
fn a_query_selects_by_every_condition() {
    let facts = notification().letter_facts().next().unwrap();
    for (condition, is_selected) in [
        (json!({}), true),
        (json!({ "channels": ["sms", "email"] }), true),
        (json!({ "channels": ["push"] }), false),
        (json!({ "reasons": ["refused"] }), true),
        (json!({ "reasons": ["answer_lost", "no_provider"] }), false),
        (json!({ "after": "1970-01-01T00:00:00.005Z" }), true),
        (json!({ "after": "1970-01-01T00:00:00.006Z" }), false),
        (json!({ "before": "1970-01-01T00:00:00.005Z" }), true),
        (json!({ "before": "1970-01-01T00:00:00.004Z" }), false),
        (json!({ "channels": "email", "reasons": "no_content" }), false),
    ] {
        let query: DeadLetterQuery = serde_json::from_value(condition.clone()).unwrap();
        assert_eq!(query.matches(&facts), is_selected, "{condition}");
    }
}

#[test]
fn a_query_is_checked() {
    let query = DeadLetterQuery::default;
    assert_eq!(query().check(), Ok(10));
    assert_eq!(query().limit(101).check().unwrap_err().field, "limit");
    assert_eq!(query().earliest(at(2)).latest(at(1)).check().unwrap_err().field, "after");
    let many = vec![String::from("x"); DeadLetterQuery::MAX_VALUES + 1];
    assert_eq!(query().workflows(many.clone()).check().unwrap_err().field, "templates");
    assert_eq!(query().integrations(many).check().unwrap_err().field, "integrations");
}

/// One row per event that ends a send without an answer.
#[test]
fn an_end_without_an_answer_has_a_reason() {
    use DeadLetterReason::{AnswerLost, NoContent, NoIntegration, NoProvider};
    for (detail, reason) in [
        (Detail::NoActiveIntegration, Some(NoIntegration)),
        (Detail::ProviderMissing, Some(NoProvider)),
        (Detail::AnswerLost, Some(AnswerLost)),
        (Detail::LeaseExpired, Some(AnswerLost)),
        (Detail::ContentNotGenerated, Some(NoContent)),
        (Detail::VariableMissing, Some(NoContent)),
        (Detail::MissingEmail, None),
        (Detail::RecordUnreadable, None),
        (Detail::Canceled, None),
    ] {
        assert_eq!(DeadLetterReason::of(detail), reason, "{detail}");
    }
    let numbers = DeadLetterReason::ALL.iter().map(|reason| usize::from(reason.number()));
    assert!(numbers.eq(0..DeadLetterReason::ALL.len()));
}
