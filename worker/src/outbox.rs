//! Owns what leaves the worker besides answers: messages in order, and warnings within
//! their number. Before a channel is attached (in the nursery, and while a realm is
//! rehearsed) everything is dropped. It never reads.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use brig_protocol::{
    client::{Warning, WarningCode},
    limits, worker,
};

use crate::{channel::Channel, value::text::head};

/// Longest warning, in bytes.
const WARNING_BYTES: usize = 2_000;

/// The way out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    channel: RefCell<Option<Rc<Channel>>>,
    hung_up: Cell<bool>,
    warnings: Cell<usize>,
    near: RefCell<Vec<&'static str>>,
}

impl Outbox {
    /// From now on messages go here.
    pub(crate) fn attach(&self, channel: Rc<Channel>) {
        self.channel.replace(Some(channel));
    }

    /// Counts warnings anew, for the next evaluation.
    pub(crate) fn start(&self) {
        self.warnings.set(0);
        self.near.borrow_mut().clear();
    }

    /// Whether the supervisor was found gone while something was sent.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.hung_up.get()
    }

    /// Queues a frame.
    pub(crate) fn send(&self, frame: &[u8]) {
        if let Ok(channel) = self.channel.try_borrow()
            && let Some(channel) = channel.as_ref()
            && channel.send(frame).is_err()
        {
            self.hung_up.set(true);
        }
    }

    /// Writes what is queued.
    pub(crate) fn flush(&self) {
        if let Ok(channel) = self.channel.try_borrow()
            && let Some(channel) = channel.as_ref()
            && channel.flush().is_err()
        {
            self.hung_up.set(true);
        }
    }

    /// Sends a warning, as long as there are few; the last one says that there were more.
    pub(crate) fn warn(&self, code: WarningCode, message: &str, path: Option<&str>) {
        let sent = self.warnings.get();
        if sent >= limits::WARNINGS {
            return;
        }
        self.warnings.set(sent + 1);
        let warning = if sent + 1 == limits::WARNINGS {
            Warning { code: WarningCode::MoreWarnings, message: "there were more warnings than are kept".to_owned(), path: None }
        } else {
            Warning { code, message: head(message, WARNING_BYTES).to_owned(), path: path.map(str::to_owned) }
        };
        if let Ok(frame) = worker::warning_frame(&warning) {
            self.send(&frame);
        }
    }

    /// Warns, once for each limit, that most of it is used.
    pub(crate) fn limit_near(&self, name: &'static str, used: &str, limit: impl std::fmt::Display) {
        {
            let Ok(mut near) = self.near.try_borrow_mut() else { return };
            if near.contains(&name) {
                return;
            }
            near.push(name);
        }
        let setting = limits::row(name).map_or("", |row| row.setting);
        let message = format!("{used} of the limit {name} = {limit}, over 80 % of it; {setting} raises it");
        self.warn(WarningCode::LimitNear, &message, None);
        self.flush();
    }
}
