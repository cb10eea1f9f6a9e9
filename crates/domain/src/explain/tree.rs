//! The tree as which an explanation prints.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::{
    Assumption, Candidate, DigestResult, EventOutcome, Evidence, EvidenceKind, ExplainedMessage,
    ExplainedRecipient, ExplainedStep, Explanation, FilteredMember, LayerSetting,
    RefusingSubscription, Rejected, SendTime, VariantChoice,
};
use crate::content::{Cta, MessageContent};
use crate::filter::FilterCheck;
use crate::job::{Detail, JobStatus};
use crate::preference::Layer;
use crate::step::DelayEnd;
use crate::time::Timestamp;

/// Largest number of characters of a text that is printed.
const LONGEST: usize = 120;

/// Line of a tree, with the lines under it.
struct Branch {
    line: String,
    under: Vec<Branch>,
}

impl Branch {
    fn leaf(line: impl Into<String>) -> Self {
        Self { line: line.into(), under: Vec::new() }
    }

    fn print(&self, f: &mut Formatter<'_>, indent: &str) -> fmt::Result {
        let last = self.under.len().saturating_sub(1);
        for (number, branch) in self.under.iter().enumerate() {
            let (tip, bar) = if number == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            write!(f, "\n{indent}{tip}{}", branch.line)?;
            branch.print(f, &format!("{indent}{bar}"))?;
        }
        Ok(())
    }
}

/// Prints the explanation as a tree: recipients, steps, and what their decisions were made from.
impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let outcome = match &self.outcome {
            EventOutcome::Accepted => "accepted".to_owned(),
            EventOutcome::Repeated { transaction_id } => {
                format!("nothing, {transaction_id} has happened before")
            }
            EventOutcome::NoEffect { status } => format!("nothing, {status}"),
        };
        let line = format!("{} at {}: {outcome}", self.workflow, self.at);
        let mut under: Vec<_> = self.recipients.iter().map(recipient).collect();
        under.extend(self.others());
        let tree = Branch { line, under };
        f.write_str(&tree.line)?;
        tree.print(f, "")
    }
}

impl Explanation {
    // What the tree does not show.
    fn others(&self) -> Vec<Branch> {
        let mut others = Vec::new();
        if let Some(crowd) = self.crowd {
            let more = if crowd.is_complete { "" } else { "more than " };
            let count = crowd.subscribers;
            let line = format!("{more}{count} subscribers in topics are told by tasks");
            others.push(Branch::leaf(line));
        }
        if self.filtered > 0 {
            let count = self.filtered;
            let refusing = self.filtered_members.iter().map(filtered);
            others.push(Branch {
                line: format!("{count} subscribers in topics have no subscription that admits it"),
                under: refusing.collect(),
            });
        }
        let missing = self.missing_topics.iter();
        others.extend(missing.map(|topic| Branch::leaf(format!("no topic {topic}"))));
        if let Some(cut) = self.cut {
            let (jobs, until) = (cut.jobs, cut.until);
            let line = format!("{jobs} jobs wait at {until}, where the simulation ends");
            others.push(Branch::leaf(line));
        }
        others
    }
}

fn filtered(member: &FilteredMember) -> Branch {
    let under = member.subscriptions.iter().map(refusing).collect();
    Branch { line: member.subscriber_id.to_string(), under }
}

fn refusing(subscription: &RefusingSubscription) -> Branch {
    let RefusingSubscription { topic_key, identifier, has_contexts, enabled, condition: rule } =
        subscription;
    let why = match (has_contexts, enabled) {
        (false, _) => "it is of other contexts",
        (true, Some(_)) if rule.is_some() => "its condition does not hold",
        (true, Some(enabled)) => switch(*enabled),
        (true, None) => "not set",
    };
    let rule = rule.iter().map(|rule| condition(rule.holds, &rule.rule, &rule.actual));
    Branch { line: format!("{identifier} in {topic_key}: {why}"), under: rule.collect() }
}

fn recipient(recipient: &ExplainedRecipient) -> Branch {
    let new = if recipient.is_new { " (new)" } else { "" };
    let topics: Vec<_> = recipient.topics.iter().map(ToString::to_string).collect();
    let through = if topics.is_empty() { "" } else { " in " };
    let line = format!("{}{new}{through}{}", recipient.subscriber_id, topics.join(", "));
    let steps = recipient.steps.iter().enumerate();
    Branch { line, under: steps.map(|(number, one)| step(number + 1, one)).collect() }
}

fn step(number: usize, step: &ExplainedStep) -> Branch {
    let name = step.name.as_deref().map(|name| format!(" \"{}\"", excerpt(name)));
    let name = name.unwrap_or_default();
    let line = format!("{number} {}{name}: {}", step.kind, status(step));
    let mut under = evidence(&step.evidence);
    under.extend(step.log.iter().filter_map(|entry| logged(entry.detail, entry.raw.as_deref())));
    under.extend(step.message.as_ref().map(message));
    under.extend(step.assumed.iter().map(|one| Branch::leaf(assumption(*one))));
    Branch { line, under }
}

fn status(step: &ExplainedStep) -> String {
    let word = step.status.as_str();
    if let Some(due_at) = step.status.due_at() {
        return format!("{word} until {due_at}");
    }
    let at = step.updated_at.map_or(String::new(), |at| format!(" at {at}"));
    let reason = match step.status {
        JobStatus::Completed
        | JobStatus::Pending
        | JobStatus::Delayed { .. }
        | JobStatus::Queued { .. }
        | JobStatus::Running { .. } => None,
        JobStatus::Failed | JobStatus::Canceled | JobStatus::Skipped | JobStatus::Merged => {
            step.reason
        }
    };
    let reason = reason.map(|reason| format!(": {}", spaced(reason.as_str())));
    format!("{word}{at}{}", reason.unwrap_or_default())
}

// The time of evidence is named if it is not the time of the one before.
fn evidence(all: &[Evidence]) -> Vec<Branch> {
    let mut before = None;
    let branches = all.iter().map(|found| {
        let mut branch = evidence_of(&found.kind);
        if before.replace(found.at).is_some_and(|before| before != found.at) {
            branch.line = format!("{} (at {})", branch.line, found.at);
        }
        branch
    });
    branches.collect()
}

fn evidence_of(kind: &EvidenceKind) -> Branch {
    match kind {
        EvidenceKind::RunIf { holds, rule, actual } => condition(*holds, rule, actual),
        EvidenceKind::Filters { holds, checks } => {
            let line = if *holds { "filters hold" } else { "filters do not hold" };
            Branch { line: line.into(), under: checks.iter().map(check).collect() }
        }
        EvidenceKind::Preference { channel, enabled, decided_by, layers } => {
            let line =
                format!("preference: {channel} is {}, {}", switch(*enabled), by(*decided_by));
            let set = layers.iter().filter(|layer| layer.enabled.is_some());
            Branch { line, under: set.map(|one| layer(one, *decided_by)).collect() }
        }
        EvidenceKind::Schedule { timing, .. } => Branch::leaf(schedule(*timing)),
        EvidenceKind::Delay { end } => Branch::leaf(delay(*end)),
        EvidenceKind::Extended { until } => {
            Branch::leaf(format!("extended to the schedule: until {until}"))
        }
        EvidenceKind::Digest { result } => Branch::leaf(digest(*result)),
        EvidenceKind::Throttle { passes, limit, used, until } => {
            let until = throttle(*passes, *until);
            Branch::leaf(format!("throttle: {used} of {limit} places are taken, {until}"))
        }
        EvidenceKind::Variants { variants } => {
            let chosen = variants.iter().find(|variant| variant.chosen);
            let line = chosen.map_or("none, so the content of the step", |chosen| &chosen.name);
            let under = variants.iter().map(variant).collect();
            Branch { line: format!("variant: {line}"), under }
        }
        EvidenceKind::Paused { integration, since } => {
            Branch::leaf(format!("integration {integration}: paused since {since}"))
        }
        EvidenceKind::Integrations { candidates, .. } => {
            let chosen = candidates.iter().find(|one| one.rejected.is_none());
            let line = chosen.map_or("none".into(), |chosen| chosen.identifier.to_string());
            let line = format!("integration: {line}");
            Branch { line, under: candidates.iter().map(candidate).collect() }
        }
    }
}

fn condition(holds: bool, rule: &Value, actual: &BTreeMap<String, Value>) -> Branch {
    let value = |(path, value): (&String, &Value)| Branch::leaf(format!("{path} is {value}"));
    let holds = if holds { "holds" } else { "does not hold" };
    let line = format!("condition {holds}: {}", excerpt(&rule.to_string()));
    Branch { line, under: actual.iter().map(value).collect() }
}

fn check(check: &FilterCheck) -> Branch {
    let actual = check.actual.as_ref().map_or("absent".into(), ToString::to_string);
    let FilterCheck { on, field, operator, expected, held: holds, .. } = check;
    let expected = excerpt(expected);
    let is = if *holds { "holds" } else { "does not hold" };
    Branch::leaf(format!("{on}.{field} {operator} {expected:?} {is}: it is {actual}"))
}

fn layer(setting: &LayerSetting, decided_by: Layer) -> Branch {
    let enabled = setting.enabled.map_or("not set", switch);
    let decides = if setting.layer == decided_by { ", decides" } else { "" };
    let line = format!("{}: {enabled}{decides}", spaced(setting.layer.as_str()));
    let checked = setting.condition.iter();
    Branch { line, under: checked.map(|it| condition(it.holds, &it.rule, &it.actual)).collect() }
}

fn by(layer: Layer) -> String {
    match layer {
        Layer::Default => "as no layer says otherwise".into(),
        Layer::Definition
        | Layer::Operator
        | Layer::SubscriberGlobal
        | Layer::SubscriberWorkflow => {
            format!("by {}", spaced(layer.as_str()))
        }
    }
}

fn schedule(timing: SendTime) -> String {
    match timing {
        SendTime::Now => "schedule: does not hold it back".into(),
        SendTime::AtOpening { at } => format!("schedule: closed, opens at {at}"),
        SendTime::Dropped => "schedule: closed, and late messages are dropped".into(),
        SendTime::Never => "schedule: never opens".into(),
    }
}

fn delay(end: DelayEnd) -> String {
    match end {
        DelayEnd::Over => "delay: over at once".into(),
        DelayEnd::Lasts { until } => format!("delay: until {until}"),
        DelayEnd::Passed => "delay: its time has passed".into(),
    }
}

fn digest(result: DigestResult) -> String {
    match result {
        DigestResult::Opens { until } => format!("digest: opens a window until {until}"),
        DigestResult::Joins { until, events } => {
            format!("digest: joins a window with {events} events until {until}")
        }
        DigestResult::Passes => "digest: passes at once".into(),
    }
}

fn throttle(passes: bool, until: Option<Timestamp>) -> String {
    match (passes, until) {
        (true, Some(until)) => format!("passes and takes one until {until}"),
        (false, Some(until)) => format!("the next one is free at {until}"),
        (true, None) => "passes and takes none, as its window is over".into(),
        (false, None) => "does not pass".into(),
    }
}

fn variant(variant: &VariantChoice) -> Branch {
    let is = match (variant.chosen, variant.checks.is_empty()) {
        (true, _) => "chosen",
        (false, true) => "not looked at, inactive or without filters",
        (false, false) => "its filters do not hold",
    };
    let line = format!("{}: {is}", variant.name);
    Branch { line, under: variant.checks.iter().map(check).collect() }
}

fn candidate(candidate: &Candidate) -> Branch {
    let reason = match &candidate.rejected {
        None => "chosen".into(),
        Some(Rejected::Inactive) => "not active".into(),
        Some(Rejected::NotNamed) => "the trigger names another one".into(),
        Some(Rejected::Filters { .. }) => "its conditions do not hold".into(),
        Some(Rejected::NoAddress { detail }) => spaced(detail.as_str()),
        Some(Rejected::Outranked) => "comes behind another one, or is not primary".to_owned(),
        Some(Rejected::CircuitOpen) => "is left alone, since it keeps failing".to_owned(),
        Some(Rejected::Waits) => "takes over if the chosen one fails".to_owned(),
    };
    let checks = match &candidate.rejected {
        Some(Rejected::Filters { checks }) => checks.as_slice(),
        _ => &[],
    };
    let line = format!("{} ({}): {reason}", candidate.identifier, candidate.provider_id);
    Branch { line, under: checks.iter().map(check).collect() }
}

// Entries of the log that no evidence repeats.
fn logged(detail: Detail, raw: Option<&str>) -> Option<Branch> {
    let said = raw.map(excerpt).unwrap_or_default();
    match detail {
        Detail::WorkflowPaused => Some(Branch::leaf("workflow: paused")),
        Detail::VariantChosen => Some(Branch::leaf(format!("variant: {said}"))),
        Detail::TranslationMissing | Detail::TranslationInvalid | Detail::LayoutMissing => {
            Some(Branch::leaf(format!("{}: {said}", spaced(detail.as_str()))))
        }
        Detail::VariableMissing
        | Detail::ContentNotGenerated
        | Detail::DelayNotPossible
        | Detail::DigestNotPossible
        | Detail::ThrottleNotPossible
        | Detail::ProviderMissing => {
            (!said.is_empty()).then(|| Branch::leaf(format!("reason: {said}")))
        }
        _ => None,
    }
}

fn message(message: &ExplainedMessage) -> Branch {
    let to = message.to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
    let through = message.provider_id.as_ref();
    let through = through.map_or(String::new(), |provider| format!(" through {provider}"));
    let line = format!("message{to}{through} at {}", message.created_at);
    let headings = [("subject", &message.subject), ("title", &message.title)];
    let headings = headings.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    let mut under: Vec<_> =
        headings.map(|(name, text)| Branch::leaf(format!("{name}: {}", excerpt(text)))).collect();
    match &message.content {
        Some(MessageContent::Text(text)) => {
            under.push(Branch::leaf(format!("body: {}", excerpt(text))));
        }
        Some(MessageContent::Blocks(blocks)) => {
            let block = |text: &str| Branch::leaf(format!("block: {}", excerpt(text)));
            under.extend(blocks.iter().map(|one| block(&one.content)));
        }
        None => {}
    }
    under.extend(message.cta.iter().flat_map(call_to_action));
    Branch { line, under }
}

fn call_to_action(cta: &Cta) -> impl Iterator<Item = Branch> {
    let url = cta.data.iter().flat_map(|data| &data.url).map(|url| ("url", url));
    let buttons = cta.action.iter().flat_map(|action| &action.buttons);
    let buttons = buttons.map(|button| ("button", &button.content));
    url.chain(buttons).map(|(name, text)| Branch::leaf(format!("{name}: {}", excerpt(text))))
}

const fn assumption(assumption: Assumption) -> &'static str {
    match assumption {
        Assumption::ProviderAccepts => "assumed: the provider accepts the message",
        Assumption::NoResult => "assumed: the function succeeds without a result",
        Assumption::NoLaterEvents => "assumed: no later event joins the window",
        Assumption::EarlierEvent => "assumed: an earlier event of the window is left at its end",
        Assumption::NoOtherEvents => "assumed: no other event reaches the step before",
        Assumption::Unread => "assumed: the earlier messages are neither seen nor read",
    }
}

const fn switch(enabled: bool) -> &'static str {
    if enabled { "on" } else { "off" }
}

fn spaced(word: &str) -> String {
    word.replace('_', " ")
}

// A text on one line, cut to its first characters.
fn excerpt(text: &str) -> String {
    let words: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    let mut excerpt: String = words.chars().take(LONGEST).collect();
    if excerpt.len() < words.len() {
        excerpt += "...";
    }
    excerpt
}
