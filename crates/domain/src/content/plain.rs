//! Plain text of HTML, for the text part of an e-mail.
//!
//! Each byte is read once: libraries for this take time in proportion to the square of the length of
//! broken HTML, or bring the parser of a browser.

/// Returns the text of `html`: a line for each block, `* ` before the items of lists, and the
/// address behind a link.
pub(crate) fn text_of(html: &str) -> String {
    let mut text = Text::default();
    let mut rest = html;
    while let Some((before, behind)) = rest.split_once('<') {
        text.push(before);
        rest = match Tag::of(behind) {
            Some((tag, behind)) => text.tag(&tag, behind),
            // A tag without end is text, with all behind it.
            None if behind.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)) => {
                text.push("<");
                text.push(behind);
                return text.finished();
            }
            None => {
                text.push("<");
                behind
            }
        };
    }
    text.push(rest);
    text.finished()
}

struct Tag<'h> {
    name: String,
    attributes: &'h str,
}

impl<'h> Tag<'h> {
    // Returns the tag at the start of `html`, behind its `<`, and the HTML behind it.
    fn of(html: &'h str) -> Option<(Self, &'h str)> {
        if let Some(comment) = html.strip_prefix("!--") {
            let (_, behind) = comment.split_once("-->")?;
            return Some((Self { name: String::new(), attributes: "" }, behind));
        }
        if !html.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)) {
            return None;
        }
        let mut quote = None;
        let end = html.bytes().position(|byte| match (quote, byte) {
            (None, b'>') => true,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                false
            }
            (Some(open), byte) if open == byte => {
                quote = None;
                false
            }
            _ => false,
        })?;
        let (inside, behind) = (html.get(..end)?, html.get(end + 1..)?);
        let name = inside.find(|c: char| c.is_whitespace()).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(name);
        let name = name.trim_end_matches('/').to_ascii_lowercase();
        Some((Self { name, attributes }, behind))
    }

    // Returns the value of an attribute, with its entities.
    fn attribute(&self, wanted: &str) -> Option<&'h str> {
        let mut rest = self.attributes;
        loop {
            let (name, value) = rest.split_once('=')?;
            let name = name.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
            let value = value.trim_start();
            let (found, behind) = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => value.get(1..)?.split_once(quote)?,
                _ => value.split_once(char::is_whitespace).unwrap_or((value, "")),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(found);
            }
            rest = behind;
        }
    }
}

/// Text that is being made. Lines have no spaces at their ends.
#[derive(Default)]
struct Text {
    made: String,
    // Line breaks and a space before the next word.
    breaks: usize,
    space: bool,
    link: Option<(String, usize)>,
}

impl Text {
    // Takes a tag, and returns the HTML behind it, and behind what is not shown.
    fn tag<'h>(&mut self, tag: &Tag<'_>, behind: &'h str) -> &'h str {
        match tag.name.as_str() {
            "script" | "style" | "title" => return past_end(behind, &tag.name),
            "br" => self.breaks += 1,
            "li" => {
                self.line(1);
                self.push("* ");
            }
            "hr" => {
                self.line(1);
                self.push("---");
                self.line(1);
            }
            "td" | "th" | "/td" | "/th" => self.space = true,
            "img" => self.push(tag.attribute("alt").unwrap_or_default()),
            "a" => {
                let link = tag.attribute("href").map(decoded).filter(|url| is_shown(url));
                self.link = link.map(|url| (url, self.made.len()));
            }
            "/a" => self.end_link(),
            "p" | "/p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "/h1" | "/h2" | "/h3"
            | "/h4" | "/h5" | "/h6" | "ul" | "/ul" | "ol" | "/ol" | "table" | "/table"
            | "blockquote" | "/blockquote" | "pre" | "/pre" => self.line(2),
            "div" | "/div" | "tr" | "/tr" | "section" | "/section" | "header" | "/header"
            | "footer" | "/footer" | "article" | "/article" | "/li" => self.line(1),
            _ => {}
        }
        behind
    }

    fn line(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    // Adds the address of a link, unless its text is the address.
    fn end_link(&mut self) {
        let Some((url, start)) = self.link.take() else { return };
        let shown = self.made.get(start..).unwrap_or_default().trim();
        if shown != url && format!("mailto:{shown}") != url {
            self.space = !shown.is_empty();
            self.word(&format!("({url})"));
        }
    }

    // Adds HTML without tags. Runs of white space are one space.
    fn push(&mut self, html: &str) {
        let text = decoded(html);
        let mut words = text.split([' ', '\t', '\n', '\r', '\x0c']);
        self.word(words.next().unwrap_or_default());
        for word in words {
            self.space = true;
            self.word(word);
        }
    }

    fn word(&mut self, word: &str) {
        if word.is_empty() {
            return;
        }
        if !self.made.is_empty() {
            match self.breaks {
                0 if self.space && !self.made.ends_with(' ') => self.made.push(' '),
                0 => {}
                breaks => self.made.extend(std::iter::repeat_n('\n', breaks.min(2))),
            }
        }
        (self.breaks, self.space) = (0, false);
        self.made.push_str(word);
    }

    fn finished(self) -> String {
        self.made
    }
}

// Returns the HTML behind the end of the element `name`.
fn past_end<'h>(html: &'h str, name: &str) -> &'h str {
    let is_end = |at: usize| {
        let end = at + 2 + name.len();
        let found = html.get(at + 2..end).is_some_and(|found| found.eq_ignore_ascii_case(name));
        found && !html.as_bytes().get(end).is_some_and(u8::is_ascii_alphanumeric)
    };
    let mut ends = html.match_indices("</").map(|(at, _)| at);
    let Some(at) = ends.find(|at| is_end(*at)) else { return "" };
    let behind = html.get(at..).and_then(|end| end.split_once('>'));
    behind.map_or("", |(_, behind)| behind)
}

fn is_shown(url: &str) -> bool {
    ["http://", "https://", "mailto:", "tel:"].iter().any(|scheme| url.starts_with(scheme))
}

// Replaces the entities of `html` by their characters. An unknown one stays.
fn decoded(html: &str) -> String {
    let mut parts = html.split('&');
    let mut text = String::from(parts.next().unwrap_or_default());
    for part in parts {
        // The longest entity has 8 bytes: `#x10ffff`.
        let end = part.bytes().take(10).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((character(part.get(..end)?)?, end + 1)));
        if let Some((character, end)) = entity {
            text.push(character);
            text.push_str(part.get(end..).unwrap_or_default());
        } else {
            text.push('&');
            text.push_str(part);
        }
    }
    text
}

fn character(entity: &str) -> Option<char> {
    if let Some(number) = entity.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        let found = char::from_u32(code.ok()?);
        return found.filter(|found| !found.is_control() || *found == '\n');
    }
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "euro" => '€',
        "pound" => '£',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bdquo" => '„',
        "laquo" => '«',
        "raquo" => '»',
        "middot" => '·',
        "bull" => '•',
        "times" => '×',
        "deg" => '°',
        "sect" => '§',
        "rarr" => '→',
        "larr" => '←',
        "zwnj" => '\u{200c}',
        "shy" => '\u{ad}',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// One row per document: its text.
    #[test]
    fn a_document_has_its_lines() {
        for (html, text) in [
            (
                "<p>Dear  <b>Ada</b>,</p>\n<p>it is\n on its way.</p>",
                "Dear Ada,\n\nit is on its way.",
            ),
            ("one<br>two<br/>three<BR />four", "one\ntwo\nthree\nfour"),
            ("<ul><li>tea</li><li>cup</li></ul>end", "* tea\n* cup\n\nend"),
            ("<a href=\"https://x.org/?a=1&amp;b\">Open</a>!", "Open (https://x.org/?a=1&b)!"),
            ("<a title\n= x href = 'https://x.org'>Open</a>", "Open (https://x.org)"),
            ("<a class='a>b' href='https://x.org'>https://x.org</a>", "https://x.org"),
            ("<a href='mailto:a@x.org'>a@x.org</a> <a href='javascript:x()'>y</a>", "a@x.org y"),
            ("<a href=https://x.org><img alt='Logo' src=x></a>", "Logo (https://x.org)"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
            (
                "<style>p > a { color: red }</style><SCRIPT>'</p>'</script >x<head><title>t</title></head>",
                "x",
            ),
            ("a<!-- <b> --> b <!DOCTYPE html>", "a b"),
            ("<html><head><title>x</title><body>Hello", "Hello"),
            (
                "<head><title>t</title><meta name=x><style>p {}</style></head><header>One</header>two",
                "One\ntwo",
            ),
            ("<head><title>t</title><body><header>One</header>two</body>", "One\ntwo"),
            ("<script>'</scripts>'</script\n>x<title>t</titles></title/>y", "xy"),
            (
                "1 < 2 &lt;i&gt; &amp;amp; &#39;&#x2f; &uuml; &nosuch; & &#0; &",
                "1 < 2 <i> &amp; '/ ü &nosuch; & &#0; &",
            ),
            ("x <b unclosed", "x <b unclosed"),
            ("x <b a='> y", "x <b a='> y"),
            ("<hr>a<hr>", "---\na\n---"),
            ("", ""),
        ] {
            assert_eq!(text_of(html), text, "{html}");
        }
    }

    #[test]
    fn a_long_broken_document_takes_no_more_time_than_a_sound_one() {
        for part in
            ["<a x", "<a b=\"", "<a href=x>", "<!--", "<script>", "&", "<", "</", "<a b=x ", "<p>x"]
        {
            let html = part.repeat((1 << 20) / part.len());
            let start = Instant::now();
            text_of(&html);
            assert!(start.elapsed() < Duration::from_secs(60), "{part} {:?}", start.elapsed());
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_text(html in "[<>/a-z=\"'&#;! \\n-]{0,60}|\\PC*") {
            let text = text_of(&html);
            prop_assert!(text.len() <= html.len() * 3 + 16);
        }
    }
}
