//! Previews: the rendered content of a step, without sending.

use std::slice;

use serde::{Deserialize, Serialize};

use crate::contact::TimeZone;
use crate::context::{Context, ContextPayload};
use crate::convert::IntoChecked;
use crate::error::{Invalid, Reason};
use crate::filter::FilterFacts;
use crate::ids::{StepRef, SubscriberId, TransactionId};
use crate::job::JobStatus;
use crate::json::{Object, shape};
use crate::layout::{FrameRef, LayoutChoice};
use crate::setters::{context_setter, setters};
use crate::step::{self, DigestEvent, Digested, Rendered, StepOutput, StepResults, WorkflowStep};
use crate::subscriber::Subscriber;
use crate::template_data::{Shared, TemplateData, subscriber_data};
use crate::translation::Texts;
use crate::unsubscribe::Link;
use crate::vocabulary::Channel;
use crate::workflow::Workflow;

/// Request for the rendered content of a step. It has no actor: filters on an actor do not hold.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use serde_json::json;
/// use tidings::preview::Preview;
///
/// let preview = Preview::new("mail", "ada")?
///     .payload(json!({ "order": "A-1001" }))?
///     .context("tenant", "acme")?;
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// Id, uuid or name of the step, or else its place, counted from 0.
    pub step: StepRef,
    /// Subscriber that the message is for.
    pub subscriber_id: SubscriberId,
    /// Fields of the event, for templates and conditions.
    #[serde(default)]
    pub payload: Object,
    /// Contexts of the event, with the data that a trigger would store. Nothing is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { Preview {
    "step": step, "subscriberId": subscriber_id, "payload": payload, "context": context,
} }

context_setter!(Preview);

impl Preview {
    /// Returns a preview of `step` for a subscriber, with an empty payload.
    pub fn new(
        step: impl Into<StepRef>,
        subscriber: impl IntoChecked<SubscriberId>,
    ) -> Result<Self, Invalid> {
        let subscriber_id =
            subscriber.into_checked().map_err(|invalid| invalid.named("subscriberId"))?;
        Ok(Self { step: step.into(), subscriber_id, payload: Object::default(), context: None })
    }

    /// Renders the step as a delivery does. Conditions choose the variant. Conditions and
    /// preferences of the step are ignored. The payload is the only event of a digest, and those in front of the
    /// step are over. Other steps have no results yet.
    #[doc(hidden)]
    pub fn render(
        &self,
        workflow: &Workflow,
        subscriber: &Subscriber,
        contexts: &[Context],
        (texts, layout, link): (Option<&Texts>, FrameRef<'_>, Option<&Link>),
        default_zone: TimeZone,
    ) -> Result<Rendered, Invalid> {
        workflow.check_payload(&self.payload)?;
        let (place, step) = self.step_of(workflow)?;
        let subscriber_data = subscriber_data(subscriber);
        let event = self.event(workflow)?;
        let digested = Digested::new(slice::from_ref(&event), None, 1);
        let steps = results(workflow, place, digested);
        let facts = FilterFacts::new(&subscriber_data, &self.payload).with_steps(&steps);
        let facts = facts.with_origin(None, contexts);
        let data = TemplateData::new(&subscriber_data, &self.payload, contexts, workflow);
        let data = data.with_steps(&steps).with_digest(digested);
        let data = data.with_link(link).with_default_zone(default_zone);
        let variables = workflow.variables(data.variables(&Shared::default()), texts);
        let rendered = step.render(|| facts, &variables).ok_or_else(|| {
            Invalid::new("step", Reason::malformed("a step that sends a message"))
        })?;
        let rendered = rendered.and_then(|rendered| rendered.finished(layout, &variables));
        rendered.map_err(|error| {
            let reason = Reason::Template { problem: error.to_string() };
            Invalid::new(format!("steps[{place}].template"), reason)
        })
    }

    /// Returns the layout that the step wants. Returns `LayoutChoice::None` if there is no such step.
    #[doc(hidden)]
    pub fn layout(
        &self,
        workflow: &Workflow,
        subscriber: &Subscriber,
        contexts: &[Context],
    ) -> LayoutChoice {
        let (Ok((place, step)), Ok(event)) = (self.step_of(workflow), self.event(workflow)) else {
            return LayoutChoice::None;
        };
        let digested = Digested::new(slice::from_ref(&event), None, 1);
        let (subscriber_data, steps) =
            (subscriber_data(subscriber), results(workflow, place, digested));
        let facts = FilterFacts::new(&subscriber_data, &self.payload).with_steps(&steps);
        step.layout(|| facts.with_origin(None, contexts))
    }

    // The event of a digest.
    fn event(&self, workflow: &Workflow) -> Result<DigestEvent, Invalid> {
        let id = TransactionId::new("preview")?;
        Ok(DigestEvent { id, time: workflow.updated_at, payload: self.payload.clone() })
    }

    /// Returns the channel of the step. A step that sends nothing counts as one of the inbox.
    #[doc(hidden)]
    pub fn channel(&self, workflow: &Workflow) -> Channel {
        let step = self.step_of(workflow).ok();
        step.and_then(|(_, step)| step.definition.kind.channel()).unwrap_or(Channel::InApp)
    }

    fn step_of<'w>(&self, workflow: &'w Workflow) -> Result<(usize, &'w WorkflowStep), Invalid> {
        let wanted = self.step.as_str();
        let mut steps = workflow.steps.iter().enumerate();
        let with_id = steps.clone().find(|(_, one)| one.id.to_string() == wanted);
        let named = || {
            steps.clone().find(|(_, one)| {
                let names = [&one.definition.uuid, &one.definition.name];
                names.iter().any(|name| name.as_deref() == Some(wanted))
            })
        };
        let named = with_id.or_else(named);
        let place = || wanted.parse().ok().and_then(|place| steps.nth(place));
        let all = workflow.steps.iter().map(|one| one.definition.name.as_deref());
        named.or_else(place).ok_or_else(|| step::unknown(all))
    }
}

// The results that the step at `place` finds. The event has passed the digests in front of it, and those that
// are inactive.
fn results(workflow: &Workflow, place: usize, digested: Digested<'_>) -> StepResults {
    let mut results = StepResults::default();
    for (number, step) in workflow.steps.iter().enumerate() {
        let (status, output) = if step.is_inactive_digest() {
            (JobStatus::Skipped, StepOutput::Digest(digested))
        } else if number < place && step.is_digest() {
            (JobStatus::Completed, StepOutput::Digest(digested))
        } else {
            (JobStatus::Pending, StepOutput::Nothing)
        };
        results.insert(step, status.as_str(), output);
    }
    results
}

setters! { Preview:
    /// Sets the fields of the event, for templates and conditions.
    payload: checked(Object, "payload");
    /// Sets the fields of the event to those of `value`, a type of the host application that serializes
    /// as an object.
    payload_of @ payload: serialized("payload");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::content::MessageContent;
    use crate::sample;

    fn workflow() -> Workflow {
        let greeting = json!([{ "type": "GROUP", "value": "AND", "children": [{
            "field": "vip", "value": "true", "operator": "EQUAL", "on": "payload",
        }] }]);
        sample::workflow(json!([
            { "type": "in_app", "name": "inbox", "template": { "body": "{{ payload.a }}" },
              "variants": [{ "type": "in_app", "name": "vip", "filters": greeting,
                             "template": { "body": "Dear {{ subscriber.firstName }}" } }] },
            { "type": "sms", "uuid": "text", "active": false,
              "template": { "body": "{{ context.tenant.id }}\n{{ -payload.a }}" } },
        ]))
    }

    fn preview(step: &str, payload: Value) -> Result<Rendered, Invalid> {
        let subscriber = sample::subscriber(json!({ "firstName": "Ada" }));
        let preview = Preview::new(step, "ada").unwrap().payload(sample::object(payload)).unwrap();
        let shown = (None, FrameRef::BARE, None);
        preview.render(&workflow(), &subscriber, &[], shown, TimeZone::UTC)
    }

    #[test]
    fn a_step_is_found_by_its_names_and_its_place() {
        let id = workflow().steps[0].id.to_string();
        for step in ["inbox", "0", &id] {
            let content = preview(step, json!({ "a": "x" })).unwrap().content;
            assert_eq!(content, MessageContent::Text("x".into()), "{step}");
        }
        assert!(preview("text", json!({ "a": 1 })).is_ok(), "also if it is not active");
        let error = preview("2", json!({})).unwrap_err().to_string();
        assert_eq!(error, "`step` must be one of inbox, 1");
    }

    /// Also if a step before it has the id as its name.
    #[test]
    fn a_step_is_found_by_its_id_first() {
        let [first, second] = ["first", "second"]
            .map(|body| json!({ "type": "in_app", "template": { "body": body } }));
        let mut workflow = sample::workflow(json!([first, second]));
        let id = workflow.steps[1].id;
        workflow.steps[0].definition.name = Some(id.to_string());

        let preview = Preview::new(id.to_string(), "ada").unwrap();
        let (place, _) = preview.step_of(&workflow).unwrap();
        assert_eq!(place, 1);
        let notification =
            sample::notification(&workflow, &sample::subscriber(json!({})), json!({}));
        let (number, _) = notification.job_of_step(&id.to_string()).unwrap();
        assert_eq!(notification.jobs[number].step.id, id);
    }

    #[test]
    fn other_steps_have_no_results_and_the_payload_is_the_only_event() {
        let mail = json!({ "type": "sms", "name": "mail", "template": { "body": "" } });
        let seen = "{{ steps.mail.status }}{% if steps.mail.seen %} and seen{% endif %}";
        let inbox = json!({ "type": "in_app", "name": "inbox", "template": { "body": seen } });
        let workflow = sample::workflow(json!([mail, inbox]));
        let subscriber = sample::subscriber(json!({}));
        let render = |workflow: &Workflow| {
            let preview = Preview::new("inbox", "ada").unwrap();
            let preview = preview.payload(json!({ "a": "x" })).unwrap();
            let shown = (None, FrameRef::BARE, None);
            preview.render(workflow, &subscriber, &[], shown, TimeZone::UTC).unwrap().content
        };
        assert_eq!(render(&workflow), MessageContent::Text("pending".into()));

        let mut digested = workflow;
        let body = "{{ total_count }} {{ events[0].payload.a }} {{ last.payload.a }}";
        let inbox = json!({ "type": "in_app", "name": "inbox", "template": { "body": body } });
        digested.steps[1].definition = serde_json::from_value(inbox).unwrap();
        assert_eq!(render(&digested), MessageContent::Text("1 x x".into()));
    }

    #[test]
    fn the_digests_in_front_of_the_step_are_over() {
        let digest = |name: &str, active: bool| {
            json!({ "type": "digest", "name": name, "active": active,
                    "metadata": { "type": "regular", "amount": 1, "unit": "hours" } })
        };
        let body = "{{ steps.a.status }} {{ steps.a.eventCount }} {{ steps.a.events[0].payload.n }}, \
            {{ steps.b.status }} {{ steps.b.eventCount }}";
        let inbox = json!({ "type": "in_app", "name": "inbox", "template": { "body": body } });
        let steps = json!([digest("a", true), digest("b", false), inbox]);
        let preview = Preview::new("inbox", "ada").unwrap().payload(json!({ "n": 7 })).unwrap();
        let (subscriber, shown) = (sample::subscriber(json!({})), (None, FrameRef::BARE, None));
        let workflow = sample::workflow(steps);
        let rendered = preview.render(&workflow, &subscriber, &[], shown, TimeZone::UTC).unwrap();
        let expected = "completed 1 7, skipped 1";
        assert_eq!(rendered.content, MessageContent::Text(expected.into()));
    }

    #[test]
    fn conditions_choose_the_variant() {
        let rendered = preview("inbox", json!({ "vip": "true" })).unwrap();
        assert_eq!(rendered.content, MessageContent::Text("Dear Ada".into()));
        assert_eq!(rendered.variant.as_deref(), Some("vip"));
    }

    #[test]
    fn what_cannot_be_rendered_is_refused_with_its_line() {
        let error = preview("text", json!({ "a": "x" })).unwrap_err().to_string();
        assert!(error.starts_with("`steps[1].template` is not a valid template: "), "{error}");
        assert!(error.ends_with(" in line 2"), "{error}");
    }
}
