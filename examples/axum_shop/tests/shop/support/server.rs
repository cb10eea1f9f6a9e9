//! A running shop, and a browser of a few lines.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum_shop::{Post, open, serve};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::feed::Feed;

/// The address of the shop in e-mails.
pub const URL: &str = "https://shop.example.org";

pub struct Server {
    folder: TempDir,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
pub struct Answer {
    pub head: String,
    pub status: u16,
    pub location: Option<String>,
    pub body: String,
}

impl Server {
    /// A fresh shop whose e-mail goes to `post`, or is written to files.
    pub fn start(post: Option<Post>) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), post)
    }

    /// The same shop in another process.
    pub fn restart(self, post: Option<Post>) -> Self {
        Self::in_folder(self.stop(), post)
    }

    /// Stops the shop. Returns when it has finished what was on its way.
    pub fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
        self.folder
    }

    fn in_folder(folder: TempDir, post: Option<Post>) -> Self {
        let post = post.unwrap_or_else(|| Post::Folder(folder.path().join("outbox")));
        let engine = open(folder.path().join("shop.redb"), &post, URL).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap_or_default() };
        let serve = move || runtime.block_on(serve(engine, &post, listener, stopped)).unwrap();
        Self { folder, address, stop, thread: thread::spawn(serve) }
    }

    /// The files of e-mails.
    pub fn outbox(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.folder.path().join("outbox")) else { return Vec::new() };
        files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
    }

    /// Opens the feed of an inbox, as a browser does.
    pub fn feed(&self, path: &str, last: Option<&str>) -> Feed {
        Feed::open(self.address, path, last)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    pub fn submit(&self, path: &str, form: &str) -> Answer {
        self.ask("POST", path, "application/x-www-form-urlencoded", form)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "application/json", &body.to_string())
    }

    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.ask("PATCH", path, "application/json", &body.to_string())
    }

    /// Asks for a page until it is as it should be.
    pub fn wait_until(&self, path: &str, ready: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let page = self.get(path).body;
            if ready(&page) {
                return page;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{page}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask(&self, method: &str, path: &str, kind: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Answer::read(&answer)
    }
}

impl Answer {
    fn read(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let location = head.lines().find_map(|line| line.strip_prefix("location: "));
        Self {
            head: head.to_owned(),
            status,
            location: location.map(str::to_owned),
            body: body.to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}
