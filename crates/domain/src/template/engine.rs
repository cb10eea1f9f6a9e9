//! Template engine, restricted to bounded functions.

use std::io;
use std::sync::LazyLock;

use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, State, UndefinedBehavior};

use super::budget::weigh;
use super::{Format, Template, filters, missing, texts};

pub(super) use super::filters::{FILTERS, FUNCTIONS, TESTS};

const HTML: &str = "html";
const PLAIN: &str = "plain";

impl Format {
    /// Returns the name of a template of this format. The engine escapes by the name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Format::Plain => PLAIN,
            Format::Html => HTML,
        }
    }
}

pub(super) static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Chainable);
    engine.set_auto_escape_callback(|name| match name {
        HTML => AutoEscape::Html,
        _ => AutoEscape::None,
    });
    engine.set_formatter(|out, state, value| {
        // `null` prints nothing, as an absent variable does.
        if value.is_none() {
            return Ok(());
        }
        if let Some(text) = missing::in_place_of(state, value) {
            return minijinja::escape_formatter(out, state, &text?.into());
        }
        check_weight(state, value)?;
        minijinja::escape_formatter(out, state, &texts::settle(value)?)
    });
    engine.set_fuel(Some(Template::MAX_WORK));
    filters::add_to(&mut engine);
    engine
});

// A text needs no conversion. Any other value becomes a text first.
fn check_weight(_: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            weigh([value], Template::MAX_WEIGHT).map(drop)
        }
        _ => Ok(()),
    }
}

/// Rendered text, up to a bound.
#[derive(Debug, Default)]
pub(super) struct Output {
    text: Vec<u8>,
    /// `true` if the text exceeds the bound.
    pub(super) full: bool,
}

impl Output {
    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.text).unwrap_or_default()
    }
}

impl io::Write for &mut Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > Template::MAX_OUTPUT {
            self.full = true;
            return Err(io::Error::other("the text is too long"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
