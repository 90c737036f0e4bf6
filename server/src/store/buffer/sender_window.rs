//! Which batches of which sender are stored: what makes "exactly once" out of "at least once".
//!
//! Per instance it keeps the highest committed number and a window of the 64 numbers below it, so that batches in
//! flight may overtake one another. Both are part of the same table commit as the samples. Numbers below the window
//! count as stored, but for those that the instance is known to have skipped. An instance belongs to the token and
//! the node that began it, so that nobody else can make its batches pass for repeats.

use crate::store::table::transaction::Txn;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Ends the application id under which an instance's window is stored.
const WINDOW_SUFFIX: &str = "#window";

/// Ends the application id under which an instance's owner is stored.
const OWNER_SUFFIX: &str = "#owner";

/// The owner is written again after this time, before the log forgets it.
const OWNER_MS: i64 = 24 * 3_600_000;

/// A number may be so far ahead of the highest: an agent's spool that drops what is oldest for two months leaves no
/// more out.
pub(crate) const MOST_SKIPPED: i64 = 1_000_000;

/// Ranges of skipped numbers that are remembered of an instance, the newest.
const SKIPPED_RANGES: usize = 4;

/// All 64 numbers below the highest are stored; also the state before the first batch.
const FULL: u64 = u64::MAX;

#[derive(Debug)]
struct Instance<W> {
    highest: i64,
    /// Bit i: number `highest - 1 - i` is stored.
    window: u64,
    /// The window that the log has; none for [`FULL`] by default.
    logged_window: u64,
    updated_ms: i64,
    owner: Owner,
    /// What the log has of it, and since when.
    logged_owner: (Owner, i64),
    /// Numbers that were skipped and never stored, first and last; since the start only.
    skipped: Vec<(i64, i64)>,
    pending: BTreeMap<i64, W>,
    /// What the latest numbers hold, pending ones included; since the start only.
    fingerprints: BTreeMap<i64, Fingerprint>,
}

/// Whose an instance is: hashes of a token and of a node's name; 0 where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// Of the token; all batches of an instance have the same.
    pub token: u32,
    /// Of the node's name.
    pub node: u32,
}

impl Owner {
    fn version(self) -> i64 {
        (u64::from(self.token) << 32 | u64::from(self.node)) as i64
    }

    fn of_version(version: i64) -> Owner {
        let version = version as u64;
        Owner {
            token: (version >> 32) as u32,
            node: version as u32,
        }
    }
}

/// Tells content from other content under the same number.
pub(crate) type Fingerprint = u64;

/// Numbers whose content is remembered: more than a sender has in flight.
const MOST_FINGERPRINTS: usize = 16;

/// What is known of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen<W> {
    New,
    /// On its way: `W` tells when it arrived.
    Pending(W),
    Committed,
    /// It was skipped, and numbers do not go back.
    Skipped,
}

/// See the module. `W` is what a repeat of a pending batch waits on.
#[derive(Debug)]
pub(crate) struct SenderWindow<W> {
    instances: HashMap<String, Instance<W>>,
}

impl<W: Clone> SenderWindow<W> {
    /// The sender window as the log has it.
    pub(crate) fn from_txns(txns: &[Txn]) -> Self {
        let mut senders = Self {
            instances: HashMap::new(),
        };
        for txn in txns {
            senders.read(txn);
        }
        senders
    }

    /// Takes in what the log says of an instance, which it names.
    fn read<'t>(&mut self, txn: &'t Txn) -> &'t str {
        if let Some(name) = txn.app_id.strip_suffix(OWNER_SUFFIX) {
            let owner = Owner::of_version(txn.version);
            let instance = self.instance(name);
            instance.owner = owner;
            instance.logged_owner = (owner, txn.updated_ms);
            return name;
        }
        match txn.app_id.strip_suffix(WINDOW_SUFFIX) {
            Some(name) => {
                let window = txn.version as u64;
                let instance = self.instance(name);
                instance.window = window;
                instance.logged_window = window;
                name
            }
            None => {
                let instance = self.instance(&txn.app_id);
                instance.highest = txn.version;
                instance.updated_ms = txn.updated_ms;
                &txn.app_id
            }
        }
    }

    /// Takes in what another server has committed since: all of what one entry of the log, or the whole log, says.
    /// Returns the batches that are pending here and are stored now: they are not pending any more.
    pub(crate) fn apply(&mut self, txns: &[Txn]) -> Vec<(String, i64)> {
        let names: BTreeSet<&str> = txns.iter().map(|txn| self.read(txn)).collect();
        let mut stored = Vec::new();
        for name in names {
            let instance = self.instance(name);
            let numbers = instance.pending.keys().copied();
            for number in numbers.filter(|number| instance.has(*number)).collect::<Vec<_>>() {
                instance.pending.remove(&number);
                stored.push((name.to_owned(), number));
            }
        }
        stored
    }

    /// Whether the log, as far as it was read, has a batch.
    pub(crate) fn is_stored(&self, instance: &str, number: i64) -> bool {
        self.instances
            .get(instance)
            .is_some_and(|instance| instance.has(number))
    }

    /// Each instance with its highest number and the window below it, as they are stored.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (&str, i64, u64)> {
        let instances = self.instances.iter();
        instances.map(|(name, instance)| (name.as_str(), instance.highest, instance.window))
    }

    fn instance(&mut self, name: &str) -> &mut Instance<W> {
        self.instances.entry(name.to_owned()).or_insert_with(|| Instance {
            highest: 0,
            window: FULL,
            logged_window: FULL,
            updated_ms: 0,
            owner: Owner::default(),
            logged_owner: (Owner::default(), 0),
            skipped: Vec::new(),
            pending: BTreeMap::new(),
            fingerprints: BTreeMap::new(),
        })
    }

    pub(crate) fn check(&self, instance: &str, number: i64) -> Seen<W> {
        let Some(instance) = self.instances.get(instance) else {
            return Seen::New;
        };
        if let Some(waiter) = instance.pending.get(&number) {
            return Seen::Pending(waiter.clone());
        }
        if instance.has(number) {
            match instance
                .skipped
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&number))
            {
                true => Seen::Skipped,
                false => Seen::Committed,
            }
        } else {
            Seen::New
        }
    }

    /// Whether this sender may send batches of an instance. Where the owner's token is no token any more, the node's
    /// next one takes its place.
    pub(crate) fn is_own(&self, instance: &str, sender: Owner, tokens: &[u32]) -> bool {
        let Some(owner) = self.instances.get(instance).map(|instance| instance.owner) else {
            return true;
        };
        let same_node = owner.node == 0 || sender.node == 0 || owner.node == sender.node;
        same_node && (owner.token == sender.token || !tokens.contains(&owner.token))
    }

    /// The highest number of an instance, where this one is too far ahead of it.
    pub(crate) fn is_far_ahead(&self, instance: &str, number: i64) -> Option<i64> {
        let highest = self.instances.get(instance)?.highest;
        (highest > 0 && number.saturating_sub(highest) > MOST_SKIPPED).then_some(highest)
    }

    /// Whether a batch of this number is known to hold something else.
    pub(crate) fn differs(&self, instance: &str, number: i64, fingerprint: Fingerprint) -> bool {
        let known = self
            .instances
            .get(instance)
            .and_then(|instance| instance.fingerprints.get(&number));
        known.is_some_and(|known| *known != fingerprint)
    }

    pub(crate) fn add_pending(
        &mut self,
        instance: &str,
        sender: Owner,
        number: i64,
        fingerprint: Fingerprint,
        waiter: W,
    ) {
        let instance = self.instance(instance);
        instance.owner = Owner {
            token: sender.token,
            node: if sender.node == 0 {
                instance.owner.node
            } else {
                sender.node
            },
        };
        instance.pending.insert(number, waiter);
        instance.fingerprints.insert(number, fingerprint);
        while instance.fingerprints.len() > MOST_FINGERPRINTS {
            instance.fingerprints.pop_first();
        }
    }

    /// The transactions that a commit of these batches must hold. Changes nothing.
    pub(crate) fn transactions(&self, batches: &[(String, i64)], now_ms: i64) -> Vec<Txn> {
        let mut after: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
        for (name, number) in batches {
            let known = self
                .instances
                .get(name)
                .map_or((0, FULL), |instance| (instance.highest, instance.window));
            let state = after.entry(name).or_insert(known);
            *state = with(state.0, state.1, *number);
        }
        let mut txns = Vec::new();
        for (name, (highest, window)) in after {
            txns.push(Txn {
                app_id: name.to_owned(),
                version: highest,
                updated_ms: now_ms,
            });
            let logged = self.instances.get(name).map_or(FULL, |instance| instance.logged_window);
            if window != logged {
                let app_id = format!("{name}{WINDOW_SUFFIX}");
                txns.push(Txn {
                    app_id,
                    version: window as i64,
                    updated_ms: now_ms,
                });
            }
            if let Some(instance) = self.instances.get(name)
                && instance.owner != Owner::default()
                && instance.owner_is_due(now_ms)
            {
                txns.push(Txn {
                    app_id: format!("{name}{OWNER_SUFFIX}"),
                    version: instance.owner.version(),
                    updated_ms: now_ms,
                });
            }
        }
        txns
    }

    /// These batches are stored, with the transactions that [`SenderWindow::transactions`] gave.
    pub(crate) fn committed(&mut self, batches: &[(String, i64)], now_ms: i64) {
        for (name, number) in batches {
            let instance = self.instance(name);
            instance.pending.remove(number);
            instance.skip_to(*number);
            (instance.highest, instance.window) = with(instance.highest, instance.window, *number);
            instance.updated_ms = now_ms;
        }
        for (name, _) in batches {
            let instance = self.instance(name);
            instance.logged_window = instance.window;
            if instance.owner_is_due(now_ms) {
                instance.logged_owner = (instance.owner, now_ms);
            }
        }
    }

    /// Nothing that was pending will be stored.
    pub(crate) fn forget_pending(&mut self) {
        for instance in self.instances.values_mut() {
            for number in std::mem::take(&mut instance.pending).keys() {
                instance.fingerprints.remove(number);
            }
        }
    }

    /// Forgets instances that were silent since before `cutoff_ms`.
    pub(crate) fn forget_older(&mut self, cutoff_ms: i64) {
        self.instances
            .retain(|_, instance| instance.updated_ms >= cutoff_ms || !instance.pending.is_empty());
    }

    /// Whether an instance is known, or may still become one of so many. One of several tokens has half of the room
    /// at most.
    pub(crate) fn has_room_for(&self, instance: &str, sender: Owner, tokens: &[u32], most: usize) -> bool {
        if self.instances.contains_key(instance) {
            return true;
        }
        let own = || {
            self.instances
                .values()
                .filter(|other| other.owner.token == sender.token)
        };
        // Counted only where it may matter.
        let has_share = tokens.len() < 2 || self.instances.len() < most / 2 || own().count() < most / 2;
        self.instances.len() < most && has_share
    }
}

impl<W> Instance<W> {
    fn owner_is_due(&self, now_ms: i64) -> bool {
        let (owner, since_ms) = self.logged_owner;
        owner != self.owner || now_ms.saturating_sub(since_ms) > OWNER_MS
    }

    /// Before `number` becomes the highest: what lies between, below its window, was never stored.
    fn skip_to(&mut self, number: i64) {
        let (first, last) = (self.highest + 1, number.saturating_sub(65));
        if self.highest == 0 || last < first {
            return;
        }
        if self.skipped.len() == SKIPPED_RANGES {
            self.skipped.remove(0);
        }
        self.skipped.push((first, last));
    }

    fn has(&self, number: i64) -> bool {
        match self.highest - number {
            0 => true,
            below @ 1..=64 => self.window >> (below - 1) & 1 == 1,
            below => below > 64,
        }
    }
}

/// Highest number and window after `number` was stored too.
fn with(highest: i64, window: u64, number: i64) -> (i64, u64) {
    if number > highest {
        let step = number - highest;
        let window = match step {
            1..=63 => (window << step) | (1 << (step - 1)),
            64 => 1 << 63,
            _ => 0,
        };
        (number, window)
    } else {
        match highest - number {
            below @ 1..=64 => (highest, window | 1 << (below - 1)),
            _ => (highest, window),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(senders: &mut SenderWindow<u8>, log: &mut HashMap<String, Txn>, numbers: &[i64]) {
        let batches: Vec<_> = numbers.iter().map(|number| ("a".to_owned(), *number)).collect();
        for txn in senders.transactions(&batches, 5) {
            log.insert(txn.app_id.clone(), txn);
        }
        senders.committed(&batches, 5);
    }

    /// The same answers from the running sender window and from one that was read back from the log, for every number.
    fn stored(
        senders: &SenderWindow<u8>,
        log: &HashMap<String, Txn>,
        range: std::ops::RangeInclusive<i64>,
    ) -> Vec<i64> {
        let again = SenderWindow::<u8>::from_txns(&log.values().cloned().collect::<Vec<_>>());
        range
            .filter(|number| {
                let seen = senders.check("a", *number) == Seen::Committed;
                assert_eq!(again.check("a", *number) == Seen::Committed, seen, "number {number}");
                seen
            })
            .collect()
    }

    #[test]
    fn numbers_may_be_skipped_and_may_overtake_one_another() {
        let (mut senders, mut log) = (SenderWindow::<u8>::from_txns(&[]), HashMap::new());
        assert_eq!(senders.check("a", 1), Seen::New);
        commit(&mut senders, &mut log, &[1, 2, 5]);
        assert_eq!(stored(&senders, &log, 1..=7), [1, 2, 5]);
        commit(&mut senders, &mut log, &[4]);
        assert_eq!(stored(&senders, &log, 1..=7), [1, 2, 4, 5]);
        commit(&mut senders, &mut log, &[3]);
        assert_eq!(stored(&senders, &log, 1..=7), [1, 2, 3, 4, 5]);
        commit(&mut senders, &mut log, &[69]);
        assert_eq!(stored(&senders, &log, 1..=70), [1, 2, 3, 4, 5, 69]);
        commit(&mut senders, &mut log, &[70]);
        assert_eq!(stored(&senders, &log, 1..=71), [1, 2, 3, 4, 5, 69, 70]);
        commit(&mut senders, &mut log, &[1000]);
        assert_eq!(log_of(&log, 930..=1001), [930, 931, 932, 933, 934, 935, 1000]);
        // What is known to be skipped is not taken for stored.
        assert_eq!(senders.check("a", 935), Seen::Skipped);
        assert_eq!(senders.check("a", 71), Seen::Skipped);
        assert_eq!(senders.check("a", 70), Seen::Committed);
        assert_eq!(senders.check("a", 936), Seen::New);
        assert_eq!(senders.is_far_ahead("a", 1_000 + MOST_SKIPPED), None);
        assert_eq!(senders.is_far_ahead("a", 1_001 + MOST_SKIPPED), Some(1_000));
        assert_eq!(senders.is_far_ahead("new", i64::MAX), None);
    }

    /// What a sender window that was read back from the log takes for stored.
    fn log_of(log: &HashMap<String, Txn>, range: std::ops::RangeInclusive<i64>) -> Vec<i64> {
        let again = SenderWindow::<u8>::from_txns(&log.values().cloned().collect::<Vec<_>>());
        range
            .filter(|number| again.check("a", *number) == Seen::Committed)
            .collect()
    }

    #[test]
    fn an_instance_is_of_the_token_and_node_that_began_it() {
        let (mut senders, mut log) = (SenderWindow::<u8>::from_txns(&[]), HashMap::new());
        let owner = Owner {
            token: 0xdead_beef,
            node: 0xffff_0001,
        };
        let of_token = |token| Owner { token, ..owner };
        let tokens = [owner.token, 7];
        assert!(senders.is_own("a", owner, &tokens));
        senders.add_pending("a", owner, 1, 5, 9);
        commit(&mut senders, &mut log, &[1]);
        let again = SenderWindow::<u8>::from_txns(&log.values().cloned().collect::<Vec<_>>());
        for senders in [&senders, &again] {
            assert_eq!(senders.check("a", 1), Seen::Committed);
            assert!(senders.is_own("a", owner, &tokens));
            assert!(senders.is_own("a", Owner { node: 0, ..owner }, &tokens));
            assert!(!senders.is_own("a", of_token(7), &tokens));
            assert!(!senders.is_own("a", Owner { node: 2, ..owner }, &tokens));
            // Its token was replaced by another.
            assert!(senders.is_own("a", of_token(7), &[7, 8]));
        }
        // Once is enough, for a day.
        log.clear();
        commit(&mut senders, &mut log, &[2]);
        assert!(!log.contains_key("a#owner"));
        assert!(
            senders
                .transactions(&[("a".to_owned(), 3)], 6 + OWNER_MS)
                .iter()
                .any(|txn| txn.app_id == "a#owner")
        );
    }

    #[test]
    fn a_window_without_gaps_costs_no_transaction() {
        let (mut senders, mut log) = (SenderWindow::<u8>::from_txns(&[]), HashMap::new());
        for number in 1..200 {
            commit(&mut senders, &mut log, &[number]);
        }
        assert_eq!(log.len(), 1);
        assert_eq!(stored(&senders, &log, 1..=201), (1..200).collect::<Vec<_>>());
    }

    #[test]
    fn a_pending_batch_is_known_until_it_is_stored_or_forgotten() {
        let mut senders = SenderWindow::<u8>::from_txns(&[]);
        senders.add_pending("a", Owner::default(), 1, 5, 9);
        assert_eq!(senders.check("a", 1), Seen::Pending(9));
        assert!(senders.differs("a", 1, 6) && !senders.differs("a", 1, 5));
        senders.forget_pending();
        assert_eq!(senders.check("a", 1), Seen::New);
        assert!(!senders.differs("a", 1, 6));
        senders.add_pending("a", Owner::default(), 1, 5, 9);
        senders.committed(&[("a".to_owned(), 1)], 5);
        assert_eq!(senders.check("a", 1), Seen::Committed);
        assert!(senders.differs("a", 1, 6) && !senders.differs("a", 1, 5));
        // There is no room for others; for the one that is known there is.
        let has_room = |name, tokens: &[u32], most| senders.has_room_for(name, Owner::default(), tokens, most);
        assert!(has_room("a", &[], 1) && !has_room("b", &[], 1) && has_room("b", &[], 2));
        // One of two tokens may have one of two, and has it.
        assert!(has_room("b", &[7], 2) && !has_room("b", &[0, 7], 2) && has_room("b", &[0, 7], 4));
        senders.forget_older(6);
        assert!(senders.instances.is_empty());
    }

    /// Two servers store batches of one instance in whatever order: each commits behind what it has read of the
    /// other, as the log makes them do.
    #[test]
    fn two_servers_take_each_number_once_in_whatever_order() {
        let mut state = 11_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for _ in 0..200 {
            let mut servers = [SenderWindow::<u8>::from_txns(&[]), SenderWindow::<u8>::from_txns(&[])];
            let (mut stored, mut oldest) = (BTreeMap::<i64, u32>::new(), 1_i64);
            while oldest < 150 {
                // What a sender may have under way lies within 48 numbers; some of it goes to both.
                let number = oldest + below(48) as i64;
                for server in 0..2 {
                    if below(3) > 0 && servers[server].check("a", number) == Seen::New {
                        servers[server].add_pending("a", Owner::default(), number, 1, 9);
                        let mut batches = vec![("a".to_owned(), number)];
                        batches.retain(|(name, number)| !servers[server].is_stored(name, *number));
                        let txns = servers[server].transactions(&batches, 5);
                        servers[server].committed(&batches, 5);
                        let late = below(2) == 0 && servers[1 - server].check("a", number) == Seen::New;
                        if late {
                            servers[1 - server].add_pending("a", Owner::default(), number, 1, 9);
                        }
                        let gone = servers[1 - server].apply(&txns);
                        assert_eq!(gone, if late { batches.clone() } else { vec![] });
                        for (_, number) in batches {
                            *stored.entry(number).or_default() += 1;
                        }
                    }
                }
                while stored.contains_key(&oldest) {
                    oldest += 1;
                }
            }
            assert!(stored.values().all(|times| *times == 1), "{stored:?}");
            for (number, server) in (1..oldest).flat_map(|number| [(number, 0), (number, 1)]) {
                assert_eq!(servers[server].check("a", number), Seen::Committed, "number {number}");
            }
        }
    }

    #[test]
    fn the_limits_are_documented() {
        let most = crate::store::commit::MAX_INSTANCES as u64;
        crate::documented(&[("MOST_SKIPPED", MOST_SKIPPED as u64), ("MAX_INSTANCES", most)]);
    }
}
