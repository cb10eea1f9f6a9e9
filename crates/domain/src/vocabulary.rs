//! Enums of words on the wire that several entities share, in the order of the specification.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};

use crate::error::Invalid;

/// Declares an enum that is serialized, parsed and printed as words. The derive of serde alone
/// would give no list of the words, and no `FromStr` or `Display`. The values are in the order of their
/// declaration, but for `@unordered` ones.
macro_rules! wire_enum {
    ($(#[$attribute:meta])* $name:ident, $field:literal: $($words:tt)+) => {
        $crate::vocabulary::wire_enum! {
            @unordered
            $(#[$attribute])*
            #[derive(PartialOrd, Ord)]
            $name, $field: $($words)+
        }
    };
    (
        @unordered
        $(#[$attribute:meta])*
        $name:ident, $field:literal: $($(#[$mark:meta])* $variant:ident = $word:literal,)+
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $(#[$mark])* $variant,)+
        }

        impl $name {
            /// All values, in the order of the specification.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Returns the word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::error::Invalid;

            fn from_str(word: &str) -> Result<Self, $crate::error::Invalid> {
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::error::Invalid::new(
                        $field,
                        $crate::error::Reason::NotOneOf {
                            words: Self::ALL.iter().map(ToString::to_string).collect(),
                        },
                    )),
                }
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl $crate::json::Shaped for $name {
            fn shape() -> $crate::json::Shape {
                $crate::json::word::<Self>()
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::vocabulary::Word::default())
            }
        }
    };
}
pub(crate) use wire_enum;

/// Visitor of a value that is written as one word.
pub(crate) struct Word<T> {
    expected: &'static str,
    value: PhantomData<T>,
}

impl<T> Word<T> {
    /// A visitor that says what it has expected.
    pub(crate) fn of(expected: &'static str) -> Self {
        Self { expected, value: PhantomData }
    }
}

impl<T> Default for Word<T> {
    fn default() -> Self {
        Self::of("a word")
    }
}

impl<T: FromStr<Err = Invalid>> Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        word.parse().map_err(E::custom)
    }
}

wire_enum! {
    /// Channel to a subscriber.
    Channel, "channel":
    InApp = "in_app",
    Email = "email",
    Sms = "sms",
    Chat = "chat",
    Push = "push",
}

wire_enum! {
    /// Type of a step and its jobs.
    StepType, "type":
    InApp = "in_app",
    Email = "email",
    Sms = "sms",
    Chat = "chat",
    Push = "push",
    Digest = "digest",
    Trigger = "trigger",
    Delay = "delay",
    Throttle = "throttle",
    Custom = "custom",
}

impl From<Channel> for StepType {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::InApp => StepType::InApp,
            Channel::Email => StepType::Email,
            Channel::Sms => StepType::Sms,
            Channel::Chat => StepType::Chat,
            Channel::Push => StepType::Push,
        }
    }
}

impl StepType {
    /// Returns the channel of such a job. Returns `None` if it sends nothing.
    pub const fn channel(self) -> Option<Channel> {
        match self {
            StepType::InApp => Some(Channel::InApp),
            StepType::Email => Some(Channel::Email),
            StepType::Sms => Some(Channel::Sms),
            StepType::Chat => Some(Channel::Chat),
            StepType::Push => Some(Channel::Push),
            StepType::Digest
            | StepType::Trigger
            | StepType::Delay
            | StepType::Throttle
            | StepType::Custom => None,
        }
    }
}

wire_enum! {
    @unordered
    /// Severity of a notification. `High` is the greatest one.
    #[derive(Default)]
    Severity, "severity":
    High = "high",
    Medium = "medium",
    Low = "low",
    #[default]
    None = "none",
}

impl Severity {
    const fn rank(self) -> u8 {
        match self {
            Severity::None => 0,
            Severity::Low => 1,
            Severity::Medium => 2,
            Severity::High => 3,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(crate) const fn is_none(&self) -> bool {
        matches!(self, Severity::None)
    }
}

impl PartialOrd for Severity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Severity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

wire_enum! {
    /// Unit of a window or a delay.
    TimeUnit, "unit":
    Seconds = "seconds",
    Minutes = "minutes",
    Hours = "hours",
    Days = "days",
    Weeks = "weeks",
    Months = "months",
}

wire_enum! {
    /// Day of the week.
    Weekday, "weekDays":
    Monday = "monday",
    Tuesday = "tuesday",
    Wednesday = "wednesday",
    Thursday = "thursday",
    Friday = "friday",
    Saturday = "saturday",
    Sunday = "sunday",
}

wire_enum! {
    /// Built-in name of a provider.
    ProviderId, "providerId":
    Emailjs = "emailjs",
    Mailgun = "mailgun",
    Mailjet = "mailjet",
    Mandrill = "mandrill",
    Nodemailer = "nodemailer",
    Postmark = "postmark",
    Sendgrid = "sendgrid",
    Sendinblue = "sendinblue",
    Ses = "ses",
    Netcore = "netcore",
    InfobipEmail = "infobip-email",
    Resend = "resend",
    Plunk = "plunk",
    Mailersend = "mailersend",
    Mailtrap = "mailtrap",
    Clickatell = "clickatell",
    Outlook365 = "outlook365",
    SvcEmail = "svc-email",
    Sparkpost = "sparkpost",
    EmailWebhook = "email-webhook",
    Braze = "braze",
    Nexmo = "nexmo",
    Plivo = "plivo",
    Sms77 = "sms77",
    SmsCentral = "sms-central",
    Sns = "sns",
    Telnyx = "telnyx",
    Twilio = "twilio",
    Gupshup = "gupshup",
    Firetext = "firetext",
    InfobipSms = "infobip-sms",
    BurstSms = "burst-sms",
    BulkSms = "bulk-sms",
    IsendSms = "isend-sms",
    FortySixElks = "forty-six-elks",
    Kannel = "kannel",
    Maqsam = "maqsam",
    Termii = "termii",
    AfricasTalking = "africas-talking",
    SvcSms = "svc-sms",
    Sendchamp = "sendchamp",
    GenericSms = "generic-sms",
    Clicksend = "clicksend",
    Bandwidth = "bandwidth",
    Messagebird = "messagebird",
    Simpletexting = "simpletexting",
    AzureSms = "azure-sms",
    RingCentral = "ring-central",
    BrevoSms = "brevo-sms",
    EazySms = "eazy-sms",
    Mobishastra = "mobishastra",
    AfroMessage = "afro-message",
    Unifonic = "unifonic",
    Smsmode = "smsmode",
    Imedia = "imedia",
    Sinch = "sinch",
    IsendproSms = "isendpro-sms",
    Fcm = "fcm",
    Apns = "apns",
    Expo = "expo",
    OneSignal = "one-signal",
    Pushpad = "pushpad",
    PushWebhook = "push-webhook",
    PusherBeams = "pusher-beams",
    Appio = "appio",
    Svc = "svc",
    Slack = "slack",
    Discord = "discord",
    Msteams = "msteams",
    Mattermost = "mattermost",
    Ryver = "ryver",
    Zulip = "zulip",
    GrafanaOnCall = "grafana-on-call",
    Getstream = "getstream",
    RocketChat = "rocket-chat",
    WhatsappBusiness = "whatsapp-business",
    ChatWebhook = "chat-webhook",
    SvcSlack = "svc-slack",
}

impl ProviderId {
    /// Returns the provider of a job on `channel` before an integration is chosen.
    pub const fn built_in(channel: Channel) -> Self {
        match channel {
            Channel::InApp | Channel::Push => ProviderId::Svc,
            Channel::Email => ProviderId::SvcEmail,
            Channel::Sms => ProviderId::SvcSms,
            Channel::Chat => ProviderId::SvcSlack,
        }
    }
}

wire_enum! {
    /// Provider in the channel settings of a subscriber.
    ChannelProviderId, "providerId":
    Slack = "slack",
    Discord = "discord",
    Msteams = "msteams",
    Mattermost = "mattermost",
    Ryver = "ryver",
    Zulip = "zulip",
    GrafanaOnCall = "grafana-on-call",
    Getstream = "getstream",
    RocketChat = "rocket-chat",
    WhatsappBusiness = "whatsapp-business",
    ChatWebhook = "chat-webhook",
    SvcSlack = "svc-slack",
    Fcm = "fcm",
    Apns = "apns",
    Expo = "expo",
    OneSignal = "one-signal",
    Pushpad = "pushpad",
    PushWebhook = "push-webhook",
    PusherBeams = "pusher-beams",
    Appio = "appio",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written() {
        for provider in ProviderId::ALL {
            assert_eq!(provider.as_str().parse(), Ok(*provider));
            let json = serde_json::to_string(provider).unwrap();
            assert_eq!(serde_json::from_str::<ProviderId>(&json).unwrap(), *provider);
        }
    }

    #[test]
    fn every_channel_provider_is_a_provider() {
        for provider in ChannelProviderId::ALL {
            assert!(provider.as_str().parse::<ProviderId>().is_ok(), "{provider}");
        }
    }

    #[test]
    fn severities_are_in_the_order_of_their_weight() {
        let mut all = Severity::ALL.to_vec();
        all.sort_unstable();
        let expected = [Severity::None, Severity::Low, Severity::Medium, Severity::High];
        assert_eq!(all, expected);
        assert_eq!(Severity::default(), expected[0]);
    }

    #[test]
    fn another_word_is_refused_with_those_allowed() {
        let error = "fax".parse::<Channel>().unwrap_err();
        assert_eq!(error.to_string(), "`channel` must be one of in_app, email, sms, chat, push");
    }
}
