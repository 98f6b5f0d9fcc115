//! Sends that are not waited for, tested seldom enough that a rank which posts to all others takes time in proportion
//! to their number.

use crate::error::Result;

/// Least number of sends under way before they are tested.
const FEW: usize = 16;

/// Requests, and the data that must stay until each is done, in the same order.
pub(super) struct Posted<R, W> {
    requests: Vec<R>,
    words: Vec<W>,
    /// Number of sends under way at which they are tested next: twice the number that remained the last time. So each
    /// send is tested about twice, however many never leave, and at most twice as many stay as must, or a few.
    next: usize,
}

impl<R, W> Default for Posted<R, W> {
    fn default() -> Self {
        Posted { requests: Vec::new(), words: Vec::new(), next: FEW }
    }
}

impl<R, W> Posted<R, W> {
    /// Takes a started send with the data that must stay, and drops the data of sends that `is_done` finds done. A
    /// request whose answer is an error is done.
    ///
    /// # Errors
    /// The first one of `is_done`.
    pub fn push(&mut self, request: R, words: W, mut is_done: impl FnMut(&mut R) -> Result<bool>) -> Result<()> {
        self.requests.push(request);
        self.words.push(words);
        let mut outcome = Ok(());
        if self.requests.len() >= self.next {
            for at in (0..self.requests.len()).rev() {
                let done = is_done(&mut self.requests[at]);
                if !matches!(done, Ok(false)) {
                    self.requests.swap_remove(at);
                    self.words.swap_remove(at);
                }
                outcome = outcome.and(done.map(drop));
            }
            self.next = FEW.max(2 * self.requests.len());
        }
        outcome
    }

    /// All that may be under way, for a wait.
    pub fn take(&mut self) -> (Vec<R>, Vec<W>) {
        let Posted { requests, words, .. } = std::mem::take(self);
        (requests, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn each_send_is_looked_at_a_few_times_and_little_stays() {
        for sends in [1usize, 15, 16, 17, 500, 2000] {
            // None leaves before the end, all leave at once, the older half has left.
            let never = |_: usize, _: usize| false;
            let at_once = |_: usize, _: usize| true;
            let half = |number: usize, latest: usize| 2 * number < latest;
            for gone in [&never as &dyn Fn(usize, usize) -> bool, &at_once, &half] {
                let (mut posted, mut looks) = (Posted::default(), 0);
                for number in 0..sends {
                    let look = |old: &mut usize| {
                        looks += 1;
                        Ok(gone(*old, number))
                    };
                    posted.push(number, vec![number], look).unwrap();
                    let must = (0..=number).filter(|&old| !gone(old, number)).count();
                    assert!(posted.requests.len() <= FEW.max(2 * must + 1), "{} of {must} stay", posted.requests.len());
                    assert!(posted.requests.iter().zip(&posted.words).all(|(request, words)| words == &[*request]));
                }
                assert!(looks <= 3 * sends, "{looks} looks at {sends} sends");
            }
        }
    }

    #[test]
    fn a_failed_send_leaves_the_list_and_says_so() {
        let mut posted = Posted::default();
        (0..FEW - 1).for_each(|number| posted.push(number, (), |_| Ok(false)).unwrap());
        let failing = |number: &mut usize| match number {
            3 | 5 => Err(Error::Transport(number.to_string())),
            _ => Ok(false),
        };
        let failed = posted.push(99, (), failing);
        assert!(matches!(failed, Err(Error::Transport(number)) if number == "5"), "the first that is looked at");
        let (requests, words) = posted.take();
        assert_eq!((requests.len(), words.len()), (FEW - 2, FEW - 2));
        assert!(!requests.contains(&3) && !requests.contains(&5));
    }
}
