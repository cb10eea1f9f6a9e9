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
}
