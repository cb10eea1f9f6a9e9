//! The JSON interface: the types of the engine on the wire, as they are.

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use tidings::message::{InboxCounts, MarkMessages, Message};
use tidings::notification::NotificationPage;
use tidings::page::Page;
use tidings::preference::{Preferences, UpdatedPreference};
use tidings::subscriber::Subscriber;
use tidings::trigger::TriggerReceipt;
use tidings::{json, query};

use crate::failure::ApiFailure;
use crate::shop::Shop;

type Answer<T> = Result<Json<T>, ApiFailure>;

pub(crate) fn routes() -> Router<Shop> {
    Router::new()
        .route("/subscribers", post(create_subscriber))
        .route("/events", post(trigger))
        .route("/inbox/{customer}", get(inbox).post(mark))
        .route("/inbox/{customer}/counts", get(counts))
        .route("/preferences/{customer}", get(preferences).patch(update_preferences))
        .route("/notifications", get(notifications))
}

async fn create_subscriber(
    State(shop): State<Shop>,
    body: Bytes,
) -> Result<(StatusCode, Json<Subscriber>), ApiFailure> {
    let create = json::read(&body)?;
    let subscriber = shop.run(move |env| env.subscribers().create(&create)).await?;
    Ok((StatusCode::CREATED, Json(subscriber)))
}

async fn trigger(State(shop): State<Shop>, body: Bytes) -> Answer<TriggerReceipt> {
    let trigger = json::read(&body)?;
    Ok(Json(shop.run(move |env| env.events().trigger(&trigger)).await?))
}

async fn inbox(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<Page<Message>> {
    let query = query::read(query.as_deref().unwrap_or_default())?;
    Ok(Json(shop.run(move |env| env.inbox(customer)?.list(&query)).await?))
}

async fn counts(State(shop): State<Shop>, Path(customer): Path<String>) -> Answer<InboxCounts> {
    Ok(Json(shop.run(move |env| env.inbox(customer)?.counts()).await?))
}

async fn mark(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    body: Bytes,
) -> Answer<Vec<Message>> {
    let MarkMessages { message_id, mark_as, .. } = json::read(&body)?;
    Ok(Json(shop.run(move |env| env.messages().mark(customer, message_id, mark_as)).await?))
}

async fn preferences(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<Preferences> {
    let query = query::read(query.as_deref().unwrap_or_default())?;
    Ok(Json(shop.run(move |env| env.preferences(customer)?.get(&query)).await?))
}

async fn update_preferences(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    body: Bytes,
) -> Answer<Vec<UpdatedPreference>> {
    let update = json::read(&body)?;
    Ok(Json(shop.run(move |env| env.preferences(customer)?.update_bulk(&update)).await?))
}

async fn notifications(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
) -> Answer<NotificationPage> {
    let query = query::read(query.as_deref().unwrap_or_default())?;
    Ok(Json(shop.run(move |env| env.notifications().list(&query)).await?))
}
