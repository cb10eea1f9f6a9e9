//! What happens, and what is asked afterwards.

use std::fmt::Debug;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tidings::message::MarkAs;
use tidings::vocabulary::{Channel, Severity, StepType};

pub const NAMES: [&str; 4] = ["ada", "bob", "cyd", "dan"];
pub const EMAILS: [&str; 3] = ["ada@example.org", "post@example.org", "post@example.com"];
pub const TENANTS: [&str; 2] = ["acme", "umbrella"];

/// What there is to trigger.
pub const WORKFLOWS: [Flow; 4] = [
    Flow {
        name: "inbox",
        channel: Channel::InApp,
        steps: 1,
        severity: Severity::None,
        critical: false,
    },
    Flow {
        name: "twice",
        channel: Channel::InApp,
        steps: 2,
        severity: Severity::High,
        critical: false,
    },
    Flow {
        name: "alarm",
        channel: Channel::InApp,
        steps: 1,
        severity: Severity::High,
        critical: true,
    },
    Flow {
        name: "mail",
        channel: Channel::Email,
        steps: 1,
        severity: Severity::Low,
        critical: false,
    },
];

/// A workflow with so many steps on one channel.
pub struct Flow {
    pub name: &'static str,
    pub channel: Channel,
    pub steps: usize,
    pub severity: Severity,
    pub critical: bool,
}

/// Something that happens to the subscribers of that name.
#[derive(Clone, Debug)]
pub enum Step {
    Say(&'static str, Option<&'static str>),
    Leave(&'static str),
    Trigger(Happening),
    Mark(&'static str, u8, MarkAs),
    Mute(&'static str, usize, bool),
    Deliver,
    Wait(u64),
    /// The notification so many behind the newest is deleted.
    Forget(usize),
    /// What happened longer ago than that is deleted.
    Sweep(u64),
    /// The index is made anew.
    Rebuild,
}

/// Something that is triggered.
#[derive(Clone, Debug)]
pub struct Happening {
    pub workflow: usize,
    pub to: Vec<&'static str>,
    pub tenant: Option<&'static str>,
    pub urgent: bool,
}

/// Which notifications are looked for.
#[derive(Clone, Debug)]
pub struct Question {
    pub names: Vec<&'static str>,
    pub emails: Vec<&'static str>,
    pub search: Option<&'static str>,
    pub templates: Vec<usize>,
    pub channels: Vec<StepType>,
    pub severity: Vec<Severity>,
    pub transaction: Option<String>,
    /// All of the tenants that the notification is about; it is about one at most.
    pub tenants: Option<Vec<&'static str>>,
    pub after: Option<u64>,
    pub before: Option<u64>,
    pub page: usize,
    pub limit: usize,
}

/// Anything that happens.
pub fn step() -> impl Strategy<Value = Step> {
    let name = || select(&NAMES[..]);
    let workflow = || 0..WORKFLOWS.len();
    let event = (
        workflow(),
        subsequence(&NAMES[..], 1..=NAMES.len()),
        option::of(select(&TENANTS[..])),
        any::<bool>(),
    );
    prop_oneof![
        2 => (name(), option::of(select(&EMAILS[..]))).prop_map(|(n, email)| Step::Say(n, email)),
        1 => name().prop_map(Step::Leave),
        6 => event.prop_map(|(workflow, to, tenant, urgent)| {
            Step::Trigger(Happening { workflow, to, tenant, urgent })
        }),
        4 => (name(), any::<u8>(), select(MarkAs::ALL)).prop_map(|(n, b, m)| Step::Mark(n, b, m)),
        2 => (name(), workflow(), any::<bool>()).prop_map(|(n, w, word)| Step::Mute(n, w, word)),
        2 => Just(Step::Deliver),
        3 => (0_u64..3).prop_map(Step::Wait),
        2 => (0_usize..40).prop_map(Step::Forget),
        1 => (0_u64..12).prop_map(Step::Sweep),
        1 => Just(Step::Rebuild),
    ]
}

prop_compose! {
    /// Any question, though most parts of it are left out.
    pub fn question()(
        (names, emails, search) in (
            few(&NAMES),
            few(&EMAILS),
            option::weighted(0.2, select(vec!["ada", "post", "example.com", "nobody"])),
        ),
        templates in few(&[0, 1, 2, 3]),
        channels in few(&[StepType::InApp, StepType::Email, StepType::Push]),
        severity in few(Severity::ALL),
        transaction in option::weighted(0.2, (0..20).prop_map(|n| format!("after {n}"))),
        tenants in option::weighted(0.3, subsequence(&TENANTS[..], 0..=1)),
        (after, before) in (option::weighted(0.3, 0_u64..20), option::weighted(0.3, 0_u64..20)),
        (page, limit) in (0_usize..3, 1_usize..6),
    ) -> Question {
        let before = before.map(|before| before.max(after.unwrap_or_default()));
        Question {
            names, emails, search, templates, channels, severity, transaction, tenants, after,
            before, page, limit,
        }
    }
}

/// None of `items` mostly, or some.
fn few<T: Clone + Debug + 'static>(items: &[T]) -> impl Strategy<Value = Vec<T>> + use<T> {
    prop_oneof![3 => Just(Vec::new()), 1 => subsequence(items.to_vec(), 1..=items.len())]
}
