use std::borrow::Borrow;
use std::fmt::{Debug, Display};
use std::str::FromStr;

use super::IntoChecked;
use crate::api_key::ApiKeyName;
use crate::contact::{Email, Locale, TimeZone};
use crate::context::ContextPart;
use crate::endpoint::{PhoneNumber, WebhookUrl};
use crate::environment::{Color, EnvironmentName};
use crate::error::Invalid;
use crate::ids::{
    ConnectionIdentifier, EndpointIdentifier, IdempotencyKey, IntegrationIdentifier,
    LayoutIdentifier, MessageId, OrganizationId, PlatformId, SubscriberId, SubscriptionIdentifier,
    TopicKey, TransactionId, UserId, WorkflowIdentifier,
};
use crate::schedule::ClockTime;
use crate::template::Template;

/// Types that convert from texts of every kind, and from a reference.
trait FromTexts:
    Debug
    + PartialEq
    + FromStr<Err = Invalid>
    + for<'a> TryFrom<&'a str, Error = Invalid>
    + TryFrom<String, Error = Invalid>
    + for<'a> TryFrom<&'a String, Error = Invalid>
    + for<'a> From<&'a Self>
{
}

impl<T> FromTexts for T where
    T: Debug
        + PartialEq
        + FromStr<Err = Invalid>
        + for<'a> TryFrom<&'a str, Error = Invalid>
        + TryFrom<String, Error = Invalid>
        + for<'a> TryFrom<&'a String, Error = Invalid>
        + for<'a> From<&'a T>
{
}

fn from_texts<T: FromTexts>(good: &str, bad: &str) {
    let value: T = good.parse().unwrap();
    let owned = good.to_owned();
    assert_eq!(IntoChecked::<T>::into_checked(good).unwrap(), value);
    assert_eq!(IntoChecked::<T>::into_checked(&owned).unwrap(), value);
    assert_eq!(IntoChecked::<T>::into_checked(owned).unwrap(), value);
    assert_eq!(IntoChecked::<T>::into_checked(&value).unwrap(), value);
    let refusal = bad.parse::<T>().unwrap_err();
    assert_eq!(IntoChecked::<T>::into_checked(bad).unwrap_err(), refusal);
    let owned = bad.to_owned();
    assert_eq!(IntoChecked::<T>::into_checked(&owned).unwrap_err(), refusal);
    assert_eq!(IntoChecked::<T>::into_checked(owned).unwrap_err(), refusal);
}

fn text<T: FromTexts + AsRef<str> + Display>(good: &str, bad: &str) {
    from_texts::<T>(good, bad);
    let value: T = good.parse().unwrap();
    assert_eq!((value.as_ref(), value.to_string().as_str()), (good, good));
}

fn id<T: FromTexts + AsRef<str> + Display + Borrow<str>>(good: &str, bad: &str) {
    text::<T>(good, bad);
    let value: T = good.parse().unwrap();
    assert_eq!(Borrow::<str>::borrow(&value), good);
}

/// One row per newtype: a valid text, and an invalid one.
#[test]
fn every_newtype_converts_the_same_ways() {
    id::<OrganizationId>("acme", "");
    id::<SubscriberId>("ada", "");
    id::<TransactionId>("t-1", "");
    id::<UserId>("host", "");
    id::<WorkflowIdentifier>("order-shipped", "a b");
    id::<IntegrationIdentifier>("mail", "a b");
    id::<TopicKey>("orders", "a b");
    id::<SubscriptionIdentifier>("mine", "");
    id::<ConnectionIdentifier>("ours", "");
    id::<EndpointIdentifier>("mine", "");
    id::<PlatformId>("C0123", "");
    id::<LayoutIdentifier>("plain", "a b");
    id::<IdempotencyKey>("order-4711", "");
    text::<Email>("ada@example.org", "ada");
    text::<Locale>("en_GB", "english");
    text::<TimeZone>("Europe/London", "London");
    text::<EnvironmentName>("QA", " ");
    text::<ApiKeyName>("Orders", " ");
    text::<Color>("#f80", "red");
    text::<PhoneNumber>("+4930123456", "1");
    text::<ContextPart>("tenant", "a b");
    text::<Template>("Hello {{ payload.name }}", "{{");
    from_texts::<MessageId>("0192f0c1-2345-7678-9abc-def012345678", "42");
    from_texts::<WebhookUrl>("https://example.org/hook", "example.org");
    from_texts::<crate::context::ContextKey>("tenant:acme", "tenant");
    from_texts::<ClockTime>("09:30 AM", "9");
}
