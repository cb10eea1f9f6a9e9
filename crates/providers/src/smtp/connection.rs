//! Connections: the dialogue with a server.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use lettre::Address;
use lettre::address::Envelope;
use lettre::transport::smtp::authentication::Mechanism;
use lettre::transport::smtp::commands::{Auth, Data, Ehlo, Mail, Noop, Quit, Rcpt, Rset, Starttls};
use lettre::transport::smtp::extension::{ClientId, MailBodyParameter, MailParameter};

use super::account::{Account, Login, Security, Trust};
use super::outcome::{Cause, Failure, Stage};
use super::wire::{Answer, Wire};

type Result<T, E = Failure> = std::result::Result<T, E>;

/// Connection to a server that has greeted and accepted the login.
#[derive(Debug)]
pub(super) struct Connection {
    wire: Wire,
    abilities: Vec<Ability>,
    since: Instant,
}

/// Time for an e-mail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// End of all that comes before the answer to the content.
    pub(super) deadline: Instant,
    /// Time for the answer to the content, from the last dot on. A server that scans the content may take longer
    /// for it than for all the rest.
    pub(super) acceptance: Duration,
}

// Keywords of the answer to EHLO that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ability {
    StartTls,
    EightBit,
    Unicode,
    Plain,
    Login,
}

impl Connection {
    /// Connects to the server of an account, greets it with the domain name of the host, if any, and logs in.
    pub(super) fn open(
        account: &Account,
        hello_name: Option<&str>,
        deadline: Instant,
    ) -> Result<Self> {
        let mut wire = Wire::connect(&account.host, account.port, deadline).map_err(unreached)?;
        if let Security::Implicit(trust) = &account.security {
            wire = wire.encrypt(trust).map_err(unreached)?;
        }
        let mut connection = Self { wire, abilities: Vec::new(), since: Instant::now() };
        connection.answer(Stage::Greeting)?;
        connection.greet(hello_name)?;
        if let Security::Upgrade { trust, required } = &account.security {
            connection = connection.upgraded((trust, *required), hello_name)?;
        }
        if let Some(login) = &account.login {
            connection.log_in(login)?;
        }
        Ok(connection)
    }

    fn upgraded(
        mut self,
        (trust, required): (&Trust, bool),
        hello_name: Option<&str>,
    ) -> Result<Self> {
        if !self.has(Ability::StartTls) {
            let cause = Cause::Lacking("the server has no STARTTLS");
            let lacking = Failure { stage: Stage::Greeting, cause };
            return if required { Err(lacking) } else { Ok(self) };
        }
        self.command(Stage::Greeting, Starttls)?;
        self.wire = self.wire.encrypt(trust).map_err(unreached)?;
        self.greet(hello_name)?;
        Ok(self)
    }

    fn greet(&mut self, hello_name: Option<&str>) -> Result<()> {
        let name = match (hello_name, self.wire.local_address()) {
            (Some(name), _) => ClientId::Domain(name.to_owned()),
            (None, Ok(IpAddr::V4(address))) => ClientId::Ipv4(address),
            (None, Ok(IpAddr::V6(address))) => ClientId::Ipv6(address),
            (None, Err(_)) => ClientId::default(),
        };
        let answer = self.command(Stage::Greeting, Ehlo::new(name))?;
        self.abilities = answer.lines.iter().flat_map(|line| abilities(line)).collect();
        Ok(())
    }

    fn log_in(&mut self, login: &Login) -> Result<()> {
        let (mechanism, prompts): (_, &[&str]) = if self.has(Ability::Plain) {
            (Mechanism::Plain, &[])
        } else if self.has(Ability::Login) {
            (Mechanism::Login, &["Username:", "Password:"])
        } else {
            let cause = Cause::Lacking("the server has neither AUTH PLAIN nor AUTH LOGIN");
            return Err(Failure { stage: Stage::Login, cause });
        };
        let mut answer = self.authenticate(mechanism, login, None)?;
        for prompt in prompts {
            if answer.code == 334 {
                answer = self.authenticate(mechanism, login, Some((*prompt).to_owned()))?;
            }
        }
        match answer.code {
            235 => Ok(()),
            _ => Err(Failure { stage: Stage::Login, cause: Cause::Refused(answer) }),
        }
    }

    fn authenticate(
        &mut self,
        mechanism: Mechanism,
        login: &Login,
        prompt: Option<String>,
    ) -> Result<Answer> {
        let command = Auth::new(mechanism, login.credentials(), prompt).map_err(|error| {
            Failure { stage: Stage::Login, cause: Cause::Unreadable(error.to_string()) }
        })?;
        let command = command.to_string();
        self.write(Stage::Login, &command)?;
        judged(Stage::Login, self.wire.read().map(|answer| login.hidden(answer, &command)))
    }

    /// Sends an e-mail, which ends with a line break. Waits for `acceptance` for the answer to the content.
    pub(super) fn send(
        &mut self,
        envelope: &Envelope,
        mail: &[u8],
        acceptance: Duration,
    ) -> Result<()> {
        let mut options = Vec::new();
        let mut addresses = envelope.to().iter().chain(envelope.from());
        let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        // Local parts of addresses are the only part of an e-mail that is not encoded as ASCII.
        if !mail.is_ascii() || !addresses.all(is_ascii) {
            if !self.has(Ability::Unicode) {
                return Err(Failure { stage: Stage::Mail, cause: Cause::NoUnicode });
            }
            options.push(MailParameter::SmtpUtfEight);
        }
        if !mail.is_ascii() && self.has(Ability::EightBit) {
            options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        self.command(Stage::Mail, Mail::new(envelope.from().cloned(), options))?;
        for recipient in envelope.to() {
            self.command(Stage::Recipient, Rcpt::new(recipient.clone(), Vec::new()))?;
        }
        self.command(Stage::Content, Data)?;
        // The server accepts nothing before the last dot. Until all is written, nothing is sent.
        let written = self.wire.write(&with_dots(mail));
        written.map_err(|error| Failure { stage: Stage::Content, cause: Cause::Broken(error) })?;
        self.wire.set_deadline(Instant::now() + acceptance);
        self.answer(Stage::Acceptance).map(drop)
    }

    /// Returns `true` if every answer was read. A later e-mail would take another answer for its own.
    pub(super) fn is_in_step(&self) -> bool {
        !self.wire.has_more()
    }

    /// Prepares the connection for another e-mail. A connection that is dead leaves time for
    /// another one.
    pub(super) fn reset(&mut self, deadline: Instant) -> Result<()> {
        let now = Instant::now();
        self.wire.set_deadline(now + deadline.saturating_duration_since(now) / 4);
        self.command(Stage::Mail, Rset)?;
        self.wire.set_deadline(deadline);
        Ok(())
    }

    /// Returns the time of the last e-mail.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Starts the time without an e-mail.
    pub(super) fn rest(self) -> Self {
        Self { since: Instant::now(), ..self }
    }

    /// Ends the dialogue.
    pub(super) fn close(mut self) -> Result<()> {
        self.command(Stage::Mail, Noop)?;
        // A server that hangs up at once has been told, too.
        let _ = self.command(Stage::Mail, Quit);
        Ok(())
    }

    fn has(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    fn command(&mut self, stage: Stage, command: impl std::fmt::Display) -> Result<Answer> {
        self.write(stage, &command.to_string())?;
        self.answer(stage)
    }

    fn write(&mut self, stage: Stage, command: &str) -> Result<()> {
        let written = self.wire.write(command.as_bytes());
        written.map_err(|error| Failure { stage, cause: Cause::Broken(error) })
    }

    fn answer(&mut self, stage: Stage) -> Result<Answer> {
        judged(stage, self.wire.read())
    }
}

// Returns an answer that leads to the next command.
fn judged(stage: Stage, answer: Result<Answer, Cause>) -> Result<Answer> {
    let cause = match answer {
        Ok(answer) if stage.goes_on_after(answer.code) => return Ok(answer),
        Ok(answer) if answer.code >= 400 => Cause::Refused(answer),
        Ok(answer) => Cause::Unreadable(format!("an answer to another command: {answer}")),
        Err(cause) => cause,
    };
    Err(Failure { stage, cause })
}

fn unreached(error: io::Error) -> Failure {
    Failure { stage: Stage::Greeting, cause: Cause::Broken(error) }
}

// Returns the abilities in a line of the answer to EHLO.
fn abilities(line: &str) -> Vec<Ability> {
    let line = line.to_ascii_uppercase();
    let mut words = line.split([' ', '=']);
    match words.next() {
        Some("STARTTLS") => vec![Ability::StartTls],
        Some("8BITMIME") => vec![Ability::EightBit],
        Some("SMTPUTF8") => vec![Ability::Unicode],
        Some("AUTH") => words
            .filter_map(|mechanism| match mechanism {
                "PLAIN" => Some(Ability::Plain),
                "LOGIN" => Some(Ability::Login),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

// Returns the content with a second dot at the start of each line that starts with one, and with the
// last line. A line also ends at a lone carriage return or line feed, since some servers take it for an
// end.
fn with_dots(mail: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(mail.len() + 64);
    for line in mail.split_inclusive(|byte| b"\r\n".contains(byte)) {
        if line.starts_with(b".") {
            content.push(b'.');
        }
        content.extend_from_slice(line);
    }
    if !content.ends_with(b"\r\n") {
        content.extend_from_slice(b"\r\n");
    }
    content.extend_from_slice(b".\r\n");
    content
}

#[cfg(test)]
mod tests {
    use super::with_dots;

    /// One row per content: the bytes on the wire.
    #[test]
    fn only_the_last_line_is_a_dot() {
        for (mail, wire) in [
            ("a\r\n", "a\r\n.\r\n"),
            ("a", "a\r\n.\r\n"),
            (".\r\n", "..\r\n.\r\n"),
            ("a\r\n.\r\nMAIL FROM:<x@y.z>\r\n", "a\r\n..\r\nMAIL FROM:<x@y.z>\r\n.\r\n"),
            ("a\n.\nb\r\n", "a\n..\nb\r\n.\r\n"),
            ("a\r.\r\nb\r\n", "a\r..\r\nb\r\n.\r\n"),
            ("a\r.\rb\r\n", "a\r..\rb\r\n.\r\n"),
            ("a.b\r\n..c\r\n", "a.b\r\n...c\r\n.\r\n"),
        ] {
            assert_eq!(String::from_utf8(with_dots(mail.as_bytes())).unwrap(), wire, "{mail:?}");
        }
    }
}
