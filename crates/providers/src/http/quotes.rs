//! Quotes: answers with a part of the URL, which may be a secret.

use ureq::http::Uri;

// Shortest word of a URL that may be a secret, in bytes.
const SHORTEST: usize = 5;

// Start of a word by which an answer that quotes it is recognized, in bytes. Some servers cut what they quote.
const QUOTED: usize = 8;

/// Returns `true` if a text has a word of the path or the query of a URL in it, percent-encoded or not. Which
/// of the words is the secret is not known. Between words, it does not matter how a text escapes slashes and
/// ampersands.
pub(super) fn has_part_of(url: &str, text: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return true };
    let Some(tail) = url.path_and_query() else { return false };
    let (tail, texts) = (decoded(tail.as_str()), [text.to_ascii_lowercase(), decoded(text)]);
    let is_between =
        |letter: char| !letter.is_ascii_alphanumeric() && !['-', '_'].contains(&letter);
    let words = tail.split(is_between).filter(|word| word.len() >= SHORTEST);
    let mut starts = words.map(|word| word.get(..QUOTED).unwrap_or(word));
    starts.any(|start| texts.iter().any(|text| text.contains(start)))
}

// Returns a text without percent-encoding, in small letters, as some servers write what they quote.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.split_at_checked(2);
        let code = digits.and_then(|(code, rest)| Some((u8::from_str_radix(code, 16).ok()?, rest)));
        let (byte, rest) = code.unwrap_or((b'%', part));
        bytes.push(byte);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::has_part_of;

    /// One row per text: whether it has a part of the URL.
    #[test]
    fn a_text_with_a_part_of_the_url_is_recognized() {
        let (path, encoded) =
            ("https://a.example/hooks/s-ECRET_17", "https://a.example/%73-ecret_17");
        let (query, padded) = ("https://a.example/?key=s3cr3t", "https://a.example/?q2Vjc==");
        let escaped = "https://a.example/in%2Fs3cr3t%26x";
        for (url, text, expected) in [
            (path, "Cannot POST /hooks/s-ECRET_17", true),
            (path, r#"{"status":404,"path":"\/hooks\/s-ECRET_17"}"#, true),
            (path, r#"{"path":"\u002fin\u002fs-ECRET_17"}"#, true),
            (path, "no hook at https%3A%2F%2Fa.example%2Fin%2Fs-ECRET_17", true),
            (path, "no hook for `s-ecret_17`", true),
            (path, "no hook for s-ECRET_...", true),
            (path, "no hook for %53-%45CRET%5f17", true),
            (path, "no one at /HOOKS/", true),
            (path, "nothing here at a.example, 100% sure", false),
            (path, "s-ECRET", false),
            (path, "", false),
            (encoded, "no hook for %73-ecret_17", true),
            (encoded, "no hook for s-ecret_17", true),
            (query, "the s3cr3t is not valid", true),
            (query, "the key is not valid", false),
            (padded, "no q2Vjc", true),
            (escaped, "no s3cr3t", true),
            (escaped, "no %2Fs3cr3t%26", true),
            ("https://a.example/v1/hook", "Cannot POST /v1/hook", false),
            ("https://a.example", "Cannot POST /", false),
            ("no URL", "", true),
        ] {
            assert_eq!(has_part_of(url, text), expected, "{url} in {text}");
        }
    }
}
