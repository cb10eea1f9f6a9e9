//! Limits of the calls of a provider.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use domain::quota::{Caller, Rate, SECOND};
use domain::time::Timestamp;
use parking_lot::{Condvar, Mutex};

// Time that a thread waits for the end of another call.
const CALL_WAIT: Duration = Duration::from_millis(100);

// Number of readings of an earlier time after which the clock has gone back.
const READINGS: usize = 8;

/// Limits of the calls of providers, by the id of the provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallLimits(HashMap<String, Limits>);

/// Limits of the calls of providers, and the calls under way.
#[derive(Debug)]
pub(crate) struct Quotas {
    limits: CallLimits,
    calls: Mutex<HashMap<String, ProviderCalls>>,
    ended: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    concurrent: Option<usize>,
    per_second: Option<usize>,
}

// Calls of a provider.
#[derive(Debug, Default)]
struct ProviderCalls {
    running: usize,
    // Kept only if there is a limit.
    rate: Rate,
}

/// Whether a provider may be called.
#[derive(Debug)]
pub(super) enum CallAdmission<'q> {
    /// Now, until the permit is dropped.
    Now(Permit<'q>),
    /// The message, which has asked at a time, waits until another one.
    Later { since: Timestamp, until: Timestamp },
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Permit<'q> {
    quotas: &'q Quotas,
    provider_id: &'q str,
    // `true` if the provider has a rate, and the call has not begun.
    is_starting: bool,
}

impl CallLimits {
    pub(crate) fn limit_concurrent(&mut self, provider_id: String, calls: usize) {
        self.0.entry(provider_id).or_default().concurrent = Some(calls.max(1));
    }

    pub(crate) fn limit_rate(&mut self, provider_id: String, calls: usize) {
        self.0.entry(provider_id).or_default().per_second = Some(calls.max(1));
    }
}

impl Quotas {
    pub(crate) fn new(limits: CallLimits) -> Self {
        Self { limits, calls: Mutex::default(), ended: Condvar::new() }
    }

    /// Returns the number of the calls under way, by the id of the provider.
    pub(super) fn running(&self) -> BTreeMap<String, usize> {
        let calls = self.calls.lock();
        let running = calls.iter().filter(|(_, calls)| calls.running > 0);
        running.map(|(id, calls)| (id.clone(), calls.running)).collect()
    }

    /// Admits a call of a provider. Waits a little if too many calls are under way. The clock is read behind
    /// that wait, and without a lock, since it is the host's.
    pub(super) fn admit<'q>(
        &'q self,
        provider_id: &'q str,
        caller: Caller,
        clock: &dyn Fn() -> Timestamp,
    ) -> CallAdmission<'q> {
        let limits = self.limits.0.get(provider_id).copied().unwrap_or_default();
        let Some(mut permit) = self.enter(provider_id, limits.concurrent) else {
            let hold_back = |rate: &mut Rate, now: Timestamp| {
                let until = now.after(SECOND);
                if limits.per_second.is_some() {
                    rate.hold_back(caller, now, until);
                }
                until
            };
            let (since, until) = self.at_once(provider_id, clock, hold_back);
            return CallAdmission::Later { since, until };
        };
        if let Some(limit) = limits.per_second {
            let ask = |rate: &mut Rate, now| rate.ask(caller, limit, now);
            let (since, asked) = self.at_once(provider_id, clock, ask);
            if let Err(until) = asked {
                return CallAdmission::Later { since, until };
            }
            permit.is_starting = true;
        }
        CallAdmission::Now(permit)
    }

    // Changes the rate of a provider at the present time, which is returned too. A thread may be suspended
    // between its reading of the clock and the change, and others go on. Then it reads the clock again. If that
    // shows an earlier time each time, the clock has gone back.
    fn at_once<T>(
        &self,
        provider_id: &str,
        clock: &dyn Fn() -> Timestamp,
        change: impl Fn(&mut Rate, Timestamp) -> T,
    ) -> (Timestamp, T) {
        let mut readings = 0;
        loop {
            let now = clock();
            readings += 1;
            let changed = self.change(provider_id, |calls| {
                let is_late = readings < READINGS && calls.rate.is_ahead_of(now);
                (!is_late).then(|| change(&mut calls.rate, now))
            });
            if let Some(changed) = changed {
                return (now, changed);
            }
        }
    }

    // A call is under way, unless there are too many.
    fn enter<'q>(&'q self, provider_id: &'q str, most: Option<usize>) -> Option<Permit<'q>> {
        let mut all = self.calls.lock();
        if let Some(most) = most {
            let is_full = |all: &mut HashMap<String, ProviderCalls>| {
                all.get(provider_id).is_some_and(|calls| calls.running >= most)
            };
            self.ended.wait_while_for(&mut all, is_full, CALL_WAIT);
            if is_full(&mut all) {
                return None;
            }
        }
        all.entry(provider_id.to_owned()).or_default().running += 1;
        Some(Permit { quotas: self, provider_id, is_starting: false })
    }

    fn change<T>(&self, provider_id: &str, change: impl FnOnce(&mut ProviderCalls) -> T) -> T {
        change(self.calls.lock().entry(provider_id.to_owned()).or_default())
    }
}

impl Permit<'_> {
    /// Notes that the provider is called at `now`. A permit that is dropped before is no call.
    pub(super) fn begin(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.is_starting) {
            self.quotas.change(self.provider_id, |calls| calls.rate.begin(now));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.quotas.change(self.provider_id, |calls| {
            calls.running -= 1;
            if self.is_starting {
                calls.rate.give_up();
            }
        });
        self.quotas.ended.notify_all();
    }
}

#[cfg(test)]
mod tests;
