//! The wire: a stream that ends with its deadline, and the answers of a server.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use super::account::Trust;
use super::outcome::Cause;
use crate::look_up;

// Largest answer, in bytes. RFC 5321 asks for 512 in a line.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Connection to a server.
#[derive(Debug)]
pub(super) struct Wire(BufReader<Stream>);

#[derive(Debug)]
enum Stream {
    Plain(Timed),
    Encrypted(Box<StreamOwned<ClientConnection, Timed>>),
}

/// Socket whose reads and writes fail after the deadline.
#[derive(Debug)]
struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

/// Answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: u16,
    /// Text of each line, without the code.
    pub(super) lines: Vec<String>,
}

impl Wire {
    /// Connects to a server.
    pub(super) fn connect(host: &str, port: u16, deadline: Instant) -> io::Result<Self> {
        let addresses = resolve(host, port, deadline)?;
        let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut failure = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            // An address that does not answer leaves time for the others.
            match TcpStream::connect_timeout(&address, rest(deadline)? / left.max(1)) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Ok(Self::over(Stream::Plain(Timed { socket, deadline })));
                }
                Err(error) => failure = error,
            }
            left = left.saturating_sub(1);
        }
        Err(failure)
    }

    fn over(stream: Stream) -> Self {
        Self(BufReader::new(stream))
    }

    /// Returns `true` if the server has sent more than the answers that were read.
    pub(super) fn has_more(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    /// Encrypts the connection. What the server has sent before is refused, because anybody could
    /// have sent it.
    pub(super) fn encrypt(self, trust: &Trust) -> io::Result<Self> {
        if self.has_more() {
            return Err(io::Error::new(ErrorKind::InvalidData, "an answer came before TLS"));
        }
        let mut socket = match self.0.into_inner() {
            Stream::Plain(socket) => socket,
            encrypted @ Stream::Encrypted(_) => return Ok(Self::over(encrypted)),
        };
        let (config, name) = (trust.config.clone(), trust.name.clone());
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        Ok(Self::over(Stream::Encrypted(Box::new(StreamOwned::new(tls, socket)))))
    }

    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        self.socket_mut().deadline = deadline;
    }

    /// Returns the address of this end.
    pub(super) fn local_address(&self) -> io::Result<IpAddr> {
        Ok(match self.0.get_ref() {
            Stream::Plain(timed) => timed.socket.local_addr(),
            Stream::Encrypted(stream) => stream.sock.socket.local_addr(),
        }?
        .ip())
    }

    fn socket_mut(&mut self) -> &mut Timed {
        match self.0.get_mut() {
            Stream::Plain(timed) => timed,
            Stream::Encrypted(stream) => &mut stream.sock,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)?;
        self.0.get_mut().flush()
    }

    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// * [`Cause::Broken`], if the connection ends or the time is up.
    /// * [`Cause::Unreadable`], if what the server sends is no answer.
    pub(super) fn read(&mut self) -> Result<Answer, Cause> {
        let (mut lines, mut room) = (Vec::new(), LONGEST_ANSWER);
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(room).unwrap_or(u64::MAX);
            let read = (&mut self.0).take(limit).read_until(b'\n', &mut line);
            let read = read.map_err(Cause::Broken)?;
            if !line.ends_with(b"\n") {
                return Err(if read == room {
                    Cause::Unreadable("the answer is too long".into())
                } else {
                    Cause::Broken(ErrorKind::UnexpectedEof.into())
                });
            }
            room -= read;
            let line = String::from_utf8_lossy(&line);
            let Some((code, is_last, text)) = parsed(line.trim_end()) else {
                return Err(Cause::Unreadable("the answer has no code".into()));
            };
            lines.push(text.to_owned());
            if is_last {
                return Ok(Answer { code, lines });
            }
        }
    }
}

// Returns the code of a line, whether the line is the last one, and the text.
fn parsed(line: &str) -> Option<(u16, bool, &str)> {
    let (code, rest) = line.split_at_checked(3)?;
    let code = code.parse().ok().filter(|code| (200..600).contains(code))?;
    match rest.split_at_checked(1) {
        None => Some((code, true, "")),
        Some((" ", text)) => Some((code, true, text.trim())),
        Some(("-", text)) => Some((code, false, text.trim())),
        Some(_) => None,
    }
}

fn resolve(host: &str, port: u16, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_owned();
    let found = look_up::within(rest(deadline)?, move || (host.as_str(), port).to_socket_addrs());
    Ok(found??.collect())
}

// The time until the deadline, which is not zero.
fn rest(deadline: Instant) -> io::Result<Duration> {
    let rest = deadline.saturating_duration_since(Instant::now());
    if rest < Duration::from_millis(1) { Err(timed_out()) } else { Ok(rest) }
}

fn timed_out() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the time is up")
}

// Linux says of a socket that has timed out that it would block.
fn named(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { timed_out() } else { error }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(rest(self.deadline)?))?;
        self.socket.read(buffer).map_err(named)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(rest(self.deadline)?))?;
        self.socket.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.read(buffer),
            Stream::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.write(bytes),
            Stream::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(timed) => timed.flush(),
            Stream::Encrypted(stream) => stream.flush(),
        }
    }
}
