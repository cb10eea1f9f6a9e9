//! Arbitrary JSON.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value};

// Words with a meaning in some request, so that made-up JSON is sometimes meaningful.
const WORDS: &[&str] = &[
    "",
    "a",
    "ada",
    "bob",
    "both",
    "inbox",
    "news",
    "prices",
    "acme",
    "tenant",
    "tenant:acme",
    "email",
    "in_app",
    "chat",
    "slack",
    "of-ada",
    "en_US",
    "de_DE",
    "payload.n",
    "payload",
    "n",
    "data",
    "1",
    "-1",
    "1.5",
    "2026-11-20T12:00:00.000Z",
    "\u{0}",
    "\u{e9}",
    "\u{130}",
    "_id",
    "key",
    "createdAt",
    "updatedAt",
    "ASC",
    "var",
    "if",
    "==",
    "and",
    "in",
    "map",
    "type",
    "id",
    "limit",
    "after",
    "name",
    "condition",
    "all",
    "enabled",
    "subscriberId",
    "context",
    "$integration 0",
];

/// The JSON texts that `bytes` are, one after the other; nothing, if they are anything else.
pub fn texts(bytes: &[u8]) -> Option<Vec<Value>> {
    let texts: Vec<Value> =
        serde_json::Deserializer::from_slice(bytes).into_iter().collect::<Result<_, _>>().ok()?;
    (!texts.is_empty()).then_some(texts)
}

/// Some JSON that is not very large. `words` are likely to be in it.
pub fn made(from: &mut Unstructured<'_>, words: &[&str], depth: usize) -> Result<Value> {
    let kinds = if depth == 0 { 5 } else { 8 };
    Ok(match from.int_in_range(0..=kinds)? {
        0 => Value::Null,
        1 => from.arbitrary::<bool>()?.into(),
        2 => from.arbitrary::<i64>()?.into(),
        3 => i64::from(from.arbitrary::<i8>()?).into(),
        4 => from.arbitrary::<f64>()?.into(),
        5 => word(from, words)?.into(),
        6 => {
            let mut items = Vec::new();
            for _ in 0..from.int_in_range(0..=3)? {
                items.push(made(from, words, depth - 1)?);
            }
            items.into()
        }
        _ => {
            let mut fields = Map::new();
            for _ in 0..from.int_in_range(0..=2)? {
                fields.insert(word(from, words)?, made(from, words, depth - 1)?);
            }
            fields.into()
        }
    })
}

/// Changes something somewhere in `json`: another value, one less, or one more.
pub fn change(json: &mut Value, from: &mut Unstructured<'_>) -> Result<()> {
    let goes_on = from.ratio(4, 5)?;
    match json {
        Value::Array(items) if goes_on && !items.is_empty() => {
            let at = from.choose_index(items.len())?;
            match from.int_in_range(0..=9)? {
                0 => drop(items.remove(at)),
                1 => items.push(made(from, WORDS, 2)?),
                2 => items.push(items[at].clone()),
                _ => change(&mut items[at], from)?,
            }
        }
        Value::Object(fields) if goes_on && !fields.is_empty() => {
            let at = from.choose_index(fields.len())?;
            let name = fields.keys().nth(at).cloned().unwrap_or_default();
            match from.int_in_range(0..=9)? {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert(word(from, WORDS)?, made(from, WORDS, 2)?)),
                2 => {
                    let value = fields.remove(&name).unwrap_or_default();
                    fields.insert(word(from, WORDS)?, value);
                }
                _ => change(&mut fields[&name], from)?,
            }
        }
        Value::String(text) if goes_on && from.arbitrary()? => {
            text.push_str(&word(from, WORDS)?);
        }
        _ => *json = made(from, WORDS, 3)?,
    }
    Ok(())
}

fn word(from: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    if from.ratio(1, 8)? {
        return from.arbitrary();
    }
    Ok((*from.choose(words)?).to_owned())
}
