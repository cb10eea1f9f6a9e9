//! The style, the script and the icon of the pages, and what pages may load.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::Response;
use axum::routing::get;

use crate::shop::Shop;

const STYLE: &str = include_str!("assets/shop.css");
const SCRIPT: &str = include_str!("assets/shop.js");
const ICON: &str = include_str!("assets/icon.svg");

// Only what the shop itself serves, so that a text which is not escaped runs nothing.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(crate) fn routes() -> Router<Shop> {
    let asset = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text) })
    };
    Router::new()
        .route("/assets/shop.css", asset("text/css; charset=utf-8", STYLE))
        .route("/assets/shop.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/assets/icon.svg", asset("image/svg+xml", ICON))
}

pub(crate) async fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // The address of a page may have a token.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
