//! What of a request is known, and what is a mistake: the golden files are read strictly, and no
//! name in them can be misspelled.

use domain::api_key::ApiKeyCreate;
use domain::connection::{
    ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate,
};
use domain::context::{ContextCreate, ContextQuery, ContextUpdate};
use domain::dead_letter::DeadLetterQuery;
use domain::endpoint::{ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate};
use domain::environment::{EnvironmentCreate, EnvironmentUpdate};
use domain::error::{Invalid, Reason};
use domain::integration::{IntegrationCreate, IntegrationDelete, IntegrationUpdate};
use domain::json::{Shaped, read, read_lenient};
use domain::layout::{LayoutQuery, LayoutUpsert};
use domain::message::{CompleteAction, MarkMessages, MessageQuery};
use domain::notification::NotificationQuery;
use domain::preference::{BulkPreferences, GlobalPreferenceUpdate, PreferencesQuery};
use domain::subscriber::{SubscriberCreate, SubscriberQuery, SubscriberUpdate};
use domain::subscription::{Subscribe, SubscriptionQuery, SubscriptionUpdate, Unsubscribe};
use domain::topic::{TopicCreate, TopicQuery, TopicUpdate};
use domain::translation::{TranslationImport, TranslationQuery, TranslationUpsert};
use domain::trigger::Trigger;
use domain::workflow::{WorkflowCreate, WorkflowQuery, WorkflowUpdate};
use serde::Serialize;
use serde_json::Value;

use crate::document::Structure;
use crate::wire::{Golden, goldens};

/// How a request is read, from the file of that name.
struct Request {
    file: &'static str,
    strict: fn(&Value) -> Result<Value, Invalid>,
    lenient: fn(&Value) -> Result<Value, Invalid>,
}

fn request<T: Shaped + Serialize>(file: &'static str) -> Request {
    Request {
        file,
        strict: |json| Ok(serde_json::to_value(read::<T>(json.to_string().as_bytes())?).unwrap()),
        lenient: |json| {
            Ok(serde_json::to_value(read_lenient::<T>(json.to_string().as_bytes())?).unwrap())
        },
    }
}

fn requests() -> Vec<Request> {
    vec![
        request::<ApiKeyCreate>("api_key_create"),
        request::<BulkPreferences>("bulk_preferences"),
        request::<ChannelConnectionCreate>("channel_connection_create"),
        request::<ChannelConnectionQuery>("channel_connection_query"),
        request::<ChannelConnectionUpdate>("channel_connection_update"),
        request::<ChannelEndpointCreate>("channel_endpoint_create_ms_teams_channel"),
        request::<ChannelEndpointCreate>("channel_endpoint_create_ms_teams_user"),
        request::<ChannelEndpointCreate>("channel_endpoint_create_phone"),
        request::<ChannelEndpointCreate>("channel_endpoint_create_slack_channel"),
        request::<ChannelEndpointCreate>("channel_endpoint_create_slack_user"),
        request::<ChannelEndpointCreate>("channel_endpoint_create_webhook"),
        request::<ChannelEndpointQuery>("channel_endpoint_query"),
        request::<ChannelEndpointUpdate>("channel_endpoint_update"),
        request::<ContextCreate>("context_create"),
        request::<ContextQuery>("context_query"),
        request::<ContextUpdate>("context_update"),
        request::<DeadLetterQuery>("dead_letter_query"),
        request::<EnvironmentCreate>("environment_create"),
        request::<EnvironmentUpdate>("environment_update"),
        request::<GlobalPreferenceUpdate>("global_preference_update"),
        request::<IntegrationCreate>("integration_create"),
        request::<IntegrationDelete>("integration_delete"),
        request::<IntegrationUpdate>("integration_update"),
        request::<LayoutQuery>("layout_query"),
        request::<LayoutUpsert>("layout_upsert"),
        request::<CompleteAction>("complete_action"),
        request::<MarkMessages>("mark_messages"),
        request::<MessageQuery>("message_query"),
        request::<NotificationQuery>("notification_query"),
        request::<PreferencesQuery>("preferences_query"),
        request::<Subscribe>("subscribe"),
        request::<SubscriberCreate>("subscriber_create"),
        request::<SubscriberQuery>("subscriber_query"),
        request::<SubscriberUpdate>("subscriber_update"),
        request::<SubscriptionQuery>("subscription_query"),
        request::<SubscriptionUpdate>("subscription_update"),
        request::<TopicCreate>("topic_create"),
        request::<TopicQuery>("topic_query"),
        request::<TopicUpdate>("topic_update"),
        request::<TranslationImport>("translation_import"),
        request::<TranslationQuery>("translation_query"),
        request::<TranslationUpsert>("translation_upsert"),
        request::<Trigger>("trigger"),
        request::<Trigger>("trigger_topic"),
        request::<Unsubscribe>("unsubscribe"),
        request::<WorkflowCreate>("workflow_create"),
        request::<WorkflowQuery>("workflow_query"),
        request::<WorkflowUpdate>("workflow_update"),
    ]
}

/// Every request with its golden files.
fn each(check: impl Fn(&Request, &Golden)) {
    let goldens = goldens();
    for request in requests() {
        let golden = goldens.iter().find(|golden| golden.file == request.file);
        check(&request, golden.unwrap_or_else(|| panic!("there is no {}", request.file)));
    }
}

#[test]
fn every_request_is_read_strictly() {
    let is_request = |file: &str| {
        let parts = ["_create", "_update", "_upsert", "_query", "_import", "_delete"];
        parts.iter().any(|part| file.contains(part))
    };
    let known: Vec<_> = requests().iter().map(|request| request.file).collect();
    for golden in goldens().iter().filter(|golden| is_request(golden.file)) {
        assert!(known.contains(&golden.file), "{} is not read strictly", golden.file);
    }
}

#[test]
fn what_is_known_is_read() {
    each(|request, golden| {
        for json in [golden.full(), golden.minimal()] {
            let expected = golden.rewritten(json.clone());
            assert_eq!((request.strict)(&json), Ok(expected.clone()), "{}", golden.file);
            assert_eq!((request.lenient)(&json), Ok(expected), "{}", golden.file);
        }
    });
}

/// Each name of each object in a full file, one at a time, with its last letter doubled.
#[test]
fn no_name_can_be_misspelled() {
    // Which fields the place of an endpoint has is for the type of the endpoint to say.
    each(|request, golden| {
        let is_place = |of: &Structure| golden.file == "channel_endpoint_update" && of.closed;
        let mut names = Vec::new();
        golden.changed(golden.full(), |of, object| {
            names.extend(object.keys().filter(|_| !is_place(of)).cloned());
        });
        for (place, name) in names.iter().enumerate() {
            let misspelled = format!("{name}{}", name.chars().last().unwrap());
            let mut next = 0;
            let json = golden.changed(golden.full(), |of, object| {
                let names = object.keys().filter(|_| !is_place(of)).cloned();
                for known in names.collect::<Vec<_>>() {
                    if next == place {
                        let value = object.remove(&known).unwrap();
                        object.insert(misspelled.clone(), value);
                    }
                    next += 1;
                }
            });
            let at = format!("{}: {misspelled}", golden.file);
            let refused = (request.strict)(&json).expect_err(&at);
            let end = refused.field.rsplit('.').next();
            assert_eq!(end, Some(misspelled.as_str()), "{at}");
            let suggestion = Some(name.clone());
            assert_eq!(refused.reason, Reason::Unknown { suggestion }, "{at}");
            let by_serde = (golden.rewrite)(json.clone()).ok();
            assert_eq!((request.lenient)(&json).ok(), by_serde, "{at}");
        }
        assert!(!names.is_empty(), "{}", golden.file);
    });
}
