//! An SMTP server that does what a test tells it to.

use std::io::Result;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::common::{Stream, tls};

/// What a client has done.
#[derive(Clone, Debug)]
pub enum Moment {
    Connected,
    Command(String),
    /// The content has come, with its last dot.
    Sent(Mail),
}

/// What the server does.
#[derive(Clone, Debug)]
pub enum Act {
    Say(String),
    Wait(Duration),
    /// Sends bytes one by one, slowly, for ever.
    Drip,
    /// Goes on with TLS.
    Encrypt,
    Keep(Mail),
    HangUp,
}

/// An e-mail as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    pub content: String,
}

pub struct Server {
    pub address: SocketAddr,
    pub certificate: String,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    kept: Vec<Mail>,
    commands: Vec<String>,
    connections: usize,
}

struct Talk<F> {
    script: Arc<F>,
    tls: Arc<ServerConfig>,
    log: Arc<Mutex<Log>>,
}

pub fn say(text: &str) -> Vec<Act> {
    vec![Act::Say(text.to_owned())]
}

/// Does what a server does that accepts everything.
pub fn polite(moment: Moment) -> Vec<Act> {
    match moment {
        Moment::Connected => say("220 ready"),
        Moment::Sent(mail) => vec![Act::Keep(mail), Act::Say("250 kept".into())],
        Moment::Command(line) => match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => say("250-localhost\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 AUTH PLAIN LOGIN"),
            "AUTH" => say("235 welcome"),
            "DATA" => say("354 go on"),
            "QUIT" => say("221 bye"),
            _ => say("250 fine"),
        },
    }
}

/// As [`polite`], with TLS by STARTTLS.
pub fn polite_with_tls(moment: Moment) -> Vec<Act> {
    match &moment {
        Moment::Command(line) if line.starts_with("EHLO") => {
            say("250-localhost\r\n250-STARTTLS\r\n250 AUTH PLAIN")
        }
        Moment::Command(line) if line == "STARTTLS" => {
            vec![Act::Say("220 go".into()), Act::Encrypt]
        }
        _ => polite(moment),
    }
}

/// What a test says of a moment, or the polite answer.
pub fn but(special: impl Fn(&str) -> Option<Vec<Act>>) -> impl Fn(Moment) -> Vec<Act> {
    move |moment| match &moment {
        Moment::Command(line) => special(line).unwrap_or_else(|| polite(moment)),
        Moment::Connected => special("connected").unwrap_or_else(|| polite(moment)),
        Moment::Sent(_) => special("sent").unwrap_or_else(|| polite(moment)),
    }
}

impl Server {
    pub fn start(script: impl Fn(Moment) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (tls, certificate) = tls();
        let (address, log) = (listener.local_addr().unwrap(), Arc::<Mutex<Log>>::default());
        let (script, kept) = (Arc::new(script), Arc::clone(&log));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let talk = Talk { script: script.clone(), tls: tls.clone(), log: kept.clone() };
                thread::spawn(move || talk.serve(stream.unwrap()));
            }
        });
        Self { address, certificate: certificate.pem(), log }
    }

    pub fn kept(&self) -> Vec<Mail> {
        self.log.lock().unwrap().kept.clone()
    }

    pub fn commands(&self) -> Vec<String> {
        self.log.lock().unwrap().commands.clone()
    }

    pub fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }
}

impl<F: Fn(Moment) -> Vec<Act>> Talk<F> {
    fn serve(&self, socket: TcpStream) {
        self.log.lock().unwrap().connections += 1;
        // A client that hangs up ends the talk.
        let _ = self.talk(socket);
    }

    fn talk(&self, socket: TcpStream) -> Result<()> {
        let shared = socket.try_clone()?;
        let mut stream: Box<dyn Stream> = Box::new(socket);
        let (mut moment, mut mail) = (Moment::Connected, Mail::default());
        loop {
            let mut data = false;
            for act in (self.script)(moment) {
                match act {
                    Act::Say(text) => {
                        data |= text.starts_with("354");
                        stream.write_all(format!("{text}\r\n").as_bytes())?;
                        stream.flush()?;
                    }
                    Act::Wait(span) => thread::sleep(span),
                    Act::Drip => loop {
                        stream.write_all(b"2")?;
                        thread::sleep(Duration::from_millis(20));
                    },
                    Act::Encrypt => {
                        let tls = ServerConnection::new(self.tls.clone()).unwrap();
                        stream = Box::new(StreamOwned::new(tls, shared.try_clone()?));
                    }
                    Act::Keep(mail) => self.log.lock().unwrap().kept.push(mail),
                    Act::HangUp => {
                        let _ = shared.shutdown(std::net::Shutdown::Both);
                        return Ok(());
                    }
                }
            }
            if data {
                mail.content = until(&mut *stream, b"\r\n.\r\n")?;
                moment = Moment::Sent(std::mem::take(&mut mail));
                continue;
            }
            let line = until(&mut *stream, b"\r\n")?.trim_end().to_owned();
            self.log.lock().unwrap().commands.push(line.clone());
            if let Some(from) = line.strip_prefix("MAIL FROM:") {
                mail = Mail { from: from.into(), ..Mail::default() };
            }
            if let Some(to) = line.strip_prefix("RCPT TO:") {
                mail.to.push(to.into());
            }
            moment = Moment::Command(line);
        }
    }
}

fn until(stream: &mut dyn Stream, end: &[u8]) -> Result<String> {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(end) {
        stream.read_exact(&mut byte)?;
        read.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}
