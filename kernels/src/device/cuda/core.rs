//! One GPU as all its parts share it: the context, its first fatal error, and the account of its memory.

use super::sys::{CUcontext, CUdevice, CUdeviceptr, Driver};
use crate::device::{Region, Traffic};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Statuses of the driver that this module acts on.
const OUT_OF_MEMORY: c_int = 2;

/// Statuses after which every later call on the context fails: the GPU or its contents are gone.
/// deinitialized, device unavailable, ECC, NVLink, contained fault, illegal address, time-out, destroyed context,
/// assert, stack, illegal instruction, misaligned address, address space, program counter, launch failure, tensor
/// memory, the three ways in which a shared server of the GPU fails, and the unknown one.
const FATAL: &[c_int] =
    &[4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 807, 810, 999];

/// A mutex whose holder panicked guards nothing that a panic could leave half done here.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory handed out, and its limit.
#[derive(Default)]
pub(super) struct CudaAccount {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub peak_bytes: u64,
    /// Blocks in use: address and length.
    blocks: BTreeMap<u64, u64>,
}

impl CudaAccount {
    pub fn new(capacity_bytes: u64) -> CudaAccount {
        CudaAccount { capacity_bytes, ..CudaAccount::default() }
    }

    /// Reserves room for a block; an error where there is none.
    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let (used_bytes, capacity_bytes) = (self.used_bytes, self.capacity_bytes);
        match used_bytes.checked_add(bytes) {
            Some(sum) if sum <= capacity_bytes => self.used_bytes = sum,
            _ => return Err(Error::DeviceMemory { bytes, used_bytes, capacity_bytes }),
        }
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
        Ok(())
    }

    /// Whether all these bytes lie in one block that is in use.
    fn holds(&self, address: u64, bytes: u64) -> bool {
        let block = self.blocks.range(..=address).next_back();
        block.is_some_and(|(start, length)| start + length >= address.saturating_add(bytes))
    }
}

/// The state that all parts of an open GPU share; it lives until the last memory and event of it is dropped.
pub(super) struct Core {
    pub driver: &'static Driver,
    pub account: Mutex<CudaAccount>,
    pub traffic: Mutex<Traffic>,
    device: CUdevice,
    context: CUcontext,
    lost: OnceLock<String>,
}

// SAFETY: the context is an opaque handle that the driver lets any thread make current; the rest is behind locks.
unsafe impl Send for Core {}
// SAFETY: as above; the driver's calls may come from several threads at once.
unsafe impl Sync for Core {}

/// Name and text of a driver's status.
pub(super) fn describe(driver: &Driver, status: c_int) -> String {
    let text = |ask: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
        let mut text = std::ptr::null();
        // SAFETY: the call takes any number and sets the place to a text that is never freed, or to null.
        unsafe { ask(status, &mut text) };
        // SAFETY: not null, and ended by a zero as all texts of C.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let name = text(driver.error_name).unwrap_or_else(|| format!("status {status}"));
    match text(driver.error_string) {
        Some(words) => format!("{name}: {words}"),
        None => name,
    }
}

impl Core {
    /// Makes the GPU's primary context, which other libraries in the process share.
    pub fn new(driver: &'static Driver, device: CUdevice) -> Result<Core> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the device was named by the driver, and the place is for one handle.
        let status = unsafe { (driver.context_retain)(&mut context, device) };
        if status != 0 {
            return Err(Error::NoDevice(format!("the GPU cannot be opened: {}", describe(driver, status))));
        }
        // Once more, never to be given back: cuBLAS keeps state for a context, and must not see it go while loaded.
        // SAFETY: as above.
        unsafe { (driver.context_retain)(&mut context, device) };
        let (account, traffic, lost) = Default::default();
        Ok(Core { driver, account, traffic, device, context, lost })
    }

    /// An error where the GPU is lost; otherwise makes its context the calling thread's.
    pub fn enter(&self) -> Result<()> {
        if let Some(reason) = self.lost.get() {
            return Err(Error::DeviceLost(reason.clone()));
        }
        // SAFETY: the context lives as long as `self`; setting the one that is set already costs next to nothing.
        self.check(unsafe { (self.driver.context_set_current)(self.context) }, "enter the context")
    }

    /// An error for a status that is not success; one that leaves nothing usable is kept, and every later call fails.
    pub fn check(&self, status: c_int, what: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        if status == OUT_OF_MEMORY {
            return Err(self.out_of_memory(0));
        }
        let reason = format!("cannot {what}: {}", describe(self.driver, status));
        match FATAL.contains(&status) {
            true => Err(Error::DeviceLost(self.lost.get_or_init(|| reason).clone())),
            false => Err(Error::Device(reason)),
        }
    }

    /// The error where the GPU has less free memory than the account shows.
    pub fn out_of_memory(&self, bytes: u64) -> Error {
        let CudaAccount { used_bytes, capacity_bytes, .. } = *locked(&self.account);
        Error::DeviceMemory { bytes, used_bytes, capacity_bytes }
    }

    /// Memory of the GPU within the account. No byte is written.
    pub fn allocate(&self, bytes: u64) -> Result<CUdeviceptr> {
        self.enter()?;
        locked(&self.account).reserve(bytes)?;
        match self.allocate_uncounted(bytes as usize) {
            Ok(address) => {
                let mut account = locked(&self.account);
                account.blocks.insert(address, bytes.max(1));
                account.peak_bytes = account.peak_bytes.max(account.used_bytes);
                Ok(address)
            }
            Err(error) => {
                let mut account = locked(&self.account);
                account.used_bytes -= bytes;
                Err(match error {
                    // The block that failed is not among those in use.
                    Error::DeviceMemory { bytes, capacity_bytes, .. } => {
                        Error::DeviceMemory { bytes, used_bytes: account.used_bytes, capacity_bytes }
                    }
                    error => error,
                })
            }
        }
    }

    /// Memory outside the account, for the libraries' own use.
    pub fn allocate_uncounted(&self, bytes: usize) -> Result<CUdeviceptr> {
        let mut address = 0;
        // SAFETY: the context is current, and the place is for one address. The driver refuses empty blocks.
        let status = unsafe { (self.driver.mem_alloc)(&mut address, bytes.max(1)) };
        if status == OUT_OF_MEMORY {
            return Err(self.out_of_memory(bytes as u64));
        }
        self.check(status, "allocate memory")?;
        Ok(address)
    }

    /// Gives a block back, after all work on the GPU: the caller's streams may still use it, and which of them do is
    /// not kept. Errors are kept for the next call.
    pub fn free(&self, address: CUdeviceptr, bytes: u64) {
        let work_done = self.synchronize().is_ok();
        // First of all: as soon as the block is free, another thread may get one at the same address.
        locked(&self.account).blocks.remove(&address);
        if work_done {
            // SAFETY: the block came from `allocate`, is given back once, and no work that could touch it is left.
            let _ = self.check(unsafe { (self.driver.mem_free)(address) }, "free memory");
        }
        locked(&self.account).used_bytes -= bytes;
    }

    /// Gives a block back that is outside the account.
    pub fn free_uncounted(&self, address: CUdeviceptr) {
        if self.synchronize().is_ok() {
            // SAFETY: the block came from `allocate_uncounted`, is given back once, and no work on it is left.
            let _ = self.check(unsafe { (self.driver.mem_free)(address) }, "free memory");
        }
    }

    /// Waits for all work of the GPU.
    pub fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the context is current.
        self.check(unsafe { (self.driver.context_synchronize)() }, "finish the work submitted")
    }

    /// Bytes that nobody has allocated, this process or another.
    pub fn free_bytes(&self) -> Result<u64> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current, and both are places for one number.
        self.check(unsafe { (self.driver.mem_get_info)(&mut free, &mut total) }, "query the free memory")?;
        Ok(free as u64)
    }

    /// Panics where a region is not memory of this GPU that is in use: handing it over would let the GPU write
    /// anywhere.
    pub fn check_owner(&self, region: &Region) {
        let (address, bytes) = (region.address(), region.bytes() as u64);
        assert!(locked(&self.account).holds(address, bytes), "{bytes} bytes at {address:#x} are not of this device");
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: retained once in `new`; nothing that needs the context is left, since all of it holds the core.
        unsafe { (self.driver.context_release)(self.device) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_keeps_its_limit() {
        let mut account = CudaAccount::new(1000);
        account.reserve(600).unwrap();
        let refused = account.reserve(401);
        assert!(
            matches!(refused, Err(Error::DeviceMemory { bytes: 401, used_bytes: 600, capacity_bytes: 1000 })),
            "{refused:?}"
        );
        account.reserve(400).unwrap();
        assert!(account.reserve(u64::MAX).is_err());
        account.used_bytes -= 1000;
        assert_eq!((account.used_bytes, account.peak_bytes), (0, 1000));
    }

    #[test]
    fn only_blocks_in_use_are_owned() {
        let mut account = CudaAccount::new(1000);
        account.blocks.insert(4096, 256);
        account.blocks.insert(8192, 16);
        assert!(account.holds(4096, 256) && account.holds(4100, 0) && account.holds(8200, 8));
        assert!(!account.holds(4096, 257) && !account.holds(4095, 1) && !account.holds(8192, u64::MAX));
    }
}
