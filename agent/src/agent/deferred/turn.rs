//! What the sampling thread does with deferred stacks, of all intervals, at each of its turns.

use crate::agent::sampling::Sampling;
use crate::agent::threads::AgentError;

impl Sampling {
    /// Opens programs that could wait.
    pub(in crate::agent) fn open_deferred(&mut self, now: u64) {
        let closing = self.closing.iter_mut().map(|(finished, _)| &mut finished.interval);
        for interval in closing.chain([&mut self.interval, &mut self.next]) {
            interval.deferred.open(&mut self.table, &self.cpu_budget, now);
        }
    }

    /// Asks for the tables that stacks wait for; those that many wait for come first.
    pub(in crate::agent) fn want_tables(&mut self, now: u64) {
        let closing = self.closing.iter().map(|(finished, _)| &finished.interval);
        let intervals = closing.chain([&self.interval, &self.next]);
        let stops: Vec<_> = intervals.flat_map(|interval| interval.deferred.stops()).collect();
        for (key, location) in &stops {
            self.unwinding.want_at(&self.table, *key, *location, now);
        }
        self.unwinding.prefer(&self.table, stops.into_iter());
        self.unwinding.ask();
    }

    /// Goes on with the stacks whose tables have come, and asks for those at which they stop next.
    pub(in crate::agent) fn walk_deferred(&mut self, now: u64) {
        if !self.unwinding.take_progress() {
            return;
        }
        let mut stats = self.unwinding.stats();
        let mut has_found = false;
        let closing = self.closing.iter_mut().map(|(finished, _)| &mut finished.interval);
        for interval in closing.chain([&mut self.interval, &mut self.next]) {
            let (tables, there) = (self.sensor.tables(), |location| self.unwinding.may_be_there(location));
            interval.walk_deferred(tables, &mut self.memory, &mut self.table, &mut stats, there, now);
            // Walks go on there once its program is published.
            has_found |= interval.deferred.look_again(&mut self.table, now).found;
        }
        if has_found {
            self.unwinding.look_at_stacks();
        }
        *self.unwinding.stats_mut() = stats;
        self.sensor.tables().end_walks(now);
        self.want_tables(now);
    }

    /// Hands ended intervals over, in their order, once no stack in them waits for a table, or has waited long enough.
    pub(in crate::agent) fn close_if_ready(&mut self, now: u64) -> Result<(), AgentError> {
        while self.intervals.has_room()
            && let Some((mut finished, deadline)) = self.closing.pop_front()
        {
            let look = finished.interval.deferred.look_again(&mut self.table, now);
            if look.found {
                self.unwinding
                    .follow(&mut self.table, &mut self.memory.runtimes, &mut self.sensor, now);
            }
            let mut stats = self.unwinding.stats();
            let interval = &mut finished.interval;
            if !interval.deferred.is_empty() {
                // What came before the last stack did is there, and where that leads may be to come.
                let (tables, there) = (self.sensor.tables(), |location| self.unwinding.may_be_there(location));
                interval.walk_deferred(tables, &mut self.memory, &mut self.table, &mut stats, there, now);
            }
            for (key, location) in interval.deferred.stops() {
                self.unwinding.want_at(&self.table, key, location, now);
            }
            let runtimes = &self.memory.runtimes;
            let pending = |(key, location)| self.unwinding.is_pending(location) || runtimes.is_waiting(key);
            let waits = look.waits || interval.deferred.has_unopened() || interval.deferred.stops().any(pending);
            if !waits || now >= deadline {
                let tables = self.sensor.tables();
                interval.finish_deferred(tables, &mut self.memory, &mut self.table, &mut stats, now);
                tables.end_walks(now);
            }
            *self.unwinding.stats_mut() = stats;
            if !finished.interval.deferred.is_empty() {
                self.closing.push_front((finished, deadline));
                return Ok(());
            }
            self.unwinding.mark_used(finished.interval.locations(), now);
            self.intervals.send(finished)?;
        }
        Ok(())
    }
}
