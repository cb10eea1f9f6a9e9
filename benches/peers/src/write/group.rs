//! The group commit of a careful host: one of the waiting callers writes the calls of all in one
//! transaction.

use std::sync::{Condvar, Mutex};

use crate::write::system::Call;

/// Callers that wait for each other.
#[derive(Default)]
pub(crate) struct Group {
    queue: Mutex<Queue>,
    /// Tells the callers that some of them are done.
    written: Condvar,
}

#[derive(Default)]
struct Queue {
    calls: Vec<Call>,
    /// Number of calls that ever waited.
    tickets: u64,
    /// Number of calls that are durable.
    done: u64,
    is_writing: bool,
}

impl Group {
    /// Returns when `call` is durable. `write` makes calls durable, with those of other callers.
    pub(crate) fn write(&self, call: &Call, write: impl Fn(&[Call])) {
        let mut queue = self.queue.lock().unwrap();
        queue.calls.push(Call::clone(call));
        queue.tickets += 1;
        let ticket = queue.tickets;
        while queue.done < ticket {
            if queue.is_writing {
                queue = self.written.wait(queue).unwrap();
                continue;
            }
            queue.is_writing = true;
            let (calls, tickets) = (std::mem::take(&mut queue.calls), queue.tickets);
            drop(queue);
            write(&calls);
            queue = self.queue.lock().unwrap();
            (queue.is_writing, queue.done) = (false, tickets);
            self.written.notify_all();
        }
    }
}
