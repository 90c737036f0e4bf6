//! Names of methods, from the VM's `Method` to its `ConstMethod`, constant pool and symbols.

use super::code::Jvm;
use super::lines::{Answer, line};
use super::{JavaFrame, MAX_NAME_BYTES, ReadMemory, Unreadable, number, pointer, read};

/// `JVM_ACC_NATIVE` of the class file format.
const NATIVE: u64 = 0x100;
/// The longest method's bytecodes are 64 KiB; no compiler makes as many lines of them.
const MAX_LINE_BYTES: usize = 1 << 18;
/// What is read first; methods with more lines are few.
const FIRST_LINE_BYTES: usize = 128;

impl Jvm {
    /// The frame of a method that the interpreter runs, at an index of its bytecodes.
    pub fn interpreted(&self, memory: &dyn ReadMemory, method: u64, bci: u16) -> Result<Vec<JavaFrame>, Unreadable> {
        Ok(vec![self.frame(memory, method, Some(u32::from(bci)))?])
    }

    /// The frame of a method; its line is unknown without an index of a bytecode.
    pub(super) fn frame(
        &self,
        memory: &dyn ReadMemory,
        method: u64,
        bci: Option<u32>,
    ) -> Result<JavaFrame, Unreadable> {
        let layout = &self.layout.method;
        let nonsense = |what| Unreadable::Nonsense { what, address: method };
        if !method.is_multiple_of(8) {
            return Err(nonsense("a method"));
        }
        let const_method = pointer(memory, field(method, layout.const_method), "a ConstMethod")?;
        let pool = Pool::open(self, memory, field(const_method, layout.pool))?;
        let holder = pointer(memory, field(pool.address, layout.holder), "a class")?;
        let signature = pool.text(layout.signature.get(memory, const_method)?)?;
        let name = pool.text(layout.name.get(memory, const_method)?)?;
        if name.is_empty() || !signature.starts_with('(') {
            return Err(nonsense("a method's name"));
        }
        let class = self.class(memory, holder)?;
        let file_in = if layout.is_file_in_class { holder } else { pool.address };
        let file = match layout.file.get(memory, file_in)? {
            // The pools that the VM makes for its own methods have no file, but JDK 17 leaves anything in its place.
            index if pool.is_made() || index == 0 => None,
            index => Some(pool.text(index)?),
        };
        let line = match bci {
            Some(bci) => self.line(memory, const_method, bci)?,
            None => 0,
        };
        // Where a class is unloaded meanwhile, other texts take its names' place.
        let is_still = |index: i64, text: &str| pool.text(index).is_ok_and(|now| now == text);
        if !is_still(layout.name.get(memory, const_method)?, &name)
            || !is_still(layout.signature.get(memory, const_method)?, &signature)
            || self.class(memory, holder)? != class
        {
            return Err(nonsense("a method that stays"));
        }
        Ok(JavaFrame {
            class,
            method: name,
            signature,
            file,
            line,
            inlined: false,
        })
    }

    /// A class' name.
    fn class(&self, memory: &dyn ReadMemory, class: u64) -> Result<String, Unreadable> {
        let layout = &self.layout.method;
        let symbol = pointer(memory, field(class, layout.class_name), "a class' name")?;
        let mut name = java_name(&self.symbol(memory, symbol)?);
        if name.is_empty() {
            return Err(Unreadable::Nonsense {
                what: "a class' name",
                address: class,
            });
        }
        if let Some((flags, anonymous)) = layout.anonymous
            && flags.get(memory, class)?.cast_unsigned() & anonymous != 0
        {
            name.push_str(&format!("/{class:#018x}"));
        }
        Ok(name)
    }

    /// The text of a symbol, cut at 4 KiB. Of a symbol that is gone nothing is left that could be a name.
    fn symbol(&self, memory: &dyn ReadMemory, address: u64) -> Result<String, Unreadable> {
        let layout = &self.layout.method;
        let length = layout.symbol_length.get(memory, address)?;
        let length = usize::try_from(length).unwrap_or(0).min(MAX_NAME_BYTES);
        let mut bytes = vec![0; length];
        if length > 0 {
            read(memory, field(address, layout.symbol_body), &mut bytes)?;
        }
        let mut text = utf8(&bytes);
        if length == MAX_NAME_BYTES {
            text.truncate(text.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        }
        if text.contains(|character: char| character.is_control() || character == char::REPLACEMENT_CHARACTER) {
            let what = "a name's text";
            return Err(Unreadable::Nonsense { what, address });
        }
        Ok(text)
    }

    /// Is it a method without bytecodes, whose code is another language's?
    pub(super) fn is_native(&self, memory: &dyn ReadMemory, method: u64) -> Result<bool, Unreadable> {
        let flags = number(memory, field(method, self.layout.method.access_flags), 2)?;
        Ok(flags & NATIVE != 0)
    }

    /// The line of a bytecode; zero where the class file says nothing of it.
    fn line(&self, memory: &dyn ReadMemory, const_method: u64, bci: u32) -> Result<u32, Unreadable> {
        let layout = &self.layout.method;
        let nonsense = Unreadable::Nonsense {
            what: "a ConstMethod",
            address: const_method,
        };
        let flags = layout.flags.get(memory, const_method)?;
        let code_bytes = layout.code_bytes.get(memory, const_method)?;
        if flags.cast_unsigned() & layout.has_lines == 0 || i64::from(bci) >= code_bytes {
            return Ok(0);
        }
        let bytes = layout.words.get(memory, const_method)?.saturating_mul(8);
        let before = i64::from(layout.const_bytes).saturating_add(code_bytes);
        let room = usize::try_from(bytes.saturating_sub(before)).map_err(|_| nonsense)?;
        let room = room.min(MAX_LINE_BYTES);
        let mut length = FIRST_LINE_BYTES.min(room);
        loop {
            let mut table = vec![0; length];
            read(memory, const_method.saturating_add_signed(before), &mut table)?;
            match line(&table, self.layout.encoding, bci) {
                Answer::Line(line) => return Ok(line.unwrap_or(0)),
                Answer::Cut if length == room => return Err(nonsense),
                Answer::Cut => length = length.saturating_mul(8).min(room),
            }
        }
    }
}

fn field(object: u64, offset: u16) -> u64 {
    object.saturating_add(u64::from(offset))
}

/// A class' constant pool.
struct Pool<'a> {
    jvm: &'a Jvm,
    memory: &'a dyn ReadMemory,
    address: u64,
    length: i64,
}

impl<'a> Pool<'a> {
    /// `at` is where the pointer to it stands.
    fn open(jvm: &'a Jvm, memory: &'a dyn ReadMemory, at: u64) -> Result<Self, Unreadable> {
        let address = pointer(memory, at, "a constant pool")?;
        let length = jvm.layout.method.pool_length.get(memory, address)?;
        Ok(Self {
            jvm,
            memory,
            address,
            length,
        })
    }

    /// Is it too short for a class file's? The VM makes its linkers of method handles without one: they have a name
    /// and a signature.
    fn is_made(&self) -> bool {
        /// The entry that is never used, and two.
        const MADE: i64 = 3;
        self.length <= MADE
    }

    /// The text of an entry that is one.
    fn text(&self, index: i64) -> Result<String, Unreadable> {
        let what = "an entry of a constant pool";
        let nonsense = Unreadable::Nonsense {
            what,
            address: self.address,
        };
        if !(1..self.length).contains(&index) {
            return Err(nonsense);
        }
        let entries = field(self.address, self.jvm.layout.method.pool_bytes);
        let entry = entries.saturating_add(index.unsigned_abs().saturating_mul(8));
        self.jvm.symbol(self.memory, pointer(self.memory, entry, what)?)
    }
}

/// Text of a class file: zero takes two bytes, and characters beyond 16 bits take two surrogates of three.
fn utf8(bytes: &[u8]) -> String {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        match rest {
            [0xc0, 0x80, behind @ ..] => {
                plain.push(0);
                rest = behind;
            }
            [
                0xed,
                a @ 0xa0..=0xaf,
                b @ 0x80..=0xbf,
                0xed,
                c @ 0xb0..=0xbf,
                d @ 0x80..=0xbf,
                behind @ ..,
            ] => {
                let bits = |byte: &u8, mask: u8| u32::from(byte & mask);
                let high = bits(a, 0x0f) << 6 | bits(b, 0x3f);
                let low = bits(c, 0x0f) << 6 | bits(d, 0x3f);
                let character = char::from_u32(0x1_0000 + (high << 10) + low).unwrap_or(char::REPLACEMENT_CHARACTER);
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = behind;
            }
            _ => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// A class' name as Java shows it. The VM has slashes between packages, and since JDK 15 a plus before a hidden class'
/// number.
fn java_name(name: &str) -> String {
    let number = name.rfind("+0x").filter(|at| {
        let digits = &name[at + 3..];
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let (class, number) = name.split_at(number.unwrap_or(name.len()));
    let mut shown = class.replace('/', ".");
    if let Some(number) = number.strip_prefix('+') {
        shown.push('/');
        shown.push_str(number);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_java_s() {
        assert_eq!(java_name("java/util/HashMap$Node"), "java.util.HashMap$Node");
        assert_eq!(
            java_name("a/Demo$$Lambda+0x00007f2a4c000a00"),
            "a.Demo$$Lambda/0x00007f2a4c000a00"
        );
        assert_eq!(java_name("kotlin/A+0xg"), "kotlin.A+0xg");
        assert_eq!(java_name("A+0x"), "A+0x");
        assert_eq!(java_name(""), "");
    }

    #[test]
    fn class_file_text_becomes_utf8() {
        assert_eq!(utf8("größe".as_bytes()), "größe");
        assert_eq!(utf8(&[b'a', 0xc0, 0x80, b'b']), "a\0b");
        // U+1F600 as its two surrogates.
        assert_eq!(utf8(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]), "\u{1f600}");
        // One half alone, and a cut character.
        assert_eq!(utf8(&[0xed, 0xa0, 0xbd, b'x']), "\u{fffd}\u{fffd}\u{fffd}x");
        assert_eq!(utf8(&[0xe2, 0x82]), "\u{fffd}");
    }
}
