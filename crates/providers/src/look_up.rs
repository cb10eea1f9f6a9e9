//! Look-ups of host names, which have no timeout of their own.

use std::io::{self, ErrorKind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Calls `look_up` on a thread of its own, and waits for the result. The thread ends with the look-up, also
/// after the timeout.
///
/// # Errors
///
/// * [`ErrorKind::TimedOut`], if the look-up takes longer than `timeout`.
/// * The error of the system, if there is no room for another thread.
pub(crate) fn within<T: Send + 'static>(
    timeout: Duration,
    look_up: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, found) = mpsc::channel();
    let sends = move || sender.send(look_up());
    thread::Builder::new().name("look-up".into()).spawn(sends)?;
    found.recv_timeout(timeout).map_err(|error| match error {
        RecvTimeoutError::Timeout => io::Error::new(ErrorKind::TimedOut, "the time is up"),
        RecvTimeoutError::Disconnected => io::Error::other("the look-up has no result"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_ends_with_its_time() {
        assert_eq!(within(Duration::from_secs(60), || 17).unwrap(), 17);
        let (_sender, silence) = mpsc::channel::<()>();
        let slow = within(Duration::from_millis(20), move || silence.recv());
        assert_eq!(slow.unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
