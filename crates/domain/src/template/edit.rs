//! The template as the engine gets to see it: what makes values larger is a call of a function
//! that knows a bound.

/// Joins texts: `a ~ b`.
pub(super) const CONCAT: &str = "__concat";
/// Adds numbers, and joins texts or lists: `a + b`.
pub(super) const ADD: &str = "__add";
/// Multiplies numbers, and repeats texts: `a * b`.
pub(super) const MULTIPLY: &str = "__multiply";
/// Makes a list: `[a, b]`.
pub(super) const LIST: &str = "__list";
/// Makes a map: `{a: b}`.
pub(super) const MAP: &str = "__map";
/// Returns its argument, unless it is too large.
pub(super) const KEEP: &str = "__keep";
/// What no name of a template starts with.
pub(super) const RESERVED: &str = "__";

/// What is done at one place, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// A call ends.
    Close,
    /// So many bytes become a comma.
    Separate(usize),
    /// A call of this function begins. What binds its operands less tightly begins first.
    Open(Call),
    /// A bracket becomes another one.
    Bracket(char),
}

/// A function that is called in place of what a template has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    /// For a variable.
    Keep,
    Add,
    Concat,
    Multiply,
    /// For a part of a list or text.
    Slice,
    List,
    Map,
}

impl Call {
    const fn function(self) -> &'static str {
        match self {
            Call::Keep | Call::Slice => KEEP,
            Call::Add => ADD,
            Call::Concat => CONCAT,
            Call::Multiply => MULTIPLY,
            Call::List => LIST,
            Call::Map => MAP,
        }
    }
}

/// The changes that turn a template into what the engine gets to see.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(usize, Change)>);

impl Edits {
    /// What stands at `at` is changed.
    pub(super) fn push(&mut self, at: usize, change: Change) {
        self.0.push((at, change));
    }

    /// What stands from `start` to `end` becomes the argument of a call.
    pub(super) fn wrap(&mut self, start: usize, end: usize, call: Call) {
        self.push(start, Change::Open(call));
        self.push(end, Change::Close);
    }

    /// `source` with all changes.
    pub(super) fn applied(mut self, source: &str) -> String {
        self.0.sort_unstable();
        let mut edited = String::with_capacity(source.len() + self.0.len() * 8);
        let mut copied = 0;
        for (at, change) in self.0 {
            edited.push_str(source.get(copied..at).unwrap_or_default());
            copied = at;
            match change {
                Change::Close => edited.push(')'),
                Change::Separate(len) => {
                    edited.push_str(", ");
                    copied += len;
                }
                Change::Open(call) => {
                    edited.push_str(call.function());
                    if !matches!(call, Call::List | Call::Map) {
                        edited.push('(');
                    }
                }
                Change::Bracket(bracket) => {
                    edited.push(bracket);
                    copied += 1;
                }
            }
        }
        edited.push_str(source.get(copied..).unwrap_or_default());
        edited
    }
}
