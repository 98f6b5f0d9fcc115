//! Detects the installed driver, libraries and GPUs. No query panics, and none opens a GPU.

use super::compile::compiler_version;
use super::core::describe;
use super::sys::{Blas, CUdevice, CUdevice_attribute, CUuuid, Driver, libraryPropertyType};
use crate::device::{Description, DeviceKind};
use crate::error::{Error, Result};
use std::ffi::{CStr, c_char, c_int};

/// The oldest major version of driver and libraries.
const OLDEST_MAJOR: u32 = 12;

/// Switches of cuBLAS that replace products of doubles by something that only estimates what they need.
const EMULATION: &[&str] = &["CUBLAS_EMULATE_DOUBLE_PRECISION"];

/// `(13, 0)` stands for CUDA 13.0.
type Version = (u32, u32);

/// The driver, with the versions of all parts.
pub(super) struct Installation {
    pub driver: &'static Driver,
    driver_version: Version,
    blas_version: Version,
    compiler_version: Version,
    pub count: usize,
}

impl Installation {
    /// Finds all parts, and whether they fit each other.
    pub fn find() -> Result<Installation> {
        let driver = Driver::load()?;
        // SAFETY: the call has no preconditions and may be repeated.
        ask(driver, unsafe { (driver.init)(0) }, "start")?;
        let mut number = 0;
        // SAFETY: the place is for one number.
        ask(driver, unsafe { (driver.driver_get_version)(&mut number) }, "report its version")?;
        let driver_version = (number.unsigned_abs() / 1000, number.unsigned_abs() % 1000 / 10);
        let (blas_version, compiler_version) = (blas_version(Blas::load()?), compiler_version()?);
        fit(driver_version, "cuBLAS", blas_version)?;
        fit(driver_version, "NVRTC", compiler_version)?;
        exact(|name| std::env::var(name).ok())?;
        let mut count = 0;
        // SAFETY: the place is for one number.
        ask(driver, unsafe { (driver.device_get_count)(&mut count) }, "count its GPUs")?;
        if count <= 0 {
            return Err(Error::NoDevice("the CUDA driver finds no GPU".into()));
        }
        Ok(Installation { driver, driver_version, blas_version, compiler_version, count: count as usize })
    }

    /// The driver's handle of a GPU.
    pub fn device(&self, index: usize) -> Result<CUdevice> {
        let count = self.count;
        let number = c_int::try_from(index).ok().filter(|_| index < count);
        let number =
            number.ok_or_else(|| Error::NoDevice(format!("this machine has {count} CUDA devices, counted from 0")))?;
        let mut device = 0;
        // SAFETY: the place is for one handle.
        ask(self.driver, unsafe { (self.driver.device_get)(&mut device, number) }, "identify a GPU")?;
        Ok(device)
    }

    /// The description of a GPU.
    pub fn describe(&self, index: usize) -> Result<Description> {
        let (driver, device) = (self.driver, self.device(index)?);
        let mut name = [0 as c_char; 256];
        // SAFETY: the places are as many as are passed to the call.
        let status = unsafe { (driver.device_get_name)(name.as_mut_ptr(), name.len() as c_int - 1, device) };
        ask(driver, status, "identify a GPU")?;
        // SAFETY: the last place was not offered to the call and is zero still.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let mut bytes = 0;
        // SAFETY: the place is for one size.
        ask(driver, unsafe { (driver.device_total_mem)(&mut bytes, device) }, "measure a GPU's memory")?;
        Ok(Description { name, kind: DeviceKind::Cuda, index, driver: self.versions(), memory_bytes: bytes as u64 })
    }

    /// A number that identifies a GPU, or a part of one that acts as a GPU, whichever other GPUs are visible.
    pub fn identity(&self, device: CUdevice) -> Result<u64> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: the place is for the 16 bytes of one identity.
        ask(self.driver, unsafe { (self.driver.device_get_uuid)(&mut uuid, device) }, "query a GPU's identity")?;
        Ok(xxhash_rust::xxh3::xxh3_64(&uuid.bytes.map(|byte| byte as u8)))
    }

    /// Compute capability of a GPU, `(9, 0)` for 9.0.
    pub fn capability(&self, device: CUdevice) -> Result<(u32, u32)> {
        let number = |attribute: CUdevice_attribute| -> Result<u32> {
            let mut number = 0;
            // SAFETY: the place is for one number.
            let status = unsafe { (self.driver.device_get_attribute)(&mut number, attribute, device) };
            ask(self.driver, status, "query a GPU's generation")?;
            Ok(number.unsigned_abs())
        };
        Ok((
            number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    fn versions(&self) -> String {
        let text = |(major, minor): Version| format!("{major}.{minor}");
        let [driver, blas, compiler] = [self.driver_version, self.blas_version, self.compiler_version].map(text);
        format!("driver {driver}, cuBLAS {blas}, NVRTC {compiler}")
    }
}

/// All CUDA GPUs of this machine.
///
/// # Errors
/// [`Error::NoDevice`] if there is no driver, library or GPU, or if their versions do not match; the text names the
/// missing part.
pub fn probe() -> Result<Vec<Description>> {
    let installation = Installation::find()?;
    (0..installation.count).map(|index| installation.describe(index)).collect()
}

/// Before a GPU is open, every failure means that there is none to use.
fn ask(driver: &Driver, status: c_int, what: &str) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(Error::NoDevice(format!("the CUDA driver cannot {what}: {}", describe(driver, status)))),
    }
}

fn blas_version(blas: &Blas) -> Version {
    let number = |property: libraryPropertyType| {
        let mut number = 0;
        // SAFETY: the place is for one number; the call needs no handle and fails only on unknown properties.
        unsafe { (blas.get_property)(property, &mut number) };
        number.unsigned_abs()
    };
    (number(libraryPropertyType::MAJOR_VERSION), number(libraryPropertyType::MINOR_VERSION))
}

/// Libraries of a major version run on every driver of that version or a newer one.
fn fit(driver: Version, title: &str, library: Version) -> Result<()> {
    let text = |(major, minor): Version| format!("{major}.{minor}");
    if library.0 < OLDEST_MAJOR {
        let found = text(library);
        return Err(Error::NoDevice(format!("{title} {found} is too old: {OLDEST_MAJOR}.0 or newer is needed")));
    }
    if driver.0 < library.0 {
        let (found, library, needed) = (text(driver), text(library), library.0);
        return Err(Error::NoDevice(format!(
            "the CUDA driver is too old: it supports CUDA {found}, but {title} {library} needs {needed}.0 or newer"
        )));
    }
    Ok(())
}

/// Refuses switches under which a product of doubles is not exact where it could be.
fn exact(variable: impl Fn(&str) -> Option<String>) -> Result<()> {
    let on = |name: &&&str| variable(name).is_some_and(|value| !["", "0"].contains(&value.trim()));
    match EMULATION.iter().find(on) {
        None => Ok(()),
        Some(name) => Err(Error::NoDevice(format!(
            "{name} is set, which allows cuBLAS to round sums that must be exact: unset it"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<()>) -> String {
        match result {
            Err(Error::NoDevice(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn versions_that_do_not_fit_are_named() {
        fit((13, 0), "cuBLAS", (13, 5)).unwrap();
        fit((13, 0), "cuBLAS", (12, 4)).unwrap();
        let old = message(fit((12, 8), "NVRTC", (13, 0)));
        assert!(old.contains("12.8") && old.contains("NVRTC 13.0") && old.contains("too old"), "{old}");
        assert!(message(fit((13, 0), "cuBLAS", (11, 8))).contains("cuBLAS 11.8 is too old"));
    }

    #[test]
    fn emulated_doubles_are_refused() {
        exact(|_| None).unwrap();
        exact(|_| Some("0".into())).unwrap();
        assert!(message(exact(|_| Some("1".into()))).contains("CUBLAS_EMULATE_DOUBLE_PRECISION"));
    }

    /// On a machine without a GPU this is the whole of what the module does.
    #[test]
    fn asking_never_panics() {
        match probe() {
            Ok(gpus) => assert!(!gpus.is_empty()),
            Err(Error::NoDevice(message)) => println!("no GPU: {message}"),
            Err(error) => panic!("{error:?}"),
        }
    }
}
