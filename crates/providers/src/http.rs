//! Requests over HTTP: one `POST`, within a timeout, to a public address, without redirects.

mod connecting;
mod guard;
mod quotes;

use std::io::{ErrorKind, Read};
use std::time::{Duration, SystemTime};

use tidings::SendError;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Timeout, http};

use self::connecting::{Connecting, NotConnected};
use self::guard::Guard;
use crate::LONGEST_TIMEOUT;
use crate::tls::is_untrusted;

// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 4 * 1024;

// Longest text of an answer in an error, in characters.
const LONGEST_REASON: usize = 300;

// What an error says in place of a text with a part of the URL.
const HIDDEN: &str = "(the text has a part of the URL)";

/// Settings of the providers that send over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) scope: AddressScope,
    /// Certificates in DER that are trusted in place of those of the public authorities.
    pub(crate) roots: Option<Vec<Vec<u8>>>,
}

/// Addresses to which requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressScope {
    /// Public addresses, over `https`.
    Public,
    /// All addresses, also over `http`.
    Private,
}

/// Whose URL a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlOf {
    /// One recipient's.
    Recipient,
    /// The integration's, for all recipients.
    #[cfg_attr(not(feature = "webhook"), expect(dead_code, reason = "only webhooks have one"))]
    Integration,
}

/// Client with a pool of connections.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
}

/// Answer of a service.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Start of the body, unless it has a part of the URL in it.
    pub(crate) text: String,
    /// Time for which the service asks not to be called.
    retry_after: Option<Duration>,
    pub(crate) location: Option<String>,
    of: UrlOf,
}

impl Default for Settings {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(15), scope: AddressScope::Public, roots: None }
    }
}

impl Client {
    pub(crate) fn new(settings: &Settings) -> Self {
        let certificates = |roots: &Vec<Vec<u8>>| {
            let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
            RootCerts::new_with_certs(&roots.collect::<Vec<_>>())
        };
        let roots = settings.roots.as_ref().map_or(RootCerts::WebPki, certificates);
        let timeout = settings.timeout.min(LONGEST_TIMEOUT);
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            // The parts end before the whole, so that a timeout of the whole is one of the answer.
            .timeout_resolve(Some(timeout / 4))
            .timeout_connect(Some(timeout / 2))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .https_only(settings.scope == AddressScope::Public)
            // The proxy of the environment would look up names behind the guard.
            .proxy(None)
            .user_agent(concat!("tidings/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        let guard = Guard::new(settings.scope);
        Self { agent: Agent::with_parts(config, Connecting::default(), guard) }
    }

    /// Posts a body. Returns every answer, also a refusal.
    pub(crate) fn post(
        &self,
        (url, of): (&str, UrlOf),
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Result<Answer, SendError> {
        let mut request = self.agent.post(url);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let sent = request.send(body);
        let answer = sent.map_err(|error| failure(&error, of))?;
        Ok(Answer::read(answer, (url, of)))
    }

    /// Returns `Ok` if there is a service at the URL, whatever it answers.
    #[cfg(feature = "webhook")]
    pub(crate) fn reach(&self, url: &str) -> Result<(), SendError> {
        let tried = self.agent.head(url).call();
        tried.map(drop).map_err(|error| failure(&error, UrlOf::Integration))
    }
}

impl UrlOf {
    // Returns the error of a URL that will not do, whatever is sent to it. That of a recipient says nothing of
    // the integration, and that of the integration nothing of the message, which a fallback may send.
    fn broken(self, reason: impl Into<String>) -> SendError {
        match self {
            UrlOf::Recipient => SendError::permanent(reason),
            UrlOf::Integration => SendError::misconfigured(reason),
        }
    }
}

impl Answer {
    fn read(mut response: http::Response<Body>, (url, of): (&str, UrlOf)) -> Self {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header("retry-after").and_then(span);
        let location = header("location").map(ToOwned::to_owned);
        let status = response.status().as_u16();
        let mut text = Vec::new();
        // The status has been read. What is missing of the text changes nothing.
        let _ = response.body_mut().as_reader().take(LONGEST_ANSWER).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        // The URL is a secret, and errors are in logs and dead letters.
        let is_hidden = !text.is_empty() && quotes::has_part_of(url, &text);
        let text = if is_hidden { HIDDEN } else { text.trim() }.to_owned();
        Self { status, text, retry_after, location, of }
    }

    /// Returns `Ok` if the service has accepted the request.
    pub(crate) fn accepted(self) -> Result<Self, SendError> {
        let reason = self.reason();
        Err(match self.status {
            200..300 => return Ok(self),
            // A redirect may lead anywhere, and a request that follows it may be another one.
            300..=399 => {
                let to = self.location.as_deref().unwrap_or_default();
                self.of.broken(format!("{reason}: redirects to {}", shown(to)))
            }
            410 if self.of == UrlOf::Recipient => SendError::recipient_gone(reason),
            401 | 403 | 404 | 405 | 410 => self.of.broken(reason),
            // The gateway has sent the request on, and has no answer, or none that makes sense. A time for which it
            // asks not to be called is dropped, since errors of lost answers have none.
            502 | 504 => SendError::unknown(reason),
            408 | 409 | 423 | 425 | 429 | 500..600 => self.busy(),
            _ => SendError::permanent(reason),
        })
    }

    /// Returns the error of an answer to try again later, after the time that it asks for.
    pub(crate) fn busy(&self) -> SendError {
        match self.retry_after {
            Some(span) => SendError::retry_after(self.reason(), span),
            None => SendError::retryable(self.reason()),
        }
    }

    /// Returns the status and the text.
    pub(crate) fn reason(&self) -> String {
        match self.text.as_str() {
            "" => self.status.to_string(),
            text => format!("{} {}", self.status, shortened(text)),
        }
    }
}

// Returns the host of a URL with its scheme. What is behind them may be a secret.
fn shown(url: &str) -> String {
    origin(url).map_or_else(|| "another path".to_owned(), |origin| shortened(&origin))
}

/// Returns the scheme, the host and the port of a URL, as browsers write them (RFC 6454): in small letters,
/// without a user, and without the port of the scheme.
pub(crate) fn origin(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    let (scheme, host) = (url.scheme_str()?.to_ascii_lowercase(), url.host()?.to_ascii_lowercase());
    let of_scheme = match scheme.as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    };
    match url.port_u16().filter(|port| Some(*port) != of_scheme) {
        Some(port) => Some(format!("{scheme}://{host}:{port}")),
        None => Some(format!("{scheme}://{host}")),
    }
}

fn shortened(text: &str) -> String {
    let letters = text.chars().take(LONGEST_REASON);
    letters.map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

// Returns the time in a Retry-After header: seconds, or a date.
fn span(value: &str) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit is a long time, too.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

// Returns the error of a request without an answer. Its outcome is unknown once the service may have
// read it.
fn failure(error: &ureq::Error, of: UrlOf) -> SendError {
    let reason = error.to_string();
    match error {
        ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed => SendError::retryable(reason),
        // Their texts show the URL, which is a secret of webhooks.
        ureq::Error::BadUri(_) => of.broken("the URL is not valid"),
        ureq::Error::RequireHttpsOnly(_) => of.broken("the URL is not one of `https`"),
        // The second is one of a host whose name no certificate may have.
        ureq::Error::Http(_) | ureq::Error::Tls(_) => of.broken(reason),
        // The certificates that are trusted make no sense.
        ureq::Error::Rustls(_) => SendError::misconfigured(reason),
        ureq::Error::Io(error) if is_untrusted(error) => of.broken(reason),
        // The guard refuses the address.
        ureq::Error::Io(error) if error.kind() == ErrorKind::PermissionDenied => of.broken(reason),
        ureq::Error::Other(error) if error.is::<NotConnected>() => {
            SendError::retryable(error.to_string())
        }
        _ => SendError::unknown(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::origin;

    /// One row per URL: its origin.
    #[test]
    fn an_origin_is_that_of_browsers() {
        for (url, expected) in [
            ("https://push.example.net/send/1", Some("https://push.example.net")),
            ("HTTPS://Push.Example.NET", Some("https://push.example.net")),
            ("https://push.example.net:443/send", Some("https://push.example.net")),
            ("http://push.example.net:80?send", Some("http://push.example.net")),
            ("https://push.example.net:80/", Some("https://push.example.net:80")),
            ("https://push.example.net:4443/", Some("https://push.example.net:4443")),
            ("https://user:secret@push.example.net/", Some("https://push.example.net")),
            ("https://user@mail@push.example.net:8443#a", Some("https://push.example.net:8443")),
            ("https://[2001:db8::443]/send", Some("https://[2001:db8::443]")),
            ("https://[2001:db8::443]:443/send", Some("https://[2001:db8::443]")),
            ("https://push.example.net:/send", Some("https://push.example.net")),
            ("https://push.example.net:0443/send", Some("https://push.example.net")),
            ("/send?from=https://push.example.net", None),
            ("https:///send", None),
            ("https://user@/send", None),
            ("push.example.net", None),
        ] {
            assert_eq!(origin(url).as_deref(), expected, "{url}");
        }
    }
}
