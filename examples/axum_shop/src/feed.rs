//! The changes of an inbox as server-sent events.
//!
//! The id of an event is the cursor behind it. A browser that has lost its connection sends the id of
//! the last event, and gets what it has missed.

use std::convert::Infallible;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::get;
use futures_util::stream::{self, Stream};
use serde::{Deserialize, Serialize};
use tidings::Result;
use tidings::ids::MessageId;
use tidings::message::{Changes, FeedCursor, FeedPage, InboxChange};

use crate::failure::ApiFailure;
use crate::pages::message::{Folder, item};
use crate::shop::Shop;

type Told = std::result::Result<Event, Infallible>;

/// The first event is behind this cursor, which came with the page.
#[derive(Debug, Deserialize)]
struct Start {
    since: Option<String>,
}

/// A reader of the feed.
struct Reader {
    shop: Shop,
    customer: String,
    cursor: FeedCursor,
}

/// What a page has to change.
#[derive(Serialize)]
struct Update {
    unread: usize,
    changes: Vec<Change>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Change {
    Shown { id: MessageId, folder: Folder, html: String },
    Gone { id: MessageId },
}

pub(crate) fn routes() -> Router<Shop> {
    Router::new().route("/inbox/{customer}/feed", get(follow))
}

async fn follow(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    Query(start): Query<Start>,
    headers: HeaderMap,
) -> std::result::Result<Sse<impl Stream<Item = Told>>, ApiFailure> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok().map(str::to_owned));
    let name = customer.clone();
    let known = last.or(start.since);
    // A customer or a cursor that is not known is refused here. A stream has no status any more.
    let cursor = shop
        .run(move |env| {
            let inbox = env.inbox(name)?;
            let Some(known) = known else { return inbox.cursor() };
            let cursor = known.parse()?;
            inbox.changes_since(&cursor)?;
            Ok(cursor)
        })
        .await?;
    let reader = Reader { shop, customer, cursor };
    Ok(Sse::new(stream::unfold(reader, Reader::next)).keep_alive(KeepAlive::default()))
}

impl Reader {
    // The stream ends when the shop stops or the customer is gone. The browser connects again.
    async fn next(mut self) -> Option<(Told, Self)> {
        let changed = self.shop.env().inbox(self.customer.as_str()).ok()?.changed(&self.cursor);
        tokio::select! {
            changed = changed => changed.ok()?,
            () = self.shop.stopped() => return None,
        }
        let event = match self.read().await.ok()? {
            Changes::Since(page) => {
                self.cursor = page.next;
                Event::default().json_data(Update::of(page)).ok()?
            }
            // The page loads itself again.
            Changes::Reset { cursor } => {
                self.cursor = cursor;
                Event::default().event("reset").data("")
            }
        };
        Some((Ok(event.id(self.cursor.to_string())), self))
    }

    async fn read(&self) -> Result<Changes> {
        let (customer, cursor) = (self.customer.clone(), self.cursor);
        self.shop.run(move |env| env.inbox(customer)?.changes_since(&cursor)).await
    }
}

impl Update {
    fn of(page: FeedPage) -> Self {
        let changes = page.changes.into_iter().map(Change::from).collect();
        Self { unread: page.counts.unread, changes }
    }
}

impl From<InboxChange> for Change {
    fn from(change: InboxChange) -> Self {
        match change {
            InboxChange::Message { message } => Self::Shown {
                id: message.id,
                folder: Folder::of(&message),
                html: item(&message).into_string(),
            },
            InboxChange::Deleted { message_id } => Self::Gone { id: message_id },
        }
    }
}
