//! VAPID: the application says who it is, by a signed token for each push service (RFC 8292).

use std::time::{Duration, SystemTime};

use base64ct::{Base64UrlUnpadded, Encoding};
use p256::SecretKey;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::json;
use tidings::credentials::Credentials;
use tidings::error::{Invalid, Reason};

// Validity of a token. Push services take 24 hours at most.
const VALIDITY: Duration = Duration::from_secs(12 * 60 * 60);

/// Key and contact of an application.
pub(super) struct Vapid {
    key: SecretKey,
    /// `mailto:` or `https:` URL, at which the push service reaches the sender.
    contact: String,
}

impl Vapid {
    /// Reads the key and the contact. Refuses a credential that is missing or malformed.
    pub(super) fn of(credentials: &Credentials) -> Result<Self, Invalid> {
        let named = |name: &str, reason| Invalid::new(format!("credentials.{name}"), reason);
        let secret = credentials.secret_key.as_ref();
        let secret = secret.ok_or(named("secretKey", Reason::Missing))?;
        let expected = Reason::malformed("a private key of P-256: 32 bytes in base64url");
        let key = Base64UrlUnpadded::decode_vec(secret.expose().trim_end_matches('=')).ok();
        let key = key.and_then(|bytes| SecretKey::from_slice(&bytes).ok());
        let key = key.ok_or(named("secretKey", expected))?;
        let from = credentials.from.as_deref().ok_or(named("from", Reason::Missing))?;
        let is_plain = from.bytes().all(|byte| byte.is_ascii_graphic());
        let contact = match from {
            url if is_plain && url.starts_with("https://") => url.to_owned(),
            address if is_plain && address.contains('@') => {
                format!("mailto:{}", address.trim_start_matches("mailto:"))
            }
            _ => {
                return Err(named(
                    "from",
                    Reason::malformed("an e-mail address or an `https` URL"),
                ));
            }
        };
        Ok(Self { key, contact })
    }

    /// Returns the public key, which browsers ask for when they subscribe.
    pub(super) fn public_key(&self) -> String {
        Base64UrlUnpadded::encode_string(&self.key.public_key().to_sec1_bytes())
    }

    /// Returns the value of the `Authorization` header for a push service.
    pub(super) fn authorization(&self, origin: &str, now: SystemTime) -> String {
        let expires = (now + VALIDITY).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let claims = json!({ "aud": origin, "exp": expires.as_secs(), "sub": self.contact });
        let encoded = |text: &str| Base64UrlUnpadded::encode_string(text.as_bytes());
        let header = encoded(r#"{"typ":"JWT","alg":"ES256"}"#);
        let token = format!("{header}.{}", encoded(&claims.to_string()));
        let signature: Signature = SigningKey::from(&self.key).sign(token.as_bytes());
        let signature = Base64UrlUnpadded::encode_string(&signature.to_bytes());
        format!("vapid t={token}.{signature}, k={}", self.public_key())
    }
}

#[cfg(test)]
mod tests {
    use p256::PublicKey;
    use p256::ecdsa::VerifyingKey;
    use p256::ecdsa::signature::Verifier;
    use serde_json::Value;

    use super::*;

    fn vapid() -> Vapid {
        let credentials = Credentials::default()
            .secret_key("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
            .from("push@example.com");
        Vapid::of(&credentials).unwrap()
    }

    #[test]
    fn a_token_is_for_one_push_service_and_signed() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let header = vapid().authorization("https://push.example.net", now);
        let (token, key) =
            header.strip_prefix("vapid t=").and_then(|rest| rest.split_once(", k=")).unwrap();
        let bytes = |text: &str| Base64UrlUnpadded::decode_vec(text).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let claims: Value = serde_json::from_slice(&bytes(parts[1])).unwrap();
        assert_eq!(
            claims,
            json!({ "aud": "https://push.example.net", "exp": 1_043_200, "sub": "mailto:push@example.com" })
        );
        let key = VerifyingKey::from(PublicKey::from_sec1_bytes(&bytes(key)).unwrap());
        let signature = Signature::from_slice(&bytes(parts[2])).unwrap();
        let signed = format!("{}.{}", parts[0], parts[1]);
        assert!(key.verify(signed.as_bytes(), &signature).is_ok());
        assert!(key.verify(b"another", &signature).is_err());
    }

    /// One row per credential that is missing or wrong.
    #[test]
    fn an_application_has_a_key_and_a_contact() {
        let key = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
        for (credentials, field) in [
            (Credentials::default().from("a@b.c"), "credentials.secretKey"),
            (Credentials::default().from("a@b.c").secret_key("AAAA"), "credentials.secretKey"),
            (Credentials::default().secret_key(key), "credentials.from"),
            (Credentials::default().secret_key(key).from("a b@c"), "credentials.from"),
            (Credentials::default().secret_key(key).from("nobody"), "credentials.from"),
        ] {
            let refused = Vapid::of(&credentials).map(|vapid| vapid.contact).unwrap_err();
            assert_eq!(refused.field, field);
        }
    }
}
