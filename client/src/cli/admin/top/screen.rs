//! The terminal while `brig top` has it.
//!
//! Owns raw mode and the other screen, and gives both back however it ends.

use crate::cli::terminal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal as _, Read as _};
use tokio::sync::mpsc;

/// What is drawn when nobody knows better.
const SIZE: (usize, usize) = (80, 24);

/// The terminal, taken over.
pub(super) struct Screen {
    before: Termios,
}

impl Screen {
    /// Takes the terminal over; the keys come by the channel.
    pub(super) fn enter() -> io::Result<(Self, mpsc::Receiver<u8>)> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        // The other screen, without a cursor.
        terminal::out("\u{1b}[?1049h\u{1b}[?25l");
        let (sender, keys) = mpsc::channel(16);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            let mut key = [0u8; 1];
            while io::stdin().read_exact(&mut key).is_ok() {
                let [byte] = key;
                if sender.blocking_send(byte).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { before }, keys))
    }

    /// Draws over what was there, without a moment of nothing.
    pub(super) fn draw(&self, lines: &[String]) {
        let body: Vec<String> = lines.iter().map(|line| format!("{line}\u{1b}[K")).collect();
        terminal::out(&format!("\u{1b}[H{}\u{1b}[J", body.join("\r\n")));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        terminal::out("\u{1b}[?25h\u{1b}[?1049l");
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

/// For a frame that nobody may be looking at: what goes into a file or a pipe is cut only where
/// the environment says how wide and long it may be.
pub(super) fn size_of_one() -> (usize, usize) {
    let named = |name: &str| std::env::var_os(name).is_some();
    let (width, height) = size();
    let whole = !io::stdout().is_terminal();
    (if whole && !named("COLUMNS") { usize::MAX } else { width }, if whole && !named("LINES") { usize::MAX } else { height })
}

/// Columns and lines: of the terminal, else of the environment, else as ever.
pub(super) fn size() -> (usize, usize) {
    let of_terminal = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    if let Some(size) = of_terminal {
        return (usize::from(size.ws_col), usize::from(size.ws_row));
    }
    let number = |name: &str, least: usize| std::env::var(name).ok().and_then(|text| text.parse().ok()).filter(|number| *number >= least);
    (number("COLUMNS", 20).unwrap_or(SIZE.0), number("LINES", 5).unwrap_or(SIZE.1))
}
