//! Encryption of messages for a browser: RFC 8291, with the content coding of RFC 8188.

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{Aead, KeyInit};
use hkdf::Hkdf;
use p256::{PublicKey, SecretKey};
use sha2::Sha256;

use super::WebPush;

// Size of the only record, which push services take (RFC 8291, section 4).
const RECORD: u32 = 4096;

/// Keys of a browser.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) key: PublicKey,
    /// Secret that the browser shares with the application.
    pub(super) secret: [u8; 16],
}

/// Keys and salt that are drawn for each message.
pub(super) struct Draw {
    pub(super) key: SecretKey,
    pub(super) salt: [u8; 16],
}

impl Draw {
    /// Draws a key and a salt. Returns `None` if the system has no randomness.
    pub(super) fn new() -> Option<Self> {
        let (mut key, mut salt) = ([0; 32], [0; 16]);
        getrandom::fill(&mut key).and_then(|()| getrandom::fill(&mut salt)).ok()?;
        // One draw of 2^32 is no key.
        Some(Self { key: SecretKey::from_slice(&key).ok()?, salt })
    }
}

/// Returns the encrypted message with its header. `padding` is a number of bytes that hide the length.
/// Returns `None` if the message is too long.
pub(super) fn encrypt(
    message: &[u8],
    padding: usize,
    receiver: &Receiver,
    draw: &Draw,
) -> Option<Vec<u8>> {
    if message.len().saturating_add(padding) > WebPush::MAX_MESSAGE {
        return None;
    }
    let public = draw.key.public_key().to_sec1_bytes();
    let (key, nonce) = derived(receiver, draw, &public)?;
    let mut record = message.to_vec();
    // The delimiter of the last record.
    record.push(2);
    record.resize(record.len() + padding, 0);
    let cipher = Aes128Gcm::new_from_slice(&key).ok()?;
    let sealed = cipher.encrypt(&nonce.into(), record.as_slice()).ok()?;
    let mut body = Vec::with_capacity(sealed.len() + 86);
    body.extend_from_slice(&draw.salt);
    body.extend_from_slice(&RECORD.to_be_bytes());
    body.push(u8::try_from(public.len()).ok()?);
    body.extend_from_slice(&public);
    body.extend_from_slice(&sealed);
    Some(body)
}

// Returns the key and the nonce of the record.
fn derived(receiver: &Receiver, draw: &Draw, public: &[u8]) -> Option<([u8; 16], [u8; 12])> {
    let shared = draw.key.diffie_hellman(&receiver.key);
    let of_receiver = receiver.key.to_sec1_bytes();
    let info = [b"WebPush: info\0".as_slice(), &of_receiver, public].concat();
    let mut input = [0; 32];
    let keys = Hkdf::<Sha256>::new(Some(&receiver.secret), shared.raw_secret_bytes());
    keys.expand(&info, &mut input).ok()?;
    let keys = Hkdf::<Sha256>::new(Some(&draw.salt), &input);
    let (mut key, mut nonce) = ([0; 16], [0; 12]);
    keys.expand(b"Content-Encoding: aes128gcm\0", &mut key).ok()?;
    keys.expand(b"Content-Encoding: nonce\0", &mut nonce).ok()?;
    Some((key, nonce))
}

#[cfg(test)]
mod tests {
    use base64ct::{Base64UrlUnpadded, Encoding};

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        Base64UrlUnpadded::decode_vec(text).unwrap()
    }

    /// The example of RFC 8291, section 5 and appendix A.
    #[test]
    fn the_example_of_the_standard_is_encrypted_as_it_says() {
        let key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
        let receiver = Receiver {
            key: PublicKey::from_sec1_bytes(&bytes(key)).unwrap(),
            secret: bytes("BTBZMqHH6r4Tts7J_aSIgg").try_into().unwrap(),
        };
        let key = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
        let draw = Draw {
            key: SecretKey::from_slice(&key).unwrap(),
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap(),
        };
        let message = b"When I grow up, I want to be a watermelon";

        let body = encrypt(message, 0, &receiver, &draw).unwrap();

        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
        assert_eq!(Base64UrlUnpadded::encode_string(&body), expected);
    }

    #[test]
    fn a_record_is_never_larger_than_push_services_take() {
        let receiver = Receiver { key: Draw::new().unwrap().key.public_key(), secret: [7; 16] };
        let draw = Draw::new().unwrap();
        let longest = encrypt(&vec![b'x'; WebPush::MAX_MESSAGE], 0, &receiver, &draw).unwrap();
        assert_eq!(longest.len(), 4096);
        assert_eq!(encrypt(&vec![b'x'; WebPush::MAX_MESSAGE], 1, &receiver, &draw), None);
        assert_eq!(encrypt(&vec![b'x'; WebPush::MAX_MESSAGE + 1], 0, &receiver, &draw), None);
    }
}
