//! The instructions of AMX on a CPU that refuses them: the signal for it decodes and emulates each.
//!
//! So the assembly of `amx` itself is run, with its encodings, addresses and strides. Encodings: VEX with the opcodes
//! 49 (configuration, TILERELEASE, TILEZERO), 4B (TILELOADD, TILELOADDT1, TILESTORED) and 5E (products) of map 0F38.

use super::TileRegisters;
use crate::kernels::i8::amx;
use crate::kernels::i8::tiles::I8Task;
use crate::kernels::i8::vectors::PlainVector;
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static MACHINE: RefCell<TileRegisters> = const { RefCell::new(TileRegisters::new()) };
    /// Destinations of the products so far.
    static PRODUCTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Runs a task on the unit `amx`, whose instructions are emulated.
pub fn run(task: impl I8Task) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the action is a valid one with a handler of three arguments and an empty mask; the handler only
        // handles instructions of AMX, and ends the process at any other.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            assert_eq!(libc::sigaction(libc::SIGILL, &action, std::ptr::null_mut()), 0);
        }
    });
    // SAFETY: every instruction of AMX that this CPU refuses is emulated.
    unsafe { amx::run_configured::<PlainVector, _>(task) };
    MACHINE.with_borrow(|machine| assert!(machine.shapes.is_none(), "the tiles were not released"));
}

/// The tile registers to which products were added on this thread, in order, since the last call.
pub fn products() -> Vec<usize> {
    PRODUCTS.take()
}

/// The signal of a refused instruction.
extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system gives the context of the interrupted thread, which nobody else uses.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as *const u8;
    // SAFETY: an instruction has been fetched here; longer ones than are read begin with these bytes, and code goes on
    // behind it.
    let code: [u8; 10] = unsafe { at.cast::<[u8; 10]>().read_unaligned() };
    let Some(length) = emulate(&code, registers) else {
        // SAFETY: ends the process at once, which is always allowed here.
        unsafe { libc::abort() };
    };
    registers[libc::REG_RIP as usize] += length as i64;
}

/// General registers of an interrupted thread.
type Registers = [libc::greg_t; 23];

/// General registers in the order of their encodings.
const REGISTERS: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// A memory operand: address, stride, bytes of the instruction.
struct MemoryOperand {
    base: usize,
    index: usize,
    length: usize,
}

/// Emulates the instruction and returns its length; `None` for one that is none of AMX.
fn emulate(code: &[u8; 10], registers: &Registers) -> Option<usize> {
    let [0xc4, first, second, opcode, modrm, ..] = *code else { return None };
    // The map is 0F38, W is 0, the length 128 bits.
    if first & 0x1f != 2 || second & 0x84 != 0 {
        return None;
    }
    let (prefix, register) = (second & 3, usize::from(!second >> 3 & 15));
    let (mode, reg, rm) = (modrm >> 6, usize::from(modrm >> 3 & 7), usize::from(modrm & 7));
    let memory = || memory(code, registers);
    MACHINE.with_borrow_mut(|machine| match (opcode, prefix, mode == 3) {
        (0x49, 0, true) if modrm == 0xc0 && register == 0 => {
            machine.release();
            Some(5)
        }
        (0x49, 0, false) if reg == 0 && register == 0 => {
            let memory = memory();
            // SAFETY: the instruction reads 64 bytes there.
            machine.configure(unsafe { &*std::ptr::with_exposed_provenance(memory.base + memory.index) });
            Some(memory.length)
        }
        (0x49, 3, true) if rm == 0 && register == 0 => {
            machine.zero(reg);
            Some(5)
        }
        // With the prefix of 1 it is TILELOADDT1.
        (0x4b, 1 | 3, false) if rm == 4 && register == 0 => {
            let memory = memory();
            // SAFETY: the instruction reads `length` bytes of each row.
            machine.load(reg, |row, length| unsafe {
                let at = std::ptr::with_exposed_provenance(memory.base + row * memory.index);
                std::slice::from_raw_parts(at, length)
            });
            Some(memory.length)
        }
        (0x4b, 2, false) if rm == 4 && register == 0 => {
            let memory = memory();
            machine.store(reg, |row, bytes| {
                let at = std::ptr::with_exposed_provenance_mut::<u8>(memory.base + row * memory.index);
                // SAFETY: the instruction writes `bytes.len()` bytes of each row.
                unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            });
            Some(memory.length)
        }
        // TDPBSUD and TDPBSSD.
        (0x5e, 2 | 3, true) => {
            PRODUCTS.with_borrow_mut(|products| products.push(reg));
            machine.multiply([reg, rm, register], prefix == 3);
            Some(5)
        }
        _ => None,
    })
}

/// Decodes the operand behind the opcode: base, index times scale, displacement.
fn memory(code: &[u8; 10], registers: &Registers) -> MemoryOperand {
    let (inverted, modrm) = (!code[1], code[4]);
    let value = |low: u8, high: u8| registers[REGISTERS[usize::from(low & 7 | high << 3)] as usize] as usize;
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let (extends_base, extends_index) = (inverted >> 5 & 1, inverted >> 6 & 1);
    let (base, index, at) = if rm == 4 {
        let sib = code[5];
        let (scale, index) = (sib >> 6, sib >> 3 & 7);
        assert!(mode != 0 || sib & 7 != 5, "an address without a base");
        let is_there = index != 4 || extends_index == 1;
        let index = if is_there { value(index, extends_index) << scale } else { 0 };
        (value(sib, extends_base), index, 6)
    } else {
        assert!(mode != 0 || rm != 5, "an address by the instruction's own");
        (value(rm, extends_base), 0, 5)
    };
    let (displacement, length) = match mode {
        0 => (0, 0),
        1 => (i64::from(code[at] as i8), 1),
        _ => (i64::from(i32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]])), 4),
    };
    MemoryOperand { base: base.wrapping_add_signed(displacement as isize), index, length: at + length }
}
