//! An HTTP server that does what a test tells it to.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};

use crate::common::{Stream, tls};

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Act {
    Say(String),
    Wait(Duration),
    /// Sends bytes one by one, slowly, for ever.
    Drip,
    /// Sends bytes without encryption.
    Break(Vec<u8>),
    HangUp,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

pub struct Server {
    pub address: SocketAddr,
    pub certificate: Vec<u8>,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// An answer with a status and a body.
pub fn answer(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n");
    vec![Act::Say(format!("{head}{headers}\r\n{body}"))]
}

impl Server {
    pub fn start(script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::serving(script, false)
    }

    pub fn secure(script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::serving(script, true)
    }

    fn serving(
        script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static,
        is_secure: bool,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (tls, certificate) = tls();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let (address, script) = (listener.local_addr().unwrap(), Arc::new(script));
        let kept = Arc::clone(&requests);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (script, kept, tls) = (script.clone(), kept.clone(), tls.clone());
                thread::spawn(move || {
                    let socket = socket.unwrap();
                    let shared = socket.try_clone().unwrap();
                    let mut stream: Box<dyn Stream> = if is_secure {
                        let connection = ServerConnection::new(tls).unwrap();
                        Box::new(StreamOwned::new(connection, socket))
                    } else {
                        Box::new(socket)
                    };
                    // A client that hangs up ends the talk.
                    let _ = talk(&mut *stream, &shared, &*script, &kept);
                    let _ = shared.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, certificate: certificate.der().to_vec(), requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/hook", self.address)
    }
}

fn talk(
    stream: &mut dyn Stream,
    socket: &TcpStream,
    script: &dyn Fn(&Request) -> Vec<Act>,
    kept: &Mutex<Vec<Request>>,
) -> Result<()> {
    let request = read(stream)?;
    kept.lock().unwrap().push(request.clone());
    for act in script(&request) {
        match act {
            Act::Say(text) => {
                stream.write_all(text.as_bytes())?;
                stream.flush()?;
            }
            Act::Wait(span) => thread::sleep(span),
            Act::Drip => loop {
                stream.write_all(b"x")?;
                stream.flush()?;
                thread::sleep(Duration::from_millis(20));
            },
            Act::Break(bytes) => (&*socket).write_all(&bytes)?,
            Act::HangUp => return socket.shutdown(Shutdown::Both),
        }
    }
    Ok(())
}

fn read(stream: &mut dyn Stream) -> Result<Request> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let pairs = lines.filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<_, _> =
        pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Request { line, headers, body })
}
