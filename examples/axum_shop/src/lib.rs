//! A web shop on Tidings: pages for customers, pages for the people who run it, a JSON interface,
//! and a thread that sends what is due.
//!
//! | file | what is in it |
//! |---|---|
//! | `workflows.rs` | the workflows and the e-mail account, declared in code |
//! | `shop.rs` | what every handler shares, and the way from async code to the engine |
//! | `sender.rs` | the thread around `run_due` |
//! | `mail.rs` | a `Provider` over SMTP |
//! | `pages/` | the pages and their forms |
//! | `api.rs` | the JSON interface |
//! | `failure.rs` | the answer to a call that the engine refuses |

mod api;
mod failure;
mod mail;
mod pages;
mod sender;
mod shop;
mod workflows;

use std::error::Error;
use std::future::Future;

use axum::Router;
use tidings::Engine;
use tokio::net::TcpListener;

pub use mail::Mail;

use sender::Sender;
use shop::Shop;

/// Serves the shop on `listener` until `stopped` is ready. Requests and messages that are on their way
/// are finished first.
pub async fn serve(
    engine: Engine,
    listener: TcpListener,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let sender = Sender::start(engine.clone());
    let shop = Shop::open(&engine, sender.waker())?;
    let app = Router::new().merge(pages::routes()).nest("/api", api::routes()).with_state(shop);
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    sender.stop();
    Ok(())
}
