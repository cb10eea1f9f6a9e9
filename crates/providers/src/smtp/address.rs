//! Addresses: their domains are in ASCII, as every server knows them.

use lettre::Address;
use lettre::message::Mailbox;

/// Reads an address with or without a name. Returns `None` if it is none, or if its domain has no form in
/// ASCII.
pub(super) fn mailbox(text: &str) -> Option<Mailbox> {
    let mailbox: Mailbox = text.parse().ok()?;
    Some(Mailbox::new(mailbox.name, in_ascii(mailbox.email)?))
}

/// Reads an address without a name. Returns `None` as [`mailbox`] does.
pub(super) fn parse(text: &str) -> Option<Address> {
    in_ascii(text.parse().ok()?)
}

// A domain is in the DNS under its form in ASCII only. Such an address needs no SMTPUTF8, unless its local
// part does.
fn in_ascii(address: Address) -> Option<Address> {
    if address.domain().is_ascii() {
        return Some(address);
    }
    let domain = idna::domain_to_ascii(address.domain()).ok()?;
    Address::new(address.user(), domain).ok()
}

#[cfg(test)]
mod tests {
    use super::{mailbox, parse};

    /// One row per address: the address in ASCII.
    #[test]
    fn a_domain_is_in_ascii() {
        for (text, expected) in [
            ("Ada@Example.org", Some("Ada@Example.org")),
            ("ada@Bücher.example", Some("ada@xn--bcher-kva.example")),
            ("jürgen@bücher.example", Some("jürgen@xn--bcher-kva.example")),
            ("jürgen@example.org", Some("jürgen@example.org")),
            ("ada@[127.0.0.1]", Some("ada@[127.0.0.1]")),
            // Letters of full width that stand for `>`, `@` and a space.
            ("ada@a＞.example", None),
            ("ada@a＠b.example", None),
            ("ada@a\u{3000}b.example", None),
            ("ada@xn--\u{fc}.example", None),
            ("ada", None),
        ] {
            let found = parse(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        let named = mailbox("Ada <ada@bücher.example>").unwrap();
        assert_eq!(named.to_string(), "Ada <ada@xn--bcher-kva.example>");
    }
}
