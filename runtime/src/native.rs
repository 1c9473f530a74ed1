//! Loads native code from memory: an ELF relocatable becomes executable pages.
//!
//! The object is laid out in an ordinary byte vector, relocated there, copied once into fresh pages, and only then are the
//! pages made executable and no longer writable: no page is ever writable and executable at once.
//! Undefined symbols are resolved from the closed table of the runtime; there is no search in the process.
//! Limits: no thread-local storage, no constructors, no unwind tables (loaded code must not unwind).
#![allow(unsafe_code, reason = "maps pages and makes them executable")]

use std::collections::HashMap;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, SectionKind};

use crate::error::Error;
use crate::relocate::{self, Arch, Fault, Reference, STUB_BYTES};

/// Larger objects are refused, so that offsets in an image fit 32 bits.
const MAX_IMAGE_BYTES: u64 = 1 << 30;
const SLOT_BYTES: usize = 8;

/// Loaded code. Its addresses are valid as long as it lives.
#[derive(Debug)]
pub(crate) struct NativeModule {
    symbols: HashMap<String, usize>,
    /// Owns the pages.
    pages: Vec<Pages>,
}

impl NativeModule {
    /// Loads `objects` independently; `resolve` returns the addresses of their undefined symbols.
    ///
    /// # Errors
    /// [`Error::NativeCode`], [`Error::UndefinedSymbol`].
    pub fn load(objects: &[Vec<u8>], resolve: &dyn Fn(&str) -> Option<usize>) -> Result<NativeModule, Error> {
        let mut module = NativeModule { symbols: HashMap::new(), pages: vec![] };
        objects.iter().try_for_each(|object| module.add(object, resolve))?;
        Ok(module)
    }

    fn add(&mut self, object: &[u8], resolve: &dyn Fn(&str) -> Option<usize>) -> Result<(), Error> {
        let arch = Arch::host().ok_or_else(|| Error::native("this architecture has no loader"))?;
        let file = parse(object, arch)?;
        let mut image = Image::lay_out(&file, arch)?;
        let pages = Pages::map(image.bytes.len(), image.low)?;
        image.relocate(&file, pages.address as u64, resolve)?;
        pages.fill(&image.bytes)?;
        pages.protect(0, image.exec_end, libc::PROT_READ | libc::PROT_EXEC)?;
        pages.protect(image.exec_end, image.read_end, libc::PROT_READ)?;
        self.symbols.extend(image.defined(&file, pages.address));
        self.pages.push(pages);
        Ok(())
    }

    /// The address of a symbol that the object defines.
    pub fn symbol(&self, name: &str) -> Option<usize> {
        self.symbols.get(name).copied()
    }
}

type Elf<'a> = ElfFile64<'a, object::Endianness>;

fn parse(object: &[u8], arch: Arch) -> Result<Elf<'_>, Error> {
    let file = Elf::parse(object).map_err(|error| Error::native(error.to_string()))?;
    let header = file.elf_header();
    let endian = file.endian();
    if header.e_type(endian) != object::elf::ET_REL {
        return Err(Error::native("not a relocatable object"));
    }
    let machine = match arch {
        Arch::X86_64 => object::elf::EM_X86_64,
        Arch::Aarch64 => object::elf::EM_AARCH64,
    };
    if header.e_machine(endian) != machine || !file.is_little_endian() {
        return Err(Error::native(format!("not an object for {}", std::env::consts::ARCH)));
    }
    Ok(file)
}

/// The image before it is mapped: executable part, read-only part, writable part, each page-aligned.
struct Image {
    arch: Arch,
    bytes: Vec<u8>,
    exec_end: usize,
    read_end: usize,
    /// Offsets of the loaded sections.
    sections: HashMap<usize, usize>,
    /// Next free stub, within the executable part.
    next_stub: usize,
    /// Next free address slot, within the read-only part.
    next_slot: usize,
    stubs: HashMap<u64, usize>,
    slots: HashMap<u64, usize>,
    /// Whether absolute 32-bit addresses require low memory.
    low: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Exec,
    Read,
    Write,
}

/// The part of a section; `None` for one that is not loaded.
fn part(section: &object::read::elf::ElfSection64<'_, '_, object::Endianness>) -> Result<Option<Part>, Error> {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return Ok(None) };
    let has = |flag: object::elf::SectionFlags| sh_flags.0 & flag.0 != 0;
    let name = section.name().unwrap_or("");
    if !has(object::elf::SHF_ALLOC) || section.size() == 0 || name == ".eh_frame" || name.starts_with(".note") {
        return Ok(None);
    }
    if has(object::elf::SHF_TLS) {
        return Err(Error::native(format!("section `{name}` is thread-local")));
    }
    if name.starts_with(".init_array") || name.starts_with(".fini_array") || name.starts_with(".ctors") {
        return Err(Error::native(format!("section `{name}` holds constructors")));
    }
    Ok(Some(match () {
        () if has(object::elf::SHF_EXECINSTR) => Part::Exec,
        () if has(object::elf::SHF_WRITE) && !name.starts_with(".data.rel.ro") => Part::Write,
        () => Part::Read,
    }))
}

impl Image {
    fn lay_out(file: &Elf<'_>, arch: Arch) -> Result<Image, Error> {
        let page = page_bytes();
        let mut loaded: Vec<(Part, object::SectionIndex)> = Vec::new();
        let mut relocations = 0;
        let mut low = false;
        let mut total = 0u64;
        for section in file.sections() {
            let Some(part) = part(&section)? else { continue };
            loaded.push((part, section.index()));
            total = total.saturating_add(section.size()).saturating_add(section.align().min(1 << 20));
            for (_, relocation) in section.relocations() {
                relocations += 1;
                low |= relocate::needs_low_memory(arch, kind(&relocation)?);
            }
        }
        // A stub and a slot per relocation are more than enough, and known before any address is.
        total = total.saturating_add((relocations * (STUB_BYTES + SLOT_BYTES)) as u64);
        if total > MAX_IMAGE_BYTES {
            return Err(Error::native("the object is larger than 1 GiB"));
        }
        // By part; the sort is stable, so that sections of a part keep their order.
        loaded.sort_by_key(|(part, _)| *part);
        let mut image = Image {
            arch,
            bytes: Vec::new(),
            exec_end: 0,
            read_end: 0,
            sections: HashMap::new(),
            next_stub: 0,
            next_slot: 0,
            stubs: HashMap::new(),
            slots: HashMap::new(),
            low,
        };
        for part in [Part::Exec, Part::Read, Part::Write] {
            for &(_, index) in loaded.iter().filter(|(of, _)| *of == part) {
                image.append(file, index, page)?;
            }
            match part {
                Part::Exec => image.next_stub = image.reserve(relocations * STUB_BYTES),
                Part::Read => image.next_slot = image.reserve(relocations * SLOT_BYTES),
                Part::Write => {}
            }
            let end = image.bytes.len().next_multiple_of(page);
            image.bytes.resize(end, 0);
            match part {
                Part::Exec => image.exec_end = end,
                Part::Read => image.read_end = end,
                Part::Write => {}
            }
        }
        Ok(image)
    }

    /// Appends a section's bytes at its alignment.
    fn append(&mut self, file: &Elf<'_>, index: object::SectionIndex, page: usize) -> Result<(), Error> {
        let section = file.section_by_index(index).map_err(|error| Error::native(error.to_string()))?;
        let align = section.align().max(1) as usize;
        if !align.is_power_of_two() || align > page {
            return Err(Error::native(format!("alignment {align} of a section")));
        }
        let offset = self.bytes.len().next_multiple_of(align);
        self.bytes.resize(offset, 0);
        if section.kind() != SectionKind::UninitializedData {
            let data = section.data().map_err(|error| Error::native(error.to_string()))?;
            self.bytes.extend_from_slice(data);
        }
        self.bytes.resize(offset + section.size() as usize, 0);
        self.sections.insert(index.0, offset);
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> usize {
        let offset = self.bytes.len().next_multiple_of(STUB_BYTES);
        self.bytes.resize(offset + bytes, 0);
        offset
    }

    /// Applies every relocation of the loaded sections, for an image at `base`.
    fn relocate(&mut self, file: &Elf<'_>, base: u64, resolve: &dyn Fn(&str) -> Option<usize>) -> Result<(), Error> {
        for section in file.sections() {
            let Some(&offset) = self.sections.get(&section.index().0) else { continue };
            for (at, relocation) in section.relocations() {
                if at >= section.size() {
                    return Err(Error::native("a relocation lies outside its section"));
                }
                let at = offset + at as usize;
                self.relocate_one(file, base, at, &relocation, resolve)?;
            }
        }
        Ok(())
    }

    fn relocate_one(
        &mut self,
        file: &Elf<'_>,
        base: u64,
        at: usize,
        relocation: &object::Relocation,
        resolve: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<(), Error> {
        let kind = kind(relocation)?;
        let describe = |fault: Fault| Error::native(format!("relocation of type {kind}: {fault:?}"));
        let (symbol, is_inside) = self.address_of(file, base, relocation.target(), resolve)?;
        let target = match relocate::reference(self.arch, kind).map_err(describe)? {
            Reference::Absolute => symbol,
            Reference::Near if is_inside => symbol,
            Reference::Near => base + self.stub_for(symbol) as u64,
            Reference::Slot => base + self.slot_for(symbol) as u64,
        };
        let place = base + at as u64;
        relocate::apply(self.arch, kind, &mut self.bytes, at, (target, relocation.addend(), place)).map_err(describe)
    }

    /// The address of a relocation's target, and whether it is in the image.
    fn address_of(
        &self,
        file: &Elf<'_>,
        base: u64,
        target: RelocationTarget,
        resolve: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<(u64, bool), Error> {
        let broken = |error: object::Error| Error::native(error.to_string());
        let RelocationTarget::Symbol(index) = target else {
            return Err(Error::native("a relocation without a symbol"));
        };
        let symbol = file.symbol_by_index(index).map_err(broken)?;
        if let Some(section) = symbol.section_index() {
            let offset = self.sections.get(&section.0);
            let offset = offset.ok_or_else(|| Error::native("a relocation to a section that is not loaded"))?;
            return Ok((base + *offset as u64 + symbol.address(), true));
        }
        let name = symbol.name().map_err(broken)?;
        match resolve(name) {
            Some(address) if symbol.is_undefined() => Ok((address as u64, false)),
            _ => Err(Error::UndefinedSymbol { symbol: name.to_owned() }),
        }
    }

    fn stub_for(&mut self, target: u64) -> usize {
        let next = &mut self.next_stub;
        let (arch, bytes) = (self.arch, &mut self.bytes);
        *self.stubs.entry(target).or_insert_with(|| {
            let at = *next;
            bytes[at..at + STUB_BYTES].copy_from_slice(&arch.stub(target));
            *next += STUB_BYTES;
            at
        })
    }

    fn slot_for(&mut self, target: u64) -> usize {
        let next = &mut self.next_slot;
        let bytes = &mut self.bytes;
        *self.slots.entry(target).or_insert_with(|| {
            let at = *next;
            bytes[at..at + SLOT_BYTES].copy_from_slice(&target.to_le_bytes());
            *next += SLOT_BYTES;
            at
        })
    }

    /// Addresses of the global symbols in executable sections.
    fn defined(&self, file: &Elf<'_>, base: usize) -> HashMap<String, usize> {
        let mut symbols = HashMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_global()) {
            let offset = symbol.section_index().and_then(|index| self.sections.get(&index.0));
            let (Some(&offset), Ok(name)) = (offset, symbol.name()) else { continue };
            let at = (offset as u64).saturating_add(symbol.address());
            if at < self.exec_end as u64 {
                symbols.insert(name.to_owned(), base + at as usize);
            }
        }
        symbols
    }
}

fn kind(relocation: &object::Relocation) -> Result<u32, Error> {
    match relocation.flags() {
        RelocationFlags::Elf { r_type } if !relocation.has_implicit_addend() => Ok(r_type.0),
        _ => Err(Error::native("a relocation without an explicit addend")),
    }
}

/// Asks the system for the registers of tiles, which a process may use once it has asked; for all threads, and as often as one
/// likes.
///
/// # Errors
/// [`Error::NativeCode`] where the system refuses them.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn ask_for_registers(features: &[String]) -> Result<(), Error> {
    // Linux, arch/x86/include/uapi/asm/prctl.h and arch/x86/include/asm/fpu/types.h.
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    if !features.iter().any(|feature| feature == "amx-tile") {
        return Ok(());
    }
    // SAFETY: takes two numbers, and changes only what the process may do.
    let status = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    if status == 0 { Ok(()) } else { Err(system_error("use the registers of tiles")) }
}

/// No other system keeps such registers.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn ask_for_registers(_features: &[String]) -> Result<(), Error> {
    Ok(())
}

fn page_bytes() -> usize {
    // SAFETY: `sysconf` only reads a number; a negative result means unknown.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(1 << 16)
}

/// Private anonymous pages, unmapped on drop.
#[derive(Debug)]
struct Pages {
    address: usize,
    bytes: usize,
}

impl Pages {
    /// Maps writable pages; `low`: in the first 2 GiB, if the system can.
    fn map(bytes: usize, low: bool) -> Result<Pages, Error> {
        let bytes = bytes.max(1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if low { LOW_FLAG } else { 0 };
        let (protection, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
        // SAFETY: an anonymous private mapping at an address of the system's choice touches no existing memory.
        let address = unsafe { libc::mmap(none, bytes, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(system_error("map pages"));
        }
        Ok(Pages { address: address as usize, bytes })
    }

    /// Copies `image` into the pages, which must still be writable.
    fn fill(&self, image: &[u8]) -> Result<(), Error> {
        if image.len() > self.bytes {
            return Err(Error::native("the image outgrew its pages"));
        }
        // SAFETY: both ranges have `image.len()` bytes (checked above for the pages, which `map` made writable and which have no
        // other user yet), and fresh pages overlap no Rust object.
        unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), self.address as *mut u8, image.len()) };
        Ok(())
    }

    /// Sets the protection of `start..end`, both multiples of the page size.
    fn protect(&self, start: usize, end: usize, protection: i32) -> Result<(), Error> {
        if start == end {
            return Ok(());
        }
        let address = (self.address + start) as *mut libc::c_void;
        // SAFETY: the range is within our own mapping (offsets come from the image that it was sized for), and no Rust
        // reference points into it.
        let status = unsafe { libc::mprotect(address, end - start, protection) };
        if status != 0 {
            return Err(system_error("protect pages"));
        }
        if protection & libc::PROT_EXEC != 0 {
            flush_instruction_cache(address as usize, end - start);
        }
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: address and length are those of our own mapping. Code in it is not running: a session that runs it
        // borrows the module.
        let _ = unsafe { libc::munmap(self.address as *mut libc::c_void, self.bytes) };
    }
}

fn system_error(doing: &str) -> Error {
    Error::native(format!("cannot {doing}: {}", std::io::Error::last_os_error()))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const LOW_FLAG: i32 = libc::MAP_32BIT;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
const LOW_FLAG: i32 = 0;

/// x86 keeps instruction and data caches coherent.
#[cfg(not(target_arch = "aarch64"))]
fn flush_instruction_cache(_address: usize, _bytes: usize) {}

/// Makes newly written code visible to instruction fetch.
#[cfg(target_arch = "aarch64")]
fn flush_instruction_cache(address: usize, bytes: usize) {
    // The architecture guarantees no smaller line than 16 bytes; a repeated line costs little.
    for line in (address..address + bytes).step_by(16) {
        // SAFETY: cleans and invalidates cache lines of our own readable pages; contents do not change.
        unsafe { std::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) line) };
    }
    // SAFETY: barriers have no operands and no effect on memory contents.
    unsafe { std::arch::asm!("dsb ish", "isb") };
}
