//! Queries of subscribers.

use serde::{Deserialize, Serialize};

use super::Subscriber;
use crate::contact::Email;
use crate::folded::{FoldedPart, fold};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::query;

/// Query of subscribers. A subscriber must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubscriberQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// E-mail address, compared exactly.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Telephone number, compared exactly.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Part of the given name and the family name, in any case.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { SubscriberQuery {
    "email": email, "phone": phone, "name": name;
    page by SubscriberQuery::ORDERS
} }

impl SubscriberQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Returns the search of the query. Returns `None` if it excludes no subscriber.
    #[doc(hidden)]
    pub fn search(&self) -> Option<SubscriberSearch<'_>> {
        let name = self.name.as_deref().filter(|name| !name.is_empty()).map(FoldedPart::new);
        let (email, phone) = (self.email.as_deref(), self.phone.as_deref());
        let search = SubscriberSearch { email, phone, name };
        (email.is_some() || phone.is_some() || search.name.is_some()).then_some(search)
    }
}

/// Search for subscribers.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct SubscriberSearch<'q> {
    /// E-mail address.
    pub email: Option<&'q str>,
    /// Telephone number.
    pub phone: Option<&'q str>,
    /// Part of the name. It is not empty.
    pub name: Option<FoldedPart>,
}

impl SubscriberSearch<'_> {
    /// Returns `true` if the search finds the subscriber.
    pub fn finds(&self, subscriber: &Subscriber) -> bool {
        let profile = &subscriber.profile;
        let email = profile.email.as_ref().map(Email::as_str);
        let is_called = |part: &FoldedPart| {
            profile.full_name().is_some_and(|name| part.find_in(fold(&name).as_bytes()).is_some())
        };
        self.email.is_none_or(|wanted| email == Some(wanted))
            && self.phone.is_none_or(|wanted| profile.phone.as_deref() == Some(wanted))
            && self.name.as_ref().is_none_or(is_called)
    }
}
