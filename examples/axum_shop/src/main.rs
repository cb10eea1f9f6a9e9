//! `cargo run` serves the shop. The README lists the settings.

use std::env;
use std::error::Error;

use axum_shop::{Post, open, serve};
use tokio::net::TcpListener;
use tokio::signal;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let post = Post::from_settings(|name| env::var(name).ok());
    let listener = TcpListener::bind(setting("SHOP_ADDRESS", "127.0.0.1:3000")).await?;
    let address = format!("http://{}", listener.local_addr()?);
    let engine = open(setting("SHOP_FILE", "shop.redb"), &post, &setting("SHOP_URL", &address))?;
    println!("{address}");
    let stop = async {
        let _ = signal::ctrl_c().await;
    };
    serve(engine, &post, listener, stop).await
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}
