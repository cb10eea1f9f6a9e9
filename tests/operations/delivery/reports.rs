//! What a run reports of messages that were not sent.

use std::time::Duration;

use serde_json::json;
use tidings::job::{Detail, JobStatus, RetryPolicy};
use tidings::notification::Notification;
use tidings::vocabulary::StepType;
use tidings::{
    Builder, Call, DeliveryReport, FailureReason, IntegrationTestResult, RecordingProvider,
    SendError,
};

use super::retries::due_at;
use super::{ada, crowd, queued_email};
use crate::world::{World, email, in_app, on_both, on_both_with, only, sms, wire, with};

fn report(world: &World) -> DeliveryReport {
    world.engine.delivery().run_due(usize::MAX).unwrap()
}

#[test]
fn a_failure_is_named_with_its_job_and_says_when_it_is_tried_again() {
    on_both(|world| {
        let id = queued_email(&world);
        let busy = SendError::retry_after("busy", Duration::from_secs(90));
        let gone = SendError::recipient_gone("bounced");
        world.recorder.refuse_next(busy.clone());
        world.recorder.refuse_next(gone.clone());

        let retried = report(&world);
        let failure = only(&retried.failures);
        assert_eq!((retried.retried, retried.failed), (1, 0));
        assert_eq!(failure.environment_id, world.env.environment_id());
        assert_eq!(failure.notification_id, id);
        assert_eq!(failure.job_id, only(world.notification(id).jobs).id);
        assert_eq!(
            (failure.kind, failure.provider_id.as_deref()),
            (StepType::Email, Some("sendgrid"))
        );
        assert_eq!(failure.reason, FailureReason::Refused(busy));
        assert_eq!(failure.reason.to_string(), "try again later: busy");
        assert_eq!(failure.retry_at, Some(due_at(&world, id, 1)));

        world.clock.set(failure.retry_at.unwrap());
        let failed = report(&world);
        assert_eq!((failed.retried, failed.failed), (0, 1));
        assert_eq!(only(&failed.failures).reason, FailureReason::Refused(gone));
        assert_eq!(only(&failed.failures).retry_at, None);

        assert_eq!(report(&world).failures, []);
    });
}

/// One row per error of a host application with a text that is long.
#[test]
fn the_reason_of_a_failure_is_short() {
    let long = "ö".repeat(100_000);
    for error in [
        SendError::retryable(&long),
        SendError::retry_after(&long, Duration::from_secs(90)),
        SendError::permanent(&long),
        SendError::recipient_gone(&long),
        SendError::misconfigured(&long),
        SendError::unknown(&long),
    ] {
        let start: String = error.to_string().chars().take(900).collect();
        let handled = |builder: Builder| {
            let refusal = error.clone();
            builder.handler("book", move |_: &Call| Err(refusal.clone()))
        };
        on_both_with(handled, |world| {
            queued_email(&world);
            let book = json!({ "handler": "book" });
            let book = json!({ "type": "custom", "name": "book", "metadata": book });
            world.workflow_of("book", &[book]);
            world.notify("book", "ada");
            world.recorder.refuse_next(error.clone());
            let failures = report(&world).failures;
            assert_eq!(failures.len(), 2);
            for failure in failures {
                let reason = failure.reason.to_string();
                assert!(reason.starts_with(&start) && reason.chars().count() < 1_100);
            }
        });
    }
}

/// A page of operators shows reports as JSON.
#[test]
fn reports_are_written_as_json() {
    on_both(|world| {
        let id = queued_email(&world);
        world.recorder.refuse_next(SendError::retry_after("busy", Duration::from_secs(90)));
        let report = report(&world);
        let job = only(world.notification(id).jobs).id;
        let failure = json!({
            "environmentId": world.env.environment_id(), "notificationId": id, "jobId": job,
            "kind": "email", "providerId": "sendgrid", "reason": "try again later: busy",
            "retryAt": report.failures[0].retry_at,
        });
        let shown = wire(&report);
        assert_eq!((&shown["retried"], &shown["failures"]), (&json!(1), &json!([failure])));

        let stats = wire(world.engine.delivery().stats().unwrap());
        assert_eq!((&stats["isComplete"], &stats["upkeepError"]), (&json!(true), &json!(null)));
        assert_eq!(stats["lanes"][0]["class"], json!("normal"));
        assert_eq!(stats["lanes"][0]["depth"]["waiting"], json!(1));
        let check = wire(world.engine.check().unwrap());
        assert_eq!((&check["findings"], &check["isFinished"]), (&json!([]), &json!(true)));
        assert_eq!(wire(world.engine.repair().unwrap())["putAside"], json!(0));
        let refused = IntegrationTestResult::Failed(SendError::misconfigured("no key"));
        let expected = json!({ "result": "failed", "error": "not set up: no key" });
        assert_eq!(wire(&refused), expected);
        assert_eq!(wire(&IntegrationTestResult::Passed), json!({ "result": "passed" }));
    });
}

/// One row per message that no provider was asked to send.
#[test]
fn what_is_not_handed_to_a_provider_says_why() {
    on_both_with(
        |_| {
            let builder =
                testkit::sealed::builder().retry(RetryPolicy::new(1, Duration::from_secs(1)));
            builder.provider("twilio", RecordingProvider::default())
        },
        |world| {
            ada(&world);
            world.active_integration("email", "sendgrid");
            world.workflow_of("mail", &[email(), in_app()]);
            let unregistered = world.notify("mail", "ada");
            let without_provider = report(&world);
            let failure = only(&without_provider.failures);
            assert_eq!(failure.notification_id, unregistered);
            assert_eq!(failure.provider_id.as_deref(), Some("sendgrid"));
            assert_eq!(failure.reason, FailureReason::NoProvider);

            world.workflow_of("text", &[sms()]);
            world.notify("text", "ada");
            let without_integration = report(&world);
            let failure = only(&without_integration.failures);
            let detail = Detail::NoActiveIntegration;
            assert_eq!(failure.reason, FailureReason::Unsendable { detail, text: None });
            assert_eq!((failure.kind, &failure.provider_id), (StepType::Sms, &None));
        },
    );
}

#[test]
fn an_attempt_that_was_never_answered_is_named() {
    on_both(|world| {
        let retry = RetryPolicy::new(1, Duration::from_secs(1));
        let id = queued_email(&world);
        let mortal = world.mortal_engine(|builder| builder.retry(retry), |_| {});
        mortal.delivery().run_due(1).unwrap_err();
        world.pass(Duration::from_secs(600));

        let report =
            world.engine_with(|builder| builder.retry(retry)).delivery().run_due(1).unwrap();

        assert_eq!(only(&report.failures).notification_id, id);
        assert_eq!(only(&report.failures).reason, FailureReason::Unanswered);
    });
}

#[test]
fn a_report_names_the_first_hundred_failures() {
    on_both(|world| {
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        for recipients in crowd(120).chunks(100) {
            world.trigger(json!({ "name": "mail", "to": recipients }));
        }
        for n in 0..120 {
            world.recorder.refuse_next(SendError::permanent(n.to_string()));
        }

        let report = report(&world);

        assert_eq!((report.failed, report.failures.len()), (120, DeliveryReport::MAX_FAILURES));
        let last = FailureReason::Refused(SendError::permanent("99"));
        assert_eq!(report.failures.last().unwrap().reason, last);
    });
}

/// Steps behind a delay, which are decided in the transaction of a turn: throttles that fail and that skip,
/// and digests that an event opens, joins or passes.
#[test]
fn a_report_counts_what_the_log_shows() {
    on_both(|world| {
        ada(&world);
        let minute = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
        let step = |kind: &str, metadata| json!({ "type": kind, "metadata": metadata });
        let backoff = json!({
            "type": "backoff", "amount": 60, "unit": "minutes",
            "backoffAmount": 5, "backoffUnit": "minutes",
        });
        let never = with(in_app(), json!({ "runIf": { "var": "payload.loud" } }));
        let delay = step("delay", minute);
        for (name, second, last) in [
            ("endless", step("throttle", json!({ "dynamicKey": "quiet" })), in_app()),
            ("news", step("throttle", json!({ "amount": 1, "unit": "hours" })), in_app()),
            ("digest", step("digest", backoff), never.clone()),
            ("loud", never, in_app()),
        ] {
            world.workflow_of(name, &[delay.clone(), second, last]);
            for _ in 0..3 {
                world.notify(name, "ada");
            }
        }

        let mut sum = (0, 0);
        let mut failures = Vec::new();
        for _ in 0..3 {
            world.pass(Duration::from_secs(3_600));
            let report = report(&world);
            sum = (sum.0 + report.skipped, sum.1 + report.failed);
            failures.extend(report.failures);
        }

        let jobs: Vec<_> = world
            .records::<Notification>()
            .into_iter()
            .flat_map(|notification| notification.jobs)
            .collect();
        let count = |status| jobs.iter().filter(|job| job.status == status).count();
        assert_eq!(sum, (count(JobStatus::Skipped), count(JobStatus::Failed)));
        assert_eq!((count(JobStatus::Failed), failures.len()), (3, 3));
        for failure in failures {
            assert_eq!((failure.kind, failure.retry_at), (StepType::Throttle, None));
            let FailureReason::Unsendable { detail, text } = failure.reason else {
                panic!("{failure}");
            };
            assert_eq!(detail, Detail::ThrottleNotPossible);
            assert!(text.is_some());
        }
    });
}
