//! The step of a job, with all that decides whether it runs.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::{CANCELED, EXPIRED, Facts, Refusal, Run, RunJob, cancel, fail, skip};
use crate::contact::TimeZone;
use crate::explain::{EvidenceKind, LayerSetting, SendTime};
use crate::filter::{self, FilterFacts};
use crate::job::Detail;
use crate::json::Object;
use crate::preference::{ConditionData, Layer, Layers, resolve};
use crate::step::{Rendered, StepKind, StepResults, WorkflowStep};
use crate::subscriber::Subscriber;
use crate::template::RenderError;
use crate::template_data::{TemplateData, subscriber_data};
use crate::time::Timestamp;
use crate::trigger::overrides;
use crate::vocabulary::Channel;
use crate::workflow::Workflow;

/// Job with an existing workflow and step, and a subscriber who is not being deleted.
pub(super) struct RunStep<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) facts: Facts<'a>,
    pub(super) subscriber: &'a Subscriber,
    pub(super) workflow: &'a Workflow,
    pub(super) step: &'a WorkflowStep,
    results: &'a StepResults,
    subscriber_data: OnceCell<Object>,
    actor: OnceCell<Object>,
}

impl<'a> RunStep<'a> {
    /// `results` are those of the steps before.
    pub(super) fn new(
        run: &'a Run<'a>,
        job: RunJob,
        facts: Facts<'a>,
        results: &'a StepResults,
    ) -> Result<Self, Refusal> {
        if facts.canceled {
            return Err(CANCELED);
        }
        if run.expires_at.is_some_and(|expires_at| expires_at <= facts.now) {
            return Err(EXPIRED);
        }
        // A deletion removes the preferences before the subscriber.
        let subscriber = facts.subscriber.filter(|subscriber| !subscriber.deleted);
        let subscriber = subscriber.ok_or(skip(Detail::SubscriberDeleted))?;
        let workflow = facts.workflow.ok_or(cancel(Detail::WorkflowDeleted))?;
        let step = workflow.step(job.step).ok_or(skip(Detail::StepDeleted))?;
        if !step.definition.active {
            return Err(skip(Detail::StepInactive));
        }
        let (subscriber_data, actor) = (OnceCell::new(), OnceCell::new());
        Ok(Self { run, facts, subscriber, workflow, step, results, subscriber_data, actor })
    }

    // The data of the event, without that of its steps.
    fn event(&self) -> TemplateData<'_> {
        let Facts { contexts, actor, default_zone, .. } = self.facts;
        TemplateData::new(self.subscriber, &self.run.payload, contexts, self.workflow)
            .with_actor(actor)
            .with_default_zone(default_zone)
    }

    pub(super) fn template_data(&self) -> TemplateData<'_> {
        let data = self.event().with_steps(self.results);
        match self.run.digested_before(self.step.id) {
            Some(digested) => data.with_digest(digested),
            None => data,
        }
    }

    // Most steps have neither conditions nor variants, and need no object of the subscriber.
    pub(super) fn filter_facts(&self) -> FilterFacts<'_> {
        let subscriber = self.subscriber_data.get_or_init(|| subscriber_data(self.subscriber));
        let actor = self.facts.actor.map(|actor| self.actor.get_or_init(|| subscriber_data(actor)));
        FilterFacts::new(subscriber, &self.run.payload)
            .with_steps(self.results)
            .with_origin(actor, self.facts.contexts)
    }

    /// Notes what a decision is made from, in a rehearsal.
    pub(super) fn note(&self, kind: impl FnOnce() -> EvidenceKind) {
        if let Some(evidence) = self.facts.evidence {
            let of = (self.subscriber.subscriber_id.clone(), self.step.id);
            evidence.note(of, self.facts.now, kind());
        }
    }

    /// Returns the action of the step, with the length in the overrides of the trigger.
    pub(super) fn kind(&self) -> Result<Cow<'a, StepKind>, Refusal> {
        let kind = &self.step.definition.kind;
        let Some(overrides) = self.run.overrides else { return Ok(Cow::Borrowed(kind)) };
        let detail = match kind {
            StepKind::Digest { .. } => Detail::DigestNotPossible,
            _ => Detail::DelayNotPossible,
        };
        kind.overridden(overrides).map_err(|invalid| fail(detail).because(invalid.to_string()))
    }

    /// Returns the time zone of the subscriber.
    pub(super) fn zone(&self) -> TimeZone {
        self.subscriber.profile.timezone.unwrap_or(self.facts.default_zone)
    }

    /// Returns when a message that is ready now is sent. Returns `None` if that is now. Refuses a
    /// message that the schedule lets out at no time.
    pub(super) fn send_time(&self, channel: Channel) -> Result<Option<Timestamp>, Refusal> {
        let Some(schedule) = self.facts.schedule else { return Ok(None) };
        let (critical, now) = (self.workflow.critical, self.facts.now);
        let timing = schedule.send_time(channel, critical, now, self.zone());
        self.note(|| EvidenceKind::Schedule { channel, timing });
        match timing {
            SendTime::Now => Ok(None),
            SendTime::AtOpening { at } => Ok(Some(at)),
            SendTime::Dropped => Err(skip(Detail::OutsideSchedule)),
            SendTime::Never => Err(skip(Detail::ScheduleNeverOpens)),
        }
    }

    /// Refuses a step whose conditions do not hold.
    pub(super) fn check_conditions(&self) -> Result<(), Refusal> {
        let definition = &self.step.definition;
        if let Some(rule) = &definition.run_if {
            let data = self.template_data().data_for(rule);
            let runs = rule.is_truthy(&data);
            self.note(|| EvidenceKind::rule(rule, &data, runs));
            if !runs {
                return Err(skip(Detail::FilteredByStepConditions).because("runIf".into()));
            }
        }
        let filters = &definition.filters;
        if filters.is_empty() {
            return Ok(());
        }
        let report = filter::evaluate(filters, &self.filter_facts());
        self.note(|| EvidenceKind::Filters { holds: report.holds, checks: report.checks.clone() });
        if report.holds {
            return Ok(());
        }
        let report = serde_json::to_string(&report).unwrap_or_default();
        Err(skip(Detail::FilteredByStepConditions).because(report))
    }

    /// Refuses a message on a channel that the preferences exclude.
    pub(super) fn check_preferences(&self, channel: Channel) -> Result<(), Refusal> {
        let layers = self.workflow.layers(self.facts.global, self.facts.specific);
        let data = layers.have_conditions().then(|| self.event().data());
        let known = data.as_ref().map_or(ConditionData::Missing, ConditionData::Known);
        let layers = Layers { data: known, ..layers };
        let verdict = resolve(layers, channel);
        self.note(|| EvidenceKind::Preference {
            channel,
            enabled: verdict.is_enabled(),
            decided_by: verdict.decided_by(),
            layers: LayerSetting::all(layers, channel),
        });
        if verdict.is_enabled() {
            return Ok(());
        }
        Err(skip(match verdict.decided_by() {
            Layer::Default | Layer::Definition | Layer::Operator => {
                Detail::FilteredByWorkflowPreference
            }
            Layer::SubscriberGlobal => Detail::FilteredBySubscriberGlobalPreference,
            Layer::SubscriberWorkflow => Detail::FilteredBySubscriberWorkflowPreference,
        }))
    }

    /// Returns the settings of the trigger for a message on `channel`, by this provider.
    pub(super) fn overrides(&self, channel: Channel, provider: Option<&str>) -> Object {
        overrides::settings(self.run.overrides, self.step, channel, provider)
    }

    // Most triggers have no overrides.
    fn overriding(&self, rendered: Rendered) -> Rendered {
        match self.step.definition.kind.channel() {
            Some(channel) if self.run.overrides.is_some() => {
                overrides::put_texts(&self.overrides(channel, None), rendered)
            }
            Some(_) | None => rendered,
        }
    }

    /// Renders the message of the step.
    pub(super) fn render(&self) -> Result<Rendered, Refusal> {
        let shared = &self.run.shared;
        if let Some(rendered) = shared.content(self.step.id) {
            return Ok(rendered);
        }
        let Facts { texts, layout, link, .. } = self.facts;
        let variables = self.template_data().with_link(link).variables(shared);
        let variables = self.workflow.variables(variables, texts);
        if !self.step.definition.variants.is_empty() {
            let variants = || self.step.variant_choices(&self.filter_facts());
            self.note(|| EvidenceKind::Variants { variants: variants() });
        }
        let rendered = self.step.render(|| self.filter_facts(), &variables);
        let rendered = rendered.ok_or(fail(Detail::ContentNotGenerated))?;
        let rendered = rendered
            .and_then(|rendered| self.overriding(rendered).finished(layout, &variables))
            .map_err(|error| match error {
                RenderError::Missing(name) => fail(Detail::VariableMissing).because(name),
                RenderError::Failed(text) => fail(Detail::ContentNotGenerated).because(text),
            })?;
        // Variants, texts and layouts are chosen for a subscriber.
        let is_for_all = self.step.definition.variants.is_empty() && texts.is_none();
        if is_for_all && layout.is_bare() {
            shared.keep(self.step.id, &rendered, &variables);
        }
        Ok(rendered)
    }
}
