//! A reader of server-sent events.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

pub struct Feed {
    lines: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: String,
}

impl Feed {
    pub fn open(address: SocketAddr, path: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        write!(stream, "GET {path} HTTP/1.1\r\nHost: shop\r\n{last}\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        Self { lines }
    }

    /// Waits for the next event. Returns `None` if the server has ended the feed.
    pub fn next(&mut self) -> Option<Event> {
        let mut event = Event { name: "message".into(), id: String::new(), data: String::new() };
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Lines of the chunked encoding have no colon, and a comment begins with one.
            match line.trim_end().split_once(": ") {
                Some(("event", name)) => event.name = name.into(),
                Some(("id", id)) => event.id = id.into(),
                Some(("data", data)) => event.data.push_str(data),
                _ if line == "\n" && !event.id.is_empty() => return Some(event),
                _ => {}
            }
        }
    }
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}
