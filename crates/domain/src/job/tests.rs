use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sample;

#[test]
fn eight_tries_take_half_an_hour() {
    let policy = RetryPolicy::default();
    let waits: Vec<_> = (1..).map_while(|attempts| policy.next(attempts, 0)).collect();
    assert_eq!(
        waits.iter().map(Duration::as_secs).collect::<Vec<_>>(),
        [14, 28, 56, 112, 224, 448, 896]
    );
    assert!(waits.iter().sum::<Duration>() < Duration::from_secs(30 * 60));
}

#[test]
fn jitter_takes_a_quarter_off_at_most() {
    let policy = RetryPolicy::new(2, Duration::from_secs(64));
    assert_eq!(policy.next(1, 0), Some(Duration::from_secs(64)));
    let least = policy.next(1, u16::MAX).unwrap();
    assert!(least > Duration::from_secs(48) && least < Duration::from_millis(48_001));
    assert_eq!(policy.next(2, 0), None);
}

#[test]
fn a_status_carries_what_is_known_in_it() {
    let queued = JobStatus::Queued { due_at: Timestamp::from_millis(0), attempts: 1 };
    assert_eq!(
        serde_json::to_string(&queued).unwrap(),
        r#"{"status":"queued","dueAt":"1970-01-01T00:00:00.000Z","attempts":1}"#
    );
    assert_eq!(serde_json::to_string(&JobStatus::Skipped).unwrap(), r#"{"status":"skipped"}"#);
}

fn job(kind: &str) -> Job {
    let template = match kind {
        "email" => json!({ "subject": "", "body": "" }),
        "push" => json!({ "title": "", "body": "" }),
        _ => json!({ "body": "" }),
    };
    let workflow = sample::workflow(json!([{
        "type": kind, "name": "n", "template": template, "replyCallback": { "active": true },
        "filters": [{ "type": "GROUP", "value": "AND" }],
    }]));
    Job::new(sample::id(9), &workflow.steps[0], sample::at(5))
}

/// Receipts name a job by the ids that providers gave its messages.
#[test]
fn the_last_ids_of_providers_are_kept() {
    let mut job = job("email");
    let integration = sample::id(3);
    for number in 0..1_000 {
        job.sent_as(integration, &format!("m-{number}"));
        job.sent_as(integration, &format!("m-{number}"));
    }
    assert_eq!(job.provider_messages.len(), MAX_PROVIDER_MESSAGES);
    assert!(job.provider_message(integration, "m-999").is_some());
    assert!(job.provider_message(integration, "m-900").is_some());
    assert!(job.provider_message(integration, "m-899").is_none());
}

/// A message that was sent late in a long log, and is then sent again in vain without end.
#[test]
fn a_long_log_says_that_the_message_was_sent() {
    let entry = |detail| ExecutionDetail::new(sample::id(4), detail, None, sample::at(0));
    let mut job = job("email");
    for number in 0..5_000 {
        let detail = if number == 700 { Detail::MessageSent } else { Detail::LeaseExpired };
        job.log(entry(detail));
        assert_eq!(job.was_sent(), number >= 700, "{number}");
        assert!(job.execution_details.len() <= MAX_LOG);
    }
}

#[test]
fn a_new_one_waits_for_its_turn() {
    for (kind, provider) in [
        ("in_app", ProviderId::Svc),
        ("email", ProviderId::SvcEmail),
        ("sms", ProviderId::SvcSms),
        ("chat", ProviderId::SvcSlack),
        ("push", ProviderId::Svc),
    ] {
        let job = job(kind);
        assert_eq!((job.kind.as_str(), job.provider_id), (kind, provider));
        assert_eq!((job.status, job.updated_at), (JobStatus::Pending, Some(sample::at(5))));
        assert_eq!((job.step.name.as_deref(), job.step.active), (Some("n"), true));
        assert_eq!(job.step.filters.len(), 1);
        let reply_callback = ReplyCallback { active: Some(true), url: None };
        assert_eq!(job.step.reply_callback, Some(reply_callback));
    }
}

/// One row per status: the time at which the job is due, and whether it has ended.
#[test]
fn queued_and_running_jobs_are_due() {
    let (due_at, lease_until) = (sample::at(3), sample::at(4));
    for (status, due, ended) in [
        (JobStatus::Pending, None, false),
        (JobStatus::Delayed { until: due_at }, Some(due_at), false),
        (JobStatus::Queued { due_at, attempts: 0 }, Some(due_at), false),
        (JobStatus::Running { lease_until, attempts: 1 }, Some(lease_until), false),
        (JobStatus::Completed, None, true),
        (JobStatus::Failed, None, true),
        (JobStatus::Canceled, None, true),
        (JobStatus::Skipped, None, true),
        (JobStatus::Merged, None, true),
    ] {
        assert_eq!((status.due_at(), status.has_ended()), (due, ended), "{status:?}");
        let mut job = job("sms");
        job.move_to(status, sample::at(7));
        assert_eq!((job.status, job.updated_at), (status, Some(sample::at(7))));
        let json = serde_json::to_value(&job).unwrap();
        assert_eq!(serde_json::from_value::<Job>(json).unwrap(), job);
    }
}

/// One row per detail: the severity, and whether the provider and a retry belong to it.
#[test]
fn an_entry_has_a_severity_and_a_provider() {
    use Detail::*;
    use ExecutionStatus::{Failed, Pending, Queued, Success, Warning};
    let rows = [
        (StepQueued, Queued, false, false),
        (MessageCreated, Success, false, false),
        (MessageSent, Success, true, false),
        (IntegrationSelected, Success, true, false),
        (VariantChosen, Success, false, false),
        (FilteredByStepConditions, Success, false, false),
        (FilteredByWorkflowPreference, Success, false, false),
        (FilteredBySubscriberGlobalPreference, Success, false, false),
        (FilteredBySubscriberWorkflowPreference, Success, false, false),
        (SubscriberDeleted, Warning, false, false),
        (WorkflowDeleted, Warning, false, false),
        (StepDeleted, Warning, false, false),
        (StepInactive, Warning, false, false),
        (ContentNotGenerated, Failed, false, false),
        (VariableMissing, Failed, false, false),
        (TranslationMissing, Warning, false, false),
        (TranslationInvalid, Warning, false, false),
        (LayoutMissing, Warning, false, false),
        (NoActiveIntegration, Failed, false, false),
        (MissingEmail, Warning, false, false),
        (MissingPhone, Warning, false, false),
        (MissingPushTokens, Warning, false, false),
        (MissingChatWebhook, Warning, false, false),
        (AddressSuppressed, Warning, false, false),
        (ProviderMissing, Failed, true, false),
        (ProviderRetry, Pending, true, true),
        (ProviderError, Failed, true, false),
        (IntegrationSwitched, Pending, true, false),
        (AnswerLost, Failed, true, false),
        (LeaseExpired, Warning, false, true),
        (PrecedingStepFailed, Warning, false, false),
        (PrecedingStepSkipped, Warning, false, false),
        (StepDelayed, Pending, false, false),
        (DelayFinished, Success, false, false),
        (DelayTimePassed, Warning, false, false),
        (DelayNotPossible, Failed, false, false),
        (DigestOpened, Pending, false, false),
        (DigestMerged, Success, false, false),
        (DigestPassed, Success, false, false),
        (DigestClosed, Success, false, false),
        (DigestNotPossible, Failed, false, false),
        (ThrottlePassed, Success, false, false),
        (ThrottleLimitExceeded, Success, false, false),
        (ThrottleNotPossible, Failed, false, false),
        (DeferredToSchedule, Pending, false, false),
        (OutsideSchedule, Success, false, false),
        (ScheduleNeverOpens, Warning, false, false),
        (ExtendedToSchedule, Pending, false, false),
        (WorkflowPaused, Pending, false, false),
        (IntegrationPaused, Pending, false, false),
        (MaxExtensionsReached, Warning, false, false),
        (HandlerCompleted, Success, false, false),
        (HandlerMissing, Failed, false, false),
        (HandlerRetry, Pending, false, true),
        (HandlerError, Failed, false, false),
        (RecordUnreadable, Failed, false, false),
        (SendsQueued, Queued, false, false),
        (SomeSendsFailed, Warning, false, false),
        (MessageDeferred, Pending, true, false),
        (MessageDelivered, Success, true, false),
        (MessageOpened, ExecutionStatus::ReadConfirmation, true, false),
        (MessageClicked, Success, true, false),
        (MessageBounced, Failed, true, false),
        (RecipientComplained, Failed, true, false),
        (RecipientUnsubscribed, Warning, true, false),
        (RecipientRemoved, Warning, false, false),
        (StepResent, Queued, false, false),
        (StepRedriven, Queued, false, false),
        (Canceled, Warning, false, false),
        (Expired, Warning, false, false),
    ];
    assert!(rows.iter().map(|row| row.0).eq(Detail::ALL.iter().copied()), "every detail has a row");
    for (detail, status, names_provider, is_attempt) in rows {
        let mut job = job("sms");
        let entry = |detail| ExecutionDetail::new(sample::id(1), detail, None, sample::at(6));
        job.log(entry(detail));
        job.log(entry(StepQueued));

        let provider_id = names_provider.then_some(ProviderId::SvcSms);
        let first = ExecutionDetail { status, provider_id, ..entry(detail) };
        let second = ExecutionDetail { is_retry: is_attempt, ..entry(StepQueued) };
        assert_eq!(job.execution_details, [first, second], "{detail}");
    }
}

#[test]
fn an_entry_comes_from_the_engine() {
    let raw = Some("why".to_owned());
    let entry = ExecutionDetail::new(sample::id(1), Detail::ProviderError, raw, sample::at(6));
    assert_eq!(
        serde_json::to_value(entry).unwrap(),
        json!({
            "_id": "00000000-0000-0000-0000-000000000001",
            "createdAt": "1970-01-01T00:00:00.006Z",
            "status": "Failed",
            "detail": "provider_error",
            "isRetry": false,
            "isTest": false,
            "raw": "why",
            "source": "Internal",
        })
    );
}

proptest! {
    #[test]
    fn any_policy_comes_to_an_end(
        tries in any::<u32>(),
        first_interval in any::<Duration>(),
        longest_interval in any::<Duration>(),
        attempts in any::<u32>(),
        jitter in any::<u16>(),
    ) {
        let policy = RetryPolicy { attempts: tries, first_interval, longest_interval };
        let wait = policy.next(attempts, jitter);
        prop_assert_eq!(wait.is_some(), attempts < tries);
        if let (Some(least), Some(most)) = (wait, policy.next(attempts, 0)) {
            prop_assert!(least <= most && least.saturating_add(most / 4) >= most);
            prop_assert!(most >= first_interval);
            prop_assert!(most <= longest_interval.max(first_interval));
        }
    }
}

/// A message may be sent again without end, and each attempt writes the log anew.
#[test]
fn a_long_log_has_its_first_entries_and_its_last_ones() {
    let mut job = job("sms");
    for number in 0..1_200 {
        let text = Some(number.to_string());
        job.log(ExecutionDetail::new(sample::id(1), Detail::ProviderRetry, text, sample::at(6)));
    }
    let kept = job.execution_details.iter().map(|entry| entry.raw.clone().unwrap());
    let expected = (0..500).chain(700..1_200).map(|number| number.to_string());
    assert!(kept.eq(expected));
}

// A job whose message, if there is one, is that of the first send.
fn with_sends(message: Option<u128>, sends: &[(u128, Option<u128>)]) -> Job {
    let mut job = job("push");
    job.message_id = message.map(sample::id);
    let send = |(integration, message): &(u128, Option<u128>)| JobSend {
        message_id: message.map(sample::id),
        ..JobSend::new(job.id, SendTarget::new(sample::id(*integration), Destination::Webhook))
    };
    job.sends = sends.iter().map(send).collect();
    job
}

/// One row per message of a job and its sends: the messages of its next sends, of the first integration, the
/// second one, and the first one again.
#[test]
fn the_next_sends_of_an_integration_have_its_message() {
    let device = |token: &str| Destination::Device { token: token.into() };
    let targets = [(1, "a"), (2, "b"), (1, "c")];
    let targets = targets.map(|(number, token)| SendTarget::new(sample::id(number), device(token)));
    for (message, sends, after) in [
        (None, &[][..], [None, None, None]),
        (Some(7), &[], [Some(7), None, Some(7)]),
        (Some(7), &[(1, Some(7)), (2, Some(8))], [Some(7), Some(8), Some(7)]),
        (Some(7), &[(1, None), (1, Some(7))], [Some(7), None, Some(7)]),
        (Some(7), &[(2, Some(7))], [None, Some(7), None]),
        (Some(7), &[(3, Some(7))], [None, None, None]),
    ] {
        let mut job = with_sends(message, sends);
        job.split(&targets);
        let messages: Vec<_> = job.sends.iter().map(|send| send.message_id).collect();
        assert_eq!(messages, after.map(|id| id.map(sample::id)), "{message:?} {sends:?}");
        assert!(job.sends.iter().map(|send| &send.target).eq(&targets));
    }
}

#[test]
fn the_message_of_the_first_integration_is_that_of_the_job() {
    let mut job = with_sends(None, &[(1, None), (2, None), (1, None)]);
    for (integration, message, of_job, of_sends) in [
        (2, 8, None, [None, Some(8), None]),
        (1, 7, Some(7), [Some(7), Some(8), Some(7)]),
        (2, 9, Some(7), [Some(7), Some(9), Some(7)]),
    ] {
        job.set_message(sample::id(integration), sample::id(message));
        assert_eq!(job.message_id, of_job.map(sample::id));
        let messages: Vec<_> = job.sends.iter().map(|send| send.message_id).collect();
        assert_eq!(messages, of_sends.map(|id| id.map(sample::id)));
        assert_eq!(job.stored_message(sample::id(integration)), Some(sample::id(message)));
    }
}
