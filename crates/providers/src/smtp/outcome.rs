//! Outcomes: what a failure at a stage of a dialogue means for the e-mail.

use std::io;

use tidings::SendError;

use super::wire::Answer;
use crate::tls::is_untrusted;

// Longest text of an answer in an error, in characters.
const LONGEST_REASON: usize = 500;

/// Part of the dialogue with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Connection, greeting and encryption.
    Greeting,
    /// `AUTH`.
    Login,
    /// `MAIL FROM`, and commands between e-mails.
    Mail,
    /// `RCPT TO`.
    Recipient,
    /// `DATA` and the content, but for the answer to the content.
    Content,
    /// The answer to the content. The server may have accepted the e-mail.
    Acceptance,
}

/// Parties of an e-mail, of whom a server may speak.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parties {
    pub(super) sender: Sender,
    pub(super) recipients: Recipients,
}

/// Sender of an e-mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// Sender in the credentials.
    OfAccount,
    /// Sender that the trigger has set.
    OfTrigger,
}

/// Recipients of an e-mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipients {
    /// The subscriber.
    One,
    /// The subscriber, and others.
    Several,
}

/// Failure of a dialogue.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) cause: Cause,
}

/// Cause of a failure.
#[derive(Debug)]
pub(super) enum Cause {
    /// The connection is broken, or the time is up.
    Broken(io::Error),
    /// The server refuses.
    Refused(Answer),
    /// What the server has sent is no answer, or is not one to this command.
    Unreadable(String),
    /// The server does not have what the account needs.
    Lacking(&'static str),
    /// The server does not have what the address needs.
    NoUnicode,
}

impl Stage {
    /// Returns `true` if an answer with this code leads to the next command (RFC 5321, 4.3.2, and RFC
    /// 4954). A client that goes on after any other one is out of step with the server.
    pub(super) fn goes_on_after(self, code: u16) -> bool {
        match self {
            Stage::Greeting | Stage::Mail | Stage::Recipient | Stage::Acceptance => {
                (200..300).contains(&code)
            }
            Stage::Login => matches!(code, 235 | 334),
            Stage::Content => code == 354,
        }
    }
}

impl Failure {
    /// Returns `true` if the server has refused, and the connection is good for another e-mail.
    pub(super) fn leaves_connection(&self) -> bool {
        match &self.cause {
            Cause::Refused(answer) => answer.code != 421,
            Cause::NoUnicode => true,
            Cause::Broken(_) | Cause::Unreadable(_) | Cause::Lacking(_) => false,
        }
    }

    /// Returns `true` if the server has not answered in time.
    pub(super) fn is_timeout(&self) -> bool {
        matches!(&self.cause, Cause::Broken(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// Returns the error of an attempt to send an e-mail with these parties.
    pub(super) fn of(&self, parties: Parties) -> SendError {
        match &self.cause {
            Cause::Refused(answer) => refused(self.stage, answer, parties),
            Cause::Broken(error) if is_untrusted(error) => {
                SendError::misconfigured(format!("the certificate of the server: {error}"))
            }
            Cause::Broken(error) => self.lost(error.to_string()),
            Cause::Unreadable(problem) => self.lost(problem.clone()),
            Cause::Lacking(what) => SendError::misconfigured(*what),
            Cause::NoUnicode => SendError::permanent("the server has no SMTPUTF8"),
        }
    }

    fn lost(&self, reason: String) -> SendError {
        match self.stage {
            Stage::Acceptance => SendError::unknown(reason),
            Stage::Greeting | Stage::Login | Stage::Mail | Stage::Recipient | Stage::Content => {
                SendError::retryable(reason)
            }
        }
    }
}

fn refused(stage: Stage, answer: &Answer, parties: Parties) -> SendError {
    let reason = answer.to_string();
    match (answer.code, stage) {
        (200..500, _) => SendError::retryable(reason),
        // A server that greets with 554 does not serve this client, whatever the e-mail.
        (530 | 534 | 535 | 538, _) | (_, Stage::Login | Stage::Greeting) => {
            SendError::misconfigured(reason)
        }
        // The server does not take this sender from the account, whatever the e-mail.
        (_, Stage::Mail) if parties.sender == Sender::OfAccount && !answer.says_too_large() => {
            SendError::misconfigured(reason)
        }
        (_, Stage::Recipient | Stage::Acceptance)
            if parties.recipients == Recipients::One && answer.says_gone() =>
        {
            SendError::recipient_gone(reason)
        }
        (_, Stage::Mail | Stage::Recipient | Stage::Content | Stage::Acceptance) => {
            SendError::permanent(reason)
        }
    }
}

impl Answer {
    // Returns `true` if there is no such mailbox: the address is suppressed. The enhanced code decides (RFC
    // 3463: 5.1.1, 5.1.2, 5.1.6 and 5.1.10), because 550 is also the answer to what looks like spam.
    fn says_gone(&self) -> bool {
        self.enhanced().is_some_and(|code| ["5.1.1", "5.1.2", "5.1.6", "5.1.10"].contains(&code))
    }

    // Returns `true` if the server does not take an e-mail of this size.
    fn says_too_large(&self) -> bool {
        self.code == 552 || self.enhanced() == Some("5.3.4")
    }

    // Returns the enhanced status code (RFC 3463), such as `5.1.1`.
    fn enhanced(&self) -> Option<&str> {
        let is_part = |part: &str| part.len() <= 3 && part.parse::<u16>().is_ok();
        let word = self.lines.first()?.split_whitespace().next()?;
        (word.split('.').count() == 3 && word.split('.').all(is_part)).then_some(word)
    }

    /// Returns the codes of the answer, such as `535 5.7.8`.
    pub(super) fn without_text(self) -> Self {
        let lines = self.enhanced().map(ToOwned::to_owned).into_iter().collect();
        Self { code: self.code, lines }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.lines.join(" ");
        let letters = text.chars().filter(|letter| !letter.is_control()).take(LONGEST_REASON);
        write!(f, "{} {}", self.code, letters.collect::<String>())
    }
}
