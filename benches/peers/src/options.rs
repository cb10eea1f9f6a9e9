//! Options of a run.

use std::env;
use std::path::PathBuf;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Value};

/// Options of a run.
pub(crate) struct Options {
    /// Sections in the order in which they run.
    pub(crate) sections: Vec<Section>,
    /// Numbers of notifications. Empty for the defaults of the sections.
    pub(crate) notifications: Vec<u64>,
    /// How many times as long as usual the rows of a section take.
    pub(crate) rounds: usize,
    /// `true` if Tidings has its log before redb.
    pub(crate) with_log: bool,
    /// PostgreSQL server, if there is one.
    pub(crate) postgres: Option<String>,
    /// File whose marked sections are replaced.
    pub(crate) markdown: Option<PathBuf>,
}

/// A part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Durable triggers.
    Write,
    /// An inbox with many messages.
    Inbox,
    /// Lists of subscribers.
    Subscribers,
    /// The list of operation 22.
    List,
    /// Readers of the list beside writers.
    Beside,
}

impl Section {
    const ALL: [Self; 5] = [Self::Write, Self::Inbox, Self::Subscribers, Self::List, Self::Beside];

    /// Name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Inbox => "inbox",
            Self::Subscribers => "subscribers",
            Self::List => "list",
            Self::Beside => "beside",
        }
    }
}

impl Options {
    /// Reads the arguments and the environment. Panics at an argument that makes no sense.
    pub(crate) fn read() -> Self {
        let mut options = Self {
            sections: Vec::new(),
            notifications: Vec::new(),
            rounds: 1,
            with_log: true,
            postgres: env::var("TIDINGS_BENCH_POSTGRES").ok(),
            markdown: None,
        };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next().unwrap() {
            match argument {
                Value(name) => {
                    let section = Section::ALL.into_iter().find(|one| name == one.name());
                    options.sections.push(section.expect(
                        "a section is `write`, `inbox`, `subscribers`, `list` or `beside`",
                    ));
                }
                Long("notifications") => {
                    let sizes = arguments.value().unwrap().string().unwrap();
                    let sizes = sizes.split(',').map(|size| size.parse().expect("a number"));
                    options.notifications = sizes.collect();
                }
                Long("rounds") => options.rounds = arguments.value().unwrap().parse().unwrap(),
                Long("no-log") => options.with_log = false,
                Long("markdown") => options.markdown = Some(arguments.value().unwrap().into()),
                other => panic!("{}", other.unexpected()),
            }
        }
        if options.sections.is_empty() {
            options.sections = Section::ALL.into();
        }
        options
    }

    /// Returns the sizes that were asked for, or else `default`.
    pub(crate) fn sizes(&self, default: &[u64]) -> Vec<u64> {
        let sizes = if self.notifications.is_empty() { default } else { &self.notifications };
        sizes.to_vec()
    }
}
