//! Tags of a template and their tokens, with the rules of the engine.

use super::Template;
use super::problem::Problem;

const MAX_TOKENS: usize = Template::MAX_TOKENS;

const PAIRS: [&str; 6] = ["//", "**", "==", "!=", ">=", "<="];
const SINGLES: &str = "+-*/%.,:~|=><()[]{}";

/// Tag: `{{ .. }}`, or `{% .. %}`.
#[derive(Debug)]
pub(super) struct Tag<'s> {
    /// `true` for a statement.
    pub(super) statement: bool,
    /// Content.
    pub(super) tokens: Vec<Token<'s>>,
    /// Start, in bytes.
    pub(super) at: usize,
    /// End of the content, in bytes.
    pub(super) end: usize,
}

/// Token of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind,
    /// Source text. Texts include their quotes.
    pub(super) text: &'s str,
    /// Start, in bytes.
    pub(super) at: usize,
}

/// Kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Number,
    Text,
    Symbol,
}

impl Token<'_> {
    /// Returns the end, in bytes.
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Iterator over the tags of a template.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, at: 0 }
    }

    /// Returns the next tag. Comments and raw text are skipped.
    pub(super) fn next_tag(&mut self) -> Result<Option<Tag<'s>>, Problem> {
        while let Some((start, marker)) = opening(self.rest()) {
            let start = self.at + start;
            self.at = start + 2;
            self.skip_sign();
            match marker {
                b'#' => self.skip_past("#}", start)?,
                b'%' if self.skip_tag("raw") => self.skip_raw(start)?,
                marker => return self.tag(start, marker == b'%').map(Some),
            }
        }
        Ok(None)
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn skip_sign(&mut self) {
        if self.rest().starts_with(['-', '+']) {
            self.at += 1;
        }
    }

    fn skip_past(&mut self, end: &str, start: usize) -> Result<(), Problem> {
        let Some(found) = self.rest().find(end) else {
            return Err(Problem::new("a tag is not closed", start));
        };
        self.at += found + end.len();
        Ok(())
    }

    fn skip_raw(&mut self, start: usize) -> Result<(), Problem> {
        loop {
            self.skip_past("{%", start)?;
            let inside = self.at;
            self.skip_sign();
            if self.skip_tag("endraw") {
                return Ok(());
            }
            self.at = inside;
        }
    }

    // Skips the rest of a statement that consists of `name` only.
    fn skip_tag(&mut self, name: &str) -> bool {
        let rest = self.rest();
        let Some(after) = skip_space(rest).strip_prefix(name) else { return false };
        let after = skip_space(after);
        let Some(after) = after.strip_prefix(['-', '+']).unwrap_or(after).strip_prefix("%}") else {
            return false;
        };
        self.at += rest.len() - after.len();
        true
    }

    fn tag(&mut self, at: usize, statement: bool) -> Result<Tag<'s>, Problem> {
        let close = if statement { "%}" } else { "}}" };
        let mut tokens: Vec<Token<'s>> = Vec::new();
        let mut open = 0_usize;
        loop {
            let rest = self.rest();
            self.at += rest.len() - skip_space(rest).len();
            let rest = self.rest();
            let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
            if open == 0 && (rest.starts_with(close) || unsigned.starts_with(close)) {
                let end = self.at;
                self.at += close.len() + usize::from(!rest.starts_with(close));
                return Ok(Tag { statement, tokens, at, end });
            }
            if tokens.len() == MAX_TOKENS {
                return Err(Problem::new(format!("a tag has more than {MAX_TOKENS} words"), at));
            }
            let after_dot = tokens.last().is_some_and(|token| token.text == ".");
            let token = self.token(after_dot, at)?;
            match token.text {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => {
                    open = open.checked_sub(1).ok_or_else(|| unexpected(token.text, token.at))?;
                }
                _ => {}
            }
            tokens.push(token);
        }
    }

    fn token(&mut self, after_dot: bool, tag: usize) -> Result<Token<'s>, Problem> {
        let (rest, at) = (self.rest(), self.at);
        let Some(first) = rest.chars().next() else {
            return Err(Problem::new("a tag is not closed", tag));
        };
        let (kind, len) = match first {
            '\'' | '"' => (
                Kind::Text,
                text(rest, first).ok_or_else(|| Problem::new("a text is not closed", at))?,
            ),
            '0'..='9' => (Kind::Number, number(rest, after_dot)),
            'a'..='z' | 'A'..='Z' | '_' => (Kind::Name, word(rest)),
            _ if PAIRS.iter().any(|pair| rest.starts_with(pair)) => (Kind::Symbol, 2),
            _ if SINGLES.contains(first) => (Kind::Symbol, 1),
            _ if first.is_alphabetic() => {
                let what = format!(
                    "unexpected {first:?}: a name with other letters than A to Z is written as in \
                     `payload[\"größe\"]`"
                );
                return Err(Problem::new(what, at));
            }
            _ => return Err(Problem::new(format!("unexpected {first:?}"), at)),
        };
        self.at += len;
        if kind == Kind::Number && word(self.rest()) > 0 {
            return Err(Problem::new("a number is followed by letters", at));
        }
        let text = rest.get(..len).unwrap_or_default();
        if kind == Kind::Number && !text.contains(['.', 'e', 'E']) && text.parse::<u128>().is_err()
        {
            return Err(Problem::new("a number is too large", at));
        }
        Ok(Token { kind, text, at })
    }
}

/// Returns the problem of the unexpected token `text`.
pub(super) fn unexpected(text: &str, at: usize) -> Problem {
    Problem::new(format!("unexpected `{text}`"), at)
}

// Returns the start of the first tag or comment, and its second byte.
fn opening(text: &str) -> Option<(usize, u8)> {
    let pairs = text.as_bytes().windows(2).enumerate();
    let mut markers = pairs.filter_map(|(at, pair)| match pair {
        [b'{', marker @ (b'{' | b'%' | b'#')] => Some((at, *marker)),
        _ => None,
    });
    markers.next()
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(|character: char| character.is_ascii_whitespace())
}

fn word(text: &str) -> usize {
    let inside = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    text.as_bytes().iter().take_while(inside).count()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

// Returns the length of the quoted text. Returns `None` if it has no end.
fn text(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let mut characters = rest.char_indices().skip(1);
    let (end, _) = characters.find(|(_, character)| {
        let ends = !escaped && *character == quote;
        escaped = !escaped && *character == '\\';
        ends
    })?;
    Some(end + 1)
}

// Returns the length of the number. An index behind a dot has no fraction.
fn number(rest: &str, after_dot: bool) -> usize {
    let whole = digits(rest);
    if after_dot {
        return whole;
    }
    let tail = |at: usize| rest.get(at..).unwrap_or_default();
    let fraction = tail(whole).strip_prefix('.').map(digits).filter(|len| *len > 0);
    let len = whole + fraction.map_or(0, |fraction| fraction + 1);
    let Some(exponent) = tail(len).strip_prefix(['e', 'E']) else { return len };
    let signed = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match digits(signed) {
        0 => len,
        some => len + 1 + (exponent.len() - signed.len()) + some,
    }
}
