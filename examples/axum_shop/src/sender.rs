//! The thread that sends what is due.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidings::Engine;

// Repeated tries come due without a trigger, so the thread looks for them now and then.
const PAUSE: Duration = Duration::from_secs(1);
// The most messages that are sent before the thread looks whether it should stop.
const BATCH: usize = 100;

/// A running thread that sends what is due.
#[derive(Debug)]
pub(crate) struct Sender {
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<()>,
}

/// Wakes the thread of a [`Sender`].
#[derive(Clone, Debug)]
pub(crate) struct Waker(mpsc::Sender<Order>);

#[derive(Debug)]
enum Order {
    Look,
    Stop,
}

impl Sender {
    pub(crate) fn start(engine: Engine) -> Self {
        let (orders, received) = mpsc::channel();
        let thread = thread::spawn(move || send(&engine, &received));
        Self { orders, thread }
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker(self.orders.clone())
    }

    /// Stops the thread. Returns when the messages that it has claimed are sent.
    pub(crate) fn stop(self) {
        // Neither can fail unless the thread has panicked, and then it has stopped already.
        let _ = self.orders.send(Order::Stop);
        let _ = self.thread.join();
    }
}

impl Waker {
    pub(crate) fn wake(&self) {
        // Fails if the thread has stopped. The next start sends what is due.
        let _ = self.0.send(Order::Look);
    }
}

fn send(engine: &Engine, orders: &Receiver<Order>) {
    loop {
        match engine.delivery().run_due(BATCH) {
            Ok(report) if report.failed > 0 => eprintln!("not sent: {report:?}"),
            Ok(_) => {}
            // What was claimed is sent when its lease is over.
            Err(error) => eprintln!("the store failed: {error}"),
        }
        match orders.recv_timeout(PAUSE) {
            Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
