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

fn check_empty_fields<T: Shaped + DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
    for name in T::shape().names(&Map::new()) {
        // The empty set selects what has no contexts.
        if name != "contextKeys" {
            assert_eq!(read::<T>(&format!("{name}=")), Ok(T::default()), "{name}");
        }
    }
}

#[test]
fn an_empty_field_of_a_form_counts_as_absent() {
    check_empty_fields::<ChannelConnectionQuery>();
    check_empty_fields::<ChannelEndpointQuery>();
    check_empty_fields::<ContextQuery>();
    check_empty_fields::<DeadLetterQuery>();
    check_empty_fields::<IntegrationDelete>();
    check_empty_fields::<LayoutQuery>();
    check_empty_fields::<MessageQuery>();
    check_empty_fields::<NotificationQuery>();
    check_empty_fields::<PreferencesQuery>();
    check_empty_fields::<SubscriberQuery>();
    check_empty_fields::<SubscriptionQuery>();
    check_empty_fields::<SuppressionQuery>();
    check_empty_fields::<TopicQuery>();
    check_empty_fields::<TranslationQuery>();
    check_empty_fields::<WorkflowQuery>();
}

fn check_empty_searches<T: Shaped + DeserializeOwned + Default + PartialEq + std::fmt::Debug>(
    names: &[&str],
) {
    for name in names {
        let json = json!({ *name: "" });
        assert_eq!(crate::json::read_value::<T>(&json), Ok(T::default()), "{name}");
        assert_eq!(serde_json::from_value::<T>(json).unwrap(), T::default(), "{name}");
    }
}

#[test]
fn an_empty_text_that_is_searched_for_counts_as_absent_in_json() {
    check_empty_searches::<SubscriberQuery>(&["email", "phone", "name"]);
    check_empty_searches::<TopicQuery>(&["key", "name"]);
    check_empty_searches::<TranslationQuery>(&["resourceId"]);
    check_empty_searches::<WorkflowQuery>(&["tag"]);
}

/// A call on all messages that match would take it for no filter.
#[test]
fn an_empty_text_in_place_of_another_value_is_refused_in_json() {
    for name in ["channel", "transactionId", "read", "createdGte", "data", "after", "orderBy"] {
        let json = json!({ name: "" });
        assert!(crate::json::read_value::<MessageQuery>(&json).is_err(), "{name}");
        assert!(serde_json::from_value::<MessageQuery>(json).is_err(), "{name}");
    }
}

/// An empty text in a list leaves the list as narrow as the text: it is an item that nothing matches.
#[test]
fn an_empty_text_in_a_list_is_no_absent_list() {
    fn check<T: Shaped + DeserializeOwned + Default + PartialEq + std::fmt::Debug>(name: &str) {
        for json in [json!({ name: "" }), json!({ name: [""] })] {
            for read in [
                crate::json::read_value::<T>(&json).ok(),
                serde_json::from_value::<T>(json.clone()).ok(),
            ] {
                assert!(read.is_none_or(|query| query != T::default()), "{json}");
            }
        }
    }
    for name in ["templates", "severity", "tags"] {
        check::<MessageQuery>(name);
    }
    for name in ["templates", "integrations", "channels", "reasons"] {
        check::<DeadLetterQuery>(name);
    }
    for name in ["channels", "templates", "emails", "subscriberIds", "severity", "outcomes"] {
        check::<NotificationQuery>(name);
    }
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
