use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::channel::ChannelFilter;
use crate::connection::ChannelConnectionQuery;
use crate::context::ContextQuery;
use crate::dead_letter::DeadLetterQuery;
use crate::endpoint::ChannelEndpointQuery;
use crate::integration::IntegrationDelete;
use crate::layout::LayoutQuery;
use crate::message::MessageQuery;
use crate::notification::NotificationQuery;
use crate::preference::PreferencesQuery;
use crate::subscriber::SubscriberQuery;
use crate::subscription::SubscriptionQuery;
use crate::suppression::SuppressionQuery;
use crate::topic::TopicQuery;
use crate::translation::TranslationQuery;
use crate::workflow::WorkflowQuery;

/// One row per form of a list, a number, a flag or an empty field: the value.
#[test]
fn a_query_is_read_as_forms_and_clients_send_it() {
    for (query, expected_json) in [
        ("", json!({})),
        ("?", json!({})),
        ("&&limit=5&", json!({ "limit": 5 })),
        ("channels=email", json!({ "channels": ["email"] })),
        ("channels=email&channels=sms", json!({ "channels": ["email", "sms"] })),
        ("channels[]=email&channels[]=sms", json!({ "channels": ["email", "sms"] })),
        ("channels[0]=email&channels[1]=sms", json!({ "channels": ["email", "sms"] })),
        ("channels%5B%5D=email", json!({ "channels": ["email"] })),
        ("channels=&channels=sms", json!({ "channels": ["sms"] })),
        ("emails=a%2Bb%40c.org&emails=d+e%26f", json!({ "emails": ["a+b@c.org", "d e&f"] })),
        ("emails=&templates=&search=&subscriberIds=&severity=&channels", json!({})),
        ("page=&limit=&transactionId=&topicKey=&subscriptionId=&after=&before=", json!({})),
        ("page=2&limit=50", json!({ "page": 2, "limit": 50 })),
        ("after=2026-01-01T00:00Z", json!({ "after": "2026-01-01T00:00:00.000Z" })),
        ("contextKeys=", json!({ "contextKeys": [] })),
        ("contextKeys[]=", json!({ "contextKeys": [] })),
        ("contextKeys", json!({ "contextKeys": [] })),
        ("contextKeys=a:1", json!({ "contextKeys": ["a:1"] })),
        ("contextKeys=b:2&contextKeys=a%3A1", json!({ "contextKeys": ["a:1", "b:2"] })),
    ] {
        let expected: NotificationQuery = serde_json::from_value(expected_json).unwrap();
        assert_eq!(read::<NotificationQuery>(query), Ok(expected.clone()), "{query}");
        assert_eq!(read_lenient::<NotificationQuery>(query), Ok(expected), "{query}");
    }
}

fn check_empty_texts<T: Shaped + DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
    for name in T::shape().names(&Map::new()) {
        // The empty set selects what has no contexts.
        if name == "contextKeys" {
            continue;
        }
        let of_form = read::<T>(&format!("{name}="));
        assert_eq!(of_form, Ok(T::default()), "{name}");
        let json = json!({ name: "" });
        assert_eq!(crate::json::read_value::<T>(&json), Ok(T::default()), "{name}");
        assert_eq!(serde_json::from_value::<T>(json).unwrap(), T::default(), "{name}");
    }
}

/// Each field of each query, in a form and in JSON.
#[test]
fn an_empty_text_counts_as_absent() {
    check_empty_texts::<ChannelConnectionQuery>();
    check_empty_texts::<ChannelEndpointQuery>();
    check_empty_texts::<ContextQuery>();
    check_empty_texts::<DeadLetterQuery>();
    check_empty_texts::<IntegrationDelete>();
    check_empty_texts::<LayoutQuery>();
    check_empty_texts::<MessageQuery>();
    check_empty_texts::<NotificationQuery>();
    check_empty_texts::<PreferencesQuery>();
    check_empty_texts::<SubscriberQuery>();
    check_empty_texts::<SubscriptionQuery>();
    check_empty_texts::<SuppressionQuery>();
    check_empty_texts::<TopicQuery>();
    check_empty_texts::<TranslationQuery>();
    check_empty_texts::<WorkflowQuery>();
}

#[test]
fn a_query_that_is_a_part_of_another_is_read_as_well() {
    let query = "channel=chat&providerId=slack&orderBy=updatedAt&includeCursor=true&contextKeys=";
    let query: ChannelConnectionQuery = read(query).unwrap();
    assert_eq!(query.filter.channel, Some(crate::vocabulary::Channel::Chat));
    assert!(query.page.include_cursor && !query.filter.context_keys.is_any());
    assert_eq!(query.page.order_by, Some(crate::page::OrderBy::UpdatedAt));
    assert_eq!(read("promote=true"), Ok(IntegrationDelete { promote: true }));
    assert_eq!(read::<ChannelFilter>("").unwrap(), ChannelFilter::default());
}

fn refused<T: Shaped + std::fmt::Debug>(query: &str) -> String {
    read::<T>(query).unwrap_err().to_string()
}

/// One row per kind of mistake.
#[test]
fn what_is_refused_is_named() {
    for (refused, expected) in [
        (refused::<MessageQuery>("channel=email&channel=sms"), "`channel` must not be given twice"),
        (refused::<TopicQuery>("orderBy=key&orderBy=_id"), "`orderBy` must not be given twice"),
        (refused::<TopicQuery>("after=00&after=01"), "`after` must not be given twice"),
        (refused::<MessageQuery>("channel[]=email"), "`channel` must be a single value"),
        (
            refused::<ChannelConnectionQuery>("integrationIdentifier=a+b"),
            "`integrationIdentifier` must be letters and digits, joined by single `-`, `_` or `.`",
        ),
        (refused::<NotificationQuery>("limit=x"), "`limit` must be a whole number"),
        (refused::<TopicQuery>("limit=-1"), "`limit` must be a whole number"),
        (refused::<NotificationQuery>("page=1.5"), "`page` must be a whole number"),
        (refused::<MessageQuery>("read=maybe"), "`read` must be `true` or `false`"),
        (refused::<WorkflowQuery>("active=1"), "`active` must be `true` or `false`"),
        (
            refused::<LayoutQuery>("isTranslationEnabled=yes"),
            "`isTranslationEnabled` must be `true` or `false`",
        ),
        (refused::<TopicQuery>("includeCursor=on"), "`includeCursor` must be `true` or `false`"),
        (refused::<TopicQuery>("after=x"), "`after` must be a cursor of this list"),
        (
            refused::<NotificationQuery>("after=x"),
            "`after` must be an ISO 8601 timestamp, such as `2026-11-20T12:00:00Z`",
        ),
        (
            refused::<NotificationQuery>("channels=email&channels=fax"),
            "`channels[1]` must be one of in_app, email, sms, chat, push, digest, trigger, delay, \
             throttle, custom",
        ),
        (
            refused::<TopicQuery>("orderBy=nonsense"),
            "`orderBy` must be one of _id, key, createdAt, updatedAt",
        ),
        (
            refused::<ChannelConnectionQuery>("orderBy=nonsense"),
            "`orderBy` must be one of createdAt, updatedAt, _id",
        ),
        (refused::<MessageQuery>("orderBy=nonsense"), "`orderBy` must be one of _id"),
        (refused::<PreferencesQuery>("contextKeys=a"), "`contextKeys` must be `type:id`"),
        (
            refused::<NotificationQuery>("contextKeys=a:b&contextKeys=c:"),
            "`contextKeys[1]` must be 1 to 100 letters, digits, `_` and `-`",
        ),
        (refused::<SubscriberQuery>("emial=a"), "`emial` is not known; did you mean `email`?"),
        (refused::<TopicQuery>("a[b]=c"), "`a[b]` is not known"),
        (refused::<TopicQuery>("=c"), "`` is not known"),
        (refused::<SubscriberQuery>("name=%FF"), "`name` must be percent-encoded UTF-8"),
        (refused::<SubscriberQuery>("%FF=x"), "`query` must be percent-encoded UTF-8"),
    ] {
        assert_eq!(refused, expected);
    }
}

#[test]
fn what_is_not_known_may_be_passed_over() {
    let query: SubscriberQuery = read_lenient("emial=a&email=b&emial=c&x[]=1").unwrap();
    assert_eq!(query, SubscriberQuery { email: Some("b".into()), ..SubscriberQuery::default() });
    assert!(read_lenient::<SubscriberQuery>("limit=x").is_err());
}
