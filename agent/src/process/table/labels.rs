//! What a program is called, and whose it is: by control group, since a process can be moved while it runs.

use std::sync::Arc;

use super::program::{Program, Sighting};
use crate::frames::ProgramKey;
use crate::metadata::{Resolver, Subject, Surroundings};
use crate::process::Executed;

/// Control groups of one program that are kept in mind; who is moved more often is resolved anew.
const MAX_GROUPS: usize = 8;

/// The names of one program.
#[derive(Debug)]
pub(super) struct Labels {
    key: ProgramKey,
    executable: Arc<str>,
    executable_path: Arc<str>,
    command_line: Arc<str>,
    build_id: Option<Arc<str>>,
    /// Its exec was seen, or its parent's.
    is_told: bool,
    kernel_thread: bool,
    /// By how often the process had been moved in control groups of version 1.
    surroundings: Vec<(u32, Arc<Surroundings>)>,
    /// By the number of the control group of version 2, and the same.
    programs: Vec<((u64, u32), Arc<Program>)>,
}

impl Labels {
    /// Named by what its thread is called: nothing else is known.
    pub(super) fn nameless(seen: &Sighting<'_>) -> Self {
        // Each CPU has an idle task of its own, all with process id 0.
        let executable = if seen.key.tgid == 0 { "swapper" } else { seen.comm };
        Self {
            key: seen.key,
            executable: executable.into(),
            executable_path: "".into(),
            command_line: "".into(),
            build_id: None,
            is_told: false,
            kernel_thread: seen.kernel_thread,
            surroundings: Vec::new(),
            programs: Vec::new(),
        }
    }

    /// As the kernel told of its exec. The path may be a link's, or relative: it counts where it ends in the file's own
    /// name.
    pub(super) fn executed(key: ProgramKey, executed: &Executed) -> Self {
        let ending = executed.path.rsplit('/').next().unwrap_or_default();
        let is_whole = executed.path.starts_with('/') && *ending == *executed.name;
        let name = if executed.name.is_empty() {
            ending
        } else {
            &*executed.name
        };
        Self {
            key,
            executable: name.into(),
            executable_path: if is_whole { (*executed.path).into() } else { "".into() },
            command_line: "".into(),
            build_id: None,
            is_told: true,
            kernel_thread: false,
            surroundings: Vec::new(),
            programs: Vec::new(),
        }
    }

    /// The same program in another process.
    pub(super) fn inherited(&self, child: ProgramKey) -> Self {
        Self {
            key: child,
            executable: Arc::clone(&self.executable),
            executable_path: Arc::clone(&self.executable_path),
            command_line: Arc::clone(&self.command_line),
            build_id: self.build_id.clone(),
            is_told: self.is_told,
            kernel_thread: self.kernel_thread,
            // Where the parent is now: the child's own moves begin there.
            surroundings: self
                .surroundings
                .last()
                .map(|(_, known)| (0, Arc::clone(known)))
                .into_iter()
                .collect(),
            programs: Vec::new(),
        }
    }

    /// An exec changes no control group.
    pub(super) fn follow(&mut self, before: &Self) {
        let known = before.surroundings.last();
        self.surroundings = known
            .map(|(moves, known)| (*moves, Arc::new(known.groups())))
            .into_iter()
            .collect();
    }

    pub(super) fn key(&self) -> ProgramKey {
        self.key
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// What /proc says of the program.
    pub(super) fn read(
        &mut self,
        path: &str,
        command_line: &str,
        build_id: Option<Arc<str>>,
        surroundings: Surroundings,
        moves: u32,
    ) {
        self.executable = path.rsplit('/').next().unwrap_or(path).into();
        self.executable_path = path.into();
        self.command_line = command_line.into();
        self.build_id = build_id;
        self.surroundings = vec![(moves, Arc::new(surroundings))];
        self.programs.clear();
    }

    /// The program with its labels at the moment of a sample. `present` is the id under which /proc can be read, where
    /// the process has not been moved since then.
    pub(super) fn at(
        &mut self,
        seen: &Sighting<'_>,
        moves: u32,
        present: Option<u32>,
        resolver: &mut Resolver,
    ) -> Arc<Program> {
        let group = (seen.cgroup_id, moves);
        if let Some((_, program)) = self.programs.iter().find(|(known, _)| *known == group) {
            return Arc::clone(program);
        }
        let surroundings = self.surroundings_at(moves, present, resolver);
        let metadata = resolver.resolve(Subject {
            executable: &self.executable,
            kernel_thread: self.kernel_thread,
            cgroup_id: seen.cgroup_id,
            surroundings: surroundings.as_deref(),
        });
        let program = Arc::new(Program {
            key: self.key,
            executable: Arc::clone(&self.executable),
            executable_path: Arc::clone(&self.executable_path),
            command_line: Arc::clone(&self.command_line),
            build_id: self.build_id.clone(),
            metadata: Arc::new(metadata),
        });
        if self.programs.len() >= MAX_GROUPS {
            self.programs.remove(0);
        }
        self.programs.push((group, Arc::clone(&program)));
        program
    }

    /// As it is now, as far as that is known; also where no sample has told of it yet.
    pub(super) fn now(&mut self, now_ns: u64, moves: u32, present: u32, resolver: &mut Resolver) -> Arc<Program> {
        match self.programs.last() {
            Some((_, program)) => Arc::clone(program),
            None => self.at(&Sighting::of(self.key, now_ns), moves, Some(present), resolver),
        }
    }

    fn surroundings_at(&mut self, moves: u32, present: Option<u32>, resolver: &Resolver) -> Option<Arc<Surroundings>> {
        let known = self.surroundings.iter().find(|(at, _)| *at == moves);
        if let Some((_, known)) = known {
            return Some(Arc::clone(known));
        }
        let (_, before) = self.surroundings.last()?;
        let now = match present.filter(|id| *id != 0) {
            Some(id) => resolver.moved(before, id),
            // Where it was then, nobody knows any more.
            None => before.without_groups(),
        };
        let now = Arc::new(now);
        if self.surroundings.len() >= MAX_GROUPS {
            self.surroundings.remove(0);
        }
        self.surroundings.push((moves, Arc::clone(&now)));
        Some(now)
    }
}
