//! Bounds of a template.

use super::Template;

impl Template {
    /// Longest template, in bytes.
    pub const MAX_LEN: usize = 256 * 1024;
    /// Longest rendered text, in bytes.
    pub const MAX_OUTPUT: usize = 1024 * 1024;
    /// Maximum number of tags.
    pub const MAX_TAGS: usize = 10_000;
    /// Maximum number of tokens in a tag.
    pub const MAX_TOKENS: usize = 1024;
    /// Maximum number of operators in a tag. `not`, `if` and signs count twice.
    pub const MAX_OPERATORS: usize = 64;
    /// Deepest nesting of brackets and of operators that become calls.
    pub const MAX_NESTING: usize = 6;
    /// Deepest nesting of statements, and of parts of conditions.
    pub const MAX_BLOCKS: usize = 9;
    /// Maximum number of `elif` in the statements around an expression.
    pub const MAX_ELIFS: usize = 32;
    /// Deepest nesting of an expression together with its statements.
    ///
    /// A level of the expression counts 7, a statement around it 4, and an `elif` 1. One of these
    /// takes about 2.4 KiB of the stack without optimizations.
    pub const MAX_DEPTH: usize = 43;
    /// Maximum number of digits of an index such as `payload.list.0`.
    pub const MAX_INDEX: usize = 4;
    /// Longest format of a date or a time, in bytes. One specifier makes at most 40 bytes.
    pub const MAX_FORMAT: usize = 256;
    /// Largest number for a filter, as a length or a count.
    pub const MAX_NUMBER: u16 = 1000;
    /// Maximum number of numbers of a `range`.
    pub const MAX_RANGE: usize = 100_000;
    /// Maximum number of steps of a rendering: some thousand placeholders. A rendering with more
    /// steps fails.
    pub const MAX_WORK: u64 = 50_000;
    /// Maximum weight of all values that a rendering makes or reads, in bytes: about 4 MiB of text.
    pub const MAX_WEIGHT: usize = 4 * 1024 * 1024;
    /// Maximum number of steps of all templates of a message, its layout included. The sum is compared after each
    /// rendering, so that the last one may exceed it.
    pub const MAX_MESSAGE_WORK: u64 = 4 * Self::MAX_WORK;
    /// Maximum weight of all values that the templates of a message make or read, and of their texts, in bytes. The
    /// sum is compared after each rendering, so that the last one may exceed it.
    pub const MAX_MESSAGE_WEIGHT: usize = 4 * Self::MAX_WEIGHT;
    /// Deepest nesting of a value that a rendering makes or reads.
    pub const MAX_VALUE_DEPTH: usize = 72;
}
