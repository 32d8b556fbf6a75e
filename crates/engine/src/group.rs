//! The hosts of a run, and the pairs of them that exchange data.
//!
//! Side A of a group are the hosts that open flows, and side B are the hosts to which they open them. A cell's settings
//! of A apply to all hosts of side A. The smallest group has two hosts.
//!
//! If a host of a fan fails before a run, `join.rs` leaves it out. If it fails during a run, `run_each` loses only the
//! pairs of that host, and `run` ends all pairs. Only `measure.rs` calls `run_each`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_agent::session::{KnobChange, SessionKey};
use landspeed_analysis::BothEnds;
use landspeed_analysis::figures;
use landspeed_record::units::Nanos;
use landspeed_record::{
    Cell, EndpointOutcome, GroupMember, LatencyHistogram, Line, RestoreOutcome, Settings, Side, TrialFigures,
    TrialProgress, Workload,
};
use landspeed_workload::check_hosts;

use crate::answers::{RunCallbacks, graver};
use crate::pair::{DataPath, PathOptions, RunSpec};
use crate::{Error, Host, Pair, RecordSink};

/// Hosts with their sessions and knobs, and the data paths between them.
pub struct HostGroup {
    hosts: Vec<Host>,
    /// The data paths; at least one.
    paths: Vec<DataPath>,
}

/// A data path that is wanted between two hosts of a group.
#[derive(Debug, Clone)]
pub struct WantedPath {
    /// Indices of the path's hosts A and B in the list of hosts.
    pub ends: [usize; 2],
    pub options: PathOptions,
}

/// A wanted path that could not be proven.
#[derive(Debug)]
pub struct MissingPath {
    pub ends: [usize; 2],
    pub error: Error,
}

/// Receives the progress messages of one side of a pair. The number is the index of the pair in the group.
pub(crate) type PairProgressSink<'a> = &'a (dyn Fn(usize, Side, TrialProgress) + Sync);

impl HostGroup {
    /// Creates a group of two hosts by proving a data path between them.
    ///
    /// # Errors
    /// Returns an error if no data path between them could be proven.
    pub fn of_two(a: Host, b: Host, options: &PathOptions) -> Result<HostGroup, Error> {
        let wanted = WantedPath { ends: [0, 1], options: options.clone() };
        HostGroup::join(vec![a, b], &[wanted]).map(|(group, _)| group)
    }

    /// Creates a group: proves the wanted data paths, one after the other, and probes the knobs of their hosts, unless
    /// the paths are for a copy. Also returns the paths that failed. A host whose paths all failed is left out of the
    /// group.
    ///
    /// # Errors
    /// Returns the error of the first path if all paths fail, or if the knobs of a host cannot be probed.
    pub fn join(hosts: Vec<Host>, wanted: &[WantedPath]) -> Result<(HostGroup, Vec<MissingPath>), Error> {
        let (mut paths, mut missing) = (Vec::new(), Vec::new());
        for WantedPath { ends, options } in wanted {
            match DataPath::find(ends.map(|end| &hosts[end]), *ends, options) {
                Ok(path) => paths.push(path),
                Err(error) => missing.push(MissingPath { ends: *ends, error }),
            }
        }
        if paths.is_empty() {
            let first = missing.into_iter().next().map(|missing| missing.error);
            return Err(first.unwrap_or_else(|| Error::Other("there are no two hosts to join".into())));
        }
        let used: BTreeSet<usize> = paths.iter().flat_map(|path| path.ends).collect();
        for path in &mut paths {
            path.ends = path.ends.map(|end| used.range(..end).count());
        }
        let hosts = hosts.into_iter().enumerate().filter(|(place, _)| used.contains(place));
        let mut group = HostGroup { hosts: hosts.map(|(_, host)| host).collect(), paths };
        // A copy sets no knob unless it tunes, and it reads its conditions while it runs.
        if !wanted.iter().all(|path| path.options.is_for_copy) {
            group.begin()?;
        }
        Ok((group, missing))
    }

    /// Sets each host's links from its first path, and probes its knobs.
    fn begin(&mut self) -> Result<(), Error> {
        for (number, host) in self.hosts.iter_mut().enumerate() {
            let on = self.paths.iter().find_map(|path| Some((path, path.side_of(number)?)));
            // A relayed path takes the links of the sessions, which are unknown.
            let Some((path, side)) = on.filter(|(path, _)| !path.is_relayed()) else { continue };
            host.faces(path.carrier(side), side);
            host.begin()?;
        }
        Ok(())
    }

    /// Makes all hosts run one program together. The program's first host is A of the first pair. Without this call,
    /// each pair runs its own program.
    pub fn share_program(&mut self) {
        DataPath::share_program(&mut self.paths, &SessionKey::random().hex());
    }

    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the pairs, in the order in which they were wanted.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = Pair<'_>> {
        self.paths.iter().map(|path| path.between(path.ends.map(|end| &self.hosts[end])))
    }

    /// Returns the link of A that a pair uses, if its hosts exchange data over several links; `None` if over one.
    pub fn link_of<'g>(&self, pair: &Pair<'g>) -> Option<&'g str> {
        let is_same = |other: &Pair<'_>| std::ptr::eq(other.a, pair.a) && std::ptr::eq(other.b, pair.b);
        (self.pairs().filter(is_same).count() > 1).then_some(pair.path.link_a.as_str())
    }

    /// Returns the first pair.
    pub fn first(&self) -> Pair<'_> {
        let path = &self.paths[0];
        path.between(path.ends.map(|end| &self.hosts[end]))
    }

    /// Returns an error if the workload cannot run on this number of hosts.
    pub(crate) fn suits(&self, workload: &Workload) -> Result<(), Error> {
        let hosts = Side::BOTH.map(|side| self.places_on(side).len());
        check_hosts(workload, hosts).map_err(Error::Other)
    }

    /// Returns the names of a pair's hosts for the user: A and B in a group of one pair, and otherwise the hosts' own
    /// names.
    pub(crate) fn names<'g>(&self, pair: &Pair<'g>) -> [&'g str; 2] {
        if self.paths.len() == 1 { ["A", "B"] } else { [&pair.a.name, &pair.b.name] }
    }

    /// Returns the hosts that are not in the first pair.
    fn members(&self) -> impl Iterator<Item = GroupMember> {
        let first = self.paths[0].ends;
        let beyond = self.hosts.iter().enumerate().filter(move |(place, _)| !first.contains(place));
        beyond.map(move |(place, host)| GroupMember {
            name: host.name.clone(),
            side: self.paths.iter().find_map(|path| path.side_of(place)),
            facts: host.facts.clone(),
            states: host.states.clone(),
        })
    }

    /// Returns the names of the hosts that are not in the first pair, by side.
    pub(crate) fn others(&self) -> [Vec<String>; 2] {
        let names = |side| self.members().filter(|one| one.side == Some(side)).map(|one| one.name).collect();
        Side::BOTH.map(names)
    }

    /// Writes the hosts that are not in the first pair to the record.
    pub(crate) fn record_others(&self, sink: &mut dyn RecordSink) -> Result<(), Error> {
        let mut members = self.members();
        members.try_for_each(|member| Ok(sink.line(&Line::Member(Box::new(member)))?))
    }

    /// Returns the longest idle RTT of any pair.
    pub fn rtt(&self) -> Nanos {
        self.paths.iter().map(|path| path.facts.rtt_ns).max().unwrap_or_default()
    }

    /// Returns the hosts that are at this side of any pair.
    pub fn on(&self, side: Side) -> impl Iterator<Item = &Host> {
        self.places_on(side).into_iter().map(move |place| &self.hosts[place])
    }

    fn places_on(&self, side: Side) -> BTreeSet<usize> {
        self.paths.iter().map(|path| path.ends[side as usize]).collect()
    }

    /// Returns a cell with `flow` and the current settings of the hosts. A side has the knobs that can be set on all
    /// its hosts and have the same value on all of them.
    pub fn found(&self, flow: Settings) -> Cell {
        let [a, b] = Side::BOTH.map(|side| common(self.on(side).map(Host::found)));
        Cell { a, b, flow }
    }

    /// Reserves the right to set knobs on all hosts, unless the right is already reserved. [`HostGroup::restore`] and
    /// the end of the sessions release the right. Call this method first, so that a run that may not set knobs is
    /// refused before it measures anything.
    ///
    /// # Errors
    /// Returns an error if a host may not be tuned, if another run is tuning it, if an earlier run left changes on it,
    /// or if its data take several links.
    pub fn reserve(&self) -> Result<(), Error> {
        for (path, pair) in self.paths.iter().zip(self.pairs()) {
            for side in Side::BOTH {
                pair.host(side).carries(path.carrier(side))?;
            }
        }
        self.reserve_hosts()
    }

    /// Returns an error if a host's kernel does not permit any run to set knobs, whatever the permissions of its agent.
    pub(crate) fn can_be_tuned(&self) -> Result<(), Error> {
        self.hosts.iter().try_for_each(Host::can_be_tuned)
    }

    /// Reserves the right to set knobs that belong to no link, as [`HostGroup::reserve`] does. The data may take several
    /// links.
    pub(crate) fn reserve_hosts(&self) -> Result<(), Error> {
        self.hosts.iter().try_for_each(Host::reserve)
    }

    /// Sets the knobs of all hosts to `cell`, in parallel.
    pub fn set(&mut self, cell: &Cell) -> Result<(), Error> {
        let changes = (0..self.hosts.len()).map(|host| self.changes(host, cell)).collect::<Vec<_>>();
        // Waits for all hosts, even if one fails, so that no request stays in flight.
        let begun: Vec<_> =
            self.hosts.iter().zip(&changes).map(|(host, changes)| host.turn(changes)).collect();
        let turned = self.hosts.iter_mut().zip(begun).zip(&changes);
        let failed = turned.filter_map(|((host, begun), changes)| {
            begun.and_then(|pending| host.turned(pending, changes)).err()
        });
        failed.reduce(graver).map_or(Ok(()), Err)
    }

    /// Returns the changes of knobs that set a host to `cell`.
    fn changes(&self, host: usize, cell: &Cell) -> Vec<KnobChange> {
        let sides = Side::BOTH.into_iter().filter(|side| self.places_on(*side).contains(&host));
        let wanted: Settings = sides.flat_map(|side| cell.host(side).clone()).collect();
        self.hosts[host].changes_to(&wanted)
    }

    /// Restores all settings on all hosts, in parallel, so that a silent host does not delay the others. The notes of
    /// the result name each setting that differs from the start.
    pub fn restore(&mut self) -> RestoreOutcome {
        std::thread::scope(|scope| {
            let restoring: Vec<_> =
                self.hosts.iter_mut().map(|host| scope.spawn(move || host.restore())).collect();
            let restored = restoring.into_iter().map(|one| one.join().expect("restoring does not panic"));
            restored.reduce(RestoreOutcome::and).unwrap_or_default()
        })
    }

    /// Returns a line for each condition that changed on a host since the sessions began. The run must have restored
    /// its own changes before.
    pub(crate) fn moved(&self) -> Vec<String> {
        std::thread::scope(|scope| {
            let asked: Vec<_> = self.hosts.iter().map(|host| scope.spawn(|| host.moved())).collect();
            asked.into_iter().flat_map(|one| one.join().expect("asking does not panic")).collect()
        })
    }

    /// Records what [`HostGroup::moved`] returns.
    pub(crate) fn note_moved(&self, sink: &mut dyn RecordSink) -> Result<(), Error> {
        self.moved().into_iter().try_for_each(|text| Ok(sink.line(&Line::Note { text })?))
    }

    /// Runs `work`, which may set the hosts' knobs, and then restores the knobs, even if `work` failed.
    ///
    /// # Errors
    /// Returns an error before `work` runs if a host may not be tuned. Otherwise returns the error of `work`, extended
    /// by the settings that were not restored.
    pub(crate) fn tuned<T>(
        &mut self,
        work: impl FnOnce(&mut HostGroup) -> Result<T, Error>,
    ) -> Result<(T, RestoreOutcome), Error> {
        self.reserve()?;
        let result = work(self);
        let restored = self.restore();
        match result {
            Ok(done) => Ok((done, restored)),
            Err(error) => Err(error.and(&restored)),
        }
    }

    /// Runs a workload over all pairs at the same time. Returns the outcomes of A and B, for each pair.
    ///
    /// # Errors
    /// Returns the error of the first pair that fails. Its failure ends the runs of the other pairs.
    pub fn run(&self, run: &RunSpec) -> Result<Vec<[EndpointOutcome; 2]>, Error> {
        self.run_together(run, &|_, _, _| {})
    }

    /// Runs a workload over all pairs at the same time. The first failure ends all of them. `on_progress` receives
    /// their progress messages.
    pub(crate) fn run_together(
        &self,
        run: &RunSpec,
        on_progress: PairProgressSink<'_>,
    ) -> Result<Vec<[EndpointOutcome; 2]>, Error> {
        let failed = AtomicBool::new(false);
        let outcomes = self.run_pairs(&|number, pair| {
            let callbacks = RunCallbacks {
                stop: &|| failed.load(Ordering::Relaxed),
                on_progress: &|side, so_far| on_progress(number, side, so_far),
            };
            let seen = pair.run_until(run, &callbacks);
            failed.fetch_or(seen.is_err(), Ordering::Relaxed);
            seen
        });
        // A run that was given up because of another one is `None`.
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Runs a workload over all pairs at the same time. Returns an outcome or an error for each pair. A failure does
    /// not end the other pairs.
    pub(crate) fn run_each(
        &self,
        run: &RunSpec,
        on_progress: PairProgressSink<'_>,
    ) -> Vec<Result<[EndpointOutcome; 2], Error>> {
        self.run_pairs(&|number, pair| {
            pair.run_followed(run, &|side, so_far| on_progress(number, side, so_far))
        })
    }

    /// Calls `run` for all pairs at the same time, with the index of the pair. Returns the results in the order of the
    /// pairs.
    fn run_pairs<T: Send>(&self, run: &(dyn Fn(usize, Pair<'_>) -> T + Sync)) -> Vec<T> {
        std::thread::scope(|scope| {
            let pairs = self.pairs().enumerate();
            let threads: Vec<_> = pairs.map(|(n, pair)| scope.spawn(move || run(n, pair))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a run does not panic")).collect()
        })
    }

    /// Returns the figures of a run over all pairs. `idle` is the idle RTT that was measured before the run.
    pub(crate) fn figures(
        &self,
        seen: &[[EndpointOutcome; 2]],
        idle: Option<&LatencyHistogram>,
    ) -> TrialFigures {
        let ends: Vec<BothEnds<'_>> = self.pairs().zip(seen).map(|(pair, seen)| pair.ends(seen)).collect();
        figures(&ends, idle)
    }

    /// Begins a block with this name. Services keep running from trial to trial within a block.
    pub(crate) fn begin_epoch(&self, name: &str) {
        self.paths.iter().for_each(|path| path.begin_epoch(name));
    }
}

impl Drop for HostGroup {
    /// Ends the sessions in parallel, because each waits for its agent to end.
    fn drop(&mut self) {
        std::thread::scope(|scope| {
            for host in self.hosts.drain(..) {
                // If there is no thread, the session ends here.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || drop(host));
            }
        });
    }
}

/// Returns the settings that have the same value on all hosts.
fn common(mut hosts: impl Iterator<Item = Settings>) -> Settings {
    let mut common = hosts.next().unwrap_or_default();
    hosts.for_each(|host| common.retain(|name, value| host.get(name) == Some(value)));
    common
}
