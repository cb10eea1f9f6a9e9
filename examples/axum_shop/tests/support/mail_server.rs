//! A mail server that keeps what it is sent. It has no mailbox `gone`, `busy` is busy, and `slow` is
//! slow.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub struct MailServer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
}

impl MailServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::default();
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that hangs up in the middle has sent nothing.
                let _ = serve(stream.unwrap(), &kept);
            }
        });
        Self { address, received }
    }

    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    pub fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    pub fn wait_for(&self, count: usize) -> Vec<String> {
        let started = Instant::now();
        while self.received().len() < count {
            assert!(started.elapsed() < Duration::from_secs(20), "no mail");
            thread::sleep(Duration::from_millis(20));
        }
        self.received()
    }
}

fn serve(mut stream: TcpStream, received: &Mutex<Vec<String>>) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    stream.write_all(b"220 ready\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "RCPT" if line.contains("gone@") => "550 no such mailbox",
            "RCPT" if line.contains("busy@") => "451 try again later",
            "RCPT" if line.contains("slow@") => {
                thread::sleep(Duration::from_millis(500));
                "250 fine"
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n")?;
                let mail = lines.by_ref().map_while(Result::ok).take_while(|line| line != ".");
                let mail = mail.collect::<Vec<_>>().join("\n");
                received.lock().unwrap().push(mail);
                "250 kept"
            }
            "QUIT" => "221 bye",
            _ => "250 fine",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}
