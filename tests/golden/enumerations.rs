//! Every closed list of words, copied from the specification.

use std::fmt::{Debug, Display};

use domain::content::{ActionStatus, ButtonType, CtaType, EmailBlockType, TextAlign};
use domain::dead_letter::DeadLetterReason;
use domain::endpoint::EndpointType;
use domain::environment::EnvironmentType;
use domain::filter::{FilterOperator, FilterSource, FilterType, Joint};
use domain::job::{DigestType, ExecutionSource, ExecutionStatus};
use domain::message::{MarkAs, MessageStatus};
use domain::notification::NotificationOutcome;
use domain::page::{Direction, OrderBy};
use domain::preference::{Criticality, Layer, OverrideSource, PreferenceLevel};
use domain::step::{Delay, Digest, MonthlyType, NthDay, OnPast, OrdinalValue, ThrottleWindow};
use domain::subscription::SubscriptionErrorCode;
use domain::translation::ResourceType;
use domain::trigger::{TopicRecipientType, TriggerStatus};
use domain::vocabulary::{
    Channel, ChannelProviderId, ProviderId, Severity, StepType, TimeUnit, Weekday,
};
use domain::workflow::{TriggerType, WorkflowOrigin};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Says that `all` are the `words`, in their order, and that nothing else is read.
#[track_caller]
fn check<T>(all: &[T], words: &str)
where
    T: Debug + Display + PartialEq + Serialize + DeserializeOwned,
{
    let words: Vec<_> = words.split_whitespace().collect();
    assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), words);
    for (one, word) in all.iter().zip(words) {
        assert_eq!(serde_json::to_value(one).unwrap(), json!(word));
        assert_eq!(serde_json::from_value::<T>(json!(word)).unwrap(), *one);
        let (padded, shouted) = (format!("{word} "), word.to_uppercase());
        for other in [padded, shouted].iter().filter(|other| *other != word) {
            assert!(serde_json::from_value::<T>(json!(other)).is_err(), "{other}");
        }
    }
    for other in [json!(""), json!("unheard-of"), json!(0), json!(null)] {
        assert!(serde_json::from_value::<T>(other).is_err());
    }
}

#[test]
fn shared_words_are_closed() {
    check(Channel::ALL, "in_app email sms chat push");
    check(StepType::ALL, "in_app email sms chat push digest trigger delay throttle custom");
    check(Severity::ALL, "high medium low none");
    check(NotificationOutcome::ALL, "waiting delivered failed skipped canceled merged");
    check(
        DeadLetterReason::ALL,
        "retries_exhausted refused recipient_gone misconfigured answer_lost no_integration \
         no_provider no_content",
    );
    check(TimeUnit::ALL, "seconds minutes hours days weeks months");
    check(Weekday::ALL, "monday tuesday wednesday thursday friday saturday sunday");
    check(Direction::ALL, "ASC DESC");
}

#[test]
fn words_of_providers_are_closed() {
    check(
        ProviderId::ALL,
        "emailjs mailgun mailjet mandrill nodemailer postmark sendgrid sendinblue ses netcore \
         infobip-email resend plunk mailersend mailtrap clickatell outlook365 svc-email sparkpost \
         email-webhook braze nexmo plivo sms77 sms-central sns telnyx twilio gupshup firetext \
         infobip-sms burst-sms bulk-sms isend-sms forty-six-elks kannel maqsam termii \
         africas-talking svc-sms sendchamp generic-sms clicksend bandwidth messagebird \
         simpletexting azure-sms ring-central brevo-sms eazy-sms mobishastra afro-message unifonic \
         smsmode imedia sinch isendpro-sms fcm apns expo one-signal pushpad push-webhook \
         pusher-beams appio svc slack discord msteams mattermost ryver zulip grafana-on-call \
         getstream rocket-chat whatsapp-business chat-webhook svc-slack",
    );
    check(
        ChannelProviderId::ALL,
        "slack discord msteams mattermost ryver zulip grafana-on-call getstream rocket-chat \
         whatsapp-business chat-webhook svc-slack fcm apns expo one-signal pushpad push-webhook \
         pusher-beams appio",
    );
}

#[test]
fn words_of_channels_are_closed() {
    check(
        EndpointType::ALL,
        "slack_channel slack_user webhook phone ms_teams_channel ms_teams_user",
    );
}

#[test]
fn words_of_translations_are_closed() {
    check(ResourceType::ALL, "workflow layout");
}

/// Those that the specification does not list.
#[test]
fn words_of_our_own_are_closed() {
    check(OrderBy::ALL, "_id createdAt updatedAt key");
    check(Layer::ALL, "default definition dashboard subscriber_global subscriber_workflow");
    check(TopicRecipientType::ALL, "Topic");
    check(
        TriggerStatus::ALL,
        "processed trigger_not_active no_workflow_active_steps_defined no_workflow_steps_defined",
    );
    check(
        SubscriptionErrorCode::ALL,
        "SUBSCRIBER_NOT_FOUND SUBSCRIPTION_NOT_FOUND SUBSCRIPTION_LIMIT_EXCEEDED \
         IDENTIFIER_TAKEN",
    );
}

#[test]
fn words_of_environments_and_workflows_are_closed() {
    check(EnvironmentType::ALL, "dev prod");
    check(WorkflowOrigin::ALL, "svc-cloud svc-cloud-v1 external");
    check(TriggerType::ALL, "event");
}

#[test]
fn words_of_filters_are_closed() {
    check(FilterType::ALL, "BOOLEAN TEXT DATE NUMBER STATEMENT LIST MULTI_LIST GROUP");
    check(Joint::ALL, "AND OR");
    check(
        FilterOperator::ALL,
        "LARGER SMALLER LARGER_EQUAL SMALLER_EQUAL EQUAL NOT_EQUAL ALL_IN ANY_IN NOT_IN BETWEEN \
         NOT_BETWEEN LIKE NOT_LIKE IN",
    );
    check(FilterSource::ALL, "subscriber payload steps actor context");
}

#[test]
fn words_of_preferences_are_closed() {
    check(PreferenceLevel::ALL, "global template");
    check(OverrideSource::ALL, "subscriber template workflowOverride");
    check(Criticality::ALL, "critical nonCritical all");
}

#[test]
fn words_of_messages_are_closed() {
    check(EmailBlockType::ALL, "button text");
    check(TextAlign::ALL, "center left right");
    check(CtaType::ALL, "redirect");
    check(ActionStatus::ALL, "pending done");
    check(ButtonType::ALL, "primary secondary");
    check(MarkAs::ALL, "read seen unread unseen");
}

#[test]
fn words_of_jobs_are_closed() {
    check(DigestType::ALL, "regular backoff timed");
    check(ExecutionStatus::ALL, "Success Warning Failed Pending Queued ReadConfirmation");
    check(ExecutionSource::ALL, "Credentials Internal Payload Webhook");
}

#[test]
fn words_of_times_are_closed() {
    check(NthDay::ALL, "1 2 3 4 5 last");
    check(
        OrdinalValue::ALL,
        "day weekday weekend sunday monday tuesday wednesday thursday friday saturday",
    );
    check(MonthlyType::ALL, "each on");
    check(OnPast::ALL, "immediate skip fail");
    check(ThrottleWindow::ALL, "fixed sliding");
}

/// Words that decide what else is there.
#[test]
fn words_of_variants_are_closed() {
    fn reads<T: DeserializeOwned>(words: &str, json: impl Fn(&str) -> Value) {
        for word in words.split_whitespace() {
            assert!(serde_json::from_value::<T>(json(word)).is_ok(), "{word}");
        }
        assert!(serde_json::from_value::<T>(json("unheard-of")).is_err());
    }
    reads::<MessageStatus>(
        "sent error warning",
        |word| json!({ "status": word, "errorId": "", "errorText": "" }),
    );
    reads::<Digest>("regular backoff timed", |word| json!({ "type": word }));
    reads::<Delay>(
        "regular scheduled dynamic timed",
        |word| json!({ "type": word, "delayPath": "", "dynamicKey": "" }),
    );
}
