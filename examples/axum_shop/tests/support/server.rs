//! A running shop, and a browser of a few lines.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum_shop::{Mail, serve};
use serde_json::Value;
use tempfile::TempDir;
use tidings::Engine;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub struct Server {
    folder: TempDir,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    pub body: String,
}

impl Server {
    /// A fresh shop whose e-mail goes through the server at `url`, or is written to files.
    pub fn start(url: Option<String>) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), url)
    }

    /// The same shop in another process.
    pub fn restart(self, url: Option<String>) -> Self {
        Self::in_folder(self.stop(), url)
    }

    /// Stops the shop. Returns when it has finished what was on its way.
    pub fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
        self.folder
    }

    fn in_folder(folder: TempDir, url: Option<String>) -> Self {
        let mail = match url {
            Some(url) => Mail::smtp("shop@example.org", &url).unwrap(),
            None => Mail::folder("shop@example.org", folder.path()).unwrap(),
        };
        let file = folder.path().join("shop.redb");
        let engine = Engine::builder().provider("smtp", mail).open(file).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap_or_default() };
        let serve = move || runtime.block_on(serve(engine, listener, stopped)).unwrap();
        Self { folder, address, stop, thread: thread::spawn(serve) }
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
        Self { status, location: location.map(str::to_owned), body: body.to_owned() }
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}
