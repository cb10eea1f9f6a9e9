//! The inbox of a customer.

use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use tidings::ids::MessageId;
use tidings::message::{MarkAs, Message, MessageQuery};

use super::{customer_links, layout};
use crate::failure::PageFailure;
use crate::shop::Shop;

/// What is read: one message, or all of them.
#[derive(Debug, Deserialize)]
pub(super) struct Read {
    message: Option<MessageId>,
}

pub(super) async fn page(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
) -> Result<Markup, PageFailure> {
    let links = customer_links(&customer);
    let (counts, messages) = shop
        .run(move |env| {
            let inbox = env.inbox(customer)?;
            Ok((inbox.counts()?, inbox.list(&MessageQuery::default())?.data))
        })
        .await?;
    let content = html! {
        (links)
        form method="post" {
            p { span.count { (counts.unread) " unread" } " " button { "Mark all as read" } }
        }
        table {
            @for message in &messages {
                (row(message))
            }
        }
    };
    Ok(layout("Inbox", &content))
}

pub(super) async fn read(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    Form(read): Form<Read>,
) -> Result<Redirect, PageFailure> {
    let back = format!("/inbox/{customer}");
    shop.run(move |env| {
        let inbox = env.inbox(customer)?;
        match read.message {
            Some(message) => {
                inbox.mark_as([message], MarkAs::Read)?;
            }
            None => {
                inbox.mark_all(MarkAs::Read)?;
            }
        }
        Ok(())
    })
    .await?;
    Ok(Redirect::to(&back))
}

fn row(message: &Message) -> Markup {
    let unread = !message.stage.is_read();
    html! {
        tr.unread[unread] {
            td { (message.created_at) }
            td {
                @if let Some(subject) = &message.subject { (subject) br; }
                (message.text().unwrap_or_default())
            }
            td {
                @if unread {
                    form method="post" {
                        button name="message" value=(message.id) { "Mark as read" }
                    }
                }
            }
        }
    }
}
