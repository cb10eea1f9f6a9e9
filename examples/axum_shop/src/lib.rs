//! A web shop on Tidings: pages for customers, pages for the people who run it, a JSON interface,
//! and a worker that sends what is due.
//!
//! | file | what is in it |
//! |---|---|
//! | `workflows.rs` | the workflows, declared in code |
//! | `post.rs` | where e-mail goes: a server, or a folder |
//! | `shop.rs` | what every handler shares, and the way from async code to the engine |
//! | `feed.rs` | the changes of an inbox as server-sent events |
//! | `pages/` | the pages and their forms, the one of unsubscribe links among them |
//! | `api.rs` | the JSON interface |
//! | `assets/` | the style and the script of the pages |
//! | `failure.rs` | the answer to a call that the engine refuses |

mod api;
mod assets;
mod failure;
mod feed;
mod pages;
mod post;
mod shop;
mod workflows;

use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use axum::{Router, middleware};
use tidings::Engine;
use tidings::unsubscribe::UnsubscribeLinks;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

pub use post::Post;

use shop::Shop;

// Time that the calls of the mail server have when the shop stops.
const PATIENCE: Duration = Duration::from_secs(40);

/// Opens the file of a shop whose e-mail goes to `post`. Its unsubscribe links lead to the shop at
/// `url`.
pub fn open(file: impl AsRef<Path>, post: &Post, url: &str) -> tidings::Result<Engine> {
    let links = UnsubscribeLinks::new(format!("{url}/unsubscribe"))?;
    post.register(Engine::builder().unsubscribe_links(links)).open(file)
}

/// Serves the shop on `listener` until `stopped` is ready. Requests and messages that are on their way
/// are finished first.
pub async fn serve(
    engine: Engine,
    post: &Post,
    listener: TcpListener,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let worker = engine.worker().threads(2).start()?;
    let (ends, ending) = watch::channel(false);
    let shop = Shop::open(&engine, &post.account()?, ending)?;
    let app = Router::new()
        .merge(pages::routes())
        .merge(feed::routes())
        .merge(assets::routes())
        .nest("/api", api::routes())
        .layer(middleware::map_response(assets::with_policy))
        .with_state(shop);
    let stopped = async move {
        stopped.await;
        // The feeds end. They would keep the server up for as long as a browser shows an inbox.
        ends.send_replace(true);
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    let report = spawn_blocking(move || worker.stop(PATIENCE)).await?;
    if let Some(error) = report.last_error {
        eprintln!("{} errors of the worker, the last one: {error}", report.errors);
    }
    Ok(())
}
