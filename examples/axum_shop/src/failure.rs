//! The answer to a call that the engine refuses: a status and a text, as a page or as JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use serde_json::json;
use tidings::Error;

use crate::pages::{Place, layout};

/// A refusal, as a page.
#[derive(Debug)]
pub(crate) struct PageFailure(Error);

/// A refusal, as JSON.
#[derive(Debug)]
pub(crate) struct ApiFailure(Error);

impl<E: Into<Error>> From<E> for PageFailure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl<E: Into<Error>> From<E> for ApiFailure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PageFailure {
    fn into_response(self) -> Response {
        let (status, text) = explain(&self.0);
        let content = html! {
            h1 { "That did not work" }
            p.refused #refusal { (text) }
        };
        (status, layout("That did not work", &Place::Shop, &content)).into_response()
    }
}

impl IntoResponse for ApiFailure {
    fn into_response(self) -> Response {
        let (status, text) = explain(&self.0);
        (status, Json(json!({ "message": text }))).into_response()
    }
}

// A refusal is for the caller, and names what to change. What the store says is for the log.
fn explain(error: &Error) -> (StatusCode, String) {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status.is_server_error() {
        eprintln!("{error}");
        return (status, "Something went wrong here. Please try again.".to_owned());
    }
    (status, error.to_string())
}
