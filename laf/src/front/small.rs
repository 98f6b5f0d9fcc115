//! Small matrices and scalars that are computed when they are requested.

use super::{Handle, NewTask, Session, numbers, numbers_mut};
use crate::small::SmallMatrix;
use crate::sum;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use sunzi::Result;

/// A small matrix that is computed when needed, such as an inner product.
#[derive(Clone)]
pub struct Small {
    handle: Rc<Handle>,
    rows: usize,
    cols: usize,
}

impl Small {
    /// The sum of small matrices, one a chunk, in the one order.
    pub(super) fn sum(session: &Session, parts: Vec<Rc<Handle>>, rows: usize, cols: usize) -> Small {
        let mut level = parts;
        if level.is_empty() {
            let zero = session.declare(rows * cols);
            session.add(NewTask { creates: &[&zero], ..NewTask::default() }, Box::new(|_| Ok(())));
            level.push(zero);
        }
        while level.len() > 1 {
            let runs = level.chunks(sum::ARITY);
            level = runs.map(|parts| add_up(session, parts, rows * cols, 0)).collect();
        }
        Small { handle: level.remove(0), rows, cols }
    }

    /// Computes it.
    ///
    /// # Errors
    /// The errors of the required tasks; [`sunzi::Error::MemoryLimit`] with the smallest limit that suffices; the
    /// errors of disks.
    pub fn get(&self) -> Result<SmallMatrix> {
        let found = read(&self.handle, self.rows * self.cols)?;
        SmallMatrix::from_numbers(self.rows, self.cols, found)
    }
}

/// A new object that is the sum of others, from the first to the last.
pub(super) fn add_up(session: &Session, parts: &[Rc<Handle>], words: usize, node: usize) -> Rc<Handle> {
    if let [only] = parts {
        return Rc::clone(only);
    }
    let total = session.declare(words);
    let reads = parts.iter().collect::<Vec<_>>();
    session.add(
        NewTask { reads: &reads, creates: &[&total], node, ..NewTask::default() },
        Box::new(|mut operands| {
            let total = numbers_mut(operands.writes[0]);
            total.copy_from_slice(numbers(operands.reads[0]));
            operands.reads[1..].iter().for_each(|part| sum::add(total, numbers(part)));
            Ok(())
        }),
    );
    total
}

/// Evaluates an object and copies its numbers out.
pub(super) fn read(handle: &Rc<Handle>, words: usize) -> Result<Vec<f64>> {
    let session = &handle.session;
    let found = Arc::new(Mutex::new(Vec::new()));
    let (token, place) = (session.declare(1), Arc::clone(&found));
    session.add(
        NewTask { reads: &[handle], creates: &[&token], ..NewTask::default() },
        Box::new(move |operands| {
            let mut copy = sunzi::advanced::store::with_room(words)?;
            copy.extend_from_slice(numbers(operands.reads[0]));
            *place.lock().unwrap_or_else(PoisonError::into_inner) = copy;
            Ok(())
        }),
    );
    session.evaluate(&token)?;
    Ok(std::mem::take(&mut found.lock().unwrap_or_else(PoisonError::into_inner)))
}
