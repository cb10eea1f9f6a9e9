//! `cargo run` serves the shop. The README lists the settings.

use std::env;
use std::error::Error;

use axum_shop::{Mail, serve};
use tidings::Engine;
use tokio::net::TcpListener;
use tokio::signal;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let from = setting("SHOP_FROM", "shop@example.org");
    let mail = match env::var("SMTP_URL") {
        Ok(url) => Mail::smtp(&from, &url)?,
        Err(_) => Mail::folder(&from, "outbox")?,
    };
    let engine =
        Engine::builder().provider("smtp", mail).open(setting("SHOP_FILE", "shop.redb"))?;
    let listener = TcpListener::bind(setting("SHOP_ADDRESS", "127.0.0.1:3000")).await?;
    println!("http://{}", listener.local_addr()?);
    let stop = async {
        let _ = signal::ctrl_c().await;
    };
    serve(engine, listener, stop).await
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}
