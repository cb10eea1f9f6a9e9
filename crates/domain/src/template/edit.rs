//! Rewriting of a template for the engine: operators that enlarge values become calls of bounded
//! functions.

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
/// Returns its argument. Refuses one that is too large.
pub(super) const KEEP: &str = "__keep";
/// Returns an operand of a comparison, within the budget.
pub(super) const READ: &str = "__read";
/// Returns an item of a list, map or text, or a slice: `a[b]`, `a[b:c]`.
pub(super) const ITEM: &str = "__item";
/// Prefix that names in templates must not have.
pub(super) const RESERVED: &str = "__";
/// Returns a value that is printed. Reports one that is missing, by its name.
pub(super) const SHOWN: &str = "__shown";
/// Name of the translator, which templates cannot set.
pub(super) const TRANSLATOR: &str = "__t";
/// Name of the variables themselves.
pub(super) const WATCH: &str = "__watch";

/// Change at one place, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// End of a key: `"]`.
    KeyEnd,
    /// Argument with the text from the first place to the second.
    Name(usize, usize),
    /// End of a call.
    Close,
    /// Absent bound of a slice.
    Absent,
    /// Replacement of this many bytes by a comma.
    Separate(usize),
    /// Replacement of a dot by the start of a key: `["`.
    KeyStart,
    /// Start of a call. The operator that binds its operands less tightly starts first.
    Open(Call),
    /// Replacement of a bracket.
    Bracket(char),
}

/// Function that replaces a construct of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    /// For a variable.
    Keep,
    /// For an operand of a comparison.
    Read,
    Add,
    Concat,
    Multiply,
    /// For a variable that is printed, without its filters.
    Shown,
    /// For an item, or a slice of a list or text. One function serves both, so that the calls for
    /// `a[1:][b]` nest whatever their order.
    Item,
    List,
    Map,
}

impl Call {
    const fn function(self) -> &'static str {
        match self {
            Call::Keep => KEEP,
            Call::Read => READ,
            Call::Item => ITEM,
            Call::Add => ADD,
            Call::Concat => CONCAT,
            Call::Multiply => MULTIPLY,
            Call::List => LIST,
            Call::Map => MAP,
            Call::Shown => SHOWN,
        }
    }
}

/// Changes that turn a template into the text for the engine.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(usize, Change)>);

impl Edits {
    /// Adds a change at `at`.
    pub(super) fn push(&mut self, at: usize, change: Change) {
        self.0.push((at, change));
    }

    /// Makes the text from `start` to `end` the argument of a call.
    pub(super) fn wrap(&mut self, start: usize, end: usize, call: Call) {
        self.push(start, Change::Open(call));
        self.push(end, Change::Close);
    }

    /// Returns `source` with all changes.
    pub(super) fn applied(mut self, source: &str) -> String {
        self.0.sort_unstable();
        let mut edited = String::with_capacity(source.len() + self.0.len() * 8);
        let mut copied = 0;
        for (at, change) in self.0 {
            edited.push_str(source.get(copied..at).unwrap_or_default());
            copied = at;
            match change {
                Change::KeyEnd => edited.push_str("\"]"),
                Change::KeyStart => {
                    edited.push_str("[\"");
                    copied += 1;
                }
                Change::Name(from, to) => {
                    edited.push_str(", \"");
                    for letter in source.get(from..to).unwrap_or_default().chars() {
                        edited.extend(matches!(letter, '"' | '\\').then_some('\\'));
                        edited.push(letter);
                    }
                    edited.push('"');
                }
                Change::Close => edited.push(')'),
                Change::Absent => edited.push_str("none"),
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
