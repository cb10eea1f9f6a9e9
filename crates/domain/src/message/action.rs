//! Actions: the choice of a reader among the buttons of a message.

use serde::{Deserialize, Serialize};

use super::Message;
use crate::content::{ActionStatus, ButtonType, CtaAction, CtaResult};
use crate::json::{Object, shape};
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// Request to complete the action of a button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteAction {
    /// Button.
    #[serde(rename = "type")]
    pub kind: ButtonType,
    /// Data that comes with the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
}

shape! { CompleteAction { "type": kind, "payload": payload } }

impl Message {
    /// Returns the message with a completed action, as a read message. A repeated choice keeps the action.
    /// Returns `None` if there is no such button.
    #[doc(hidden)]
    #[must_use]
    pub fn completed(&self, choice: &CompleteAction, now: Timestamp) -> Option<Self> {
        let action = self.action_with(choice.kind)?;
        let mut after = self.clone();
        after.stage = self.stage.mark(super::MarkAs::Read, now);
        if action.chosen() == Some(choice.kind) {
            return Some(after);
        }
        let CompleteAction { kind, payload } = choice.clone();
        let result = CtaResult { payload, kind: Some(kind), completed_at: Some(now) };
        let action = action.clone();
        after.cta.action =
            Some(CtaAction { status: Some(ActionStatus::Done), result: Some(result), ..action });
        Some(after)
    }

    /// Returns the message with the action of a button pending again. Another choice stays. Returns
    /// `None` if there is no such button.
    #[doc(hidden)]
    #[must_use]
    pub fn reverted(&self, kind: ButtonType) -> Option<Self> {
        let action = self.action_with(kind)?;
        let mut after = self.clone();
        if action.chosen() == Some(kind) {
            after.cta.action = CtaAction::pending(action.buttons.clone());
        }
        Some(after)
    }

    // The action of a message in an inbox, if it has a button of this kind.
    fn action_with(&self, kind: ButtonType) -> Option<&CtaAction> {
        let action = self.cta.action.as_ref().filter(|_| self.channel == Channel::InApp)?;
        action.buttons.iter().any(|button| button.kind == kind).then_some(action)
    }
}

impl CtaAction {
    // The button that was chosen.
    fn chosen(&self) -> Option<ButtonType> {
        match self.status {
            Some(ActionStatus::Done) => self.result.as_ref()?.kind,
            Some(ActionStatus::Pending) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::content::Cta;
    use crate::message::Stage;
    use crate::message::tests::message;
    use crate::sample::{at, object};

    fn with_buttons() -> Message {
        let buttons = [(ButtonType::Primary, "Take"), (ButtonType::Secondary, "Leave")];
        let button = |(kind, content): (ButtonType, &str)| {
            serde_json::from_value(json!({ "type": kind, "content": content })).unwrap()
        };
        let action = CtaAction::pending(buttons.into_iter().map(button).collect());
        Message { cta: Cta::new(None, action), ..message(Channel::InApp) }
    }

    #[test]
    fn a_choice_is_kept_with_its_time_until_it_is_reverted() {
        let take = CompleteAction {
            kind: ButtonType::Primary,
            payload: Some(object(json!({ "when": "now" }))),
        };
        let message = with_buttons();
        let taken = message.completed(&take, at(1)).unwrap();
        assert_eq!(taken.stage, Stage::Read { seen_at: at(1), read_at: at(1) });
        let result = taken.cta.action.as_ref().and_then(|action| action.result.clone()).unwrap();
        assert_eq!(result.completed_at, Some(at(1)));
        assert_eq!(
            (result.kind, result.payload),
            (Some(ButtonType::Primary), take.payload.clone())
        );
        assert_eq!(taken.completed(&take, at(2)), Some(taken.clone()), "a second time");
        assert_eq!(taken.reverted(ButtonType::Secondary), Some(taken.clone()), "another choice");
        let reverted = taken.reverted(ButtonType::Primary).unwrap();
        assert_eq!(reverted.cta, message.cta);
        assert_eq!(reverted.reverted(ButtonType::Primary), Some(reverted.clone()));
        let leave = CompleteAction { kind: ButtonType::Secondary, payload: None };
        let left = taken.completed(&leave, at(3)).unwrap();
        let result = left.cta.action.and_then(|action| action.result).unwrap();
        assert_eq!((result.kind, result.completed_at), (leave.kind.into(), Some(at(3))));
    }

    #[test]
    fn a_choice_that_is_not_offered_is_none() {
        let choice = CompleteAction { kind: ButtonType::Primary, payload: None };
        assert_eq!(message(Channel::InApp).completed(&choice, at(1)), None);
        assert_eq!(message(Channel::InApp).reverted(ButtonType::Primary), None);
        let mail = Message { channel: Channel::Email, ..with_buttons() };
        assert_eq!(mail.completed(&choice, at(1)), None);
    }
}
