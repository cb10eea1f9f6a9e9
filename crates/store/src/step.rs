//! Work that may take several transactions.

/// What one of the transactions has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether there is more to do"]
pub enum Step<S = (), T = ()> {
    /// The work goes on from here in another one.
    More(S),
    /// The work is done.
    Done(T),
}

impl Step {
    /// The step of work that goes on if there `is_more` to do.
    pub fn of(is_more: bool) -> Self {
        if is_more { Self::More(()) } else { Self::Done(()) }
    }
}

impl<S, T> Step<S, T> {
    /// Returns `true` if there is more to do.
    pub fn is_more(&self) -> bool {
        matches!(self, Self::More(_))
    }

    /// Returns the step with another state from which the work goes on.
    pub fn map_more<U>(self, map: impl FnOnce(S) -> U) -> Step<U, T> {
        match self {
            Self::More(state) => Step::More(map(state)),
            Self::Done(result) => Step::Done(result),
        }
    }
}
