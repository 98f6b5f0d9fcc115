//! Random messages between ranks through mailboxes, with what every rank must see of them.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use sunzi::comm::Transport;
use sunzi::comm::mailbox::{Arrival, Counts, HEADER_WORDS, Mailbox, Payload, drain};

/// What a header is about: its first word.
const MESSAGE: u64 = 1;
const END: u64 = 2;

/// Far more time than any traffic here takes.
const LIMIT: Duration = Duration::from_secs(100);

/// How much there is, and how long payloads are.
pub struct Traffic {
    /// Of the random numbers.
    pub seed: u64,
    /// Messages that a rank starts; each goes to one rank or many.
    pub messages: usize,
    /// Lengths of payloads to choose from.
    pub lengths: &'static [usize],
    /// Of ten ranks, how many give up at some time.
    pub quitters: u32,
}

/// One rank's side.
struct Side<'a> {
    mailbox: &'a mut dyn Mailbox,
    rng: ChaCha8Rng,
    /// Messages sent to each rank, and headers seen from each.
    sent: Vec<u64>,
    seen: Vec<u64>,
    ended: usize,
    /// Announced payloads by sender: their number and length.
    announced: Vec<VecDeque<(u64, usize)>>,
    /// Payloads asked for, by token: sender, number, length.
    asked: HashMap<u64, (usize, u64, usize)>,
    /// Payloads that have not left, by token.
    leaving: HashMap<u64, Weak<Vec<u64>>>,
    next_token: u64,
    spare: Vec<Vec<u64>>,
}

fn word(from: usize, number: u64, index: usize) -> u64 {
    ((from as u64) << 48 ^ number << 24 ^ index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Side<'_> {
    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// One message to some ranks, perhaps this one: the same payload to all, a header for each.
    fn send(&mut self, number: u64, lengths: &[usize]) {
        let (own, size) = (self.mailbox.rank(), self.mailbox.size());
        let length = *lengths.get(self.rng.random_range(0..lengths.len() + 2)).unwrap_or(&usize::MAX);
        let payload: Option<Payload> =
            (length < usize::MAX).then(|| Arc::new((0..length).map(|index| word(own, number, index)).collect()));
        let filler = if self.rng.random_bool(0.05) { HEADER_WORDS - 4 } else { self.rng.random_range(0..5) };
        let copies = if self.rng.random_bool(0.3) { self.rng.random_range(1..=size) } else { 1 };
        let first = self.rng.random_range(0..size);
        for to in (first..first + copies).map(|rank| rank % size) {
            let mut header = vec![MESSAGE, self.sent[to], number, filler as u64];
            header.extend((0..filler).map(|index| word(to, number, index)));
            let payload = payload.clone().map(|payload| (payload, self.token()));
            self.leaving.extend(payload.as_ref().map(|(payload, token)| (*token, Arc::downgrade(payload))));
            self.mailbox.send(to, &header, payload).unwrap();
            self.sent[to] += 1;
        }
    }

    /// Takes one arrival; whether there was one.
    fn take(&mut self) -> bool {
        match self.mailbox.poll().unwrap() {
            None => return false,
            Some(Arrival::Header { from, header, payload_words }) => self.check_head(from, &header, payload_words),
            Some(Arrival::Payload { token, payload }) => {
                let (from, number, length) = self.asked.remove(&token).expect("a payload that was asked for, once");
                assert_eq!(payload.len(), length);
                assert!(payload.iter().enumerate().all(|(index, &got)| got == word(from, number, index)));
                self.spare.push(payload);
            }
            Some(Arrival::Sent { token }) => {
                assert!(self.leaving.remove(&token).is_some(), "a payload that was sent, once");
            }
        }
        true
    }

    fn check_head(&mut self, from: usize, header: &[u64], payload_words: Option<usize>) {
        if header[0] == END {
            assert_eq!((header, payload_words), (&[END, self.seen[from]][..], None), "the end of rank {from}");
            self.ended += 1;
            return;
        }
        assert_eq!(header[..2], [MESSAGE, self.seen[from]], "the order of headers from rank {from}");
        let (number, own) = (header[2], self.mailbox.rank());
        assert_eq!(header.len(), 4 + header[3] as usize);
        assert!(header[4..].iter().enumerate().all(|(index, &got)| got == word(own, number, index)));
        self.seen[from] += 1;
        self.announced[from].extend(payload_words.map(|words| (number, words)));
    }

    /// Asks for a payload of a random sender, where one waits.
    fn ask(&mut self) {
        let waiting: Vec<usize> = (0..self.mailbox.size()).filter(|&from| !self.announced[from].is_empty()).collect();
        assert_eq!(waiting.first(), self.mailbox.announced().as_ref());
        if waiting.is_empty() {
            return;
        }
        let from = waiting[self.rng.random_range(0..waiting.len())];
        let (number, words) = self.announced[from].pop_front().unwrap();
        let (token, buffer) = (self.token(), self.spare.pop().unwrap_or_default());
        self.asked.insert(token, (from, number, words));
        self.mailbox.receive(from, token, buffer).unwrap();
    }

    fn done(&self) -> bool {
        let size = self.mailbox.size();
        self.ended == size
            && self.leaving.is_empty()
            && self.asked.is_empty()
            && self.announced.iter().all(VecDeque::is_empty)
    }
}

/// Runs `traffic` on this rank, then drains. All ranks call it. Where ranks give up, others leave off as well.
pub fn run(group: &dyn Transport, traffic: &Traffic) {
    let mut mailbox = group.open_mailbox().unwrap();
    let size = mailbox.size();
    assert_eq!((mailbox.rank(), size), (group.rank(), group.size()));
    let mut rng = ChaCha8Rng::seed_from_u64(traffic.seed ^ (mailbox.rank() as u64) << 32);
    let quits = rng.random_ratio(traffic.quitters, 10).then(|| rng.random_range(0..4 * traffic.messages));
    let mut side = Side {
        mailbox: &mut *mailbox,
        rng,
        sent: vec![0; size],
        seen: vec![0; size],
        ended: 0,
        announced: vec![VecDeque::new(); size],
        asked: HashMap::new(),
        leaving: HashMap::new(),
        next_token: 0,
        spare: Vec::new(),
    };
    let (start, mut number) = (Instant::now(), 0);
    let mut turn = 0;
    // A rank that gives up is not told to the others: they give up when nothing has happened for some time.
    let mut last = Instant::now();
    let patience = if traffic.quitters > 0 { Duration::from_millis(30) } else { LIMIT };
    while !side.done() && quits != Some(turn) && last.elapsed() < patience {
        assert!(start.elapsed() < LIMIT, "seed {}: the traffic does not end", traffic.seed);
        turn += 1;
        match side.rng.random_range(0..3) {
            0 if number < traffic.messages => {
                side.send(number as u64, traffic.lengths);
                number += 1;
                if number == traffic.messages {
                    (0..size).for_each(|to| side.mailbox.send(to, &[END, side.sent[to]], None).unwrap());
                }
            }
            1 => side.ask(),
            _ => {
                if side.take() {
                    last = Instant::now();
                } else {
                    side.mailbox.set_patient(side.rng.random());
                    side.mailbox.pause(Duration::from_micros(300));
                }
            }
        }
    }
    assert!(traffic.quitters > 0 || side.done(), "seed {}: nothing happens any more", traffic.seed);
    let payloads: Vec<Weak<Vec<u64>>> = side.leaving.into_values().collect();
    drain(group, &mut *mailbox).unwrap();
    assert!(payloads.iter().all(|payload| payload.strong_count() == 0), "all payloads are given back");
    assert!(mailbox.poll().unwrap().is_none() && mailbox.announced().is_none() && mailbox.in_flight() == 0);
    let Counts { sent, received, leaving: 0, arriving: 0 } = mailbox.counts() else { panic!("{:?}", mailbox.counts()) };
    assert!(sent > 0 || traffic.quitters > 0);
    let mut sums = [sent, received];
    group.all_reduce(sunzi::comm::Reduction::Sum, &mut sums).unwrap();
    assert_eq!(sums[0], sums[1]);
}

/// What a mailbox refuses, and that it goes on afterwards.
pub fn refusals(group: &dyn Transport) {
    let mut mailbox = group.open_mailbox().unwrap();
    let (own, size) = (group.rank(), group.size());
    let code = |outcome: sunzi::Result<()>| outcome.unwrap_err().exit_code();
    assert_eq!(code(mailbox.send(own, &vec![0; HEADER_WORDS + 1], None)), 6);
    assert_eq!(code(mailbox.send(size, &[], None)), 6);
    assert_eq!(code(mailbox.receive(own, 0, Vec::new())), 6);
    assert_eq!(code(mailbox.receive(size, 0, Vec::new())), 6);
    assert_eq!(mailbox.counts(), Counts::default());
    mailbox.send(own, &vec![7; HEADER_WORDS], Some((Arc::new(vec![1, 2, 3]), 11))).unwrap();
    let start = Instant::now();
    let (mut steps, mut token) = (0, 0);
    while steps < 3 {
        assert!(start.elapsed() < LIMIT);
        match mailbox.poll().unwrap() {
            Some(Arrival::Header { from, header, payload_words }) => {
                assert_eq!((from, header.len(), payload_words), (own, HEADER_WORDS, Some(3)));
                mailbox.receive(own, 5, vec![9; 100]).unwrap();
                assert_eq!(code(mailbox.receive(own, 6, Vec::new())), 6);
            }
            Some(Arrival::Payload { token: 5, payload }) => assert_eq!(payload, [1, 2, 3]),
            Some(Arrival::Sent { token: sent }) => token = sent,
            Some(other) => panic!("{other:?}"),
            None => {
                mailbox.pause(Duration::from_millis(1));
                continue;
            }
        }
        steps += 1;
    }
    assert_eq!(token, 11);
    drain(group, &mut *mailbox).unwrap();
}

/// Another thread ends a pause, also one that begins later; without it a pause lasts as long as it may.
pub fn wakers(group: &dyn Transport) {
    let mut mailbox = group.open_mailbox().unwrap();
    let waker = mailbox.waker();
    let start = Instant::now();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        waker.wake();
        waker
    });
    mailbox.pause(LIMIT);
    assert!(start.elapsed() >= Duration::from_millis(20) && start.elapsed() < LIMIT / 2);
    thread.join().unwrap().wake();
    mailbox.pause(LIMIT);
    assert!(start.elapsed() < LIMIT / 2, "a call before the pause counts");
    let start = Instant::now();
    mailbox.pause(Duration::from_millis(5));
    assert!(start.elapsed() >= Duration::from_millis(5) && start.elapsed() < LIMIT / 2);
    drain(group, &mut *mailbox).unwrap();
}
