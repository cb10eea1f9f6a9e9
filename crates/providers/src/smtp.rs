//! E-mail through an SMTP server.

mod account;
mod address;
mod connection;
mod lines;
mod mail;
mod outcome;
mod pool;
mod settings;
mod wire;

use std::time::{Duration, Instant};

use tidings::credentials::Credentials;
use tidings::error::{Invalid, Reason};
use tidings::integration::Integration;
use tidings::vocabulary::Channel;
use tidings::{Delivery, IntegrationTestResult, Provider, ProviderReceipt, SendError};

use self::account::Account;
use self::connection::{Connection, Time};
use self::mail::Mail;
use self::outcome::{Parties, Recipients, Sender};
use self::pool::Relays;
use crate::LONGEST_TIMEOUT;

/// E-mail through the SMTP server of an integration.
///
/// Credentials of the integration:
///
/// | credential | |
/// |---|---|
/// | `host`, `from` | required; `from` is an address, with or without a name |
/// | `port` | 587 by default, and 465 if `secure` |
/// | `user`, `password` | for `AUTH`, both or none |
/// | `senderName` | name in `From`, in place of that in `from` |
/// | `secure` | `true`: TLS from the start. `false`: `STARTTLS`. By default, port 465 is secure |
/// | `requireTls` | `true`: `STARTTLS` is required also of a server on the loopback interface |
/// | `ignoreTls` | `true`: the connection is not encrypted |
/// | `tlsOptions` | `ca`, certificates in PEM to trust; `servername`, a name in place of `host` |
///
/// Overrides of a trigger that it takes: `to`, `cc`, `bcc` (an address or a list of them), `from`,
/// `senderName`, `replyTo`, `text` (the text part), `unsubscribeUrl` (`List-Unsubscribe`, with one
/// click if it is an `https` URL; otherwise that of the engine), `headers` (an object of texts) and
/// `attachments`: a list of `{ "file": <base64>, "name", "mime", "contentId" }`. One with a
/// `contentId` is an inline image, `<img src="cid:..">`. Without this override, `attachments` in
/// the payload are taken if one of them is an object with a `file`. A member of that name in another
/// form is passed over.
///
/// Domains of addresses are sent in ASCII. A server needs `SMTPUTF8` for a local part that is not ASCII.
/// An e-mail is refused if a line of a header would have more than 998 bytes, because no space divides it.
///
/// ```
/// use tidings::credentials::Credentials;
/// use tidings::integration::IntegrationCreate;
/// use tidings::vocabulary::Channel;
/// use tidings::{Engine, store::memory::MemoryStore};
/// use tidings_providers::Smtp;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().provider("smtp", Smtp::default()).build(MemoryStore::default());
/// let env = engine.organization("shop")?.production()?;
///
/// let relay = Credentials::default().host("smtp.example.org").from("shop@example.org");
/// let mail = IntegrationCreate::new("smtp", Channel::Email)?.identifier("mail")?;
/// env.integrations().upsert(&mail.credentials(relay))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Smtp {
    timeout: Duration,
    acceptance: Duration,
    relays: Relays,
}

impl Default for Smtp {
    /// 30 seconds for an e-mail up to the end of its content, and 2 minutes for the answer to it.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            acceptance: Duration::from_secs(120),
            relays: Relays::default(),
        }
    }
}

impl Smtp {
    /// Longest name of a header in the overrides, in bytes.
    pub const MAX_HEADER_NAME: usize = 76;
    /// Longest name for the greeting, in bytes: that of a domain.
    pub const MAX_HELLO_NAME: usize = 253;
    /// Longest `unsubscribeUrl` in the overrides, in bytes: a line of a header has 998 at most.
    pub const MAX_URL: usize = 900;

    /// Sets how long an e-mail may take, from when it is made to the end of its content: a day at most. The
    /// answer to the content has a [time of its own](Self::acceptance_timeout). A test of an integration ends
    /// within this one.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets how long the server may take to answer the content of an e-mail, which many servers scan first: a day at
    /// most. Without an answer within that time, the server may have accepted the e-mail
    /// ([`SendError::Unknown`]), and another attempt may send it twice.
    ///
    /// RFC 5321 asks for 10 minutes. The [lease](tidings::Builder::lease) of the engine has to be longer than this
    /// time and [`timeout`](Self::timeout) together, by a few seconds. No call extends it. The default lease is longer
    /// than the default times.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidings::{Engine, store::memory::MemoryStore};
    /// use tidings_providers::Smtp;
    ///
    /// let patient = Smtp::default().acceptance_timeout(Duration::from_secs(10 * 60));
    /// let lease = Duration::from_secs(11 * 60);
    /// let engine = Engine::builder().provider("smtp", patient).lease(lease);
    /// # engine.build(MemoryStore::default());
    /// ```
    #[must_use]
    pub fn acceptance_timeout(self, timeout: Duration) -> Self {
        Self { acceptance: timeout, ..self }
    }

    /// Sets the domain name of this host, which greets the servers (`EHLO`). Without it, the greeting has the
    /// address of the connection, which is a private one in a container: some relays refuse that.
    ///
    /// ```
    /// use tidings_providers::Smtp;
    ///
    /// let smtp = Smtp::default().hello_name("mail.example.org")?;
    /// # Ok::<(), tidings::error::Invalid>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`], if it is no domain name in ASCII.
    pub fn hello_name(self, name: impl Into<String>) -> Result<Self, Invalid> {
        let name = name.into();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_plain);
        if name.len() > Self::MAX_HELLO_NAME || !name.split('.').all(is_label) {
            return Err(Invalid::new("helloName", Reason::malformed("a domain name in ASCII")));
        }
        Ok(Self { relays: self.relays.greeting_as(name), ..self })
    }

    fn time(&self) -> Time {
        let deadline = Instant::now() + self.timeout.min(LONGEST_TIMEOUT);
        Time { deadline, acceptance: self.acceptance.min(LONGEST_TIMEOUT) }
    }
}

impl Provider for Smtp {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let time = self.time();
        let relay = self.relays.of(&delivery.integration).map_err(misconfigured)?;
        let mail = Mail::of(delivery, relay.account())?;
        let sent = self.relays.send(&relay, &mail, time);
        sent.map_err(|failure| failure.of(mail.parties(relay.account())))?;
        Ok(ProviderReceipt::with_id(mail.id))
    }

    fn accept(&self, channel: Channel, credentials: &Credentials) -> Result<(), Invalid> {
        if channel != Channel::Email {
            return Err(Invalid::new("channel", Reason::malformed("email")));
        }
        Account::of(credentials).map(drop)
    }

    /// Connects, greets the server, and logs in.
    fn check(&self, integration: &Integration) -> IntegrationTestResult {
        let account = Account::of(&integration.credentials).map_err(misconfigured);
        let tried = account.and_then(|account| {
            let (hello, deadline) = (self.relays.hello_name(), self.time().deadline);
            let opened = Connection::open(&account, hello, deadline);
            let parties = Parties { sender: Sender::OfAccount, recipients: Recipients::One };
            opened.and_then(Connection::close).map_err(|failure| failure.of(parties))
        });
        tried.into()
    }
}

fn misconfigured(invalid: Invalid) -> SendError {
    SendError::misconfigured(invalid.to_string())
}
