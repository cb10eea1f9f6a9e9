//! Accounts: the credentials of an integration, checked.

use std::net::IpAddr;
use std::sync::Arc;

use lettre::message::Mailbox;
use lettre::transport::smtp::authentication;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use serde_json::Value;
use tidings::credentials::{Credentials, TlsOptions};
use tidings::error::{Invalid, Reason};
use tidings::secret::Secret;

use super::address;
use super::wire::Answer;

// Start of a word of a command by which an answer that quotes it is recognized, in bytes.
const QUOTED: usize = 8;

/// Account at an SMTP server.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: Security,
    pub(super) login: Option<Login>,
    pub(super) from: Mailbox,
}

/// Encryption of a connection.
#[derive(Clone, Debug)]
pub(super) enum Security {
    /// TLS from the start.
    Implicit(Trust),
    /// TLS by `STARTTLS`.
    Upgrade {
        trust: Trust,
        /// `true` if the connection is closed when the server has no `STARTTLS`.
        required: bool,
    },
    /// No encryption.
    None,
}

/// Name and roots by which the certificate of a server is verified.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) name: ServerName<'static>,
    pub(super) config: Arc<ClientConfig>,
}

/// User and password.
#[derive(Clone, Debug)]
pub(super) struct Login {
    user: String,
    password: Secret,
}

impl Account {
    /// Reads an account. Refuses a credential that is missing or malformed.
    pub(super) fn of(credentials: &Credentials) -> Result<Self, Invalid> {
        let host = credentials.host.clone().filter(|host| !host.is_empty());
        let host = host.ok_or(missing("host"))?;
        let (security, default) = Security::of(credentials, &host)?;
        let port = credentials.port.as_deref().map_or(Ok(default), port)?;
        let from = credentials.from.as_deref().ok_or(missing("from"))?;
        let from = address::mailbox(from).ok_or(malformed("from", "an e-mail address"))?;
        let name = credentials.sender_name.clone().or(from.name);
        let from = Mailbox::new(name, from.email);
        Ok(Self { host, port, security, login: Login::of(credentials)?, from })
    }
}

impl Login {
    fn of(credentials: &Credentials) -> Result<Option<Self>, Invalid> {
        match (&credentials.user, &credentials.password) {
            (Some(user), Some(password)) => {
                Ok(Some(Self { user: user.clone(), password: password.clone() }))
            }
            (None, None) => Ok(None),
            (Some(_), None) => Err(missing("password")),
            (None, Some(_)) => Err(missing("user")),
        }
    }

    pub(super) fn credentials(&self) -> authentication::Credentials {
        authentication::Credentials::new(self.user.clone(), self.password.expose().to_owned())
    }

    /// Returns an answer to a command of the login, without its text if that quotes the command or has the
    /// password in it. Errors contain the texts of answers, and are logged.
    pub(super) fn hidden(&self, answer: Answer, command: &str) -> Answer {
        let is_secret = |word: &&str| !["AUTH", "PLAIN", "LOGIN"].contains(word);
        // Some servers cut what they quote.
        let start = |word| str::get(word, ..QUOTED).unwrap_or(word);
        let sent = command.split_whitespace().filter(is_secret).map(start);
        let mut secrets = sent.chain([self.password.expose()]).filter(|secret| !secret.is_empty());
        let is_quoted = |secret: &str| answer.lines.iter().any(|line| line.contains(secret));
        if secrets.any(is_quoted) { answer.without_text() } else { answer }
    }
}

impl Security {
    // Returns the encryption, and the port by default.
    fn of(credentials: &Credentials, host: &str) -> Result<(Self, u16), Invalid> {
        let is_set = |flag: Option<bool>| flag == Some(true);
        let secure = credentials.secure.unwrap_or(credentials.port.as_deref() == Some("465"));
        if is_set(credentials.ignore_tls) {
            for (name, flag) in
                [("secure", credentials.secure), ("requireTls", credentials.require_tls)]
            {
                if is_set(flag) {
                    let other = format!("credentials.{name}").into();
                    return Err(Invalid::new("credentials.ignoreTls", Reason::Excludes { other }));
                }
            }
            return Ok((Security::None, 587));
        }
        let trust = Trust::of(credentials.tls_options.as_ref(), host)?;
        if secure {
            return Ok((Security::Implicit(trust), 465));
        }
        let required = is_set(credentials.require_tls) || !is_loopback(host);
        Ok((Security::Upgrade { trust, required }, 587))
    }
}

impl Trust {
    fn of(options: Option<&TlsOptions>, host: &str) -> Result<Self, Invalid> {
        let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        let mut name = (host, "host");
        for (option, value) in options.iter().flat_map(|TlsOptions(options)| options.iter()) {
            match (option.as_str(), value) {
                ("ca", Value::String(pem)) => add_roots(&mut roots, pem)?,
                ("servername", Value::String(servername)) => {
                    name = (servername, "tlsOptions.servername");
                }
                ("ca" | "servername", _) => {
                    return Err(malformed(&format!("tlsOptions.{option}"), "a text"));
                }
                // An option that is passed over could be one that makes the connection safer.
                (option, _) => {
                    let field = format!("credentials.tlsOptions.{option}");
                    return Err(Invalid::new(field, Reason::Unknown { suggestion: None }));
                }
            }
        }
        let (name, field) = name;
        let name = ServerName::try_from(name.to_owned());
        let name = name.map_err(|_| malformed(field, "a host name or an IP address"))?;
        Ok(Self { name, config: Arc::new(config(roots)?) })
    }
}

fn add_roots(roots: &mut RootCertStore, pem: &str) -> Result<(), Invalid> {
    let refused = || malformed("tlsOptions.ca", "certificates in PEM");
    let mut is_empty = true;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let added = certificate.map(|certificate| roots.add(certificate));
        added.map_err(|_| refused())?.map_err(|_| refused())?;
        is_empty = false;
    }
    if is_empty { Err(refused()) } else { Ok(()) }
}

fn config(roots: RootCertStore) -> Result<ClientConfig, Invalid> {
    let provider = Arc::new(crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|_| malformed("tlsOptions", "options of TLS 1.2 or 1.3"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn port(text: &str) -> Result<u16, Invalid> {
    let port = text.parse().ok().filter(|port| *port > 0);
    let range = Reason::OutOfRange { min: 1, max: u16::MAX.into() };
    port.ok_or(Invalid::new("credentials.port", range))
}

fn missing(name: &str) -> Invalid {
    Invalid::new(format!("credentials.{name}"), Reason::Missing)
}

fn malformed(name: &str, expected: &'static str) -> Invalid {
    Invalid::new(format!("credentials.{name}"), Reason::malformed(expected))
}
