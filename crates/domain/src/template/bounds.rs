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
    /// Maximum number of operators in a tag.
    pub const MAX_OPERATORS: usize = 64;
    /// Deepest nesting of brackets and of operators that become calls.
    pub const MAX_NESTING: usize = 8;
    /// Deepest nesting of statements, and of parts of conditions.
    pub const MAX_BLOCKS: usize = 10;
    /// Maximum number of `elif` in the statements around an expression.
    pub const MAX_ELIFS: usize = 32;
}
