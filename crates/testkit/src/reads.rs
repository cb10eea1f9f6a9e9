//! Any text as a request or a query of any kind.

use std::fmt::Debug;

use tidings::error::Invalid;
use tidings::integration::{IntegrationCreate, IntegrationUpdate};
use tidings::json::{self, Shaped};
use tidings::notification::NotificationQuery;
use tidings::preference::{BulkPreferences, GlobalPreferenceUpdate};
use tidings::query;
use tidings::subscriber::{SubscriberCreate, SubscriberQuery, SubscriberUpdate};
use tidings::subscription::{Subscribe, Unsubscribe};
use tidings::topic::TopicQuery;
use tidings::trigger::Trigger;
use tidings::workflow::{WorkflowCreate, WorkflowUpdate};

/// Reads `bytes` as requests and as queries.
///
/// # Panics
///
/// If what is read strictly is read otherwise where unknown names are passed over, or a refusal
/// names nothing.
pub fn run(bytes: &[u8]) {
    request::<BulkPreferences>(bytes);
    request::<GlobalPreferenceUpdate>(bytes);
    request::<IntegrationCreate>(bytes);
    request::<IntegrationUpdate>(bytes);
    request::<Subscribe>(bytes);
    request::<SubscriberCreate>(bytes);
    request::<SubscriberUpdate>(bytes);
    request::<Trigger>(bytes);
    request::<Unsubscribe>(bytes);
    request::<WorkflowCreate>(bytes);
    request::<WorkflowUpdate>(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        asked::<NotificationQuery>(text);
        asked::<SubscriberQuery>(text);
        asked::<TopicQuery>(text);
    }
}

fn request<T: Shaped + PartialEq + Debug>(bytes: &[u8]) {
    check(json::read::<T>(bytes), json::read_lenient::<T>(bytes));
}

fn asked<T: Shaped + PartialEq + Debug>(text: &str) {
    check(query::read::<T>(text), query::read_lenient::<T>(text));
}

fn check<T: PartialEq + Debug>(strict: Result<T, Invalid>, lenient: Result<T, Invalid>) {
    match strict {
        Ok(_) => assert_eq!(lenient, strict, "what is known is read otherwise"),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
}
