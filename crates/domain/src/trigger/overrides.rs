//! Overrides of a trigger: the settings of a message that a trigger puts in place of those of the
//! workflow.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::Trigger;
use crate::content::MessageContent;
use crate::error::{Invalid, Reason};
use crate::filter::FilterFacts;
use crate::ids::{IntegrationIdentifier, LayoutIdentifier};
use crate::json::{Object, Path};
use crate::layout::LayoutChoice;
use crate::step::{Rendered, WorkflowStep, check_lengths, one_line};
use crate::suggest::nearest;
use crate::vocabulary::{Channel, Severity};
use crate::workflow::Workflow;

/// Settings that put a text in place of rendered content.
const CONTENT: [&str; 3] = ["subject", "title", "body"];
/// Settings with the name of a layout, or `null` for none. The second one is an older form.
const LAYOUT: [&str; 2] = ["layoutId", "layoutIdentifier"];

/// Members of overrides, beside those in [`LAYOUT`]. A name close to one of them is a misspelling.
const MEMBERS: [&str; 4] = ["steps", "channels", "providers", "severity"];

/// Returns the settings of a message of `step`. Settings of the step come before those of the
/// channel, and those before settings of the provider:
///
/// 1. `steps.<step>.providers.<provider>`
/// 2. `steps.<step>`
/// 3. `channels.<channel>`
/// 4. `<channel>`, an older form
/// 5. `providers.<provider>`
///
/// Without a provider, the settings of providers are left out.
pub(crate) fn settings(
    overrides: Option<&Object>,
    step: &WorkflowStep,
    channel: Channel,
    provider: Option<&str>,
) -> Object {
    let mut settings = Map::new();
    let Some(overrides) = overrides else { return Object::default() };
    let at = |names: &[&str]| {
        let (first, rest) = names.split_first()?;
        let whole = overrides.get(*first)?;
        rest.iter().try_fold(whole, |value, name| value.get(*name))?.as_object()
    };
    let channel = channel.as_str();
    let mut put = |names: &[&str]| put_over(&mut settings, at(names));
    if let Some(provider) = provider {
        put(&["providers", provider]);
    }
    put(&[channel]);
    put(&["channels", channel]);
    for name in step.names() {
        put(&["steps", &name]);
    }
    // Behind the settings under all names of the step, since a trigger may use several of them.
    if let Some(provider) = provider {
        for name in step.names() {
            put(&["steps", &name, "providers", provider]);
        }
    }
    Object::try_from(settings).unwrap_or_default()
}

// Puts the settings of a level in place of those before. The two names of the layout are one setting.
fn put_over(settings: &mut Map<String, Value>, level: Option<&Map<String, Value>>) {
    let Some(level) = level else { return };
    if LAYOUT.iter().any(|name| level.contains_key(*name)) {
        settings.retain(|name, _| !LAYOUT.contains(&name.as_str()));
    }
    let own = level.iter().filter(|(name, _)| *name != "providers");
    settings.extend(own.map(|(name, value)| (name.clone(), value.clone())));
}

/// Returns the layout of a message of `step`: that of the trigger, or else that of the step. `null`
/// stands for no layout.
pub(crate) fn layout<'f>(
    overrides: Option<&Object>,
    step: &WorkflowStep,
    facts: &dyn Fn() -> FilterFacts<'f>,
) -> LayoutChoice {
    if step.definition.kind.channel() != Some(Channel::Email) {
        return LayoutChoice::None;
    }
    let settings = settings(overrides, step, Channel::Email, None);
    let of = |level: &Object| LAYOUT.iter().find_map(|name| level.get(*name)).cloned();
    match of(&settings).or_else(|| overrides.and_then(of)) {
        Some(Value::String(name)) => LayoutChoice::Named(name),
        Some(_) => LayoutChoice::None,
        None => step.layout(facts),
    }
}

/// Puts the texts of `settings` in place of rendered content.
pub(crate) fn put_texts(settings: &Object, mut rendered: Rendered) -> Rendered {
    let text = |name: &str| settings.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    rendered.subject = text("subject").map(one_line).or(rendered.subject);
    rendered.title = text("title").map(one_line).or(rendered.title);
    if let Some(body) = text("body") {
        rendered.content = MessageContent::Text(body);
    }
    rendered
}

impl Trigger {
    /// Refuses overrides that would have an effect, but have no valid value or a misspelled name.
    #[doc(hidden)]
    pub fn check_overrides(&self) -> Result<(), Invalid> {
        let Some(overrides) = &self.overrides else { return Ok(()) };
        check_members(overrides)?;
        if let Some(severity) = overrides.get("severity") {
            word::<Severity>(severity).map_err(|bad| bad.named("overrides.severity"))?;
        }
        for name in LAYOUT {
            if let Some(layout) = overrides.get(name) {
                word::<LayoutIdentifier>(layout)
                    .map_err(|bad| bad.named(format!("overrides.{name}")))?;
            }
        }
        check_lengths(overrides)?;
        for channel in Channel::ALL {
            if let Some(settings) = overrides.get(channel.as_str()) {
                check(settings, || format!("overrides.{channel}"))?;
            }
        }
        for (channel, settings) in members(overrides, "channels")? {
            let field = || format!("overrides.channels.{channel}");
            channel.parse::<Channel>().map_err(|bad| bad.named(field()))?;
            check(settings, field)?;
        }
        for (provider, settings) in members(overrides, "providers")? {
            object(settings, || format!("overrides.providers.{provider}"))?;
        }
        for (step, settings) in members(overrides, "steps")? {
            let field = || format!("overrides.steps.{step}");
            check(settings, field)?;
            if let Some(providers) = settings.get("providers") {
                object(providers, || format!("overrides.steps.{step}.providers"))?;
            }
        }
        Ok(())
    }

    /// Refuses overrides of a step that `workflow` does not have. A stored trigger is not checked: its
    /// workflow may have changed.
    #[doc(hidden)]
    pub fn check_overridden_steps(&self, workflow: &Workflow) -> Result<(), Invalid> {
        let Some(overrides) = &self.overrides else { return Ok(()) };
        let mut overridden = members(overrides, "steps")?.peekable();
        if overridden.peek().is_none() {
            return Ok(());
        }
        let known: Vec<String> = workflow.steps.iter().flat_map(WorkflowStep::names).collect();
        let unknown = overridden.find(|(step, _)| !known.contains(step));
        unknown.map_or(Ok(()), |(step, _)| {
            let meant = nearest(step, known.iter().map(String::as_str));
            Err(misspelled(("steps", Some(step)), meant))
        })
    }
}

// Refuses a name that is close to that of a member. Any other one may be that of a provider, an older
// form, and a short one may be close to a channel: `ses`, `sms`.
fn check_members(overrides: &Object) -> Result<(), Invalid> {
    let known = || MEMBERS.into_iter().chain(LAYOUT);
    let mut unknown = overrides.keys().filter(|name| !known().any(|member| member == *name));
    unknown.try_for_each(|name| match nearest(name, known()) {
        meant @ Some(_) => Err(misspelled((name, None), meant)),
        None => Ok(()),
    })
}

fn misspelled((member, inside): (&str, Option<&str>), meant: Option<&str>) -> Invalid {
    let overrides = Path::Member(&Path::Whole, "overrides");
    let member = Path::Member(&overrides, member);
    let field = inside.map_or_else(|| member.named(), |name| Path::Member(&member, name).named());
    Invalid::new(field, Reason::Unknown { suggestion: meant.map(ToOwned::to_owned) })
}

// The members of an object among the overrides. `null` is as good as no object.
fn members<'o>(
    overrides: &'o Object,
    name: &str,
) -> Result<impl Iterator<Item = (&'o String, &'o Value)>, Invalid> {
    let found = overrides.get(name);
    if let Some(found) = found {
        object(found, || format!("overrides.{name}"))?;
    }
    Ok(found.and_then(Value::as_object).into_iter().flatten())
}

fn object(value: &Value, field: impl Fn() -> String) -> Result<(), Invalid> {
    match value {
        Value::Null | Value::Object(_) => Ok(()),
        _ => Err(Invalid::new(field(), Reason::malformed("an object"))),
    }
}

// Refuses settings that are no object, and a setting that acts and has no valid value.
fn check(settings: &Value, field: impl Fn() -> String) -> Result<(), Invalid> {
    object(settings, &field)?;
    if let Some(identifier) = settings.get("integrationIdentifier") {
        let named = |bad: Invalid| bad.named(format!("{}.integrationIdentifier", field()));
        word::<IntegrationIdentifier>(identifier).map_err(named)?;
    }
    for name in CONTENT.into_iter().chain(LAYOUT) {
        match settings.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(_) => {
                let field = format!("{}.{name}", field());
                return Err(Invalid::new(field, Reason::malformed("a text")));
            }
        }
    }
    Ok(())
}

// Refuses a value that is no `T`. `null` is as good as no value.
fn word<T: FromStr<Err = Invalid>>(value: &Value) -> Result<(), Invalid> {
    match value {
        Value::Null => Ok(()),
        Value::String(word) => word.parse::<T>().map(drop),
        _ => Err(Invalid::new("", Reason::malformed("a text"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample;

    /// One row per set of levels that say something: the level that counts.
    #[test]
    fn a_step_comes_before_its_channel_and_that_before_its_provider() {
        let template = json!({ "subject": "S", "body": "B" });
        let steps = json!([{ "type": "email", "name": "receipt", "template": template }]);
        let workflow = sample::workflow(steps);
        let step = &workflow.steps[0];
        let levels = [
            json!({ "providers": { "ses": { "x": "provider" } } }),
            json!({ "email": { "x": "old" } }),
            json!({ "channels": { "email": { "x": "channel" } } }),
            json!({ "steps": { "receipt": { "x": "step" } } }),
            json!({ "steps": { "receipt": { "providers": { "ses": { "x": "step provider" } } } } }),
        ];
        let words = ["provider", "old", "channel", "step", "step provider"];
        for said in 0_u32..32 {
            let mut overrides = json!({});
            for (_, level) in levels.iter().enumerate().filter(|(at, _)| said & 1 << at != 0) {
                merge(&mut overrides, level);
            }
            let overrides = sample::object(overrides);
            let found = settings(Some(&overrides), step, Channel::Email, Some("ses"));
            let strongest = (0..5).rev().find(|at| said & 1 << at != 0).map(|at| words[at]);
            assert_eq!(found.get("x").and_then(Value::as_str), strongest, "{overrides:?}");
            // Settings of providers count only for their provider.
            let found = settings(Some(&overrides), step, Channel::Email, None);
            let strongest = (1..4).rev().find(|at| said & 1 << at != 0).map(|at| words[at]);
            assert_eq!(found.get("x").and_then(Value::as_str), strongest, "{overrides:?}");
            let other = settings(Some(&overrides), step, Channel::Sms, Some("twilio"));
            let strongest = (said & 8 != 0).then_some("step");
            assert_eq!(other.get("x").and_then(Value::as_str), strongest, "{overrides:?}");
        }
    }

    /// One row per pair of names of a step: one has its own setting, the other that of a provider.
    #[test]
    fn a_provider_of_a_step_comes_first_under_each_name_of_the_step() {
        let template = json!({ "subject": "S", "body": "B" });
        let step =
            json!({ "type": "email", "name": "receipt", "uuid": "editor-1", "template": template });
        let workflow = sample::workflow(json!([step]));
        let step = &workflow.steps[0];
        let id = step.id.to_string();
        let names = ["receipt", "editor-1", &id];
        for (one, other) in names.iter().flat_map(|one| names.map(|other| (*one, other))) {
            let mut overrides = json!({ "steps": { one: { "x": "step" } } });
            let provider = json!({ "providers": { "ses": { "x": "step provider" } } });
            merge(&mut overrides, &json!({ "steps": { other: provider } }));
            let overrides = sample::object(overrides);
            let found = settings(Some(&overrides), step, Channel::Email, Some("ses"));
            assert_eq!(found["x"], "step provider", "{one} {other}");
        }
    }

    // Adds the members of `value`, at every depth.
    fn merge(into: &mut Value, value: &Value) {
        match (into, value) {
            (Value::Object(into), Value::Object(value)) => {
                for (name, value) in value {
                    merge(into.entry(name).or_insert_with(|| json!({})), value);
                }
            }
            (into, value) => *into = value.clone(),
        }
    }

    /// One row per name of a step: the refusal, if it has one.
    #[test]
    fn an_override_of_a_step_names_one_of_the_workflow() {
        let template = json!({ "subject": "S", "body": "B" });
        let step =
            json!({ "type": "email", "name": "receipt", "uuid": "editor-1", "template": template });
        let workflow = sample::workflow(json!([step]));
        let trigger = |overrides: Value| {
            let trigger = Trigger::new("hi", "ada").unwrap();
            trigger.overrides(overrides).unwrap().check_overridden_steps(&workflow)
        };
        let id = workflow.steps[0].id.to_string();
        for name in ["receipt", "editor-1", &id] {
            assert_eq!(trigger(json!({ "steps": { name: {} } })), Ok(()), "{name}");
        }
        for none in [json!({}), json!({ "steps": null }), json!({ "steps": {} })] {
            assert_eq!(trigger(none), Ok(()));
        }
        for (name, meant) in [
            ("reciept", "; did you mean `receipt`?"),
            ("xyzzy", ""),
            ("Receipt", "; did you mean `receipt`?"),
        ] {
            let refused = trigger(json!({ "steps": { "receipt": {}, name: null } }));
            let refusal = format!("`overrides.steps.{name}` is not known{meant}");
            assert_eq!(refused.unwrap_err().to_string(), refusal);
        }
    }

    /// One row per override that acts and has no valid value.
    #[test]
    fn an_override_that_acts_is_checked() {
        let trigger = |overrides: Value| {
            let trigger = Trigger::new("hi", "ada").unwrap();
            trigger.overrides(overrides).unwrap().check_overrides()
        };
        for (overrides, refusal) in [
            (json!({ "steps": [] }), "`overrides.steps` must be an object"),
            (json!({ "steps": { "a": 1 } }), "`overrides.steps.a` must be an object"),
            (
                json!({ "steps": { "a": { "providers": 1 } } }),
                "`overrides.steps.a.providers` must be an object",
            ),
            (
                json!({ "steps": { "a": { "subject": 1 } } }),
                "`overrides.steps.a.subject` must be a text",
            ),
            (
                json!({ "channels": { "fax": {} } }),
                "`overrides.channels.fax` must be one of in_app, email, sms, chat, push",
            ),
            (
                json!({ "channels": { "email": { "integrationIdentifier": "" } } }),
                "`overrides.channels.email.integrationIdentifier` must not be empty",
            ),
            (json!({ "providers": 1 }), "`overrides.providers` must be an object"),
            (json!({ "providers": { "ses": 1 } }), "`overrides.providers.ses` must be an object"),
        ] {
            assert_eq!(trigger(overrides).unwrap_err().to_string(), refusal);
        }
        for (name, meant) in [
            ("severty", "severity"),
            ("stpes", "steps"),
            ("chanels", "channels"),
            ("Providers", "providers"),
            ("layoutidentifer", "layoutIdentifier"),
        ] {
            let refused = trigger(json!({ name: {} })).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("`overrides.{name}` is not known; did you mean `{meant}`?")
            );
        }
        // Older forms, and providers.
        for name in ["email", "push", "in_app", "delay", "digest", "ses", "sns", "slack", "fcm"] {
            assert_eq!(trigger(json!({ name: null })), Ok(()));
        }
        let sound = json!({
            "steps": { "a": { "subject": "S", "x": 1, "layoutId": null } }, "providers": null,
            "channels": { "email": { "body": "B" } }, "severity": "high", "unknown": 1,
        });
        assert_eq!(trigger(sound), Ok(()));
    }
}
