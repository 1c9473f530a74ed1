//! Relocation arithmetic: pure functions on bytes, for the ELF relocations that compilers emit into plain code.

/// An instruction set whose objects can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The architecture that this process runs on.
    pub fn host() -> Option<Arch> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Arch::X86_64),
            "aarch64" => Some(Arch::Aarch64),
            _ => None,
        }
    }

    /// Code that jumps to any address in memory; it may overwrite the scratch register that the ABI reserves for it.
    pub fn stub(self, target: u64) -> [u8; STUB_BYTES] {
        let mut stub = [0; STUB_BYTES];
        match self {
            // jmp *[rip + 2]; two bytes of padding.
            Arch::X86_64 => stub[..6].copy_from_slice(&[0xff, 0x25, 2, 0, 0, 0]),
            // ldr x16, #8; br x16
            Arch::Aarch64 => stub[..8].copy_from_slice(&[0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6]),
        }
        stub[8..].copy_from_slice(&target.to_le_bytes());
        stub
    }
}

/// Length of a stub on every architecture.
pub(crate) const STUB_BYTES: usize = 16;

/// The target of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The symbol, in 64 bits: anywhere in memory.
    Absolute,
    /// The symbol, within reach; a symbol outside the image needs a stub.
    Near,
    /// A slot that holds the symbol's address.
    Slot,
}

/// An error of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Unsupported,
    OutOfRange,
    OutsideSection,
}

mod x86 {
    pub const R64: u32 = 1;
    pub const PC32: u32 = 2;
    pub const PLT32: u32 = 4;
    pub const GOTPCREL: u32 = 9;
    pub const R32: u32 = 10;
    pub const R32S: u32 = 11;
    pub const PC64: u32 = 24;
    pub const GOTPCRELX: u32 = 41;
    pub const REX_GOTPCRELX: u32 = 42;
}

mod arm {
    pub const ABS64: u32 = 257;
    pub const PREL64: u32 = 260;
    pub const PREL32: u32 = 261;
    pub const ADR_PREL_PG_HI21: u32 = 275;
    pub const ADD_ABS_LO12_NC: u32 = 277;
    pub const LDST8_ABS_LO12_NC: u32 = 278;
    pub const JUMP26: u32 = 282;
    pub const CALL26: u32 = 283;
    pub const LDST16_ABS_LO12_NC: u32 = 284;
    pub const LDST32_ABS_LO12_NC: u32 = 285;
    pub const LDST64_ABS_LO12_NC: u32 = 286;
    pub const LDST128_ABS_LO12_NC: u32 = 299;
    pub const ADR_GOT_PAGE: u32 = 311;
    pub const LD64_GOT_LO12_NC: u32 = 312;
}

/// The target of a relocation of type `kind`.
pub(crate) fn reference(arch: Arch, kind: u32) -> Result<Reference, Fault> {
    match (arch, kind) {
        (Arch::X86_64, x86::R64) | (Arch::Aarch64, arm::ABS64) => Ok(Reference::Absolute),
        (Arch::X86_64, x86::PC32 | x86::PLT32 | x86::R32 | x86::R32S | x86::PC64) => Ok(Reference::Near),
        (Arch::X86_64, x86::GOTPCREL | x86::GOTPCRELX | x86::REX_GOTPCRELX) => Ok(Reference::Slot),
        (Arch::Aarch64, arm::ADR_GOT_PAGE | arm::LD64_GOT_LO12_NC) => Ok(Reference::Slot),
        (
            Arch::Aarch64,
            arm::PREL64
            | arm::PREL32
            | arm::ADR_PREL_PG_HI21
            | arm::ADD_ABS_LO12_NC
            | arm::JUMP26
            | arm::CALL26
            | arm::LDST8_ABS_LO12_NC
            | arm::LDST16_ABS_LO12_NC
            | arm::LDST32_ABS_LO12_NC
            | arm::LDST64_ABS_LO12_NC
            | arm::LDST128_ABS_LO12_NC,
        ) => Ok(Reference::Near),
        _ => Err(Fault::Unsupported),
    }
}

/// Whether a relocation holds an absolute address in 32 bits, so that the image must be in the first 2 GiB.
pub(crate) fn needs_low_memory(arch: Arch, kind: u32) -> bool {
    arch == Arch::X86_64 && matches!(kind, x86::R32 | x86::R32S)
}

/// Writes a relocation of type `kind` at `at` in `image`: `target` is its target's address, `place` the address of `at`.
pub(crate) fn apply(
    arch: Arch,
    kind: u32,
    image: &mut [u8],
    at: usize,
    (target, addend, place): (u64, i64, u64),
) -> Result<(), Fault> {
    let absolute = target.wrapping_add_signed(addend);
    let relative = absolute.wrapping_sub(place) as i64;
    match arch {
        Arch::X86_64 => match kind {
            x86::R64 => put(image, at, &absolute.to_le_bytes()),
            x86::PC64 => put(image, at, &relative.to_le_bytes()),
            x86::R32 => put(image, at, &u32::try_from(absolute).map_err(|_| Fault::OutOfRange)?.to_le_bytes()),
            x86::R32S => put(image, at, &i32::try_from(absolute as i64).map_err(|_| Fault::OutOfRange)?.to_le_bytes()),
            x86::PC32 | x86::PLT32 | x86::GOTPCREL | x86::GOTPCRELX | x86::REX_GOTPCRELX => {
                put(image, at, &i32::try_from(relative).map_err(|_| Fault::OutOfRange)?.to_le_bytes())
            }
            _ => Err(Fault::Unsupported),
        },
        Arch::Aarch64 => apply_arm(kind, image, at, absolute, place),
    }
}

fn apply_arm(kind: u32, image: &mut [u8], at: usize, absolute: u64, place: u64) -> Result<(), Fault> {
    let relative = absolute.wrapping_sub(place) as i64;
    let low12 = (absolute & 0xfff) as u32;
    // Loads and stores count the offset in units of the access.
    let scaled = |shift: u32| {
        let aligned = low12.trailing_zeros() >= shift || low12 == 0;
        if aligned { Ok((low12 >> shift) << 10) } else { Err(Fault::OutOfRange) }
    };
    let field = match kind {
        arm::ABS64 => return put(image, at, &absolute.to_le_bytes()),
        arm::PREL64 => return put(image, at, &relative.to_le_bytes()),
        arm::PREL32 => {
            return put(image, at, &i32::try_from(relative).map_err(|_| Fault::OutOfRange)?.to_le_bytes());
        }
        arm::CALL26 | arm::JUMP26 => {
            if !(-(1 << 27)..1 << 27).contains(&relative) || relative & 3 != 0 {
                return Err(Fault::OutOfRange);
            }
            ((relative >> 2) as u32) & 0x03ff_ffff
        }
        arm::ADR_PREL_PG_HI21 | arm::ADR_GOT_PAGE => {
            let pages = ((absolute & !0xfff).wrapping_sub(place & !0xfff) as i64) >> 12;
            if !(-(1 << 20)..1 << 20).contains(&pages) {
                return Err(Fault::OutOfRange);
            }
            let pages = pages as u32;
            (pages & 3) << 29 | (pages >> 2 & 0x7_ffff) << 5
        }
        arm::ADD_ABS_LO12_NC | arm::LDST8_ABS_LO12_NC => low12 << 10,
        arm::LDST16_ABS_LO12_NC => scaled(1)?,
        arm::LDST32_ABS_LO12_NC => scaled(2)?,
        arm::LDST64_ABS_LO12_NC | arm::LD64_GOT_LO12_NC => scaled(3)?,
        arm::LDST128_ABS_LO12_NC => scaled(4)?,
        _ => return Err(Fault::Unsupported),
    };
    let bytes: [u8; 4] = image.get(at..at + 4).and_then(|b| b.try_into().ok()).ok_or(Fault::OutsideSection)?;
    // The compiler leaves the field zero: the addend is in the relocation.
    put(image, at, &(u32::from_le_bytes(bytes) | field).to_le_bytes())
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Fault> {
    let end = at.checked_add(bytes.len()).ok_or(Fault::OutsideSection)?;
    image.get_mut(at..end).ok_or(Fault::OutsideSection)?.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm_word(kind: u32, word: u32, target: u64, place: u64) -> Result<u32, Fault> {
        let mut image = word.to_le_bytes();
        apply(Arch::Aarch64, kind, &mut image, 0, (target, 0, place))?;
        Ok(u32::from_le_bytes(image))
    }

    // Expected words: an assembler's output for the same displacement.
    #[test]
    fn aarch64_words() {
        assert_eq!(arm_word(arm::CALL26, 0x9400_0000, 0x1010, 0x1000), Ok(0x9400_0004)); // bl .+16
        assert_eq!(arm_word(arm::CALL26, 0x9400_0000, 0x0ffc, 0x1000), Ok(0x97ff_ffff)); // bl .-4
        assert_eq!(arm_word(arm::CALL26, 0x9400_0000, 1 << 40, 0x1000), Err(Fault::OutOfRange));
        assert_eq!(arm_word(arm::ADR_PREL_PG_HI21, 0x9000_0000, 0x5123, 0x1fff), Ok(0x9000_0020)); // adrp x0, .+4 pages
        assert_eq!(arm_word(arm::ADR_PREL_PG_HI21, 0x9000_0000, 0x8123, 0x1fff), Ok(0xf000_0020)); // adrp x0, .+7 pages
        assert_eq!(arm_word(arm::ADR_PREL_PG_HI21, 0x9000_0000, 0x1fff, 0x5123), Ok(0x90ff_ffe0)); // adrp x0, .-4 pages
        assert_eq!(arm_word(arm::ADD_ABS_LO12_NC, 0x9100_0000, 0x5123, 0), Ok(0x9104_8c00)); // add x0, x0, #0x123
        assert_eq!(arm_word(arm::LDST64_ABS_LO12_NC, 0xf940_0000, 0x5120, 0), Ok(0xf940_9000)); // ldr x0, [x0, #0x120]
        assert_eq!(arm_word(arm::LDST64_ABS_LO12_NC, 0xf940_0000, 0x5121, 0), Err(Fault::OutOfRange));
    }

    #[test]
    fn x86_fields_and_their_ranges() {
        let mut image = [0u8; 8];
        apply(Arch::X86_64, x86::PC32, &mut image, 0, (0x2000, -4, 0x1000)).unwrap();
        assert_eq!(i32::from_le_bytes(image[..4].try_into().unwrap()), 0xffc);
        let far = apply(Arch::X86_64, x86::PLT32, &mut image, 0, (1 << 40, -4, 0x1000));
        assert_eq!(far, Err(Fault::OutOfRange));
        let outside = apply(Arch::X86_64, x86::R64, &mut image, 4, (1, 0, 0));
        assert_eq!(outside, Err(Fault::OutsideSection));
        assert_eq!(reference(Arch::X86_64, 18), Err(Fault::Unsupported)); // TPOFF64: thread-local
    }
}
