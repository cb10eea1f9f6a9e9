//! A message as an item of a list, on the page and in the feed.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use tidings::message::{Message, MessageQuery};
use tidings::time::Timestamp;

/// Folder of an inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Folder {
    #[default]
    Inbox,
    Snoozed,
    Archive,
}

/// What a button does with a message, or with all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Action {
    Read,
    Unread,
    Archive,
    Unarchive,
    SnoozeHour,
    SnoozeDay,
    SnoozeWeek,
    Wake,
    Delete,
    ReadAll,
}

impl Folder {
    pub(crate) const ALL: [Self; 3] = [Self::Inbox, Self::Snoozed, Self::Archive];

    /// Returns the folder that a message is in.
    pub(crate) fn of(message: &Message) -> Self {
        match (message.stage.is_archived(), message.snoozed_until) {
            (true, _) => Self::Archive,
            (false, Some(_)) => Self::Snoozed,
            (false, None) => Self::Inbox,
        }
    }

    pub(super) fn query(self) -> MessageQuery {
        match self {
            Self::Inbox => MessageQuery::default(),
            Self::Snoozed => MessageQuery::default().snoozed(),
            Self::Archive => MessageQuery::default().archived(),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Inbox => "Inbox",
            Self::Snoozed => "Snoozed",
            Self::Archive => "Archive",
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Snoozed => "snoozed",
            Self::Archive => "archive",
        }
    }

    /// Returns what the folder says if nothing is in it.
    pub(super) const fn emptiness(self) -> &'static str {
        match self {
            Self::Inbox => "You are all caught up.",
            Self::Snoozed => "Nothing is snoozed.",
            Self::Archive => "The archive is empty.",
        }
    }
}

impl Action {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Unread => "unread",
            Self::Archive => "archive",
            Self::Unarchive => "unarchive",
            Self::SnoozeHour => "snooze-hour",
            Self::SnoozeDay => "snooze-day",
            Self::SnoozeWeek => "snooze-week",
            Self::Wake => "wake",
            Self::Delete => "delete",
            Self::ReadAll => "read-all",
        }
    }
}

/// A message as an item of a list. The script sorts by `data-at`, and knows the item by its id.
pub(crate) fn item(message: &Message) -> Markup {
    let unread = !message.stage.is_read();
    let id = format!("m-{}", message.id);
    let at = listed_at(message);
    html! {
        li.message.unread[unread] #(id) data-at=(at) tabindex="-1" aria-labelledby={ (id) "-title" } {
            div.text {
                h2 id={ (id) "-title" } {
                    @if unread { span.dot { span.hidden { "Unread: " } } }
                    (message.subject.as_deref().unwrap_or("Message"))
                }
                p { (message.text().unwrap_or_default()) }
                p.when {
                    (moment(at))
                    @if let Some(until) = message.snoozed_until { " · back " (moment(until)) }
                }
            }
            form.actions method="post" {
                input type="hidden" name="message" value=(message.id);
                (actions(message, unread))
            }
        }
    }
}

fn actions(message: &Message, unread: bool) -> Markup {
    let read =
        if unread { (Action::Read, "Mark as read") } else { (Action::Unread, "Mark as unread") };
    html! {
        @match Folder::of(message) {
            Folder::Inbox => {
                (button(read))
                (button((Action::Archive, "Archive")))
                details.menu {
                    summary { "Snooze" }
                    div {
                        (button((Action::SnoozeHour, "For an hour")))
                        (button((Action::SnoozeDay, "For a day")))
                        (button((Action::SnoozeWeek, "For a week")))
                    }
                }
            }
            Folder::Snoozed => (button((Action::Wake, "Back to the inbox"))),
            Folder::Archive => {
                (button((Action::Unarchive, "Back to the inbox")))
                (button((Action::Delete, "Delete")))
            }
        }
    }
}

fn button((action, label): (Action, &str)) -> Markup {
    html! { button name="action" value=(action.word()) { (label) } }
}

// The time that the list is sorted by.
fn listed_at(message: &Message) -> Timestamp {
    let delivered = message.delivered_at.last().copied();
    message.listed_at.or(delivered).unwrap_or(message.created_at)
}

/// A time. The script says how long ago that is.
pub(super) fn moment(at: Timestamp) -> Markup {
    let exact = at.to_string();
    // `2026-11-20T12:00`
    let (minutes, _) = exact.split_at_checked(16).unwrap_or((&exact, ""));
    html! { time datetime=(exact) { (minutes.replace('T', " ")) " UTC" } }
}
