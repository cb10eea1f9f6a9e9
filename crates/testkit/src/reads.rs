//! Any text as a request or a query of any kind.

use std::any::type_name;
use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;
use tidings::api_key::ApiKeyCreate;
use tidings::connection::{
    ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate,
};
use tidings::context::{ContextCreate, ContextQuery, ContextUpdate};
use tidings::dead_letter::DeadLetterQuery;
use tidings::endpoint::{ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate};
use tidings::environment::{EnvironmentCreate, EnvironmentUpdate};
use tidings::error::Invalid;
use tidings::integration::{IntegrationCreate, IntegrationDelete, IntegrationUpdate};
use tidings::json::{self, Shaped};
use tidings::layout::{LayoutQuery, LayoutUpsert};
use tidings::message::{CompleteAction, MarkMessages, MessageQuery};
use tidings::notification::NotificationQuery;
use tidings::preference::{GlobalPreferenceUpdate, PreferencesQuery, WorkflowPreferenceUpdates};
use tidings::preview::Preview;
use tidings::query;
use tidings::receipt::Receipt;
use tidings::subscriber::{ChannelSettings, SubscriberCreate, SubscriberQuery, SubscriberUpdate};
use tidings::subscription::{Subscribe, SubscriptionQuery, SubscriptionUpdate, Unsubscribe};
use tidings::suppression::{SuppressionCreate, SuppressionQuery};
use tidings::topic::{TopicCreate, TopicQuery, TopicUpdate};
use tidings::translation::{Resource, TranslationImport, TranslationQuery, TranslationUpsert};
use tidings::trigger::{Broadcast, Trigger};
use tidings::unsubscribe::UnsubscribeRequest;
use tidings::workflow::{WorkflowCreate, WorkflowQuery, WorkflowSync, WorkflowUpdate};

use crate::effort::Effort;

/// Type of requests.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Returns the name of the type, with its path.
    pub name: fn() -> &'static str,
    /// Reads a request from JSON and returns it as JSON. Unknown members are refused.
    pub strict: fn(&[u8]) -> Result<Value, Invalid>,
    /// Reads a request as `strict` does, but ignores unknown members.
    pub lenient: fn(&[u8]) -> Result<Value, Invalid>,
    /// Reads a request from a query and returns it as JSON.
    pub from_query: fn(&str) -> Result<Value, Invalid>,
    /// Reads bytes as a request from JSON and as a query.
    check: fn(&[u8]),
}

/// Every type that an operation of the public API takes by reference and that can be read, as
/// `tests/golden/strict.rs` compares.
pub const KINDS: &[Kind] = &[
    kind::<ApiKeyCreate>(),
    kind::<Broadcast>(),
    kind::<WorkflowPreferenceUpdates>(),
    kind::<ChannelConnectionCreate>(),
    kind::<ChannelConnectionQuery>(),
    kind::<ChannelConnectionUpdate>(),
    kind::<ChannelEndpointCreate>(),
    kind::<ChannelEndpointQuery>(),
    kind::<ChannelEndpointUpdate>(),
    kind::<ChannelSettings>(),
    kind::<CompleteAction>(),
    kind::<ContextCreate>(),
    kind::<ContextQuery>(),
    kind::<ContextUpdate>(),
    kind::<DeadLetterQuery>(),
    kind::<EnvironmentCreate>(),
    kind::<EnvironmentUpdate>(),
    kind::<GlobalPreferenceUpdate>(),
    kind::<IntegrationCreate>(),
    kind::<IntegrationDelete>(),
    kind::<IntegrationUpdate>(),
    kind::<LayoutQuery>(),
    kind::<LayoutUpsert>(),
    kind::<MarkMessages>(),
    kind::<MessageQuery>(),
    kind::<NotificationQuery>(),
    kind::<PreferencesQuery>(),
    kind::<Preview>(),
    kind::<Receipt>(),
    kind::<Resource>(),
    kind::<Subscribe>(),
    kind::<SubscriberCreate>(),
    kind::<SubscriberQuery>(),
    kind::<SubscriberUpdate>(),
    kind::<SubscriptionQuery>(),
    kind::<SubscriptionUpdate>(),
    kind::<SuppressionCreate>(),
    kind::<SuppressionQuery>(),
    kind::<TopicCreate>(),
    kind::<TopicQuery>(),
    kind::<TopicUpdate>(),
    kind::<TranslationImport>(),
    kind::<TranslationQuery>(),
    kind::<TranslationUpsert>(),
    kind::<Trigger>(),
    kind::<Unsubscribe>(),
    kind::<UnsubscribeRequest>(),
    kind::<WorkflowCreate>(),
    kind::<WorkflowQuery>(),
    kind::<WorkflowSync>(),
    kind::<WorkflowUpdate>(),
];

const fn kind<T: Shaped + Serialize + PartialEq + Debug>() -> Kind {
    Kind {
        name: type_name::<T>,
        strict: |bytes| json::read::<T>(bytes).map(|request| written(&request)),
        lenient: |bytes| json::read_lenient::<T>(bytes).map(|request| written(&request)),
        from_query: |text| query::read::<T>(text).map(|request| written(&request)),
        check: |bytes| {
            check(json::read::<T>(bytes), json::read_lenient(bytes));
            if let Ok(text) = std::str::from_utf8(bytes) {
                check(query::read::<T>(text), query::read_lenient(text));
            }
        },
    }
}

/// Reads `bytes` as requests and as queries.
///
/// # Panics
///
/// If a strict and a lenient reading differ, if a request is read otherwise after it was written, or if
/// a refusal has no text.
pub fn run(bytes: &[u8], effort: Effort) {
    effort.some_of(KINDS, 16).for_each(|kind| (kind.check)(bytes));
}

fn check<T>(strict: Result<T, Invalid>, lenient: Result<T, Invalid>)
where
    T: Shaped + Serialize + PartialEq + Debug,
{
    match &strict {
        Ok(request) => {
            let again = json::read(written(request).to_string().as_bytes());
            assert_eq!(again, strict, "what is written is read otherwise");
            assert_eq!(lenient, strict, "what is known is read otherwise");
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
}

fn written<T: Serialize>(request: &T) -> Value {
    serde_json::to_value(request).expect("a request is JSON")
}
