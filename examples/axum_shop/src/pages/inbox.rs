//! The inbox of a customer.

use std::time::Duration;

use axum::extract::{Form, Path, Query, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use tidings::ids::MessageId;
use tidings::message::{FeedCursor, InboxCounts, MarkAs, Message};
use tidings::page::{Cursor, Page};
use tidings::time::Timestamp;
use tidings::{Clock, Inbox, Result, SystemClock};

use super::message::{Action, Folder, item};
use super::{Place, layout, path};
use crate::failure::PageFailure;
use crate::shop::Shop;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// What the page shows.
#[derive(Debug, Deserialize)]
pub(super) struct View {
    #[serde(default)]
    folder: Folder,
    after: Option<Cursor>,
}

/// What is done, and to which message.
#[derive(Debug, Deserialize)]
pub(super) struct Act {
    action: Action,
    message: Option<MessageId>,
}

// What the page shows, and the place of the feed before it.
struct Shown {
    cursor: FeedCursor,
    counts: InboxCounts,
    messages: Page<Message>,
}

pub(super) async fn page(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    Query(view): Query<View>,
) -> std::result::Result<Markup, PageFailure> {
    let (name, after) = (customer.clone(), view.after.clone());
    let shown = shop.run(move |env| Shown::read(&env.inbox(name)?, view.folder, after)).await?;
    let content = html! {
        div.title {
            h1 { "Inbox" }
            p.live hidden {}
        }
        div.tools {
            (tabs(&customer, view.folder, shown.counts))
            @if view.folder == Folder::Inbox {
                form method="post" {
                    button.quiet name="action" value=(Action::ReadAll.word()) { "Mark all as read" }
                }
            }
        }
        (list(&customer, &view, &shown))
    };
    Ok(layout("Inbox", &Place::Inbox(&customer), &content))
}

pub(super) async fn act(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    Query(view): Query<View>,
    Form(act): Form<Act>,
) -> std::result::Result<Redirect, PageFailure> {
    let back = format!("{}?folder={}", path("inbox", &customer), view.folder.word());
    shop.run(move |env| act.on(&env.inbox(customer)?)).await?;
    Ok(Redirect::to(&back))
}

impl Shown {
    fn read(inbox: &Inbox<'_>, folder: Folder, after: Option<Cursor>) -> Result<Self> {
        // The cursor comes first, so that no change is between it and the list.
        let cursor = inbox.cursor()?;
        let mut query = folder.query();
        query.page.after = after;
        Ok(Self { cursor, counts: inbox.counts()?, messages: inbox.list(&query)? })
    }
}

impl Act {
    fn on(&self, inbox: &Inbox<'_>) -> Result<()> {
        let one = self.message;
        match self.action {
            Action::Read => drop(inbox.mark_as(one, MarkAs::Read)?),
            Action::Unread => drop(inbox.mark_as(one, MarkAs::Unread)?),
            Action::Archive => drop(inbox.archive(one)?),
            Action::Unarchive => drop(inbox.unarchive(one)?),
            Action::SnoozeHour => drop(inbox.snooze(one, after(HOUR))?),
            Action::SnoozeDay => drop(inbox.snooze(one, after(24 * HOUR))?),
            Action::SnoozeWeek => drop(inbox.snooze(one, after(7 * 24 * HOUR))?),
            Action::Wake => drop(inbox.unsnooze(one)?),
            Action::Delete => drop(inbox.delete(one)?),
            Action::ReadAll => drop(inbox.mark_all(MarkAs::Read)?),
        }
        Ok(())
    }
}

fn after(span: Duration) -> Timestamp {
    SystemClock.now().after(span)
}

fn tabs(customer: &str, here: Folder, counts: InboxCounts) -> Markup {
    html! {
        nav.tabs aria-label="Folders" {
            @for folder in Folder::ALL {
                a href={ (path("inbox", customer)) "?folder=" (folder.word()) }
                    aria-current=[(folder == here).then_some("page")] {
                    (folder.name())
                    @if folder == Folder::Inbox {
                        " " span.count hidden[counts.unread == 0] {
                            span #unread { (counts.unread) } span.hidden { " unread" }
                        }
                    }
                }
            }
        }
    }
}

// The script follows the feed, and keeps the items of this folder and this page as they are.
fn list(customer: &str, view: &View, shown: &Shown) -> Markup {
    let messages = &shown.messages;
    html! {
        ul.messages data-feed={ (path("inbox", customer)) "/feed" } data-since=(shown.cursor)
            data-folder=(view.folder.word())
            data-first[messages.previous.is_none()] data-last[messages.next.is_none()] {
            @for message in &messages.data {
                (item(message))
            }
        }
        p.empty hidden[!messages.data.is_empty()] { (view.folder.emptiness()) }
        @if let Some(next) = &messages.next {
            p.older {
                a href={ "?folder=" (view.folder.word()) "&after=" (next) } { "Older messages" }
            }
        }
    }
}
