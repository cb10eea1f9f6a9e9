//! Reading of query strings.

use percent_encoding::percent_decode;
use serde_json::{Map, Value};

use crate::error::{Invalid, Reason};
use crate::json::{Path, Shaped, Unknown, checked, unknown};

/// Reads a query from the part of a URL behind `?`, or from the body of a form.
///
/// A list is a repeated field, with or without `[]` or `[0]` behind its name. An empty field counts
/// as absent. An empty `contextKeys` selects items without contexts. Unknown fields are refused,
/// and so are repeated fields that are no lists.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::notification::NotificationQuery;
/// use tidings::query::read;
///
/// let query: NotificationQuery = read("emails[]=ada%40example.org&limit=20&search=").unwrap();
/// assert_eq!((query.emails, query.limit), (vec!["ada@example.org".to_owned()], Some(20)));
///
/// let refused = read::<NotificationQuery>("limit=many").unwrap_err();
/// assert_eq!(refused.to_string(), "`limit` must be a whole number");
/// let refused = read::<NotificationQuery>("email=ada").unwrap_err();
/// assert_eq!(refused.to_string(), "`email` is not known; did you mean `emails`?");
/// ```
pub fn read<T: Shaped>(query: &str) -> Result<T, Invalid> {
    read_fields(query, Unknown::Refused)
}

/// Reads a query as [`read`] does, but ignores unknown fields: for a server with newer clients.
pub fn read_lenient<T: Shaped>(query: &str) -> Result<T, Invalid> {
    read_fields(query, Unknown::Ignored)
}

fn read_fields<T: Shaped>(query: &str, strictness: Unknown) -> Result<T, Invalid> {
    let (shape, mut fields) = (T::shape(), Map::new());
    let query = query.strip_prefix('?').unwrap_or(query);
    for field in query.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let name = decoded(name, "query")?;
        let (name, is_item) = plain_name(&name);
        let path = Path::Member(&Path::Whole, name);
        let Some(member) = shape.member(&fields, name) else {
            match strictness {
                Unknown::Refused => return Err(unknown(&path, name, shape, &fields)),
                Unknown::Ignored => continue,
            }
        };
        let value = decoded(value, name)?;
        if value.is_empty() && !member.takes_empty_text() {
            continue;
        }
        add(&mut fields, name, value, (member.is_list(), is_item))?;
    }
    checked(&Value::Object(fields), strictness)
}

// A repeated field becomes a list, and so does a field with brackets.
fn add(
    fields: &mut Map<String, Value>,
    name: &str,
    value: String,
    (is_list, is_item): (bool, bool),
) -> Result<(), Invalid> {
    let refused = |reason| Err(Invalid::new(name, reason));
    let before = fields.remove(name);
    let value = match (before, is_list) {
        (None, false) if is_item => return refused(Reason::malformed("a single value")),
        (Some(_), false) => return refused(Reason::Repeated),
        (None, true) if is_item => vec![value].into(),
        (None, _) => Value::String(value),
        (Some(Value::Array(mut items)), true) => {
            items.push(value.into());
            Value::Array(items)
        }
        (Some(item), true) => vec![item, value.into()].into(),
    };
    fields.insert(name.to_owned(), value);
    Ok(())
}

// Returns the name without `[]` or `[0]`, and `true` if it had brackets.
fn plain_name(name: &str) -> (&str, bool) {
    let item = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    match item {
        Some((plain, index)) if index.bytes().all(|byte| byte.is_ascii_digit()) => (plain, true),
        _ => (name, false),
    }
}

fn decoded(text: &str, field: &str) -> Result<String, Invalid> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    let refused = || Invalid::new(field, Reason::malformed("percent-encoded UTF-8"));
    decoded.map(Into::into).map_err(|_| refused())
}

#[cfg(test)]
mod tests;
