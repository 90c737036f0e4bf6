//! Which module a function is of: the one of the interpreter's own table of modules (`sys.modules`) that says that it
//! comes from the function's file. A code object does not know its module; two modules of one file leave it open.

use xxhash_rust::xxh3::xxh3_64;

use super::offsets::FREE_HEADER_BYTES;
use super::{FrameForm, Python, ReadMemory, Unreadable, field, is_object, part, read, word};
use crate::hash::FastMap;

/// Modules of a process that are looked at, and interpreters with a table each.
const MAX_MODULES: usize = 4096;
const MAX_INTERPRETERS: usize = 8;
/// Of a module's attributes the first ones: its name and its file are among the first nine.
const MAX_ATTRIBUTES: usize = 12;
/// Names of attributes that are remembered by where they lie.
const MAX_KEYS: usize = 64;
/// Of an interpreter's state, in which its table is looked for where no table of offsets says where it is.
const STATE_BYTES: usize = 2048;

/// `PyModuleObject`, behind the header of all objects.
const MODULE_DICT: u16 = 0;
/// `PyDictObject`, behind it. The header has at most as many bytes as stand here.
const DICT_BYTES: usize = 32;
const DICT_USED: u16 = 0;
const DICT_KEYS: u16 = 16;
const DICT_VALUES: u16 = 24;
/// `PyDictKeysObject` since 3.11: behind it are an index, of two to the power of `KEYS_INDEX` bytes, and the entries.
const KEYS_BYTES: usize = 32;
const KEYS_INDEX: u16 = 9;
const KEYS_KIND: u16 = 10;
const KEYS_COUNT: u16 = 24;
/// The largest index that is believed.
const MAX_INDEX: u64 = 24;
/// `DICT_KEYS_GENERAL`, whose entries begin with a hash, and `DICT_KEYS_UNICODE`.
const GENERAL: u64 = 0;
const UNICODE: u64 = 1;

/// The attributes that are asked for, in this order wherever there are two.
const ATTRIBUTES: [&str; 2] = ["__name__", "__file__"];
/// Instead of a module, where several come from one file.
const SEVERAL: u64 = 0;

/// What is known of one process's modules: numbers alone, since a process may have thousands.
#[derive(Debug, Default)]
pub struct Modules {
    /// By a hash of the file: the module's address.
    of_files: FastMap<u64, u64>,
    /// Those whose file is known, or that have none.
    seen: FastMap<u64, ()>,
    /// The main module, which gets its file late, as long as it has none.
    main: Option<u64>,
    /// Tables as they were when they were looked through.
    tables: Vec<(u64, [u64; 3])>,
    /// Where an interpreter's state has its table, once that was found.
    offset: Option<u32>,
    /// Which attribute a key is.
    keys: FastMap<u64, Option<usize>>,
    /// How often all was forgotten, since modules that had gone took the room.
    forgotten: u64,
}

impl Modules {
    /// Memory that the maps take, with the room that they keep.
    pub fn bytes(&self) -> u64 {
        // A map of hashbrown has a byte beside each entry, and is at most seven eighths full.
        let of = |capacity: usize, entry_bytes: usize| capacity * 8 / 7 * (entry_bytes + 1);
        (of(self.of_files.capacity(), 16) + of(self.seen.capacity(), 8)) as u64
    }

    /// Forgets all but where the tables are: it is looked through them anew.
    pub fn forget(&mut self) {
        *self = Self {
            offset: self.offset,
            forgotten: self.forgotten,
            ..Self::default()
        };
    }

    /// How often all was forgotten since the last call, for want of room.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }
}

/// It could not be found out this time: something could not be read, or changed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late;

/// A dictionary as it was at one time.
struct Dict {
    state: [u64; 3],
    entries: u64,
    entry_bytes: usize,
    count: u64,
}

impl Python {
    /// The name of the module that a file's functions are of, as it has it itself. None where no module says that it
    /// comes from there, or several do, and before 3.11: there code does not know its class, and `queue.get` would be
    /// said of `Queue.get`.
    pub fn module(&self, memory: &dyn ReadMemory, modules: &mut Modules, file: &str) -> Result<Option<String>, Late> {
        if self.layout.offsets.form == FrameForm::Objects {
            return Ok(None);
        }
        // What the interpreter has in itself: the module says that it comes from the library's file all the same.
        if let Some(frozen) = file.strip_prefix("<frozen ").and_then(|rest| rest.strip_suffix('>')) {
            return Ok((!frozen.is_empty()).then(|| frozen.to_owned()));
        }
        if file.is_empty() || file.starts_with('<') {
            return Ok(None);
        }
        let hash = xxh3_64(file.as_bytes());
        // Once more where another module lies there by now.
        for _ in 0..2 {
            // Also of files that are known: another module of the same file may have come.
            let learnt = self.learn(memory, modules);
            let Some(object) = modules.of_files.get(&hash).copied() else {
                return learnt.map(|()| None);
            };
            if object == SEVERAL {
                return Ok(None);
            }
            let [name, own] = self.said(memory, object, &mut modules.keys).unwrap_or_default();
            if own.is_some_and(|own| self.text(memory, own).is_ok_and(|own| own == file)) {
                let Some(name) = name else { return Ok(None) };
                let name = self.known_text(memory, name).map_err(|_| Late)?;
                return Ok(name.filter(|name| !name.is_empty()));
            }
            modules.of_files.remove(&hash);
            modules.seen.remove(&object);
            modules.tables.clear();
        }
        Err(Late)
    }

    /// Looks through what is new in each interpreter's table.
    fn learn(&self, memory: &dyn ReadMemory, modules: &mut Modules) -> Result<(), Late> {
        if let Some(main) = modules.main.take()
            && self.meet(memory, modules, main).is_err()
        {
            modules.main = Some(main);
        }
        let offsets = &self.layout.offsets;
        let head = self.layout.runtime.saturating_add(u64::from(offsets.interpreters_head));
        let mut learnt = Ok(());
        let mut interpreter = word(memory, head).map_err(|_| Late)?;
        for _ in 0..MAX_INTERPRETERS {
            if !is_object(interpreter) {
                break;
            }
            if let Some(table) = self.table(memory, modules, interpreter)
                && self.look_through(memory, modules, table).is_err()
            {
                learnt = Err(Late);
            }
            let next = interpreter.saturating_add(u64::from(offsets.interpreter_next));
            interpreter = word(memory, next).map_err(|_| Late)?;
        }
        learnt
    }

    /// An interpreter's table of modules.
    fn table(&self, memory: &dyn ReadMemory, modules: &mut Modules, interpreter: u64) -> Option<u64> {
        let known = self.layout.offsets.modules.or(modules.offset);
        modules.offset = known.or_else(|| self.find_table(memory, interpreter));
        let offset = modules.offset?;
        word(memory, interpreter.saturating_add(u64::from(offset))).ok()
    }

    /// Where an interpreter's state has its table: it is the one dictionary whose first key is `sys`.
    fn find_table(&self, memory: &dyn ReadMemory, interpreter: u64) -> Option<u32> {
        let mut state = [0; STATE_BYTES];
        read(memory, interpreter, &mut state).ok()?;
        let is_table = |address: u64| {
            let dict = self.dict(memory, address).ok()?;
            let [key, _] = *self.pairs(memory, &dict, 1).ok()?.first()?;
            (self.text(memory, key).ok()? == "sys").then_some(())
        };
        let mut offsets = (0..STATE_BYTES as u16).step_by(8);
        let found = offsets.find(|offset| is_table(part(&state, *offset, 8)).is_some());
        found.map(u32::from)
    }

    /// Fails where the table can't be read to its end, or was another one at the end.
    fn look_through(&self, memory: &dyn ReadMemory, modules: &mut Modules, table: u64) -> Result<(), Unreadable> {
        let dict = self.dict(memory, table)?;
        if modules.tables.contains(&(table, dict.state)) {
            return Ok(());
        }
        // Among those that were seen are some that have gone: a table that changes has new ones.
        if modules.seen.len() >= MAX_MODULES && dict.state[0] < MAX_MODULES as u64 {
            modules.forget();
            modules.forgotten += 1;
        }
        let mut is_whole = true;
        for [_, object] in self.pairs(memory, &dict, MAX_MODULES)? {
            if is_object(object) && !modules.seen.contains_key(&object) && modules.seen.len() < MAX_MODULES {
                match self.meet(memory, modules, object) {
                    Ok(()) => {}
                    Err(Unreadable::Memory { .. }) => is_whole = false,
                    // What is there is no module.
                    Err(_) => {
                        modules.seen.insert(object, ());
                    }
                }
            }
        }
        modules.tables.retain(|(known, _)| *known != table);
        if is_whole && modules.tables.len() < MAX_INTERPRETERS {
            modules.tables.push((table, dict.state));
        }
        // What could not be read may be of one module alone; here it is seen whether anything still can be.
        if self.dict(memory, table)?.state == dict.state {
            Ok(())
        } else {
            Err(Unreadable::Replaced)
        }
    }

    /// Remembers which file a module comes from.
    fn meet(&self, memory: &dyn ReadMemory, modules: &mut Modules, object: u64) -> Result<(), Unreadable> {
        let [name, file] = self.said(memory, object, &mut modules.keys)?;
        let file = file.map(|file| self.known_text(memory, file)).transpose()?.flatten();
        let Some(file) = file else {
            let name = name.map(|name| self.known_text(memory, name)).transpose()?.flatten();
            if name.as_deref() == Some("__main__") {
                modules.main = Some(object);
            } else {
                modules.seen.insert(object, ());
            }
            return Ok(());
        };
        let hash = xxh3_64(file.as_bytes());
        let known = modules.of_files.get(&hash).copied().unwrap_or(object);
        let is_one = known == object || known != SEVERAL && self.are_one(memory, modules, [known, object], &file);
        modules.of_files.insert(hash, if is_one { object } else { SEVERAL });
        modules.seen.insert(object, ());
        Ok(())
    }

    /// Interpreters have each module of their own, by the same name; and what came from that file may have gone.
    fn are_one(&self, memory: &dyn ReadMemory, modules: &mut Modules, objects: [u64; 2], file: &str) -> bool {
        let [known, new] = objects.map(|object| {
            let said = self.said(memory, object, &mut modules.keys).unwrap_or_default();
            said.map(|value| self.text(memory, value?).ok())
        });
        known[0] == new[0] || known[1].as_deref() != Some(file)
    }

    /// Where the values of a module's attributes are.
    fn said(
        &self,
        memory: &dyn ReadMemory,
        object: u64,
        keys: &mut FastMap<u64, Option<usize>>,
    ) -> Result<[Option<u64>; 2], Unreadable> {
        let dict = field(object, self.layout.offsets.header_bytes + MODULE_DICT);
        let dict = self.dict(memory, word(memory, dict)?)?;
        let mut said = [None; 2];
        for [key, value] in self.pairs(memory, &dict, MAX_ATTRIBUTES)? {
            if !is_object(key) {
                continue;
            }
            let which = match keys.get(&key) {
                Some(which) => *which,
                None => {
                    let text = self.known_text(memory, key)?.unwrap_or_default();
                    let which = ATTRIBUTES.iter().position(|name| *name == text);
                    if keys.len() >= MAX_KEYS {
                        keys.clear();
                    }
                    keys.insert(key, which);
                    which
                }
            };
            if let Some(which) = which {
                said[which] = said[which].or(Some(value));
            }
            if said.iter().all(Option::is_some) {
                break;
            }
        }
        Ok(said)
    }

    /// A text, or none where something else stands there: what could not be read may be read another time.
    fn known_text(&self, memory: &dyn ReadMemory, address: u64) -> Result<Option<String>, Unreadable> {
        match self.text(memory, address) {
            Err(error @ Unreadable::Memory { .. }) => Err(error),
            text => Ok(text.ok()),
        }
    }

    fn dict(&self, memory: &dyn ReadMemory, address: u64) -> Result<Dict, Unreadable> {
        let what = "a dictionary";
        let nonsense = Unreadable::Nonsense { what, address };
        if !is_object(address) {
            return Err(nonsense);
        }
        let offsets = &self.layout.offsets;
        let mut whole = [0; FREE_HEADER_BYTES as usize + DICT_BYTES];
        let whole = &mut whole[..usize::from(offsets.header_bytes) + DICT_BYTES];
        read(memory, address, whole)?;
        let is_dict = self.layout.dict_type == Some(part(whole, offsets.object_type(), 8));
        let head = &whole[usize::from(offsets.header_bytes)..];
        let keys = part(head, DICT_KEYS, 8);
        if !is_dict || part(head, DICT_VALUES, 8) != 0 || !is_object(keys) {
            return Err(nonsense);
        }
        let mut begin = [0; KEYS_BYTES];
        read(memory, keys, &mut begin)?;
        let (index, count) = (part(&begin, KEYS_INDEX, 1), part(&begin, KEYS_COUNT, 8));
        let entry_bytes = match part(&begin, KEYS_KIND, 1) {
            GENERAL => 24,
            UNICODE => 16,
            _ => return Err(nonsense),
        };
        if index > MAX_INDEX {
            return Err(nonsense);
        }
        Ok(Dict {
            state: [part(head, DICT_USED, 8), keys, count],
            entries: keys.saturating_add(KEYS_BYTES as u64 + (1 << index)),
            entry_bytes,
            count,
        })
    }

    /// The first keys and values of a dictionary, oldest first; both are zero where one was taken out.
    fn pairs(&self, memory: &dyn ReadMemory, dict: &Dict, most: usize) -> Result<Vec<[u64; 2]>, Unreadable> {
        let count = usize::try_from(dict.count).unwrap_or(most).min(most);
        let mut bytes = vec![0; count * dict.entry_bytes];
        if !bytes.is_empty() {
            read(memory, dict.entries, &mut bytes)?;
        }
        let pair = |entry: &[u8]| {
            let at = (dict.entry_bytes - 16) as u16;
            [part(entry, at, 8), part(entry, at + 8, 8)]
        };
        Ok(bytes.chunks_exact(dict.entry_bytes).map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    /// Of a program that makes new modules all the time.
    #[test]
    fn modules_that_have_gone_leave_their_room() {
        let (mut made, _) = Made::sample(13);
        let first = made.module("first", Some("/srv/first.py"));
        made.modules(&[first]);
        let python = made.python().unwrap();
        let mut known = Modules::default();
        let name = |name: &str| Ok::<_, Late>(Some(name.to_owned()));
        let module = python.module(&made.memory, &mut known, "/srv/first.py");
        assert_eq!(module, name("first"));
        known.seen.extend((1..=MAX_MODULES as u64).map(|gone| (8 * gone, ())));
        let next = made.module("next", Some("/srv/next.py"));
        made.modules(&[first, next]);
        let module = python.module(&made.memory, &mut known, "/srv/next.py");
        assert_eq!(module, name("next"));
        assert!(known.seen.len() < 8, "{}", known.seen.len());
        let module = python.module(&made.memory, &mut known, "/srv/first.py");
        assert_eq!(module, name("first"));
        assert_eq!([known.take_forgotten(), known.take_forgotten()], [1, 0]);
    }
}
