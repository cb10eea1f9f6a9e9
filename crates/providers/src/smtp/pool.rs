//! The pool: connections that wait for another e-mail.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidings::credentials::Credentials;
use tidings::error::Invalid;
use tidings::ids::IntegrationId;
use tidings::integration::Integration;

use super::account::Account;
use super::connection::{Connection, Time};
use super::mail::Mail;
use super::outcome::Failure;

// Relays that are kept. A host with more integrations connects more often.
const RELAYS: usize = 256;

/// Relays by integration, and their connections that wait.
#[derive(Debug, Default)]
pub(super) struct Relays {
    by_integration: Mutex<HashMap<IntegrationId, Arc<Relay>>>,
    waiting: Mutex<Vec<Waiting>>,
    bounds: Bounds,
    hello_name: Option<String>,
}

/// Server of an integration.
#[derive(Debug)]
pub(super) struct Relay {
    credentials: Credentials,
    account: Account,
}

// Connection that waits. The list has the one that has waited longest first.
#[derive(Debug)]
struct Waiting {
    relay: Arc<Relay>,
    connection: Connection,
}

// Bounds of the connections that wait. Each holds a descriptor of the process.
#[derive(Debug)]
struct Bounds {
    /// Time for which one waits.
    idle: Duration,
    /// Connections of a relay.
    of_relay: usize,
    /// Connections of all relays.
    of_all: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        // Servers close a connection that is silent for minutes.
        Self { idle: Duration::from_secs(30), of_relay: 16, of_all: 256 }
    }
}

impl Relays {
    /// Returns the relays, whose servers are greeted with the domain name of the host.
    pub(super) fn greeting_as(self, hello_name: String) -> Self {
        Self { hello_name: Some(hello_name), ..self }
    }

    /// Returns the domain name in the greeting of a server. Returns `None` for the address of the connection.
    pub(super) fn hello_name(&self) -> Option<&str> {
        self.hello_name.as_deref()
    }

    /// Returns the relay of an integration. Its connections are dropped if its credentials have
    /// changed.
    pub(super) fn of(&self, integration: &Integration) -> Result<Arc<Relay>, Invalid> {
        let mut relays = self.by_integration.lock();
        let known = relays.get(&integration.id);
        if let Some(relay) = known.filter(|relay| relay.credentials == integration.credentials) {
            return Ok(Arc::clone(relay));
        }
        let account = Account::of(&integration.credentials)?;
        if relays.len() >= RELAYS {
            relays.clear();
        }
        let credentials = integration.credentials.clone();
        let relay = Arc::new(Relay { credentials, account });
        let former = relays.insert(integration.id, Arc::clone(&relay));
        drop(relays);
        if let Some(former) = former {
            self.close(|one| Arc::ptr_eq(&one.relay, &former));
        }
        Ok(relay)
    }

    /// Sends an e-mail through a connection that waits, or through a new one.
    pub(super) fn send(&self, relay: &Arc<Relay>, mail: &Mail, time: Time) -> Result<(), Failure> {
        let mut connection = match self.waiting(relay, time.deadline) {
            Some(connection) => connection,
            None => Connection::open(&relay.account, self.hello_name(), time.deadline)?,
        };
        let sent = connection.send(&mail.envelope, &mail.content, time.acceptance);
        if sent.as_ref().err().is_none_or(Failure::leaves_connection) && connection.is_in_step() {
            self.keep(Waiting { relay: Arc::clone(relay), connection: connection.rest() });
        }
        sent
    }

    // Returns a connection that still answers. Closes those of all relays that have waited too long: no
    // other call comes to a relay whose integration is paused or deleted. Where one is silent, so are the
    // others of the relay: each would take a part of the time that is left.
    fn waiting(&self, relay: &Arc<Relay>, deadline: Instant) -> Option<Connection> {
        self.close(|one| one.connection.since().elapsed() >= self.bounds.idle);
        loop {
            let mut connection = self.taken(relay)?;
            match connection.reset(deadline) {
                Ok(()) if connection.is_in_step() => return Some(connection),
                Err(failure) if failure.is_timeout() => {
                    self.close(|one| Arc::ptr_eq(&one.relay, relay));
                    return None;
                }
                Ok(()) | Err(_) => {}
            }
        }
    }

    // Takes the connection of a relay that has waited for the shortest time.
    fn taken(&self, relay: &Arc<Relay>) -> Option<Connection> {
        let mut waiting = self.waiting.lock();
        let index = waiting.iter().rposition(|one| Arc::ptr_eq(&one.relay, relay))?;
        Some(waiting.remove(index).connection)
    }

    // Keeps a connection. Where there is no room for it, the one that has waited longest is closed.
    fn keep(&self, connection: Waiting) {
        let mut waiting = self.waiting.lock();
        let is_of_relay = |one: &Waiting| Arc::ptr_eq(&one.relay, &connection.relay);
        let of_relay = waiting.iter().filter(|one| is_of_relay(one)).count();
        let superfluous = if of_relay >= self.bounds.of_relay {
            waiting.iter().position(is_of_relay)
        } else {
            (waiting.len() >= self.bounds.of_all).then_some(0)
        };
        let closed = superfluous.map(|index| waiting.remove(index));
        waiting.push(connection);
        drop(waiting);
        drop(closed);
    }

    // Closes connections, behind the lock.
    fn close(&self, is_closed: impl Fn(&Waiting) -> bool) {
        let closed: Vec<_> = self.waiting.lock().extract_if(.., |one| is_closed(one)).collect();
        drop(closed);
    }
}

impl Relay {
    pub(super) fn account(&self) -> &Account {
        &self.account
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use testkit::wait_until;
    use tidings::Delivery;
    use tidings::integration::IntegrationCreate;
    use tidings::step::Step;
    use tidings::subscriber::SubscriberCreate;
    use tidings::vocabulary::Channel;

    use super::*;

    const IDLE: Duration = Duration::from_millis(300);

    /// Server that accepts everything, and counts the connections that the client has closed.
    struct Server {
        address: SocketAddr,
        closed: Arc<AtomicUsize>,
        /// Number of connections, of the first ones, on which it answers nothing.
        silent: Arc<AtomicUsize>,
    }

    impl Server {
        fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (closed, silent) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
            let server = Self { address: listener.local_addr().unwrap(), closed, silent };
            let (closed, silent) = (Arc::clone(&server.closed), Arc::clone(&server.silent));
            thread::spawn(move || {
                for (number, stream) in listener.incoming().enumerate() {
                    let (closed, silent) = (Arc::clone(&closed), Arc::clone(&silent));
                    thread::spawn(move || {
                        serve(stream.unwrap(), || number < silent.load(Ordering::Relaxed));
                        closed.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            server
        }

        /// Waits until the client has closed `count` connections, and no more.
        fn has_closed(&self, count: usize) {
            wait_until(|| self.closed.load(Ordering::Relaxed) >= count);
            assert_eq!(self.closed.load(Ordering::Relaxed), count);
        }
    }

    fn serve(mut stream: TcpStream, is_silent: impl Fn() -> bool) {
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let mut is_content = false;
        stream.write_all(b"220 ready\r\n").unwrap();
        for line in lines {
            if is_silent() || is_content && line != "." {
                continue;
            }
            is_content = line == "DATA";
            let answer = if is_content { "354 go on\r\n" } else { "250 fine\r\n" };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    }

    fn delivery(server: &Server) -> Delivery {
        let credentials = Credentials::default()
            .host(server.address.ip().to_string())
            .port(server.address.port())
            .from("shop@example.com");
        let ada = SubscriberCreate::new("ada").unwrap().email("ada@example.org").unwrap();
        let step = Step::email("Hello", "Hello").unwrap();
        let integration = IntegrationCreate::new("smtp", Channel::Email).unwrap();
        let integration = integration.credentials(credentials);
        let mut delivery = Delivery::sample(&step, &ada, &integration).unwrap();
        // Each server has an integration. Those of samples have one id.
        let id = format!("{:032}", server.address.port());
        delivery.integration.id = id.parse().unwrap();
        delivery
    }

    fn deadline() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn relays(bounds: Bounds) -> Relays {
        Relays { bounds, ..Relays::default() }
    }

    // Leaves as many connections as e-mails at the same time do.
    fn open(relays: &Relays, delivery: &Delivery, count: usize) {
        let relay = relays.of(&delivery.integration).unwrap();
        for _ in 0..count {
            let connection = Connection::open(relay.account(), None, deadline()).unwrap();
            relays.keep(Waiting { relay: Arc::clone(&relay), connection: connection.rest() });
        }
    }

    fn send(relays: &Relays, delivery: &Delivery) {
        send_within(relays, delivery, Duration::from_secs(60));
    }

    fn send_within(relays: &Relays, delivery: &Delivery, time: Duration) {
        let relay = relays.of(&delivery.integration).unwrap();
        let mail = Mail::of(delivery, relay.account()).unwrap();
        let time = Time { deadline: Instant::now() + time, acceptance: time };
        relays.send(&relay, &mail, time).unwrap();
    }

    #[test]
    fn connections_that_wait_too_long_are_closed() {
        for is_of_another_relay in [false, true] {
            let (server, other) = (Server::start(), Server::start());
            let mails = delivery(&server);
            let next = if is_of_another_relay { delivery(&other) } else { mails.clone() };
            let relays = relays(Bounds { idle: IDLE, ..Bounds::default() });
            open(&relays, &mails, 8);
            thread::sleep(IDLE);
            send(&relays, &next);
            server.has_closed(8);
        }
    }

    #[test]
    fn a_connection_that_waits_is_used_again() {
        let server = Server::start();
        let (relays, mails) = (Relays::default(), delivery(&server));
        open(&relays, &mails, 1);
        for _ in 0..3 {
            send(&relays, &mails);
        }
        assert_eq!(relays.waiting.lock().len(), 1);
        server.has_closed(0);
    }

    /// A network has dropped the connections that wait, and says so to neither side.
    #[test]
    fn silent_connections_leave_time_for_a_new_one() {
        const TIME: Duration = Duration::from_secs(8);
        const COUNT: usize = 8;
        let server = Server::start();
        let (relays, mails) = (Relays::default(), delivery(&server));
        open(&relays, &mails, COUNT);
        server.silent.store(COUNT, Ordering::Relaxed);
        let start = Instant::now();
        send_within(&relays, &mails, TIME);
        assert!(start.elapsed() < TIME / 2, "{:?}", start.elapsed());
        assert_eq!(relays.waiting.lock().len(), 1);
        server.has_closed(COUNT);
    }

    #[test]
    fn the_connections_that_wait_are_bounded() {
        let (server, other) = (Server::start(), Server::start());
        let (mails, others) = (delivery(&server), delivery(&other));
        let relays = relays(Bounds { of_relay: 3, of_all: 5, ..Bounds::default() });
        open(&relays, &mails, 4);
        server.has_closed(1);
        open(&relays, &others, 4);
        server.has_closed(2);
        other.has_closed(1);
        assert_eq!(relays.waiting.lock().len(), 5);
    }

    #[test]
    fn other_credentials_close_the_connections() {
        let server = Server::start();
        let (relays, mut mails) = (Relays::default(), delivery(&server));
        open(&relays, &mails, 2);
        mails.integration.credentials.sender_name = Some("The Shop".into());
        relays.of(&mails.integration).unwrap();
        server.has_closed(2);
    }
}
