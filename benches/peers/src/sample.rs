//! Times of calls.

use std::time::Duration;

/// Returns the time that this share of all times does not exceed.
pub(crate) fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    #[expect(clippy::cast_possible_truncation, reason = "it is the place of one of them")]
    #[expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "there are few")]
    let at = ((times.len() - 1) as f64 * share).round() as usize;
    times[at]
}
