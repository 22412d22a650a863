//! Owns `console.table`: rows and columns in a frame. It reads slots, never getters.

use rquickjs::Value;

use super::inspect::{self, Reach};
use crate::engine::{
    Intrinsics,
    raw::{self, Keys, Slot},
};

/// A value as a table; `None` when it is not made of rows.
pub(super) fn shown(intrinsics: &Intrinsics, value: &Value<'_>) -> Option<String> {
    rows(intrinsics, value).map(|(header, rows)| grid(&header, &rows))
}

/// Rows of a table that are shown.
const ROWS: usize = 200;

/// The cells of a table; `None` when the value is not made of rows.
fn rows(intrinsics: &Intrinsics, value: &Value<'_>) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let object = value.as_object().filter(|object| !object.is_proxy() && !object.is_function())?;
    let (slots, _) = raw::own_slots(object, Keys::Strings, ROWS);
    let reach = Reach { depth: 1, bytes: 400 };
    let mut header = vec!["(index)".to_owned()];
    let mut rows = Vec::new();
    let mut bare_values = false;
    for (index, slot) in slots {
        let Slot::Data(row) = slot else { continue };
        let mut cells = vec![index];
        match row.as_object().filter(|row| !row.is_proxy() && !row.is_function()) {
            Some(row) => {
                for (name, cell) in raw::own_slots(row, Keys::Strings, COLUMNS).0 {
                    let at = column(&mut header, &name)?;
                    let text = match &cell {
                        Slot::Data(cell) => inspect::nested(intrinsics, cell, reach),
                        Slot::Accessor { .. } => "[Getter]".to_owned(),
                    };
                    place(&mut cells, at, text);
                }
            }
            None => {
                bare_values = true;
                cells.push(inspect::nested(intrinsics, &row, reach));
                // Marks the cell: its column comes after all named ones.
                cells.push("\0".to_owned());
            }
        }
        rows.push(cells);
    }
    if bare_values {
        header.push("Values".to_owned());
        for cells in &mut rows {
            if cells.last().is_some_and(|mark| mark == "\0") {
                cells.pop();
                let text = cells.pop().unwrap_or_default();
                place(cells, header.len() - 1, text);
            }
        }
    }
    Some((header, rows))
}

/// Columns of a table that are shown.
const COLUMNS: usize = 20;

fn column(header: &mut Vec<String>, name: &str) -> Option<usize> {
    if let Some(at) = header.iter().skip(1).position(|known| known == name) {
        return Some(at + 1);
    }
    if header.len() > COLUMNS {
        return None;
    }
    header.push(name.to_owned());
    Some(header.len() - 1)
}

fn place(cells: &mut Vec<String>, at: usize, text: String) {
    if cells.len() <= at {
        cells.resize(at + 1, String::new());
    }
    if let Some(cell) = cells.get_mut(at) {
        *cell = text;
    }
}

fn grid(header: &[String], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..header.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            cells.chain(header.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let bar = |left: &str, middle: &str, right: &str| {
        let lines: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}", lines.join(middle))
    };
    let line = |cells: &[String]| {
        let padded = widths.iter().enumerate().map(|(at, width)| {
            let cell = cells.get(at).map_or("", String::as_str);
            format!(" {cell}{} ", " ".repeat(width.saturating_sub(cell.chars().count())))
        });
        format!("│{}│", padded.collect::<Vec<_>>().join("│"))
    };
    let mut lines = vec![bar("┌", "┬", "┐"), line(header), bar("├", "┼", "┤")];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.push(bar("└", "┴", "┘"));
    lines.join("\n")
}
