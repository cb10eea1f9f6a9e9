//! A mail server that keeps what it is sent. It has no mailbox `gone`, `busy` is busy, and `slow` is
//! slow.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum_shop::Post;
use tidings::credentials::Credentials;

pub struct MailServer {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    recipients: Vec<String>,
    mails: Vec<String>,
}

impl MailServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::default();
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), Arc::clone(&kept));
                // A client that hangs up in the middle has sent nothing.
                thread::spawn(move || drop(serve(stream, &kept)));
            }
        });
        Self { address, log }
    }

    /// An account of the shop at this server.
    pub fn post(&self) -> Post {
        let account = Credentials::default().from("The shop <shop@example.org>");
        let account = account.host(self.address.ip().to_string());
        Post::Server(Box::new(account.port(self.address.port())))
    }

    pub fn received(&self) -> Vec<String> {
        self.log.lock().unwrap().mails.clone()
    }

    pub fn wait_for(&self, count: usize) -> Vec<String> {
        self.wait_until(|log| log.mails.len() >= count);
        self.received()
    }

    /// Waits until the server was told of a recipient. Its answer may be on its way.
    pub fn wait_for_recipient(&self, address: &str) {
        self.wait_until(|log| log.recipients.iter().any(|line| line.contains(address)));
    }

    fn wait_until(&self, ready: impl Fn(&Log) -> bool) {
        let started = Instant::now();
        while !ready(&self.log.lock().unwrap()) {
            assert!(started.elapsed() < Duration::from_secs(20), "no mail");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Log>) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    stream.write_all(b"220 ready\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        if line.starts_with("RCPT") {
            log.lock().unwrap().recipients.push(line.clone());
        }
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "RCPT" if line.contains("gone@") => "550 5.1.1 no such mailbox",
            "RCPT" if line.contains("busy@") => "451 try again later",
            "RCPT" if line.contains("slow@") => {
                thread::sleep(Duration::from_millis(500));
                "250 fine"
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n")?;
                let mail = lines.by_ref().map_while(Result::ok).take_while(|line| line != ".");
                let mail = mail.collect::<Vec<_>>().join("\n");
                log.lock().unwrap().mails.push(mail);
                "250 kept"
            }
            "QUIT" => "221 bye",
            _ => "250 fine",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}
